// SPDX-License-Identifier: Apache-2.0
//! Timing of page walks: a hart's page walk cache.

use trapless_memory::PhysAddr;

/// Cycles of a hit. The hart's cost table charges them for every entry that is read.
pub const HIT: u32 = 1;

/// Remembers the addresses of upper page-table entries that walks have read: fully associative, with LRU replacement,
/// emptied by `sfence.vma` (the PTE cache in Rocket's page table walker). It only affects time: the walker always reads
/// the entry itself. Leaf-level entries are never kept (ISA-3 requires that for armed ones).
#[derive(Clone, Debug)]
pub struct WalkCache {
    entries: usize,
    /// Additional cycles of a read that misses.
    pub miss: u64,
    recent: Vec<u64>,
}

impl WalkCache {
    /// An empty cache with this number of `entries`. A read that misses takes `read` cycles in all.
    pub fn new(entries: u32, read: u32) -> WalkCache {
        WalkCache { entries: entries as usize, miss: u64::from(read.saturating_sub(HIT)), recent: Vec::new() }
    }

    /// Whether the cache holds an entry of `level` that a walk reads. Adds an upper-level entry that it does not hold.
    pub fn holds(&mut self, at: PhysAddr, level: u32) -> bool {
        if level == 0 || self.entries == 0 {
            return false;
        }
        let known = self.recent.iter().position(|a| *a == at.0);
        if let Some(place) = known {
            self.recent.remove(place);
        } else if self.recent.len() == self.entries {
            self.recent.remove(0);
        }
        self.recent.push(at.0);
        known.is_some()
    }

    /// Forgets everything.
    pub fn fence(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_entries_hit_until_pushed_out_or_fenced() {
        let mut c = WalkCache::new(2, 10);
        let mut held = |at, level| c.holds(PhysAddr(at), level);
        assert_eq!((held(8, 2), held(16, 1), held(24, 0)), (false, false, false));
        assert_eq!((held(8, 2), held(16, 1), held(24, 0)), (true, true, false));
        assert_eq!((held(32, 1), held(16, 1), held(8, 2)), (false, true, false));
        c.fence();
        assert!(!c.holds(PhysAddr(16), 1));
        assert_eq!(c.miss, 9);
    }
}
