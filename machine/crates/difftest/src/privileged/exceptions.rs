// SPDX-License-Identifier: Apache-2.0
//! Synchronous exceptions and their delegation.

use super::status::*;
use crate::asm::Asm;
use crate::layout::*;
use crate::program::{Block, Mode, Program};
use crate::runtime::{csr::*, reg::*};
use crate::tables::DATA_OFFSET;

/// Emits one of each exception that needs no page table. The caller decides where they go.
/// QEMU 7.2 reports an AMO outside memory as a load, so it is left out unless addresses are `translated`.
fn raise_all(a: &mut Asm, program: &Program, translated: bool) -> u64 {
    a.word(ILLEGAL as u32);
    a.word(0xffff_f07b);
    a.half(0x0000);
    a.li(T1, NOWHERE);
    for name in ["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu", "flw", "fld"] {
        a.i(name, T2, T1, 8);
    }
    for name in ["sb", "sh", "sw", "sd", "fsw", "fsd"] {
        a.s(name, T2, T1, 16);
    }
    a.r("lr.d", T2, T1, 0);
    a.i("jalr", RA, T1, 0);
    a.i("jalr", RA, T1, 2);
    // Misaligned atomics.
    a.li(T1, DATA + 2);
    a.r("lr.w", T2, T1, 0);
    a.r("lr.d", T2, T1, 0);
    a.r("amoswap.w", T2, T1, T2);
    a.r("amomaxu.d", T2, T1, T2);
    a.plain("ecall");
    // Page faults if there are page tables; otherwise access faults, or no fault.
    let case = |name: &str| program.spaces.cases.iter().find(|c| c.name == name).map_or(0, |c| c.va);
    let va = case("2 MiB entry invalid") + DATA_OFFSET;
    a.li(T1, va);
    a.i("ld", T2, T1, 0);
    a.s("sd", T2, T1, 0);
    if translated {
        a.r("amoor.d", T2, T1, T2);
    }
    a.i("jalr", RA, T1, 0);
    a.li(T1, 0xffff_ffff_ffff_f000);
    a.i("ld", T2, T1, 0);
    a.s("sd", T2, T1, 0);
    a.i("jalr", RA, T1, 0);
    a.li(T2, 0);
    48
}

/// Every synchronous exception, in every mode, bare and with Sv39, handled by M-mode.
pub fn exceptions(program: &mut Program) {
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        for paging in [false, true] {
            let mut block =
                Block::new(format!("exceptions in {mode:?}{}", if paging { " with Sv39" } else { "" }), mode);
            if paging {
                block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
            }
            let mut a = program.asm();
            block.traps = raise_all(&mut a, program, paging && mode != Mode::Machine);
            a.plain("ebreak");
            program.add(a, block);
        }
    }
}

/// The same exceptions, delegated: all of them, and each cause alone.
pub fn delegation(program: &mut Program) {
    const DELEGABLE: u64 = 0xb3ff;
    const BREAKPOINT: u64 = 1 << 3;
    let alone = (0..16).filter(|n| DELEGABLE >> n & 1 == 1).map(|n| 1u64 << n);
    for medeleg in alone.chain([DELEGABLE]) {
        // The block's end is an ebreak that must reach M-mode.
        if medeleg == BREAKPOINT {
            continue;
        }
        for (mode, paging) in
            [(Mode::Supervisor, true), (Mode::User, true), (Mode::Supervisor, false), (Mode::User, false)]
        {
            let name = format!("exceptions in {mode:?}, Sv39 {paging}, medeleg {medeleg:#x}");
            let mut block = Block::new(name, mode);
            if paging {
                block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
            }
            block.medeleg = medeleg & !BREAKPOINT;
            let mut a = program.asm();
            block.traps = raise_all(&mut a, program, paging);
            program.add(a, block);
        }
        // A trap is never delegated to a less privileged mode.
        let mut block = Block::new(format!("exceptions in Machine, medeleg {medeleg:#x}"), Mode::Machine);
        block.medeleg = medeleg;
        let mut a = program.asm();
        block.traps = raise_all(&mut a, program, false);
        program.add(a, block);
    }
    for mode in [Mode::Supervisor, Mode::User] {
        let mut block = Block::new(format!("delegated breakpoint in {mode:?}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        block.medeleg = BREAKPOINT;
        let mut a = program.asm();
        enter(&mut a, mode, SPIE);
        a.plain("ebreak");
        block.ran("ebreak");
        a.half(0x9002);
        block.ran("c.ebreak");
        a.plain("ecall");
        // After a breakpoint the trap value is zero or the breakpoint's address, so clear it.
        a.csr("csrrw", 0, STVAL, 0);
        block.traps = 4;
        program.add(a, block);
    }
}
