// SPDX-License-Identifier: Apache-2.0
//! The model of a core's translation look-aside buffers. It knows which pages have a translation in the TLBs, but not the
//! translations, because it only decides times.

use trapless_memory::{PAGE_SHIFT, Paging};

use crate::cache::{Cache, Line};

/// Sizes and times of one core's TLBs.
#[derive(Clone, Copy, Debug)]
pub struct TlbConfig {
    /// First level for data: sets (a power of two) and ways.
    pub data: (usize, usize),
    /// First level for code: sets and ways.
    pub code: (usize, usize),
    /// Second level, for data and code: sets and ways.
    pub second: (usize, usize),
    /// Cycles of an access to the second level.
    pub second_cycles: u64,
}

/// Use of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Loads and stores.
    Data,
    /// Fetches.
    Code,
}

/// log2 of the sizes of translations, in the order of the search.
const SIZES: [u32; Paging::MAX_LEVELS] =
    [Paging::shift(0), Paging::shift(1), Paging::shift(2), Paging::shift(3), Paging::shift(4)];

/// Number of a hardware thread of a core. Threads share the TLBs, but not their translations.
pub type Thread = u8;

/// Lowest bit of the thread's number in the key of a translation. Page numbers have 52 bits.
const THREAD_SHIFT: u32 = u64::BITS - PAGE_SHIFT;

/// The TLBs of a core. An entry of the first level covers 4 KiB, also of a larger page. An entry of the second level covers a
/// whole page.
#[derive(Clone, Debug)]
pub struct Tlb {
    data: Cache<(), u64>,
    code: Cache<(), u64>,
    second: Cache<(), u64>,
    second_cycles: u64,
    /// Bit n is set if the second level may have translations of `SIZES[n]`.
    sizes: u8,
    /// Whether several threads use the TLBs.
    threaded: bool,
    lost: Vec<(Thread, Side, u64)>,
}

impl Tlb {
    /// Creates empty TLBs for this number of `threads`.
    pub fn new(config: TlbConfig, threads: usize) -> Tlb {
        let cache = |(sets, ways)| Cache::new(sets, ways);
        Tlb {
            data: cache(config.data),
            code: cache(config.code),
            second: cache(config.second),
            second_cycles: config.second_cycles,
            sizes: 0,
            threaded: threads > 1,
            lost: Vec::new(),
        }
    }

    fn first(&mut self, side: Side) -> &mut Cache<(), u64> {
        match side {
            Side::Data => &mut self.data,
            Side::Code => &mut self.code,
        }
    }

    fn enter_first(&mut self, side: Side, page: Line) {
        if let Some((out, ())) = self.first(side).insert(page, ()) {
            // The shift loses only the thread's number, because page numbers have 52 bits.
            self.lost.push((thread_of(out), side, out.0 << PAGE_SHIFT));
        }
    }

    /// Looks for the translation of `va`. Returns the cycles of the search, and whether the translation was found. If not, the
    /// caller must walk the page table and call [`Tlb::enter`].
    pub fn find(&mut self, thread: Thread, side: Side, va: u64) -> (u64, bool) {
        let page = page(thread, va);
        if self.first(side).touch(page).is_some() {
            return (0, true);
        }
        let known =
            (0..SIZES.len()).any(|n| self.sizes >> n & 1 != 0 && self.second.touch(key(thread, va, n)).is_some());
        if known {
            self.enter_first(side, page);
        }
        (self.second_cycles, known)
    }

    /// Enters the translation of `va` that [`Tlb::find`] did not find. Its page has 2^`size` bytes.
    pub fn enter(&mut self, thread: Thread, side: Side, va: u64, size: u32) {
        let n = SIZES.iter().position(|s| *s >= size).unwrap_or(0);
        self.sizes |= 1 << n;
        if self.second.touch(key(thread, va, n)).is_none() {
            self.second.insert(key(thread, va, n), ());
        }
        let page = page(thread, va);
        if self.first(side).touch(page).is_none() {
            self.enter_first(side, page);
        }
    }

    /// Removes a thread's translation of one page, or all of its translations. Losses of the first level are not reported,
    /// because the caller drops its notes of these pages anyway. Returns true if the first level lost more than this page,
    /// because the page was part of a larger one.
    pub fn fence(&mut self, thread: Thread, page: Option<u64>) -> bool {
        let Some(va) = page else {
            self.clear_first(thread);
            if self.threaded {
                self.second.retain(|line| thread_of(line) != thread);
            } else {
                self.second.clear();
                self.sizes = 0;
            }
            return false;
        };
        let mut more = false;
        for n in 0..SIZES.len() {
            if self.second.remove(key(thread, va, n)).is_some() && n > 0 {
                // The first level may have several entries of this large page.
                self.clear_first(thread);
                more = true;
            }
        }
        self.data.remove(self::page(thread, va));
        self.code.remove(self::page(thread, va));
        more
    }

    fn clear_first(&mut self, thread: Thread) {
        for cache in [&mut self.data, &mut self.code] {
            if self.threaded {
                cache.retain(|line| thread_of(line) != thread);
            } else {
                cache.clear();
            }
        }
    }

    /// Returns one loss of the first level that was not reported yet: thread, use and address of the page.
    #[inline]
    pub fn take_lost(&mut self) -> Option<(Thread, Side, u64)> {
        self.lost.pop()
    }
}

/// Returns the key of a translation in the first level.
#[inline]
fn page(thread: Thread, va: u64) -> Line {
    Line(va >> PAGE_SHIFT | u64::from(thread) << THREAD_SHIFT)
}

/// Returns the key of a translation in the second level.
#[inline]
fn key(thread: Thread, va: u64, n: usize) -> Line {
    Line(va >> SIZES[n] | u64::from(thread) << THREAD_SHIFT | (n as u64) << 60)
}

/// Returns the thread of a key.
fn thread_of(line: Line) -> Thread {
    (line.0 >> THREAD_SHIFT) as Thread & 0x0f
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: (u64, bool) = (7, false);
    const PAGE: u64 = 1 << PAGE_SHIFT;

    fn tlb() -> Tlb {
        Tlb::new(TlbConfig { data: (1, 2), code: (1, 1), second: (1, 4), second_cycles: 7 }, 1)
    }

    #[test]
    fn the_second_level_catches_what_the_first_loses() {
        let mut t = tlb();
        for n in 0..3 {
            assert_eq!(t.find(0, Side::Data, n * PAGE), MISS);
            t.enter(0, Side::Data, n * PAGE + 8, PAGE_SHIFT);
        }
        assert_eq!(t.take_lost(), Some((0, Side::Data, 0)));
        assert_eq!(t.find(0, Side::Data, 2 * PAGE), (0, true));
        assert_eq!(t.find(0, Side::Data, 0), (7, true));
        assert_eq!(t.take_lost(), Some((0, Side::Data, PAGE)));
        assert_eq!(t.take_lost(), None);
        // Code and data share the second level.
        assert_eq!(t.find(0, Side::Code, PAGE), (7, true));
        assert_eq!(t.find(0, Side::Code, PAGE + 12), (0, true));
    }

    #[test]
    fn a_large_page_is_one_entry_of_the_second_level() {
        let mut t = tlb();
        let big = 5 << 21;
        t.enter(0, Side::Data, big, 21);
        for n in 0..4 {
            assert!(t.find(0, Side::Data, big + n * PAGE).1, "piece {n}");
        }
        assert_eq!(t.find(0, Side::Data, big - PAGE), MISS);
        assert!(t.fence(0, Some(big + 7 * PAGE)), "more than one page");
        assert_eq!(t.find(0, Side::Data, big), MISS);
    }

    #[test]
    fn translations_of_every_size_are_whole_in_the_second_level() {
        for size in SIZES {
            let mut t = tlb();
            t.enter(1, Side::Data, 0, size);
            let last = (1 << size) - PAGE;
            assert!(t.find(1, Side::Data, last).1 && !t.find(1, Side::Data, last + PAGE).1, "2^{size} bytes");
            assert_eq!(t.fence(1, Some(last)), size > PAGE_SHIFT);
            assert_eq!(t.find(1, Side::Data, 0), MISS, "2^{size} bytes");
        }
    }

    #[test]
    fn fences_forget_one_page_or_all() {
        let mut t = tlb();
        t.enter(0, Side::Data, 0, PAGE_SHIFT);
        t.enter(0, Side::Data, PAGE, PAGE_SHIFT);
        t.fence(0, Some(PAGE));
        assert_eq!((t.find(0, Side::Data, 0), t.find(0, Side::Data, PAGE)), ((0, true), MISS));
        t.fence(0, None);
        assert_eq!(t.find(0, Side::Data, 0), MISS);
    }

    #[test]
    fn threads_share_entries_but_no_translations() {
        let config = TlbConfig { data: (1, 2), code: (1, 1), second: (1, 4), second_cycles: 7 };
        let mut t = Tlb::new(config, 2);
        t.enter(0, Side::Data, PAGE, PAGE_SHIFT);
        assert_eq!(t.find(1, Side::Data, PAGE), MISS);
        t.enter(1, Side::Data, PAGE, PAGE_SHIFT);
        t.enter(1, Side::Data, u64::MAX, PAGE_SHIFT);
        // Translations of thread 1 have evicted the one of thread 0.
        assert_eq!(t.take_lost(), Some((0, Side::Data, PAGE)));
        t.fence(1, None);
        assert_eq!(t.find(1, Side::Data, PAGE), MISS);
        assert_eq!(t.find(1, Side::Data, u64::MAX), MISS);
        assert_eq!(t.find(0, Side::Data, PAGE), (7, true));
    }
}
