// SPDX-License-Identifier: Apache-2.0
//! Translation caches of the interpreter: direct mapped, from virtual pages to host addresses or to predecoded code.
//!
//! An access that hits needs no further check: permission, PMP, alignment to a host address and the absence of code were
//! checked when the entry was made.

use trapless_memory::PAGE_SHIFT;

use crate::entry::{DataEntry, DataSet, NO_DATA, NO_TAG, PAGE_MASK};
use crate::exit::Privilege;
use crate::lines::Lines;
use crate::page::CodePage;

/// Number of entries in a set.
pub const ENTRIES: usize = 256;
/// Argument of [`Tlb::fill_data`].
pub struct DataPage {
    /// Physical address of the access.
    pub pa: u64,
    /// Host address of the access.
    pub host: u64,
    /// log2 of the translation's size.
    pub size: u32,
    /// Whether loads may use it.
    pub read: bool,
    /// Whether stores may use it.
    pub write: bool,
}

/// An entry for fetches from one page. Like [`DataEntry`], its size is a power of two: translated code finds it by a shift.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct FetchEntry {
    /// Virtual page address.
    pub tag: u64,
    /// The slots of the page.
    pub page: *const CodePage,
    /// log2 of the translation's size.
    pub size: u64,
}

const NO_FETCH: FetchEntry = FetchEntry { tag: NO_TAG, page: std::ptr::null(), size: 0 };

/// All translation caches of a hart.
pub struct Tlb {
    data: Box<[[DataEntry; ENTRIES]; 4]>,
    fetch: Box<[[FetchEntry; ENTRIES]; 4]>,
    /// Replaces `data` on the fast path in detailed timing.
    pub lines: Lines,
    /// Sets that may have valid entries: data sets in bits 0 to 3, fetch sets in bits 4 to 7.
    used: u8,
    /// Whether the lower and the upper half of the address space may have entries for parts of large pages.
    large: [bool; 2],
}

/// Half of the address space: 0 is the lower one, which user programs have.
const fn half(va: u64) -> usize {
    (va >> 63) as usize
}

/// Index of `va` in a set.
#[inline]
pub const fn index(va: u64) -> usize {
    (va >> PAGE_SHIFT) as usize & (ENTRIES - 1)
}

impl Tlb {
    /// An empty cache.
    pub fn new() -> Tlb {
        Tlb {
            data: Box::new([[NO_DATA; ENTRIES]; 4]),
            fetch: Box::new([[NO_FETCH; ENTRIES]; 4]),
            lines: Lines::new(),
            used: 0,
            large: [false; 2],
        }
    }

    /// The entries of a data set. The address is valid as long as the cache lives.
    #[inline]
    pub fn data_set(&self, set: DataSet) -> *const DataEntry {
        self.data[set as usize].as_ptr()
    }

    /// The entries of a fetch set. The address is valid as long as the cache lives.
    #[inline]
    pub fn fetch_set(&self, p: Privilege) -> *const FetchEntry {
        self.fetch[p as usize & 3].as_ptr()
    }

    /// The fetch entry in which `va` would be.
    #[inline]
    pub fn fetch_entry(&self, p: Privilege, va: u64) -> &FetchEntry {
        &self.fetch[p as usize & 3][index(va)]
    }

    /// The data entry in which `va` would be.
    #[inline]
    pub fn data_entry(&self, set: DataSet, va: u64) -> &DataEntry {
        &self.data[set as usize][index(va)]
    }

    /// Enters the line of `va` with the rights of its page's entry, if that exists.
    pub fn fill_line(&mut self, set: DataSet, va: u64, writable: bool) {
        let page = *self.data_entry(set, va);
        let tag = va & PAGE_MASK;
        let (read, write) = (page.read == tag, page.write == tag && writable);
        if read || write {
            self.lines.fill(set, va, &page, read, write);
        }
    }

    /// Notes that an entry for a part of a page of 2^`size` bytes is made.
    fn note_large(&mut self, va: u64, size: u32) {
        self.large[half(va)] |= size > PAGE_SHIFT;
    }

    /// Enters a page for loads, stores or both. An existing entry for the page gains these rights.
    pub fn fill_data(&mut self, set: DataSet, va: u64, to: &DataPage) {
        self.used |= 1 << set as u8;
        self.note_large(va, to.size);
        let page = va & PAGE_MASK;
        let e = &mut self.data[set as usize][index(va)];
        let pa_size = to.pa & PAGE_MASK | u64::from(to.size);
        let addend = (to.host & PAGE_MASK).wrapping_sub(page);
        if e.pa_size != pa_size || e.addend != addend || (e.read != page && e.write != page) {
            *e = DataEntry { addend, pa_size, ..NO_DATA };
        }
        if to.read {
            e.read = page;
        }
        if to.write {
            e.write = page;
        }
    }

    /// Enters a page for fetches.
    pub fn fill_fetch(&mut self, p: Privilege, va: u64, page: *const CodePage, size: u32) {
        self.used |= 0x10 << p as u8;
        self.note_large(va, size);
        self.fetch[p as usize & 3][index(va)] = FetchEntry { tag: va & PAGE_MASK, page, size: u64::from(size) };
    }

    /// Forgets everything.
    pub fn flush(&mut self) {
        for set in 0..4 {
            if self.used >> set & 1 != 0 {
                self.data[set].fill(NO_DATA);
            }
            if self.used >> set & 0x10 != 0 {
                self.fetch[set].fill(NO_FETCH);
            }
        }
        self.used = 0;
        self.large = [false; 2];
        self.lines.flush();
    }

    /// Forgets the page at `va`, which the code TLB of detailed timing has lost.
    pub fn forget_fetch(&mut self, va: u64) {
        for set in self.fetch.iter_mut() {
            let e = &mut set[index(va)];
            if e.tag == va & PAGE_MASK {
                *e = NO_FETCH;
            }
        }
    }

    /// All data entries of sets that may have valid ones, lines included.
    fn live_data(&mut self) -> impl Iterator<Item = &mut DataEntry> {
        let used = self.used;
        let pages = self.data.iter_mut().enumerate().filter(move |(i, _)| used >> i & 1 != 0).flat_map(|(_, set)| set);
        pages.chain(self.lines.live())
    }

    /// All fetch entries of sets that may have valid ones.
    fn live_fetch(&mut self) -> impl Iterator<Item = &mut FetchEntry> {
        let used = self.used;
        self.fetch.iter_mut().enumerate().filter(move |(i, _)| used >> i & 0x10 != 0).flat_map(|(_, set)| set)
    }

    /// Forgets all translations that overlap `[first, last]` (page addresses). A large page is forgotten as a whole.
    pub fn flush_range(&mut self, first: u64, last: u64) {
        if (first ^ last) & PAGE_MASK == 0 && !self.large[half(first)] {
            self.flush_page(first);
            return;
        }
        let hit = |tag: u64, size: u64| {
            let start = tag & !((1 << size) - 1);
            start <= last && first <= start | ((1 << size) - 1)
        };
        for e in self.live_data() {
            let tag = if e.read != NO_TAG { e.read } else { e.write };
            if tag != NO_TAG && hit(tag, e.pa_size & !PAGE_MASK) {
                *e = NO_DATA;
            }
        }
        for e in self.live_fetch() {
            if e.tag != NO_TAG && hit(e.tag, e.size) {
                *e = NO_FETCH;
            }
        }
    }

    /// Forgets the entry of the page at `va`, but no other part of a large page.
    fn flush_page(&mut self, va: u64) {
        for set in self.data.iter_mut() {
            let e = &mut set[index(va)];
            if e.read == va & PAGE_MASK || e.write == va & PAGE_MASK {
                *e = NO_DATA;
            }
        }
        self.forget_fetch(va);
        self.lines.forget_page(va);
    }

    /// Makes stores to the physical page at `pa` take the slow path; `None`: stores to any page.
    pub fn protect(&mut self, pa: Option<u64>) {
        for e in self.live_data() {
            if pa.is_none_or(|pa| e.pa_size & PAGE_MASK == pa) {
                e.write = NO_TAG;
            }
        }
    }
}
