// SPDX-License-Identifier: Apache-2.0
//! Pages: their places and the contents of their page table entries.

use std::collections::HashMap;

use crate::settings::Time;

/// A process, as an index into the configuration's processes.
pub type Pid = usize;

/// Lines of 64 bytes in a page of 4 KiB.
pub const LINES: u64 = 64;

/// A page of one process. Pages are numbered in the order in which they first appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u32);

impl PageId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Only on the drive, or in the tier.
    Device,
    /// On its way into a frame. It arrives at this time.
    Reading(Time),
    /// In a frame.
    Resident,
    /// In a frame that becomes free when the write is over, unless the page is needed before that.
    Writing,
}

/// What caused the read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The fault itself.
    Demand,
    /// A fault of another page: this one was read as its neighbour in the address space or on the drive.
    Neighbour,
    /// A fault of another page of the same set (ASPF III-B1).
    Set,
    /// A fault of another page, after which this one faulted before.
    Successor,
    /// The next turn of its process (ASPF III-B3).
    Reconstruct,
}

impl Origin {
    /// All origins.
    pub const ALL: [Origin; 5] =
        [Origin::Demand, Origin::Neighbour, Origin::Set, Origin::Successor, Origin::Reconstruct];

    /// The name in reports and logs.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Demand => "demand",
            Origin::Neighbour => "neighbour",
            Origin::Set => "set",
            Origin::Successor => "successor",
            Origin::Reconstruct => "reconstruct",
        }
    }
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Process of the page.
    pub owner: Pid,
    /// Virtual page number.
    pub vpn: u64,
    /// Place of the page.
    pub place: Place,
    /// Frame of the page, unless its place is [`Place::Device`].
    pub frame: u32,
    /// Whether it was accessed since it was read (PG_ACCESSED). The value stays when the page leaves DRAM.
    pub accessed: bool,
    /// The turn of the process in which it last accessed the page.
    pub turn: u32,
    /// Whether it was written since it was read.
    pub dirty: bool,
    /// What caused the last read of the page.
    pub origin: Origin,
    /// Whether the process waits for the page or is about to access it. Such a page must not be evicted.
    pub awaited: bool,
}

/// Size of a process's table of recently used pages. The table finds a page by its address.
const RECENT: usize = 4096;

/// All pages of all processes.
#[derive(Debug, Default)]
pub struct Pages {
    pages: Vec<Page>,
    spaces: Vec<Space>,
    /// Whether new pages are in DRAM at once.
    resident: bool,
}

#[derive(Debug)]
struct Space {
    /// Mapped ranges of virtual page numbers, sorted: first, and last plus one. Empty if the ranges are unknown.
    mapped: Vec<(u64, u64)>,
    by_number: HashMap<u64, PageId>,
    recent: Vec<(u64, PageId)>,
}

impl std::ops::Index<PageId> for Pages {
    type Output = Page;
    #[inline]
    fn index(&self, id: PageId) -> &Page {
        &self.pages[id.index()]
    }
}

impl std::ops::IndexMut<PageId> for Pages {
    #[inline]
    fn index_mut(&mut self, id: PageId) -> &mut Page {
        &mut self.pages[id.index()]
    }
}

impl Pages {
    /// Adds a process. `mapped` has its ranges of virtual page numbers (first, count).
    pub fn add_process(&mut self, mapped: &[(u64, u64)]) {
        let mut mapped: Vec<_> = mapped.iter().map(|&(first, count)| (first, first + count)).collect();
        mapped.sort_unstable();
        self.spaces.push(Space { mapped, by_number: HashMap::new(), recent: vec![(u64::MAX, PageId(0)); RECENT] });
    }

    pub(crate) fn keep_everything(&mut self) {
        self.resident = true;
    }

    /// Returns the page of an access. Adds it if it is new.
    #[inline]
    pub fn accessed(&mut self, owner: Pid, vpn: u64) -> PageId {
        let recent = &mut self.spaces[owner].recent[vpn as usize % RECENT];
        if recent.0 == vpn {
            return recent.1;
        }
        let id = self.get_or_new(owner, vpn);
        self.spaces[owner].recent[vpn as usize % RECENT] = (vpn, id);
        id
    }

    /// Returns the page at an address, even if it was never accessed. Returns `None` if the address is not mapped.
    pub fn mapped(&mut self, owner: Pid, vpn: u64) -> Option<PageId> {
        let space = &self.spaces[owner];
        if let Some(id) = space.by_number.get(&vpn) {
            return Some(*id);
        }
        self.area(owner, vpn)?;
        Some(self.get_or_new(owner, vpn))
    }

    /// The mapped range around an address: its first page number, and its last one plus one.
    pub fn area(&self, owner: Pid, vpn: u64) -> Option<(u64, u64)> {
        let mapped = &self.spaces[owner].mapped;
        let at = mapped.partition_point(|range| range.1 <= vpn);
        mapped.get(at).copied().filter(|range| range.0 <= vpn)
    }

    /// The mapped ranges of a process, sorted: the first page number of each, and its last one plus one.
    pub fn areas(&self, owner: Pid) -> &[(u64, u64)] {
        &self.spaces[owner].mapped
    }

    fn get_or_new(&mut self, owner: Pid, vpn: u64) -> PageId {
        let new = PageId(self.pages.len() as u32);
        let id = *self.spaces[owner].by_number.entry(vpn).or_insert(new);
        if id == new {
            let place = if self.resident { Place::Resident } else { Place::Device };
            let origin = Origin::Demand;
            self.pages.push(Page {
                owner,
                vpn,
                place,
                frame: 0,
                accessed: true,
                turn: 0,
                dirty: false,
                origin,
                awaited: false,
            });
        }
        id
    }

    /// All pages in the order in which they first appeared.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, &Page)> {
        self.pages.iter().enumerate().map(|(n, page)| (PageId(n as u32), page))
    }
}
