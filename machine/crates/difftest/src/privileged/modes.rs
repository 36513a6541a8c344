// SPDX-License-Identifier: Apache-2.0
//! Returns, and instructions that a mode or a bit of `mstatus` makes illegal.

use super::status::*;
use crate::insn::{Form, WIDE};
use crate::layout::*;
use crate::program::{Block, Mode, Program};
use crate::runtime::{csr::*, reg::*};

/// `mret` and `sret` to every mode, with all previous values of the interrupt enable bits.
pub fn returns(program: &mut Program) {
    for bits in 0..4u64 {
        let mut block = Block::new(format!("mret and sret, previous enables {bits:02b}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        // QEMU 7.2 keeps MPRV where it should clear it; `machine_only` tests that.
        block.relax.mprv = true;
        let mut a = program.asm();
        for mode in [Mode::User, Mode::Supervisor, Mode::Machine] {
            let status = if bits & 1 == 1 { MPIE } else { 0 } | if bits & 2 == 2 { SPIE } else { 0 } | MPRV;
            a.li(T0, MPIE | SPIE | MPRV | MIE_BIT | SIE_BIT);
            a.csr("csrrc", 0, MSTATUS, T0);
            enter(&mut a, mode, status);
            block.ran("mret");
            // The record of the ecall shows the status.
            a.plain("ecall");
            block.ran("ecall");
        }
        for (from, to) in [(Mode::Machine, 0), (Mode::Machine, SPP), (Mode::Supervisor, 0), (Mode::Supervisor, SPP)] {
            a.li(T0, MPIE | SPIE | MPRV | MIE_BIT | SIE_BIT | SPP);
            a.csr("csrrc", 0, MSTATUS, T0);
            let status = to | if bits & 2 == 2 { SPIE } else { 0 } | if bits & 1 == 1 { MPRV | SIE_BIT } else { 0 };
            enter(&mut a, from, status);
            let there = a.label();
            a.la(T1, there);
            a.csr("csrrw", 0, SEPC, T1);
            a.plain("sret");
            block.ran("sret");
            a.bind(there);
            a.plain("ecall");
        }
        a.li(T0, MPRV);
        a.csr("csrrc", 0, MSTATUS, T0);
        block.traps = 20;
        program.add(a, block);
    }
}

/// Instructions that a mode or a bit of `mstatus` makes illegal.
pub fn guarded_instructions(program: &mut Program) {
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        for bits in 0..8u64 {
            let status = if bits & 1 == 1 { TVM } else { 0 }
                | if bits & 2 == 2 { TW } else { 0 }
                | if bits & 4 == 4 { TSR } else { 0 };
            let mut block =
                Block::new(format!("guarded instructions in {mode:?}, TSR TW TVM = {bits:03b}"), Mode::Machine);
            block.flags = flag::ECALL_TO_M;
            let mut a = program.asm();
            // An interrupt is pending and enabled, so that wfi continues at once where it is allowed. U-mode would take the
            // interrupt instead.
            if mode != Mode::User {
                a.li(T0, 2);
                a.csr("csrrw", 0, MIE, T0);
                a.csr("csrrw", 0, MIDELEG, T0);
                a.csr("csrrw", 0, MIP, T0);
            }
            enter(&mut a, mode, status);
            if mode != Mode::User {
                a.plain("wfi");
                block.ran("wfi");
            }
            a.csr("csrrs", T2, SATP, 0);
            a.csr("csrrw", 0, SATP, 0);
            a.plain("sfence.vma");
            a.r("sfence.vma", 0, T1, 0);
            a.r("sfence.vma", 0, 0, T1);
            block.ran("sfence.vma");
            a.csr("csrrs", T2, SSTATUS, 0);
            // Set a return address, in case the return is legal.
            let there = a.label();
            a.la(T1, there);
            a.csr("csrrw", 0, SEPC, T1);
            if mode != Mode::Machine {
                a.plain("sret");
            }
            a.bind(there);
            // The sret may have led to U-mode, where this instruction is illegal, too.
            if mode == Mode::User {
                a.plain("mret");
                a.plain("sret");
                a.plain("wfi");
            }
            a.plain("ecall");
            a.li(T2, 0);
            a.li(T1, 0);
            a.li(T0, TVM | TW | TSR);
            a.csr("csrrc", 0, MSTATUS, T0);
            block.traps = 20;
            program.add(a, block);
        }
    }
}

/// With FS off every floating-point instruction is illegal; with FS initial, the first write makes it dirty.
pub fn floating_point_off(program: &mut Program) {
    let is_float = |f: Form| {
        matches!(
            f,
            Form::LoadFp
                | Form::StoreFp
                | Form::F2
                | Form::F2Round
                | Form::F1Round
                | Form::F3Round
                | Form::FCompare
                | Form::FToInt
                | Form::FToIntRound
                | Form::IntToF
                | Form::IntToFRound
        )
    };
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        let mut block = Block::new(format!("floating point off in {mode:?}"), mode);
        block.mstatus = 0;
        block.x[10] = DATA + program.window(|| 0x3ff0_0000_0000_0000);
        let mut a = program.asm();
        for row in WIDE.iter().filter(|r| is_float(r.form)) {
            a.op(row.name, 10, 10, 10, 0);
        }
        // c.fld, c.fsd, c.fldsp, c.fsdsp.
        for half in [0x2108, 0xa108, 0x2502, 0xa02a] {
            a.half(half);
        }
        for n in 1..4 {
            a.csr("csrrs", T0, n, 0);
        }
        block.traps = 80;
        program.add(a, block);
    }
    for fs in [1u64, 2] {
        for row in WIDE.iter().filter(|r| is_float(r.form) && !matches!(r.form, Form::StoreFp)) {
            // An instruction that writes neither a register nor flags may or may not make FS dirty.
            let writes = matches!(
                row.form,
                Form::LoadFp
                    | Form::F2
                    | Form::F2Round
                    | Form::F1Round
                    | Form::F3Round
                    | Form::IntToF
                    | Form::IntToFRound
            );
            let mut block = Block::new(format!("FS from {fs} after {}", row.name), Mode::Machine);
            block.mstatus = fs << 13;
            block.relax.fs = !writes;
            block.x[10] = DATA;
            let mut a = program.asm();
            a.op(row.name, 10, 10, 10, 0);
            block.ran(row.name);
            program.add(a, block);
        }
        for (name, number) in [("fflags", 1), ("frm", 2), ("fcsr", 3)] {
            let mut block = Block::new(format!("FS from {fs} after a write to {name}"), Mode::Machine);
            block.mstatus = fs << 13;
            let mut a = program.asm();
            a.csr("csrrwi", 0, number, 1);
            block.ran("csrrwi");
            program.add(a, block);
        }
    }
}
