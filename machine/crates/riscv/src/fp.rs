// SPDX-License-Identifier: Apache-2.0
//! IEEE arithmetic with RISC-V's rounding modes, flags and canonical NaN.
//!
//! Berkeley SoftFloat (in its RISC-V form) defines the results. Host arithmetic is used only where it gives the same bits and
//! cannot change a flag: round to nearest even, inexact already raised, and operands and result far from every limit.

use softfloat_sys_riscv as sf;

/// Accrued exception flags, as in `fflags`.
pub mod flag {
    /// Inexact.
    pub const NX: u8 = 1;
    /// Invalid operation.
    pub const NV: u8 = 16;
}

/// The default NaN.
pub const NAN32: u32 = 0x7fc0_0000;
/// The default NaN.
pub const NAN64: u64 = 0x7ff8_0000_0000_0000;

/// Runs one SoftFloat operation with rounding mode `rm` and ORs the flags it raises into `flags`.
///
/// `f` may only call SoftFloat functions that take and return values.
pub fn soft<R>(rm: u8, flags: &mut u8, f: impl FnOnce() -> R) -> R {
    // SAFETY: SoftFloat keeps rounding mode and flags in thread-local variables; these functions only set and read them.
    unsafe {
        sf::softfloat_roundingMode_write_helper(rm);
        sf::softfloat_exceptionFlags_write_helper(0);
    }
    let r = f();
    // SAFETY: as above.
    *flags |= unsafe { sf::softfloat_exceptionFlags_read_helper() };
    r
}

macro_rules! precision {
    ($name:ident, $bits:ty, $host:ty, $t:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $sqrt:ident, $fma:ident,
     $eq:ident, $lt:ident, $le:ident, $i32:ident, $u32:ident, $i64:ident, $u64:ident,
     $from_i32:ident, $from_u32:ident, $from_i64:ident, $from_u64:ident, $nan:expr, $fraction:expr) => {
        /// Arithmetic on the bits of one precision.
        pub mod $name {
            use super::{flag, sf, soft};

            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            const QUIET: $bits = 1 << ($fraction - 1);
            const INFINITY: $bits = (SIGN - 1) & !((1 << $fraction) - 1);

            fn v(v: $bits) -> sf::$t {
                sf::$t { v }
            }

            /// Whether the exponent is so far from both ends of its range that a result cannot have overflowed or underflowed, or
            /// be exact only because it is zero.
            fn tame(v: $bits) -> bool {
                let e = (v & INFINITY) >> $fraction;
                e > 1 && e < (INFINITY >> $fraction)
            }

            fn is_nan(v: $bits) -> bool {
                v & !SIGN > INFINITY
            }

            fn is_signaling(v: $bits) -> bool {
                is_nan(v) && v & QUIET == 0
            }

            macro_rules! binary {
                ($fn:ident, $soft:ident, $op:tt) => {
                    /// Result rounded as `rm` says; raises flags in `flags`.
                    #[inline]
                    pub fn $fn(a: $bits, b: $bits, rm: u8, flags: &mut u8) -> $bits {
                        if rm == 0 && *flags & flag::NX != 0 && tame(a) && tame(b) {
                            let r = (<$host>::from_bits(a) $op <$host>::from_bits(b)).to_bits();
                            if tame(r) {
                                return r;
                            }
                        }
                        // SAFETY: a function of its arguments and of SoftFloat's thread-local state.
                        soft(rm, flags, || unsafe { sf::$soft(v(a), v(b)).v })
                    }
                };
            }
            binary!(add, $add, +);
            binary!(sub, $sub, -);
            binary!(mul, $mul, *);
            binary!(div, $div, /);

            /// a * b + c, rounded once.
            pub fn fma(a: $bits, b: $bits, c: $bits, rm: u8, flags: &mut u8) -> $bits {
                if rm == 0 && *flags & flag::NX != 0 && tame(a) && tame(b) && tame(c) {
                    let r = <$host>::from_bits(a).mul_add(<$host>::from_bits(b), <$host>::from_bits(c)).to_bits();
                    if tame(r) {
                        return r;
                    }
                }
                // SAFETY: as in `add`.
                soft(rm, flags, || unsafe { sf::$fma(v(a), v(b), v(c)).v })
            }

            /// Square root.
            pub fn sqrt(a: $bits, rm: u8, flags: &mut u8) -> $bits {
                if rm == 0 && *flags & flag::NX != 0 && a & SIGN == 0 && tame(a) {
                    return <$host>::from_bits(a).sqrt().to_bits();
                }
                // SAFETY: as in `add`.
                soft(rm, flags, || unsafe { sf::$sqrt(v(a)).v })
            }

            /// Changes the sign, of NaNs as well.
            pub fn negate(a: $bits) -> $bits {
                a ^ SIGN
            }

            /// `fsgnj` (0), `fsgnjn` (1), `fsgnjx` (2).
            pub fn sign_inject(a: $bits, b: $bits, how: u8) -> $bits {
                let sign = match how {
                    0 => b,
                    1 => !b,
                    _ => a ^ b,
                };
                a & !SIGN | sign & SIGN
            }

            /// Quiet comparison for equality.
            pub fn eq(a: $bits, b: $bits, flags: &mut u8) -> bool {
                // SAFETY: as in `add`.
                soft(0, flags, || unsafe { sf::$eq(v(a), v(b)) })
            }

            /// Signaling comparison.
            pub fn lt(a: $bits, b: $bits, flags: &mut u8) -> bool {
                // SAFETY: as in `add`.
                soft(0, flags, || unsafe { sf::$lt(v(a), v(b)) })
            }

            /// Signaling comparison.
            pub fn le(a: $bits, b: $bits, flags: &mut u8) -> bool {
                // SAFETY: as in `add`.
                soft(0, flags, || unsafe { sf::$le(v(a), v(b)) })
            }

            /// `fmin` or `fmax`. If one operand is a NaN, the result is the other; -0 is less than +0.
            pub fn min_max(a: $bits, b: $bits, max: bool, flags: &mut u8) -> $bits {
                if is_signaling(a) || is_signaling(b) {
                    *flags |= flag::NV;
                }
                match (is_nan(a), is_nan(b)) {
                    (true, true) => $nan,
                    (true, false) => b,
                    (false, true) => a,
                    (false, false) => {
                        // Compares like the numbers, which are sign and magnitude.
                        let key = |v: $bits| if v & SIGN != 0 { !v } else { v | SIGN };
                        if (key(a) < key(b)) != max { a } else { b }
                    }
                }
            }

            /// The class of `a`, as `fclass` encodes the ten classes.
            pub fn class(a: $bits) -> u64 {
                let negative = a & SIGN != 0;
                let magnitude = a & !SIGN;
                let bit = if is_nan(a) {
                    return if is_signaling(a) { 1 << 8 } else { 1 << 9 };
                } else if magnitude == INFINITY {
                    0
                } else if magnitude == 0 {
                    3
                } else if magnitude < 1 << $fraction {
                    2
                } else {
                    1
                };
                1 << if negative { bit } else { 7 - bit }
            }

            /// Converts to `w`, `wu`, `l` or `lu` (`kind` 0 to 3), sign-extended to 64 bits.
            pub fn to_int(a: $bits, kind: u8, rm: u8, flags: &mut u8) -> u64 {
                // SAFETY: as in `add`.
                soft(rm, flags, || unsafe {
                    match kind {
                        0 => sf::$i32(v(a), rm, true) as i32 as u64,
                        1 => sf::$u32(v(a), rm, true) as i32 as u64,
                        2 => sf::$i64(v(a), rm, true) as u64,
                        _ => sf::$u64(v(a), rm, true) as u64,
                    }
                })
            }

            /// Converts from `w`, `wu`, `l` or `lu` (`kind` 0 to 3).
            pub fn from_int(a: u64, kind: u8, rm: u8, flags: &mut u8) -> $bits {
                // SAFETY: as in `add`.
                soft(rm, flags, || unsafe {
                    match kind {
                        0 => sf::$from_i32(a as i32).v,
                        1 => sf::$from_u32(a as u32).v,
                        2 => sf::$from_i64(a as i64).v,
                        _ => sf::$from_u64(a).v,
                    }
                })
            }
        }
    };
}

precision!(
    single,
    u32,
    f32,
    float32_t,
    f32_add,
    f32_sub,
    f32_mul,
    f32_div,
    f32_sqrt,
    f32_mulAdd,
    f32_eq,
    f32_lt,
    f32_le,
    f32_to_i32,
    f32_to_ui32,
    f32_to_i64,
    f32_to_ui64,
    i32_to_f32,
    ui32_to_f32,
    i64_to_f32,
    ui64_to_f32,
    super::NAN32,
    23
);
precision!(
    double,
    u64,
    f64,
    float64_t,
    f64_add,
    f64_sub,
    f64_mul,
    f64_div,
    f64_sqrt,
    f64_mulAdd,
    f64_eq,
    f64_lt,
    f64_le,
    f64_to_i32,
    f64_to_ui32,
    f64_to_i64,
    f64_to_ui64,
    i32_to_f64,
    ui32_to_f64,
    i64_to_f64,
    ui64_to_f64,
    super::NAN64,
    52
);

/// Converts double to single precision.
pub fn narrow(a: u64, rm: u8, flags: &mut u8) -> u32 {
    // SAFETY: a function of its arguments and of SoftFloat's thread-local state.
    soft(rm, flags, || unsafe { sf::f64_to_f32(sf::float64_t { v: a }).v })
}

/// Converts single to double precision.
pub fn widen(a: u32, flags: &mut u8) -> u64 {
    // SAFETY: as in `narrow`.
    soft(0, flags, || unsafe { sf::f32_to_f64(sf::float32_t { v: a }).v })
}

/// NaN-boxes a single-precision value for a 64-bit register.
pub fn boxed(v: u32) -> u64 {
    0xffff_ffff << 32 | u64::from(v)
}

/// Returns the single-precision value in a register; the default NaN if it is not NaN-boxed.
pub fn unboxed(r: u64) -> u32 {
    if r >> 32 == 0xffff_ffff { r as u32 } else { NAN32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small deterministic random number generator.
    fn next(s: &mut u64) -> u64 {
        *s ^= *s << 13;
        *s ^= *s >> 7;
        *s ^= *s << 17;
        *s
    }

    #[test]
    fn host_and_soft_arithmetic_agree_bit_for_bit() {
        let mut s = 0x9e37_79b9_7f4a_7c15;
        for i in 0..200_000u64 {
            // Mix exponents that are near each other with random ones, so that limits occur.
            let (mut a, mut b, mut c) = (next(&mut s), next(&mut s), next(&mut s));
            if i % 3 == 0 {
                a = a & !(0x7ff << 52) | 0x3ff << 52;
                b = b & !(0x7ff << 52) | (0x3fe + i % 4) << 52;
                c = c & !(0x7ff << 52) | 0x3ff << 52;
            }
            // Exponents near underflow and overflow.
            if i % 7 == 0 {
                a = a & !(0x7ff << 52) | (1 + i % 3) << 52;
                b = b & !(0x7ff << 52) | (0x7fc + i % 3) << 52;
            }
            type F = fn(u64, u64, u64, u8, &mut u8) -> u64;
            let ops: [F; 6] = [
                |a, b, _, rm, f| double::add(a, b, rm, f),
                |a, b, _, rm, f| double::sub(a, b, rm, f),
                |a, b, _, rm, f| double::mul(a, b, rm, f),
                |a, b, _, rm, f| double::div(a, b, rm, f),
                |a, _, _, rm, f| double::sqrt(a, rm, f),
                double::fma,
            ];
            for (n, op) in ops.iter().enumerate() {
                // If NX was not raised before, SoftFloat computes the result.
                let (mut f_soft, mut f_fast) = (0, flag::NX);
                let slow = op(a, b, c, 0, &mut f_soft);
                let fast = op(a, b, c, 0, &mut f_fast);
                assert_eq!((slow, f_soft | flag::NX), (fast, f_fast), "op {n} {a:#x} {b:#x} {c:#x}");
            }
            let (a, b, c) = (a as u32, b as u32, c as u32);
            let all = |before: u8| {
                let mut f = [before; 5];
                let r = [
                    single::add(a, b, 0, &mut f[0]),
                    single::mul(a, b, 0, &mut f[1]),
                    single::div(a, b, 0, &mut f[2]),
                    single::sqrt(a, 0, &mut f[3]),
                    single::fma(a, b, c, 0, &mut f[4]),
                ];
                (r, f.map(|f| f | flag::NX))
            };
            assert_eq!(all(0), all(flag::NX), "{a:#x} {b:#x} {c:#x}");
        }
    }

    #[test]
    fn underflow_is_detected_after_rounding_with_an_unbounded_exponent() {
        // Rounds up to the smallest normal number, but was tiny before rounding.
        let mut flags = flag::NX;
        let f = &mut flags;
        assert_eq!(double::mul(0x3fdf_ffff_ffff_ffff, 0x0020_0000_0000_0000, 0, f), 0x0010_0000_0000_0000);
        assert_eq!(*f, 0b11);
    }

    #[test]
    fn classes_and_order_of_zeros_and_nans() {
        let f = &mut 0;
        assert_eq!(double::class(0x8000_0000_0000_0000), 1 << 3);
        assert_eq!(double::class(0), 1 << 4);
        assert_eq!(double::class(1), 1 << 5);
        assert_eq!(double::class(0x7ff0_0000_0000_0000), 1 << 7);
        assert_eq!(double::class(0xfff0_0000_0000_0000), 1);
        assert_eq!(double::class(0x7ff0_0000_0000_0001), 1 << 8);
        assert_eq!(double::class(NAN64), 1 << 9);
        assert_eq!(double::min_max(0, 1 << 63, false, f), 1 << 63);
        assert_eq!(double::min_max(1 << 63, 0, true, f), 0);
        assert_eq!(*f, 0);
        assert_eq!(double::min_max(0x7ff0_0000_0000_0001, 5, true, f), 5);
        assert_eq!(*f, flag::NV);
        assert_eq!(unboxed(0x1_3f80_0000), NAN32);
        assert_eq!(unboxed(boxed(0x3f80_0000)), 0x3f80_0000);
    }

    #[test]
    fn conversions_saturate_as_the_isa_says() {
        let f = &mut 0;
        let minus_one = (-1.0f64).to_bits();
        assert_eq!(double::to_int(minus_one, 1, 1, f), 0);
        assert_eq!(*f, flag::NV);
        assert_eq!(double::to_int(NAN64, 0, 1, f), 0x7fff_ffff);
        assert_eq!(double::to_int(NAN64, 1, 1, f), u64::MAX);
        assert_eq!(double::to_int(NAN64, 2, 1, f), i64::MAX as u64);
        assert_eq!(double::to_int(1e30f64.to_bits(), 3, 1, f), u64::MAX);
        *f = 0;
        assert_eq!(double::to_int(2.5f64.to_bits(), 0, 0, f), 2);
        assert_eq!(double::to_int(2.5f64.to_bits(), 0, 4, f), 3);
        assert_eq!(*f, flag::NX);
        assert_eq!(single::from_int(u64::MAX, 2, 0, f), (-1.0f32).to_bits());
    }
}
