// SPDX-License-Identifier: Apache-2.0
//! Interrupts, one at a time, and interrupts through the PLIC.

use super::status::*;
use crate::asm::Asm;
use crate::layout::*;
use crate::program::{Block, Mode, Program};
use crate::runtime::{SELF_LOOP, csr, csr::*, reg::*};

/// Makes an interrupt pending. Changes T0 and T1.
pub fn raise(a: &mut Asm, code: u64) {
    match code {
        3 => {
            a.li(T0, MSIP);
            a.li(T1, 1);
            a.s("sw", T1, T0, 0);
        }
        7 => {
            a.li(T0, MTIMECMP);
            a.s("sd", 0, T0, 0);
        }
        _ => {
            a.li(T0, 1 << code);
            a.csr("csrrs", 0, MIP, T0);
        }
    }
}

/// Each interrupt alone: first pending, then enabled, and the other way round; direct and vectored; delegated or not; in
/// every mode, with the enable bits of all modes on and off.
pub fn interrupts(program: &mut Program) {
    for code in [1u64, 3, 5, 7, 9] {
        for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
            for setting in 0..16u64 {
                let (delegated, vectored) = (setting & 1 == 1, setting & 2 == 2);
                let (mie, sie) = (setting & 4 == 4, setting & 8 == 8);
                if delegated && matches!(code, 3 | 7) {
                    continue;
                }
                let name = format!(
                    "interrupt {code} in {mode:?}, delegated {delegated}, vectored {vectored}, MIE {mie}, SIE {sie}"
                );
                let mut block = Block::new(name, Mode::Machine);
                block.flags = flag::ECALL_TO_M;
                block.mideleg = if delegated { 1 << code } else { 0 };
                block.covers.push(format!("interrupt {code}"));
                let mut a = program.asm();
                if vectored {
                    a.li(T0, program.runtime.m_vectors | 1);
                    a.csr("csrrw", 0, MTVEC, T0);
                    a.li(T0, program.runtime.s_vectors | 1);
                    a.csr("csrrw", 0, STVEC, T0);
                }
                raise(&mut a, code);
                a.csr("csrrs", 20, MIP, 0);
                a.csr("csrrs", 21, SIP, 0);
                a.li(T0, 1 << code);
                a.csr("csrrs", 0, csr::MIE, T0);
                a.csr("csrrs", 22, csr::SIE, 0);
                // Enter the mode. If an interrupt is taken, that happens at the first instruction there: the return sets MIE and
                // SIE.
                enter(&mut a, mode, if mie { MPIE } else { 0 } | if sie { SIE_BIT } else { 0 });
                a.i("addi", 23, 23, 1);
                a.plain("ecall");
                a.csr("csrrs", 24, MIP, 0);
                // Disable the interrupts again.
                a.csr("csrrw", 0, csr::MIE, 0);
                a.csr("csrrw", 0, MIP, 0);
                block.traps = 6;
                program.add(a, block);
            }
        }
    }
    // These interrupts come from a device, after a delay; so the program waits at one instruction.
    for (code, waiting) in [(3u64, SELF_LOOP), (7, SELF_LOOP), (3, 0x1050_0073), (7, 0x1050_0073)] {
        let mut block = Block::new(
            format!("interrupt {code} while {}", if waiting == SELF_LOOP { "looping" } else { "in wfi" }),
            Mode::Machine,
        );
        let mut a = program.asm();
        a.li(T0, 1 << code);
        a.csr("csrrs", 0, csr::MIE, T0);
        if waiting == SELF_LOOP {
            a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
            raise(&mut a, code);
        } else {
            raise(&mut a, code);
            block.ran("wfi");
        }
        a.word(waiting);
        if waiting != SELF_LOOP {
            a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
        }
        block.traps = 2;
        // The interrupt may come at another instruction on the way to the loop.
        if waiting == SELF_LOOP {
            a.i("addi", T0, 0, 0);
        }
        program.add(a, block);
    }
}

/// The UART's interrupt through the PLIC, to M-mode and to S-mode.
pub fn external_interrupt(program: &mut Program) {
    for (context, code) in [(0u64, 11u64), (1, 9)] {
        let mut block = Block::new(format!("UART interrupt to context {context}"), Mode::Machine);
        block.covers.push(format!("interrupt {code}"));
        block.flags = flag::ECALL_TO_M;
        let mut a = program.asm();
        let write = |a: &mut Asm, at: u64, value: u64, op: &str| {
            a.li(T0, at);
            a.li(T1, value);
            a.s(op, T1, T0, 0);
        };
        write(&mut a, PLIC + UART_SOURCE * 4, 1, "sw");
        write(&mut a, PLIC + 0x2000 + 0x80 * context, 1 << UART_SOURCE, "sw");
        write(&mut a, PLIC + 0x20_0000 + 0x1000 * context, 0, "sw");
        a.li(T0, 1 << code);
        a.csr("csrrw", 0, csr::MIE, T0);
        // Transmitter empty.
        write(&mut a, UART + 1, 2, "sb");
        a.plain("wfi");
        block.ran("wfi");
        a.csr("csrrs", 20, MIP, 0);
        a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
        a.i("addi", 0, 0, 0);
        a.csr("csrrci", 0, MSTATUS, MIE_BIT as u8);
        a.li(T0, PLIC + 0x20_0004 + 0x1000 * context);
        a.i("lw", 21, T0, 0);
        a.i("lw", 22, T0, 0);
        a.li(T1, UART);
        a.i("lbu", 23, T1, 2);
        // The upper bits say whether the FIFOs are on, which they may be after a reset.
        a.i("andi", 23, 23, 15);
        a.s("sb", 0, T1, 1);
        a.s("sw", 21, T0, 0);
        a.i("lw", 24, T0, 0);
        a.csr("csrrs", 25, MIP, 0);
        write(&mut a, PLIC + 0x2000 + 0x80 * context, 0, "sw");
        block.traps = 3;
        program.add(a, block);
    }
}
