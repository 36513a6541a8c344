// SPDX-License-Identifier: Apache-2.0
//! A core's translation look-aside buffers: which translations they hold, and none of them. They only decide time.

use trapless_memory::PAGE_SHIFT;

use crate::cache::{Cache, Line};

/// Sizes of one core's buffers.
#[derive(Clone, Copy, Debug)]
pub struct TlbConfig {
    /// First level for data: sets (a power of two) and ways.
    pub data: (usize, usize),
    /// First level for code.
    pub code: (usize, usize),
    /// Second level, for both.
    pub second: (usize, usize),
    /// Cycles that the second level takes.
    pub second_cycles: u64,
}

/// What a translation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Loads and stores.
    Data,
    /// Fetches.
    Code,
}

/// Sizes of translations, log2, in the order in which they are looked for.
const SIZES: [u32; 4] = [PAGE_SHIFT, PAGE_SHIFT + 9, PAGE_SHIFT + 18, PAGE_SHIFT + 27];

/// The buffers. The first level holds pieces of 4 KiB, also of larger pages; the second holds translations whole.
#[derive(Clone, Debug)]
pub struct Tlb {
    data: Cache<()>,
    code: Cache<()>,
    second: Cache<()>,
    second_cycles: u64,
    /// Bit n: the second level may hold translations of `SIZES[n]`.
    sizes: u8,
    lost: Vec<(Side, u64)>,
}

impl Tlb {
    /// Empty ones.
    pub fn new(config: TlbConfig) -> Tlb {
        let cache = |(sets, ways)| Cache::new(sets, ways);
        Tlb {
            data: cache(config.data),
            code: cache(config.code),
            second: cache(config.second),
            second_cycles: config.second_cycles,
            sizes: 0,
            lost: Vec::new(),
        }
    }

    fn first(&mut self, side: Side) -> &mut Cache<()> {
        match side {
            Side::Data => &mut self.data,
            Side::Code => &mut self.code,
        }
    }

    fn enter_first(&mut self, side: Side, page: Line) {
        if let Some((out, ())) = self.first(side).insert(page, ()) {
            // The number came from an address of 64 bits.
            self.lost.push((side, out.0 << PAGE_SHIFT));
        }
    }

    /// Looks for the translation of `va`: the cycles it takes, and whether it is there. If not, it must be walked to and
    /// [`Tlb::enter`]ed.
    pub fn find(&mut self, side: Side, va: u64) -> (u64, bool) {
        let page = Line(va >> PAGE_SHIFT);
        if self.first(side).touch(page).is_some() {
            return (0, true);
        }
        let known = (0..SIZES.len()).any(|n| self.sizes >> n & 1 != 0 && self.second.touch(key(va, n)).is_some());
        if known {
            self.enter_first(side, page);
        }
        (self.second_cycles, known)
    }

    /// Takes in the translation of `va`, which [`Tlb::find`] did not find, of a page of 2^`size` bytes.
    pub fn enter(&mut self, side: Side, va: u64, size: u32) {
        let n = SIZES.iter().position(|s| *s >= size).unwrap_or(0);
        self.sizes |= 1 << n;
        if self.second.touch(key(va, n)).is_none() {
            self.second.insert(key(va, n), ());
        }
        let page = Line(va >> PAGE_SHIFT);
        if self.first(side).touch(page).is_none() {
            self.enter_first(side, page);
        }
    }

    /// Forgets the translation of one page, or all. What the first level loses by it is not reported: whoever fences
    /// forgets it as well.
    pub fn fence(&mut self, page: Option<u64>) {
        let Some(va) = page else {
            self.data.clear();
            self.code.clear();
            self.second.clear();
            self.sizes = 0;
            return;
        };
        for n in 0..SIZES.len() {
            if self.second.remove(key(va, n)).is_some() && n > 0 {
                // The first level has pieces of it.
                self.data.clear();
                self.code.clear();
            }
        }
        self.data.remove(Line(va >> PAGE_SHIFT));
        self.code.remove(Line(va >> PAGE_SHIFT));
    }

    /// Takes one page address that the first level has lost.
    #[inline]
    pub fn take_lost(&mut self) -> Option<(Side, u64)> {
        self.lost.pop()
    }
}

/// What the second level knows a translation by.
fn key(va: u64, n: usize) -> Line {
    Line(va >> SIZES[n] | (n as u64) << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: (u64, bool) = (7, false);
    const PAGE: u64 = 1 << PAGE_SHIFT;

    fn tlb() -> Tlb {
        Tlb::new(TlbConfig { data: (1, 2), code: (1, 1), second: (1, 4), second_cycles: 7 })
    }

    #[test]
    fn the_second_level_catches_what_the_first_loses() {
        let mut t = tlb();
        for n in 0..3 {
            assert_eq!(t.find(Side::Data, n * PAGE), MISS);
            t.enter(Side::Data, n * PAGE + 8, PAGE_SHIFT);
        }
        assert_eq!(t.take_lost(), Some((Side::Data, 0)));
        assert_eq!(t.find(Side::Data, 2 * PAGE), (0, true));
        assert_eq!(t.find(Side::Data, 0), (7, true));
        assert_eq!(t.take_lost(), Some((Side::Data, PAGE)));
        assert_eq!(t.take_lost(), None);
        // Code and data share the second level.
        assert_eq!(t.find(Side::Code, PAGE), (7, true));
        assert_eq!(t.find(Side::Code, PAGE + 12), (0, true));
    }

    #[test]
    fn a_large_page_is_one_entry_of_the_second_level() {
        let mut t = tlb();
        let big = 5 << 21;
        t.enter(Side::Data, big, 21);
        for n in 0..4 {
            assert!(t.find(Side::Data, big + n * PAGE).1, "piece {n}");
        }
        assert_eq!(t.find(Side::Data, big - PAGE), MISS);
        t.fence(Some(big + 7 * PAGE));
        assert_eq!(t.find(Side::Data, big), MISS);
    }

    #[test]
    fn fences_forget_one_page_or_all() {
        let mut t = tlb();
        t.enter(Side::Data, 0, PAGE_SHIFT);
        t.enter(Side::Data, PAGE, PAGE_SHIFT);
        t.fence(Some(PAGE));
        assert_eq!((t.find(Side::Data, 0), t.find(Side::Data, PAGE)), ((0, true), MISS));
        t.fence(None);
        assert_eq!(t.find(Side::Data, 0), MISS);
    }
}
