// SPDX-License-Identifier: Apache-2.0
//! Tests of cases in which QEMU 7.2 does not follow the specification.

use super::interrupts::raise;
use super::status::*;
use crate::layout::*;
use crate::program::{Block, Expected, Mode, Program};
use crate::runtime::{csr, csr::*, reg::*};

/// Interrupt priorities, misaligned SC, and page tables outside memory, where QEMU 7.2 differs from the
/// specification. Only the machine runs these tests.
pub fn machine_only(program: &mut Program) {
    let mut block = Block::new("interrupt priorities", Mode::Machine);
    let mut a = program.asm();
    for code in [1, 5, 9, 3, 7] {
        raise(&mut a, code);
    }
    a.li(T0, 0xaaa);
    a.csr("csrrw", 0, csr::MIE, T0);
    a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
    for _ in 0..6 {
        a.i("addi", 0, 0, 0);
    }
    block.traps = 6;
    let interrupt = |code: u64| Expected { what: format!("interrupt {code}"), cause: Some(1 << 63 | code), tval: 0 };
    block.expected = Some([3, 7, 9, 1, 5].map(interrupt).to_vec());
    program.add(a, block);

    // A return to a mode below M clears MPRV; a return to M keeps it.
    for (mode, kept) in [(Mode::User, 0), (Mode::Supervisor, 0), (Mode::Machine, 1)] {
        for ret in ["mret", "sret"] {
            let mut block = Block::new(format!("MPRV after {ret} from {mode:?}"), Mode::Machine);
            block.flags = flag::ECALL_TO_M;
            block.expected_x = vec![(20, if ret == "mret" { kept } else { 0 })];
            let mut a = program.asm();
            if ret == "mret" {
                enter(&mut a, mode, MPRV);
            } else if mode == Mode::Machine {
                let there = a.label();
                a.la(T1, there);
                a.csr("csrrw", 0, SEPC, T1);
                a.li(T0, MPRV | SPP);
                a.csr("csrrs", 0, MSTATUS, T0);
                a.plain("sret");
                a.bind(there);
            }
            a.plain("ecall");
            a.csr("csrrs", 20, MSTATUS, 0);
            a.i("srli", 20, 20, 17);
            a.i("andi", 20, 20, 1);
            block.traps = 2;
            program.add(a, block);
        }
    }

    // AMOs and SC outside memory are store faults; QEMU 7.2 reports loads.
    let mut block = Block::new("AMO outside memory", Mode::Machine);
    let mut a = program.asm();
    a.li(T1, NOWHERE);
    a.r("amoadd.w", T2, T1, T2);
    a.r("amomax.d", T2, T1, T2);
    block.traps = 2;
    let outside = || Expected { what: "AMO".into(), cause: Some(7), tval: NOWHERE };
    block.expected = Some(vec![outside(), outside()]);
    program.add(a, block);

    let mut block = Block::new("misaligned SC", Mode::Machine);
    let mut a = program.asm();
    a.li(T1, DATA + 2);
    a.r("sc.w", T2, T1, 0);
    a.i("addi", T1, T1, 2);
    a.r("sc.d", T2, T1, 0);
    block.traps = 2;
    let misaligned = |at: u64| Expected { what: "SC".into(), cause: Some(6), tval: at };
    block.expected = Some(vec![misaligned(DATA + 2), misaligned(DATA + 4)]);
    program.add(a, block);

    // Made from M-mode with MPRV, so that the code itself can still be fetched.
    let mut block = Block::new("page table outside memory", Mode::Machine);
    let mut a = program.asm();
    a.li(T0, 8 << 60 | NOWHERE >> 12);
    a.li(T1, DATA);
    a.csr("csrrw", 0, SATP, T0);
    a.plain("sfence.vma");
    for name in ["ld", "sd", "amoadd.d"] {
        a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
        a.csr("csrrs", 0, MSTATUS, T3);
        match name {
            "ld" => a.i(name, T2, T1, 0),
            "sd" => a.s(name, T2, T1, 0),
            _ => a.r(name, T2, T1, T2),
        }
    }
    a.li(T3, MPRV);
    a.csr("csrrc", 0, MSTATUS, T3);
    block.traps = 3;
    let fault = |cause: u64| Expected { what: "walk".into(), cause: Some(cause), tval: DATA };
    block.expected = Some(vec![fault(5), fault(7), fault(7)]);
    program.add(a, block);
}
