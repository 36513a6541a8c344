// SPDX-License-Identifier: Apache-2.0
//! Bits of `mstatus`, and how to continue in another mode.

use crate::asm::Asm;
use crate::program::Mode;
use crate::runtime::{csr::*, reg::*};

pub const MPP: u64 = 3 << 11;
pub const SPP: u64 = 1 << 8;
pub const MIE_BIT: u64 = 1 << 3;
pub const SIE_BIT: u64 = 1 << 1;
pub const MPIE: u64 = 1 << 7;
pub const SPIE: u64 = 1 << 5;
pub const MPRV: u64 = 1 << 17;
pub const TVM: u64 = 1 << 20;
pub const TW: u64 = 1 << 21;
pub const TSR: u64 = 1 << 22;
pub const ILLEGAL: u64 = 0;

/// Emits code for M-mode that continues in `mode`, with `status` bits set. Changes T0 and T1.
pub fn enter(a: &mut Asm, mode: Mode, status: u64) {
    let there = a.label();
    a.li(T0, MPP);
    a.csr("csrrc", 0, MSTATUS, T0);
    a.li(T0, (mode as u64) << 11 | status);
    a.csr("csrrs", 0, MSTATUS, T0);
    a.la(T1, there);
    a.csr("csrrw", 0, MEPC, T1);
    a.plain("mret");
    a.bind(there);
}
