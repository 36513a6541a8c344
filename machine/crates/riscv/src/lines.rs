// SPDX-License-Identifier: Apache-2.0
//! L0: hits that detailed timing need not be asked about. A line of data in L0 is known to be in the first-level data cache,
//! and its page in the data TLB; a line of code is known to be in the first-level code cache. So such a hit costs no time
//! to model. When those caches or TLBs lose a line or page, L0 must forget it as well.

use trapless_memory::PAGE_SHIFT;

use crate::entry::{DataEntry, DataSet, NO_DATA, NO_TAG, PAGE_MASK};

/// log2 of the size of a line, bytes.
pub const LINE_SHIFT: u32 = 6;
/// Number of entries in a set.
pub const LINES: usize = 1024;
/// Mask of the line number in an address.
pub const LINE_MASK: u64 = !((1 << LINE_SHIFT) - 1);
/// Number of lines in a page.
const PAGE_LINES: usize = 1 << (PAGE_SHIFT - LINE_SHIFT);
/// Number of entries in the table of owners, which finds the entry of a physical line.
const OWNERS: usize = 4096;
/// Number of entries in the table of pages.
const PAGES: usize = 256;
/// In the place of an owner: there is none.
const NOBODY: u16 = u16::MAX;

/// Index of `va` in a set.
#[inline]
pub const fn index(va: u64) -> usize {
    (va >> LINE_SHIFT) as usize & (LINES - 1)
}

/// Lines of data: a direct-mapped set for each kind of access rights. A physical line has at most one entry.
pub struct Lines {
    sets: Box<[[DataEntry; LINES]; 4]>,
    /// Set and index of each physical line's entry, by the low bits of the line number.
    owners: Box<[u16; OWNERS]>,
    /// Lines of each virtual page that may have entries, by the low bits of the page number. Pages may share an element.
    pages: Box<[u64; PAGES]>,
    /// Sets that may have valid entries, a bit each.
    used: u8,
}

impl Lines {
    pub fn new() -> Lines {
        Lines {
            sets: Box::new([[NO_DATA; LINES]; 4]),
            owners: Box::new([NOBODY; OWNERS]),
            pages: Box::new([0; PAGES]),
            used: 0,
        }
    }

    /// The entries of a set. The address is valid as long as the cache lives.
    pub fn set(&self, set: DataSet) -> *const DataEntry {
        self.sets[set as usize].as_ptr()
    }

    /// The entry in which the line of `va` would be.
    #[inline]
    pub fn entry(&self, set: DataSet, va: u64) -> &DataEntry {
        &self.sets[set as usize][index(va)]
    }

    /// Enters the line of `va`, which `page` maps, for loads, stores or both. An existing entry for the line gains these rights.
    pub fn fill(&mut self, set: DataSet, va: u64, page: &DataEntry, read: bool, write: bool) {
        self.used |= 1 << set as u8;
        self.pages[page_index(va)] |= 1 << (index(va) % PAGE_LINES);
        let (line, index) = (va & LINE_MASK, index(va));
        let place = (set as usize * LINES + index) as u16;
        let owner = owner(number(page, place));
        let before = std::mem::replace(&mut self.owners[owner], place);
        if before != NOBODY && before != place {
            // An entry without an owner could not be found when its line is lost.
            let e = self.at(before);
            if self::owner(number(e, before)) == owner {
                *e = NO_DATA;
            }
        }
        let e = self.at(place);
        if e.pa_size != page.pa_size || e.addend != page.addend || (e.read != line && e.write != line) {
            *e = DataEntry { addend: page.addend, pa_size: page.pa_size, ..NO_DATA };
        }
        if read {
            e.read = line;
        }
        if write {
            e.write = line;
        }
    }

    fn at(&mut self, place: u16) -> &mut DataEntry {
        &mut self.sets[place as usize / LINES][place as usize % LINES]
    }

    /// The entry of a physical line, by its number.
    fn find(&mut self, line: u64) -> Option<&mut DataEntry> {
        let place = self.owners[owner(line)];
        if place == NOBODY {
            return None;
        }
        let e = self.at(place);
        (number(e, place) == line).then_some(e)
    }

    /// Forgets a physical line that the data cache has lost.
    pub fn forget(&mut self, line: u64) {
        if let Some(e) = self.find(line) {
            *e = NO_DATA;
        }
    }

    /// Forgets the right to write a physical line: the data cache has lost it.
    pub fn forget_right(&mut self, line: u64) {
        if let Some(e) = self.find(line) {
            e.write = NO_TAG;
        }
    }

    /// Forgets the page at `va`, which the data TLB has lost.
    pub fn forget_page(&mut self, va: u64) {
        let first = index(va & PAGE_MASK);
        let mut lines = std::mem::take(&mut self.pages[page_index(va)]);
        while lines != 0 {
            let line = lines.trailing_zeros();
            lines &= lines - 1;
            for set in (0..4).filter(|set| self.used >> set & 1 != 0) {
                let e = &mut self.sets[set][first + line as usize];
                let tag = if e.read == NO_TAG { e.write } else { e.read };
                if tag & PAGE_MASK == va & PAGE_MASK {
                    *e = NO_DATA;
                } else if tag != NO_TAG && page_index(tag) == page_index(va) {
                    // The line belongs to another page with the same index.
                    self.pages[page_index(va)] |= 1 << line;
                }
            }
        }
    }

    /// Forgets everything.
    pub fn flush(&mut self) {
        for set in (0..4).filter(|set| self.used >> set & 1 != 0) {
            self.sets[set].fill(NO_DATA);
        }
        self.used = 0;
        self.pages.fill(0);
    }

    /// All entries of sets that may have valid ones.
    pub fn live(&mut self) -> impl Iterator<Item = &mut DataEntry> {
        let used = self.used;
        self.sets.iter_mut().enumerate().filter(move |(i, _)| used >> i & 1 != 0).flat_map(|(_, set)| set)
    }
}

/// Index of the page of `va` in the table of pages.
fn page_index(va: u64) -> usize {
    (va >> PAGE_SHIFT) as usize & (PAGES - 1)
}

/// Index of a physical line in the table of owners.
fn owner(line: u64) -> usize {
    line as usize & (OWNERS - 1)
}

/// Number of the physical line of the entry at `place`. A line has the same offset in its virtual and physical page.
fn number(e: &DataEntry, place: u16) -> u64 {
    (e.pa_size & PAGE_MASK) >> LINE_SHIFT | u64::from(place) & (PAGE_LINES as u64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: DataSet = DataSet::Supervisor;

    fn fill(lines: &mut Lines, set: DataSet, va: u64, pa: u64) {
        let pa_size = pa & PAGE_MASK | u64::from(PAGE_SHIFT);
        lines.fill(set, va, &DataEntry { addend: pa.wrapping_sub(va), pa_size, ..NO_DATA }, true, true);
    }

    #[test]
    fn a_physical_line_is_forgotten_wherever_it_was_entered() {
        let mut l = Lines::new();
        fill(&mut l, SET, 0x5040, 0x8000_1040);
        assert_eq!(l.entry(SET, 0x5078).read, 0x5040);
        l.forget(0x8000_1080 >> LINE_SHIFT);
        assert_eq!(l.entry(SET, 0x5040).read, 0x5040);
        // An alias takes over the line.
        fill(&mut l, DataSet::User, 0x9040, 0x8000_1040);
        assert_eq!((l.entry(SET, 0x5040).read, l.entry(DataSet::User, 0x9040).write), (NO_TAG, 0x9040));
        l.forget_right(0x8000_1040 >> LINE_SHIFT);
        assert_eq!((l.entry(DataSet::User, 0x9040).read, l.entry(DataSet::User, 0x9040).write), (0x9040, NO_TAG));
        l.forget(0x8000_1040 >> LINE_SHIFT);
        assert_eq!(l.entry(DataSet::User, 0x9040).read, NO_TAG);
    }

    #[test]
    fn no_line_is_left_without_an_owner() {
        let mut l = Lines::new();
        let far = (OWNERS as u64) << LINE_SHIFT;
        fill(&mut l, SET, 0x5040, 0x8000_1040);
        fill(&mut l, SET, 0x6040, 0x8000_1040 + far);
        assert_eq!((l.entry(SET, 0x5040).read, l.entry(SET, 0x6040).read), (NO_TAG, 0x6040));
        // Another line takes the place in the set: losing the first line must not remove the new one.
        fill(&mut l, SET, 0x6040 + (LINES << LINE_SHIFT) as u64, 0x8000_2040);
        l.forget((0x8000_1040 + far) >> LINE_SHIFT);
        assert_eq!(l.entry(SET, 0x6040 + (LINES << LINE_SHIFT) as u64).pa_size & PAGE_MASK, 0x8000_2000);
    }

    #[test]
    fn a_page_is_forgotten_in_all_sets() {
        let mut l = Lines::new();
        fill(&mut l, SET, 0x5040, 0x8000_1040);
        fill(&mut l, DataSet::User, 0x5fc0, 0x8000_1fc0);
        fill(&mut l, SET, 0x6000, 0x8000_2000);
        l.forget_page(0x5123);
        let tags = [l.entry(SET, 0x5040).read, l.entry(DataSet::User, 0x5fc0).read, l.entry(SET, 0x6000).read];
        assert_eq!(tags, [NO_TAG, NO_TAG, 0x6000]);
    }
}
