// SPDX-License-Identifier: Apache-2.0
//! Numbers as bytes: LEB128, signed ones zigzag, and fixed ones little-endian.

/// Appends `v`, seven bits a byte, lowest first.
pub fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Appends a difference modulo 2^64, small ones of either sign in few bytes.
pub fn put_signed(out: &mut Vec<u8>, v: u64) {
    let v = v as i64;
    put(out, (v << 1 ^ v >> 63) as u64);
}

/// Takes numbers off the front of a chunk; `None` where there is none.
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

    /// Most numbers have one byte.
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
            // The tenth byte has room for one bit.
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
