// SPDX-License-Identifier: Apache-2.0
//! Values that find mistakes: limits of integer and floating-point formats, and random values between them.

use fastrand::Rng;

/// A random integer operand.
pub fn integer(rng: &mut Rng) -> u64 {
    let random = rng.u64(..);
    match rng.u8(..12) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 63,
        3 => i64::MAX as u64,
        4 => *rng.choice(&[0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_ffff_8000_0000, 1 << 32]).expect("not empty"),
        5 => i64::from(random as i8) as u64,
        6 => i64::from(random as i32) as u64,
        7 => 1 << (random & 63),
        8 => (1u64 << (random & 63)).wrapping_sub(1),
        9 => random & 0xff,
        _ => random,
    }
}

/// A floating-point format: number of bits of its exponent and of its fraction.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
}
const SINGLE: Format = Format { exponent: 8, fraction: 23 };
const DOUBLE: Format = Format { exponent: 11, fraction: 52 };

fn float(rng: &mut Rng, f: Format) -> u64 {
    let top = (1u64 << f.exponent) - 1;
    let bias = top >> 1;
    let ones = (1u64 << f.fraction) - 1;
    let random = rng.u64(..) & ones;
    let sparse = (1u64 << rng.u32(..f.fraction)) | (1u64 << rng.u32(..f.fraction));
    let fraction =
        *rng.choice(&[0, 0, 1, ones, ones - 1, ones ^ 1, random, random, sparse, ones & !sparse]).expect("not empty");
    let (exponent, fraction) = match rng.u8(..16) {
        0 => (0, 0),
        1 => (0, fraction),
        2 => (1, fraction),
        3 => (top - 1, fraction),
        4 => (top, 0),
        5 => (top, fraction | 1 << (f.fraction - 1)),
        6 => (top, fraction & !(1 << (f.fraction - 1)) | 1),
        // Values near the limits of integers: 2^31, 2^32, 2^63, 2^64.
        7 => (bias + [30, 31, 32, 62, 63, 64][rng.usize(..6)], fraction),
        // Values whose products and quotients are close to the smallest and largest numbers.
        8 => (bias / 2 + rng.u64(..4), fraction),
        9 => (bias + bias / 2 + rng.u64(..4) - 2, fraction),
        10 => (rng.u64(..=top), random),
        // Halves and small integers.
        11 => (bias + rng.u64(..4), (fraction >> (f.fraction - 3)) << (f.fraction - 3)),
        _ => (bias + rng.u64(..8) - 4, fraction),
    };
    u64::from(rng.bool()) << (f.exponent + f.fraction) | exponent.min(top) << f.fraction | fraction
}

/// A random value of a floating-point register: a double, a NaN-boxed single, or sometimes an incorrectly boxed single.
pub fn floating(rng: &mut Rng) -> u64 {
    match rng.u8(..16) {
        0..7 => float(rng, DOUBLE),
        7..15 => float(rng, SINGLE) | 0xffff_ffff_0000_0000,
        _ => float(rng, SINGLE) | u64::from(rng.u32(..)) << 32,
    }
}

/// A random value for memory.
pub fn memory(rng: &mut Rng) -> u64 {
    match rng.u8(..4) {
        0 => float(rng, DOUBLE),
        1 => float(rng, SINGLE) << 32 | float(rng, SINGLE),
        _ => integer(rng),
    }
}
