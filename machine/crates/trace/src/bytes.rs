// SPDX-License-Identifier: Apache-2.0
//! Encoding of numbers: LEB128, with zigzag for signed numbers, and little-endian for numbers of fixed size.

/// Appends `v` with seven bits per byte, lowest bits first.
pub fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Appends a difference modulo 2^64. Small differences of either sign take few bytes.
pub fn put_signed(out: &mut Vec<u8>, v: u64) {
    let v = v as i64;
    put(out, (v << 1 ^ v >> 63) as u64);
}

/// Reads numbers from the front of a chunk. The functions return `None` if the bytes do not contain such a number.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[b]| b)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a LEB128 number. The fast path is for numbers of one byte, which are the most frequent.
    #[inline(always)]
    pub fn number(&mut self) -> Option<u64> {
        match *self.0 {
            [b, ref rest @ ..] if b < 0x80 => {
                self.0 = rest;
                Some(b.into())
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut v = 0u64;
        for shift in (0..64).step_by(7) {
            let b = u64::from(self.byte()?);
            // A 64-bit number has only one bit left for the tenth byte.
            if shift == 63 && b > 1 {
                return None;
            }
            v |= (b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return Some(v);
            }
        }
        None
    }

    #[inline]
    pub fn signed(&mut self) -> Option<u64> {
        let v = self.number()?;
        Some(v >> 1 ^ (v & 1).wrapping_neg())
    }

    pub fn text(&mut self) -> Option<String> {
        let len = usize::from(u16::from_le_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
