// SPDX-License-Identifier: Apache-2.0
//! Pages: where each is, and what the page table says of it.

use std::collections::HashMap;

use crate::settings::Time;

/// A process, by its place in the configuration.
pub type Pid = usize;

/// Lines of 64 bytes in a page of 4 KiB.
pub const LINES: u64 = 64;

/// A page of one process; pages are numbered as they are first met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u32);

impl PageId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device alone.
    Device,
    /// On its way into a frame, and there from that time on.
    Reading(Time),
    /// In a frame.
    Resident,
    /// In a frame that becomes free when the write is done, unless the page is needed before.
    Writing,
}

/// What caused the read of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The fault itself.
    Demand,
    /// With a fault, as a neighbour in address space or on the device.
    Neighbour,
    /// With a fault, as a member of the page's set (ASPF III-B1).
    Set,
    /// With a fault, because its fault followed this one before.
    Successor,
    /// Before its process runs (ASPF III-B3).
    Reconstruct,
}

impl Origin {
    /// All of them.
    pub const ALL: [Origin; 5] =
        [Origin::Demand, Origin::Neighbour, Origin::Set, Origin::Successor, Origin::Reconstruct];

    /// Its name in reports and logs.
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
    /// Its process.
    pub owner: Pid,
    /// Its virtual page number.
    pub vpn: u64,
    /// Where it is.
    pub place: Place,
    /// Its frame, unless it is on the device alone.
    pub frame: u32,
    /// Accessed since it was read (PG_ACCESSED). When the page leaves for the device, the value stays as it was.
    pub accessed: bool,
    /// The turn of its process in which it was last accessed.
    pub turn: u32,
    /// Written since it was read.
    pub dirty: bool,
    /// What caused its read.
    pub origin: Origin,
    /// Its process waits for it or is about to access it, so it must not be evicted.
    pub awaited: bool,
}

/// Entries of a process's table of recently used pages, which finds a page by its address.
const RECENT: usize = 4096;

/// All pages of all processes.
#[derive(Debug, Default)]
pub struct Pages {
    pages: Vec<Page>,
    spaces: Vec<Space>,
    /// New pages are in DRAM.
    resident: bool,
}

#[derive(Debug)]
struct Space {
    /// Mapped ranges of virtual page numbers, sorted: first, and last plus one. Empty if the ranges are not known.
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
    /// Adds a process; `mapped` are its ranges of virtual page numbers (first, count).
    pub fn add_process(&mut self, mapped: &[(u64, u64)]) {
        let mut mapped: Vec<_> = mapped.iter().map(|&(first, count)| (first, first + count)).collect();
        mapped.sort_unstable();
        self.spaces.push(Space { mapped, by_number: HashMap::new(), recent: vec![(u64::MAX, PageId(0)); RECENT] });
    }

    pub(crate) fn keep_everything(&mut self) {
        self.resident = true;
    }

    /// The page of an access.
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

    /// The page at an address, also if nobody has accessed it yet; None if the address is not mapped.
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

    /// The mapped ranges of a process, sorted: the first page number of each, and the one behind its last.
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

    /// All pages, in the order in which they were met.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, &Page)> {
        self.pages.iter().enumerate().map(|(n, page)| (PageId(n as u32), page))
    }
}
