// SPDX-License-Identifier: Apache-2.0
//! PMP entries, and self-modifying code.

use super::status::*;
use crate::layout::*;
use crate::program::{Block, Mode, Program};
use crate::runtime::{csr::*, reg::*};

/// PMP entries of every kind around a few words, tested by loads and stores of every size under the rules of S-mode.
pub fn physical_memory_protection(program: &mut Program) {
    let window = DATA + program.window(|| 0x1122_3344_5566_7788).next_multiple_of(64) + 128;
    const NA4: u64 = 2 << 3;
    const NAPOT: u64 = 3 << 3;
    const TOR: u64 = 1 << 3;
    let napot = |size: u64| window >> 2 | (size / 8 - 1);
    // (name, pmpaddr0, pmpaddr1, kind, which of the two entries is of that kind)
    let entries = [
        ("NA4", window >> 2, 0, NA4, 0),
        ("NAPOT 8", napot(8), 0, NAPOT, 0),
        ("NAPOT 64", napot(64), 0, NAPOT, 0),
        ("NAPOT 4096", (window & !0xfff) >> 2 | 0x1ff, 0, NAPOT, 0),
        ("TOR", window >> 2, (window + 12) >> 2, TOR, 1),
        ("TOR, empty", window >> 2, window >> 2, TOR, 1),
        ("off", window >> 2, 0, 0, 0),
    ];
    for (name, first, second, kind, which) in entries {
        for rights in [0u64, 1, 3, 4, 5, 7] {
            let mut block = Block::new(format!("PMP {name}, XWR {rights:03b}"), Mode::Machine);
            let mut a = program.asm();
            a.li(T0, first);
            a.csr("csrrw", 0, PMPADDR0, T0);
            a.li(T0, second);
            a.csr("csrrw", 0, PMPADDR0 + 1, T0);
            a.li(T0, u64::MAX >> 10);
            a.csr("csrrw", 0, PMPADDR0 + 2, T0);
            a.li(T0, (kind | rights) << (8 * which) | 0x1f << 16);
            a.csr("csrrw", 0, PMPCFG0, T0);
            a.plain("sfence.vma");
            for at in [window - 8, window - 4, window, window + 4, window + 8, window + 12, window + 64, window + 256] {
                for (name, store) in
                    [("lb", false), ("lw", false), ("ld", false), ("sb", true), ("sw", true), ("sd", true)]
                {
                    a.li(T1, at);
                    a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
                    a.csr("csrrs", 0, MSTATUS, T3);
                    if store {
                        a.s(name, T1, T1, 0);
                    } else {
                        a.i(name, T2, T1, 0);
                        a.r("xor", S0, S0, T2);
                    }
                    a.li(T3, MPRV);
                    a.csr("csrrc", 0, MSTATUS, T3);
                }
            }
            block.traps = 50;
            program.add(a, block);
        }
    }
    // Fetches of the playground's `ret` with and without X, and walks through page tables that the walker may not read.
    for rights in [0u64, 1, 3, 4, 5, 7] {
        let mut block = Block::new(format!("PMP fetch and walk, XWR {rights:03b}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        block.satp = program.spaces.s_satp;
        let mut a = program.asm();
        for region in [PLAYGROUND, program.spaces.s_satp << 12 & 0xffff_ffff] {
            a.li(T0, region >> 2 | 0x1ff);
            a.csr("csrrw", 0, PMPADDR0, T0);
            a.li(T0, u64::MAX >> 10);
            a.csr("csrrw", 0, PMPADDR0 + 1, T0);
            a.li(T0, NAPOT | rights | 0x1f00);
            a.csr("csrrw", 0, PMPCFG0, T0);
            a.plain("sfence.vma");
            if region == PLAYGROUND {
                enter(&mut a, Mode::Supervisor, 0);
                a.li(T1, PLAYGROUND);
                a.i("jalr", RA, T1, 0);
                a.i("ld", T2, T1, 64);
                a.s("sd", T2, T1, 64);
                a.plain("ecall");
            } else {
                a.li(T1, DATA);
                for (name, store) in [("ld", false), ("sd", true)] {
                    a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
                    a.csr("csrrs", 0, MSTATUS, T3);
                    if store {
                        a.s(name, T2, T1, 0);
                    } else {
                        a.i(name, T2, T1, 0);
                    }
                }
                a.li(T3, MPRV);
                a.csr("csrrc", 0, MSTATUS, T3);
            }
        }
        block.traps = 10;
        program.add(a, block);
    }
}

/// Code that writes its own next instructions, and `fence.i`.
pub fn self_modifying(program: &mut Program) {
    let modes = [
        (Mode::Machine, false),
        (Mode::Supervisor, false),
        (Mode::Supervisor, true),
        (Mode::User, false),
        (Mode::User, true),
    ];
    for ((mode, paging), style) in modes.into_iter().flat_map(|m| [(m, ""), (m, ", by halves"), (m, ", across pages")])
    {
        let mut block = Block::new(format!("self-modifying code in {mode:?}, Sv39 {paging}{style}"), mode);
        if paging {
            block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
        }
        block.repeat = 3;
        let mut a = program.asm();
        let place = a.label();
        let rounds = 12;
        a.la(T0, place);
        a.li(T2, rounds);
        let top = a.bound();
        // addi s0, s0, T2: the immediate changes in every round.
        a.i("slli", T1, T2, 20);
        a.li(T3, 0x0004_0413);
        a.r("or", T1, T1, T3);
        if style.is_empty() {
            a.s("sw", T1, T0, 0);
            *block.executed.entry("sw").or_default() += rounds;
        } else {
            // Odd rounds write only the second half of the instruction.
            let (whole, done) = (a.label(), a.label());
            a.i("andi", T3, T2, 1);
            a.b("beq", T3, 0, whole);
            a.i("srli", T1, T1, 16);
            a.s("sh", T1, T0, 2);
            a.j(done);
            a.bind(whole);
            a.s("sw", T1, T0, 0);
            a.bind(done);
        }
        // Two compressed instructions: c.addi s1, 1, followed by c.slli s1, 2 and c.slli s1, 1 by turns.
        a.i("andi", T3, T2, 1);
        a.i("slli", T3, T3, 2);
        a.li(T4, 0x0486);
        a.r("add", T4, T4, T3);
        a.s("sh", T4, T0, 6);
        a.plain("fence.i");
        while style == ", across pages" && a.here() % 4096 != 4094 {
            a.half(1);
        }
        a.bind(place);
        a.word(0);
        a.half(0x0485);
        a.half(0);
        a.i("addi", T2, T2, -1);
        let out = a.label();
        a.b("beq", T2, 0, out);
        a.j(top);
        a.bind(out);
        for name in ["slli", "sh", "fence.i", "addi", "c.addi", "c.slli"] {
            *block.executed.entry(name).or_default() += rounds;
        }
        // The next run of the block expects an illegal instruction here.
        a.s("sw", 0, T0, 0);
        block.traps = 2;
        program.add(a, block);
    }
}
