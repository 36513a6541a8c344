// SPDX-License-Identifier: Apache-2.0
//! Physical memory protection: 16 entries; OFF, TOR, NA4 and NAPOT; a granularity of 4 bytes.

use serde::{Deserialize, Serialize};

use crate::{Access, Privilege};

/// Number of entries.
pub const ENTRIES: usize = 16;
const R: u8 = 1;
const W: u8 = 2;
const X: u8 = 4;
const LOCKED: u8 = 0x80;
/// Bits of `pmpaddr` that exist: 56-bit physical addresses.
const ADDR_MASK: u64 = (1 << 54) - 1;

/// The PMP registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pmp {
    cfg: [u8; ENTRIES],
    addr: [u64; ENTRIES],
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forbidden.
    Deny,
    /// Allowed, and so is every other access of this kind in the same 4 KiB page.
    Page,
    /// Allowed, but other bytes of the page may have other rights.
    Partial,
}

impl Pmp {
    /// Reads `pmpcfg0` or `pmpcfg2` (`index` 0 or 2); all others read zero.
    pub fn read_cfg(&self, index: usize) -> u64 {
        match self.cfg.get(index * 4..index * 4 + 8) {
            Some(c) => c.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)),
            None => 0,
        }
    }

    /// Writes `pmpcfg0` or `pmpcfg2`. A locked entry keeps its value, and so does an entry written with W but not R (reserved).
    pub fn write_cfg(&mut self, index: usize, value: u64) {
        let Some(cfg) = self.cfg.get_mut(index * 4..index * 4 + 8) else { return };
        for (c, new) in cfg.iter_mut().zip(value.to_le_bytes()) {
            if *c & LOCKED == 0 && new & (R | W) != W {
                *c = new & 0x9f;
            }
        }
    }

    /// Reads a `pmpaddr` register; registers beyond the last entry read zero.
    pub fn read_addr(&self, index: usize) -> u64 {
        self.addr.get(index).copied().unwrap_or(0)
    }

    /// Writes a `pmpaddr` register, unless its entry is locked, or the next entry is a locked TOR entry.
    pub fn write_addr(&mut self, index: usize, value: u64) {
        let locked = |i: usize| self.cfg.get(i).is_some_and(|c| c & LOCKED != 0);
        let top_locked = locked(index + 1) && self.cfg[index + 1] & 0x18 == 0x08;
        if index < ENTRIES && !locked(index) && !top_locked {
            self.addr[index] = value & ADDR_MASK;
        }
    }

    /// First and last byte that entry `i` covers.
    fn range(&self, i: usize) -> Option<(u64, u64)> {
        let a = self.addr[i];
        match self.cfg[i] >> 3 & 3 {
            0 => None,
            1 => {
                let low = if i == 0 { 0 } else { self.addr[i - 1] << 2 };
                let end = a << 2;
                (low < end).then(|| (low, end - 1))
            }
            2 => Some((a << 2, (a << 2) + 3)),
            _ => {
                let ones = a.trailing_ones();
                let size_mask = if ones >= 61 { u64::MAX } else { (8u64 << ones) - 1 };
                let low = (a << 2) & !size_mask;
                Some((low, low | size_mask))
            }
        }
    }

    /// Whether mode `p` may access the `len` bytes at `pa`.
    pub fn check(&self, pa: u64, len: u64, access: Access, p: Privilege) -> Verdict {
        let (first, last) = (pa, pa + (len - 1));
        let (page, page_last) = (pa & !0xfff, pa | 0xfff);
        let mut whole = true;
        for i in 0..ENTRIES {
            let Some((low, high)) = self.range(i) else { continue };
            if high < page || low > page_last {
                continue;
            }
            whole &= low <= page && page_last <= high;
            if high < first || low > last {
                continue;
            }
            if low > first || high < last {
                return Verdict::Deny;
            }
            let cfg = self.cfg[i];
            let need = match access {
                Access::Fetch => X,
                Access::Load => R,
                Access::Store => W,
            };
            let bypass = p == Privilege::Machine && cfg & LOCKED == 0;
            return match (bypass || cfg & need != 0, whole) {
                (false, _) => Verdict::Deny,
                (true, true) => Verdict::Page,
                (true, false) => Verdict::Partial,
            };
        }
        match (p == Privilege::Machine, whole) {
            (false, _) => Verdict::Deny,
            (true, true) => Verdict::Page,
            (true, false) => Verdict::Partial,
        }
    }

    /// Opens all memory to S and U mode, as firmware does before it starts a supervisor.
    pub fn open(&mut self) {
        *self = Pmp::default();
        self.cfg[0] = R | W | X | 0x18;
        self.addr[0] = ADDR_MASK;
    }
}
