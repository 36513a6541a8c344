// SPDX-License-Identifier: Apache-2.0
//! Timing of page walks: a hart's page walk cache.

use trapless_memory::PhysAddr;

/// A hit costs this, in cycles; the hart's cost table charges it for every entry read.
pub const HIT: u32 = 1;

/// Remembers the addresses of upper page-table entries that walks have read, fully associative, the least recently used
/// out first, emptied by `sfence.vma` (the PTE cache in Rocket's page table walker). It decides time alone: the walker
/// always reads the entry itself. Leaf-level entries are never kept (ISA-3 asks it of armed ones).
#[derive(Clone, Debug)]
pub struct WalkCache {
    entries: usize,
    miss: u64,
    recent: Vec<u64>,
}

impl WalkCache {
    /// With so many entries; a read that misses costs `read` cycles in all.
    pub fn new(entries: u32, read: u32) -> WalkCache {
        WalkCache { entries: entries as usize, miss: u64::from(read.saturating_sub(HIT)), recent: Vec::new() }
    }

    /// Reads an entry of `level`; cycles beyond those of a hit.
    pub fn read(&mut self, at: PhysAddr, level: u32) -> u64 {
        if level == 0 || self.entries == 0 {
            return self.miss;
        }
        let known = self.recent.iter().position(|a| *a == at.0);
        if let Some(place) = known {
            self.recent.remove(place);
        } else if self.recent.len() == self.entries {
            self.recent.remove(0);
        }
        self.recent.push(at.0);
        if known.is_some() { 0 } else { self.miss }
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
        let mut read = |at, level| c.read(PhysAddr(at), level);
        assert_eq!((read(8, 2), read(16, 1), read(24, 0)), (9, 9, 9));
        assert_eq!((read(8, 2), read(16, 1), read(24, 0)), (0, 0, 9));
        assert_eq!((read(32, 1), read(16, 1), read(8, 2)), (9, 0, 9));
        c.fence();
        assert_eq!(c.read(PhysAddr(16), 1), 9);
    }
}
