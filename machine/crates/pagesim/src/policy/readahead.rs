// SPDX-License-Identifier: Apache-2.0
//! Linux's swap readahead (6.12, mm/swap_state.c), by place on the device and by address. Differences from Linux:
//! docs/explanation/pagesim-rivals.md.

use std::collections::HashMap;
use std::ops::Range;

use super::{Policy, Registration};
use crate::core::{Core, Evicted};
use crate::pages::{Origin, PageId, Pid};

/// The policies of this file.
pub const POLICIES: &[Registration] = &[
    Registration {
        name: "readahead-cluster",
        about: "Linux's swap readahead by place on the device ([rivals](../explanation/pagesim-rivals.md))",
        make: |_| Box::new(ReadaheadCluster::new()),
    },
    Registration {
        name: "readahead-vma",
        about: "Linux's swap readahead by address ([rivals](../explanation/pagesim-rivals.md))",
        make: |_| Box::new(ReadaheadVma::default()),
    },
];

/// Number of pages that one page table maps.
const TABLE: u64 = 512;
/// log2 of the largest window by address (`SWAP_RA_ORDER_CEILING`).
const MOST_VMA: u32 = 5;
/// Largest number of hits that an area counts (`SWAP_RA_HITS_MAX`).
const MOST_HITS: u32 = 63;
/// Number of hits assumed before the first fault, so that the first window is not the smallest one.
const FIRST_HITS: u32 = 4;

/// Number of pages in the next window (`__swapin_nr_pages`). With hits since the last window was read, it is two more than the
/// hits, rounded up to a power of two, and at least four. Without hits it is two if the last two faults are side by side, and one
/// otherwise. It is at most `most`, but at least half of the last window.
fn window(previous: u64, here: u64, hits: u32, most: u32, last: u32) -> u32 {
    let wanted = match hits {
        0 if previous.abs_diff(here) == 1 => 2,
        0 => 1,
        hits => (hits + 2).next_power_of_two().max(4),
    };
    wanted.min(most).max(last / 2)
}

/// Readahead by place: reads what lies around the page on the device (`swap_cluster_readahead`). One window serves all processes.
#[derive(Debug)]
pub struct ReadaheadCluster {
    slots: Slots,
    cluster: Cluster,
}

impl ReadaheadCluster {
    /// Makes the policy for a device on which nothing was written yet.
    pub fn new() -> ReadaheadCluster {
        let cluster = Cluster { previous: 0, hits: FIRST_HITS, last: 0 };
        ReadaheadCluster { slots: Slots::default(), cluster }
    }
}

impl Default for ReadaheadCluster {
    fn default() -> ReadaheadCluster {
        ReadaheadCluster::new()
    }
}

#[derive(Debug)]
struct Cluster {
    /// Slot of the last fault that came without hits.
    previous: u64,
    /// Prefetched pages that were accessed since the last fault.
    hits: u32,
    /// Number of pages in the last window.
    last: u32,
}

impl Cluster {
    /// The slots to read with a missing one. Windows are aligned to their size.
    fn fault(&mut self, slot: u64, most: u32) -> Range<u64> {
        if most == 1 {
            return slot..slot + 1;
        }
        let hits = std::mem::take(&mut self.hits);
        self.last = window(self.previous, slot, hits, most, self.last);
        if hits == 0 {
            self.previous = slot;
        }
        let pages = u64::from(self.last);
        let first = slot / pages * pages;
        first..first + pages
    }
}

impl Policy for ReadaheadCluster {
    fn fault(&mut self, core: &mut Core, _pid: Pid, page: PageId) {
        let slot = self.slots.slot(core, page);
        for near in self.cluster.fault(slot, 1 << core.settings.prefetch.page_cluster) {
            if let Some(page) = self.slots.page(core, near) {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }

    fn used(&mut self, _core: &mut Core, _page: PageId) {
        self.cluster.hits += 1;
    }

    fn evicted(&mut self, _core: &mut Core, Evicted { page, written }: Evicted) {
        if written {
            self.slots.write(page);
        }
    }
}

/// The places of pages on the device. At first, pages lie in the order of each process's addresses. A page that is written gets a
/// new slot after those of all pages written before. No slot is used twice.
#[derive(Debug, Default)]
struct Slots {
    /// The new slot of each page that was written; 0 for others.
    moved: Vec<u64>,
    written: HashMap<u64, PageId>,
    next: u64,
}

/// Bits of a page number in its process's first slots.
const VPN_BITS: u32 = 48;
/// First slot of written pages. Lower slots are the first ones of up to 2048 processes.
const WRITTEN: u64 = 1 << (VPN_BITS + 11);

impl Slots {
    fn moved(&self, page: PageId) -> Option<u64> {
        self.moved.get(page.index()).copied().filter(|slot| *slot != 0)
    }

    fn slot(&self, core: &Core, page: PageId) -> u64 {
        let entry = &core.pages[page];
        self.moved(page).unwrap_or((entry.owner as u64) << VPN_BITS | entry.vpn)
    }

    fn page(&self, core: &mut Core, slot: u64) -> Option<PageId> {
        if slot >= WRITTEN {
            return self.written.get(&slot).copied();
        }
        let (owner, vpn) = ((slot >> VPN_BITS) as Pid, slot & ((1 << VPN_BITS) - 1));
        core.pages.mapped(owner, vpn).filter(|page| self.moved(*page).is_none())
    }

    fn write(&mut self, page: PageId) {
        if self.moved.len() <= page.index() {
            self.moved.resize(page.index() + 1, 0);
        }
        let new = WRITTEN + self.next;
        self.next += 1;
        let old = std::mem::replace(&mut self.moved[page.index()], new);
        self.written.remove(&old);
        self.written.insert(new, page);
    }
}

/// Readahead by address: reads what is mapped around the page (`swap_vma_readahead`). Each mapped area has its window.
#[derive(Debug, Default)]
pub struct ReadaheadVma {
    /// The areas by process and first page.
    areas: HashMap<(Pid, u64), Area>,
}

/// `vma->swap_readahead_info`.
#[derive(Debug)]
struct Area {
    /// Page of the last fault, or of the last hit.
    previous: u64,
    /// Number of pages in the last window.
    last: u32,
    /// Prefetched pages that were accessed since the last fault.
    hits: u32,
}

impl Default for Area {
    fn default() -> Area {
        Area { previous: 0, last: 0, hits: FIRST_HITS }
    }
}

impl Area {
    /// The pages to read with a missing one in an area with these bounds.
    fn fault(&mut self, vpn: u64, most: u32, bounds: (u64, u64)) -> Range<u64> {
        if most == 1 {
            return vpn..vpn + 1;
        }
        let pages = window(self.previous, vpn, self.hits, most, self.last);
        let previous = self.previous;
        *self = Area { previous: vpn, last: pages, hits: 0 };
        let pages = u64::from(pages);
        // Forward, backward, or around the page.
        let before = match vpn {
            _ if vpn == previous + 1 => 0,
            _ if vpn + 1 == previous => pages - 1,
            _ => (pages - 1) / 2,
        };
        let table = vpn / TABLE * TABLE;
        let end = (vpn + pages).saturating_sub(before);
        vpn.saturating_sub(before).max(bounds.0).max(table)..end.min(bounds.1).min(table + TABLE)
    }

    fn hit(&mut self, vpn: u64) {
        self.previous = vpn;
        self.hits = (self.hits + 1).min(MOST_HITS);
    }
}

impl ReadaheadVma {
    /// The area of a page, and its bounds. A process whose areas are unknown has one area.
    fn area(&mut self, core: &Core, pid: Pid, vpn: u64) -> (&mut Area, (u64, u64)) {
        let bounds = core.pages.area(pid, vpn).unwrap_or((0, u64::MAX));
        (self.areas.entry((pid, bounds.0)).or_default(), bounds)
    }
}

impl Policy for ReadaheadVma {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        let most = 1 << core.settings.prefetch.page_cluster.min(MOST_VMA);
        let (area, bounds) = self.area(core, pid, vpn);
        for near in area.fault(vpn, most, bounds) {
            if let Some(page) = core.pages.mapped(pid, near) {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }

    fn used(&mut self, core: &mut Core, page: PageId) {
        let (pid, vpn) = (core.pages[page].owner, core.pages[page].vpn);
        self.area(core, pid, vpn).0.hit(vpn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::core;

    enum Step {
        Fault(u64),
        Hits(&'static [u64]),
    }
    use Step::{Fault, Hits};

    /// By address, with windows of at most eight pages in an area of pages 100 to 599:
    ///
    /// | step | hits | previous | window | pages read |
    /// | --- | --- | --- | --- | --- |
    /// | fault 200 | 4, as at first | 0 | 6, up to 8 | 3 before it, 4 after it: 197 to 204 |
    /// | fault 300 | none | 200 | 1, but not less than 8 / 2 | 1 before, 2 after: 299 to 302 |
    /// | hit 301 | 1 | 300 | | |
    /// | fault 303 | 1 | 301 | 3, up to 4 | 302 to 305 |
    /// | hits 304, 305 | 2 | 303 | | |
    /// | fault 306 | 2 | 305 | 4 | forward: 306 to 309 |
    /// | hits 307, 308, 309 | 3 | 306 | | |
    /// | fault 310 | 3 | 309 | 5, up to 8 | 310 to 317 |
    /// | fault 309 | none | 310 | 2, but 8 / 2 | backward: 306 to 309 |
    /// | fault 101 | none | 309 | 1, but 4 / 2 | 0 before: 101, 102 |
    /// | fault 400 | none | 101 | 1, 2 / 2 | 400 |
    /// | fault 401 | none | 400 | 2, side by side | 401, 402 |
    /// | fault 511 | none | 401 | 1 | 511 |
    /// | fault 510 | none | 511 | 2 | backward: 509, 510 |
    /// | fault 511 | none | 510 | 2 | forward, but 512 has another page table: 511 |
    /// | hits 512, 513 | 2 | 511 | | |
    /// | fault 598 | 2 | 513 | 4 | 1 before, 2 after, the area's end: 597 to 599 |
    #[test]
    fn by_address_by_hand() {
        let steps = [
            (Fault(200), 197..205),
            (Fault(300), 299..303),
            (Hits(&[301]), 0..0),
            (Fault(303), 302..306),
            (Hits(&[304, 305]), 0..0),
            (Fault(306), 306..310),
            (Hits(&[307, 308, 309]), 0..0),
            (Fault(310), 310..318),
            (Fault(309), 306..310),
            (Fault(101), 101..103),
            (Fault(400), 400..401),
            (Fault(401), 401..403),
            (Fault(511), 511..512),
            (Fault(510), 509..511),
            (Fault(511), 511..512),
            (Hits(&[512, 513]), 0..0),
            (Fault(598), 597..600),
        ];
        let mut area = Area::default();
        for (number, (step, expected)) in steps.into_iter().enumerate() {
            match step {
                Fault(vpn) => assert_eq!(area.fault(vpn, 8, (100, 600)), expected, "step {number}"),
                Hits(pages) => pages.iter().for_each(|vpn| area.hit(*vpn)),
            }
        }
        // The window ends at the area's beginning, or at the beginning of the addresses.
        assert_eq!(Area::default().fault(102, 8, (100, 600)), 100..107);
        assert_eq!(Area::default().fault(1, 8, (0, 600)), 1..9);
        assert_eq!(Area::default().fault(2, 8, (0, 600)), 0..7);
        assert_eq!(Area::default().fault(200, 1, (100, 600)), 200..201);
    }

    /// By place, with windows of at most eight slots:
    ///
    /// | step | hits | previous | window | slots read |
    /// | --- | --- | --- | --- | --- |
    /// | fault 21 | 4, as at first | 0 | 6, up to 8 | 16 to 23 |
    /// | fault 40 | none | 0, becomes 40 | 1, but 8 / 2 | 40 to 43 |
    /// | 41, 42 are hit | 2 | 40 | | |
    /// | fault 50 | 2 | stays 40 | 4 | 48 to 51 |
    /// | fault 41 | none | 40, becomes 41 | 2, side by side; 4 / 2 | 40, 41 |
    /// | fault 90 | none | 41, becomes 90 | 1, 2 / 2 | 90 |
    /// | fault 91 | none | 90, becomes 91 | 2 | 90, 91 |
    /// | 90 is hit | 1 | | | |
    /// | fault 92 | 1 | stays 91 | 3, up to 4 | 92 to 95 |
    /// | fault 92 | none | 91, becomes 92 | 2 | 92, 93 |
    /// | 7 are hit | 7 | | | |
    /// | fault 7 | 7 | stays 92 | 9, up to 16, but at most 8 | 0 to 7 |
    #[test]
    fn by_place_by_hand() {
        let steps = [
            (0, 21, 16..24),
            (0, 40, 40..44),
            (2, 50, 48..52),
            (0, 41, 40..42),
            (0, 90, 90..91),
            (0, 91, 90..92),
            (1, 92, 92..96),
            (0, 92, 92..94),
            (7, 7, 0..8),
        ];
        let mut cluster = ReadaheadCluster::new().cluster;
        for (hits, slot, expected) in steps {
            cluster.hits += hits;
            assert_eq!(cluster.fault(slot, 8), expected, "slot {slot}");
        }
        assert_eq!(cluster.fault(7, 1), 7..8);
    }

    /// Two processes with eight pages each, from page 16 on. Writes in this order: P0's 18, P1's 17, P0's 16, P0's 18 again.
    #[test]
    fn a_written_page_lies_behind_those_written_before() {
        let mut core = core(16, &[(16, 8), (16, 8)]);
        let mut slots = Slots::default();
        let mut id = |owner, vpn| core.pages.accessed(owner, vpn);
        let [a, b, c, kept] = [id(0, 18), id(1, 17), id(0, 16), id(0, 17)];
        [a, b, c, a].into_iter().for_each(|page| slots.write(page));
        let place = [a, b, c].map(|page| slots.slot(&core, page) - WRITTEN);
        assert_eq!(place, [3, 1, 2]);
        assert_eq!(
            (0..5).map(|n| slots.page(&mut core, WRITTEN + n)).collect::<Vec<_>>(),
            [None, Some(b), Some(c), Some(a), None]
        );
        // The old places of written pages are empty. A page that was never written has its place beside them. Nothing lies after
        // the mapped area.
        let first = slots.slot(&core, kept) - 1;
        let around = (first..first + 3).map(|slot| slots.page(&mut core, slot)).collect::<Vec<_>>();
        assert_eq!(around, [None, Some(kept), None]);
        assert_eq!(slots.page(&mut core, first + 8), None);
        let other = slots.page(&mut core, 1 << VPN_BITS | 20).map(|page| core.pages[page].owner);
        assert_eq!(other, Some(1));
    }

    /// Faults and hits as in a simulation.
    #[test]
    fn what_is_read_is_what_is_in_the_window_and_missing() {
        let mut core = core(16, &[(0, 64), (0, 64)]);
        let read = |core: &Core| {
            core.pages.iter().filter(|(id, _)| !core.is_out(*id)).map(|(_, page)| page.vpn).collect::<Vec<_>>()
        };
        let mut policy = ReadaheadVma::default();
        let page = core.pages.accessed(1, 3);
        core.demand(page);
        policy.fault(&mut core, 1, page);
        assert_eq!(read(&core), [3, 0, 1, 2, 4, 5, 6, 7]);
        let page = core.pages.accessed(1, 4);
        policy.used(&mut core, page);
        let page = core.pages.accessed(1, 8);
        core.demand(page);
        policy.fault(&mut core, 1, page);
        // One hit: the window has four pages around 8. Of these, 7 is in DRAM.
        assert_eq!(read(&core)[8..], [8, 9, 10]);
        let mut policy = ReadaheadCluster::new();
        let page = core.pages.accessed(0, 3);
        core.demand(page);
        policy.fault(&mut core, 0, page);
        assert_eq!(core.pages.iter().filter(|(id, page)| page.owner == 0 && !core.is_out(*id)).count(), 5);
    }
}
