// SPDX-License-Identifier: Apache-2.0
//! Results of atomic memory operations, for the interpreter and for translated code.

use crate::op::Slot;

/// Computes what an AMO writes to memory that holds `old`. Words are sign-extended.
pub fn combine(s: Slot, old: u64, b: u64) -> u64 {
    // Sign-extended words compare in the same order, as signed and as unsigned numbers.
    let b = if s.imm & 3 == 2 { b as i32 as u64 } else { b };
    match s.imm >> 8 {
        0 => old.wrapping_add(b),
        1 => b,
        4 => old ^ b,
        8 => old | b,
        12 => old & b,
        16 => (old as i64).min(b as i64) as u64,
        20 => (old as i64).max(b as i64) as u64,
        24 => old.min(b),
        _ => old.max(b),
    }
}
