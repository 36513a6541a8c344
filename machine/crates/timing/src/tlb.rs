// SPDX-License-Identifier: Apache-2.0
//! A core's translation look-aside buffers: which translations they hold, and none of them. They only decide time.

use trapless_memory::{PAGE_SHIFT, Paging};

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
const SIZES: [u32; Paging::MAX_LEVELS] =
    [Paging::shift(0), Paging::shift(1), Paging::shift(2), Paging::shift(3), Paging::shift(4)];

/// A hardware thread of a core: the buffers are shared, translations are not.
pub type Thread = u8;

/// Position of the thread's number in the key of a translation: page numbers have 52 bits.
const THREAD_SHIFT: u32 = u64::BITS - PAGE_SHIFT;

/// The buffers. The first level holds pieces of 4 KiB, also of larger pages; the second holds translations whole.
#[derive(Clone, Debug)]
pub struct Tlb {
    data: Cache<(), u64>,
    code: Cache<(), u64>,
    second: Cache<(), u64>,
    second_cycles: u64,
    /// Bit n: the second level may hold translations of `SIZES[n]`.
    sizes: u8,
    /// Several threads use the buffers.
    threaded: bool,
    lost: Vec<(Thread, Side, u64)>,
}

impl Tlb {
    /// Empty TLBs for this number of `threads`.
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
            // The number came from an address of 64 bits.
            self.lost.push((thread_of(out), side, out.0 << PAGE_SHIFT));
        }
    }

    /// Looks for the translation of `va`: the cycles it takes, and whether it is there. If not, it must be walked to and
    /// [`Tlb::enter`]ed.
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

    /// Takes in the translation of `va`, which [`Tlb::find`] did not find, of a page of 2^`size` bytes.
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

    /// Forgets a thread's translation of one page, or all of its translations. What the first level loses by it is not
    /// reported: whoever fences forgets it as well. True if that was more than the page: pieces of large ones.
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
                // The first level has pieces of it.
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

    /// Takes one page address that the first level has lost, and whose it was.
    #[inline]
    pub fn take_lost(&mut self) -> Option<(Thread, Side, u64)> {
        self.lost.pop()
    }
}

/// What the first level knows a translation by.
#[inline]
fn page(thread: Thread, va: u64) -> Line {
    Line(va >> PAGE_SHIFT | u64::from(thread) << THREAD_SHIFT)
}

/// What the second level knows a translation by.
#[inline]
fn key(thread: Thread, va: u64, n: usize) -> Line {
    Line(va >> SIZES[n] | u64::from(thread) << THREAD_SHIFT | (n as u64) << 60)
}

/// Whose translation it is.
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
        // The other thread took its place.
        assert_eq!(t.take_lost(), Some((0, Side::Data, PAGE)));
        t.fence(1, None);
        assert_eq!(t.find(1, Side::Data, PAGE), MISS);
        assert_eq!(t.find(1, Side::Data, u64::MAX), MISS);
        assert_eq!(t.find(0, Side::Data, PAGE), (7, true));
    }
}
