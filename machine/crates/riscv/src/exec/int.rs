// SPDX-License-Identifier: Apache-2.0
//! Multiplication and division as the M extension defines them: they never trap; zero divisors and overflow give fixed values.

/// Upper half of the signed product.
pub fn mulh(a: i64, b: i64) -> u64 {
    ((i128::from(a) * i128::from(b)) >> 64) as u64
}

/// Upper half of the product of a signed and an unsigned number.
pub fn mulhsu(a: i64, b: u64) -> u64 {
    ((i128::from(a) * i128::from(b)) >> 64) as u64
}

/// Upper half of the unsigned product.
pub fn mulhu(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Signed quotient: -1 for a division by zero, the dividend on overflow. Word operands are sign-extended.
pub fn div(a: i64, b: i64) -> i64 {
    if b == 0 { -1 } else { a.wrapping_div(b) }
}

/// Unsigned quotient: all ones for a division by zero. Word operands are zero-extended.
pub fn divu(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

/// Signed remainder: the dividend for a division by zero, 0 on overflow. Word operands are sign-extended.
pub fn rem(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { a.wrapping_rem(b) }
}

/// Unsigned remainder: the dividend for a division by zero. Word operands are zero-extended.
pub fn remu(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}
