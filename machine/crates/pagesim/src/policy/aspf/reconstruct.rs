// SPDX-License-Identifier: Apache-2.0
//! ULL page lists: which of a process's pages on the drive belong to its working set (ASPF III-B3, algorithm 3).

use crate::core::Core;
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::policy::Bookkeeping;

/// Bytes of a page's list entry (IV-C2).
const ENTRY: u64 = 8;

#[derive(Clone, Debug, Default)]
struct Process {
    inactive: List,
    reconstruct: List,
    /// Faults in the current turn, or in the last one if the process does not run; and those of the turn before (`prev_fault`).
    faults: u64,
    previous_faults: u64,
}

/// The two lists of every process.
#[derive(Debug)]
pub struct UllLists {
    processes: Vec<Process>,
    links: Links,
    /// For each page: whether it is in the inactive list, or was there when it was last in a list.
    inactive: Vec<bool>,
    operations: u64,
}

impl UllLists {
    /// Makes empty lists for this number of `processes`.
    pub fn new(processes: usize) -> UllLists {
        let processes = vec![Process::default(); processes];
        UllLists { processes, links: Links::default(), inactive: vec![], operations: 0 }
    }

    /// Adds an evicted page (algorithm 3) at the head of the reconstruct list if it was accessed, otherwise at the head of the
    /// inactive list.
    pub fn insert(&mut self, owner: Pid, page: PageId, accessed: bool) {
        // A page that was rescued while it was being written is still in a list.
        self.take(owner, page);
        self.operations += 1;
        let len = self.inactive.len().max(page.index() + 1);
        self.inactive.resize(len, false);
        self.inactive[page.index()] = !accessed;
        let Process { inactive, reconstruct, .. } = &mut self.processes[owner];
        self.links.insert(if accessed { reconstruct } else { inactive }, End::Head, page.0);
    }

    /// Removes a page that is on its way to DRAM from its list.
    pub fn forget(&mut self, core: &Core, page: PageId) {
        self.take(core.pages[page].owner, page);
    }

    fn take(&mut self, owner: Pid, page: PageId) {
        if self.links.is_linked(page.0) {
            self.operations += 1;
            let Process { inactive, reconstruct, .. } = &mut self.processes[owner];
            let list = if self.inactive[page.index()] { inactive } else { reconstruct };
            self.links.remove(list, page.0);
        }
    }

    /// Whether a page was not accessed before it left DRAM.
    pub fn is_inactive(&self, page: PageId) -> bool {
        self.inactive.get(page.index()).copied().unwrap_or(false)
    }

    /// The head of a process's reconstruct list.
    pub fn first(&self, pid: Pid) -> Option<PageId> {
        self.processes[pid].reconstruct.at(End::Head).map(PageId)
    }

    /// Notes a fault of a process.
    pub fn fault(&mut self, pid: Pid) {
        self.processes[pid].faults += 1;
    }

    /// Notes that a process begins a turn.
    pub fn turn(&mut self, pid: Pid) {
        let process = &mut self.processes[pid];
        process.previous_faults = std::mem::take(&mut process.faults);
    }

    /// Number of faults of a process in its last turn.
    pub fn previous_faults(&self, pid: Pid) -> u64 {
        self.processes[pid].faults
    }

    /// Bytes and operations, counted as in IV-C.
    pub fn cost(&self) -> Bookkeeping {
        Bookkeeping { bytes: self.inactive.len() as u64 * ENTRY, operations: self.operations }
    }

    /// The two lists of a process from their heads: inactive, reconstruct.
    #[cfg(test)]
    fn lists(&self, pid: Pid) -> [Vec<u32>; 2] {
        let Process { inactive, reconstruct, .. } = &self.processes[pid];
        [inactive, reconstruct].map(|list| self.links.iter(list).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Algorithm 3 by hand: twelve pages enter and leave.
    #[test]
    fn algorithm_3_by_hand() {
        let mut lists = UllLists::new(2);
        for (page, accessed) in [(1, true), (2, true), (3, false), (4, true), (5, false), (6, true)] {
            lists.insert(0, PageId(page), accessed);
        }
        lists.insert(1, PageId(7), true);
        assert_eq!(lists.lists(0), [vec![5, 3], vec![6, 4, 2, 1]]);
        assert_eq!(lists.lists(1), [vec![], vec![7]]);
        // 4 faults, and 6 is prefetched. 6 leaves again without use; 4 leaves after it was used.
        lists.take(0, PageId(4));
        assert_eq!(lists.first(0), Some(PageId(6)));
        lists.take(0, PageId(6));
        lists.insert(0, PageId(6), false);
        lists.insert(0, PageId(4), true);
        assert_eq!(lists.lists(0), [vec![6, 5, 3], vec![4, 2, 1]]);
        assert!(lists.is_inactive(PageId(6)) && !lists.is_inactive(PageId(4)));
        // 3 was in the inactive list by mistake: it faults and is used.
        lists.take(0, PageId(3));
        lists.insert(0, PageId(3), true);
        assert_eq!(lists.lists(0), [vec![6, 5], vec![3, 4, 2, 1]]);
    }

    #[test]
    fn faults_are_those_of_the_last_turn() {
        let mut lists = UllLists::new(1);
        lists.turn(0);
        (0..5).for_each(|_| lists.fault(0));
        assert_eq!(lists.previous_faults(0), 5);
        lists.turn(0);
        assert_eq!(lists.previous_faults(0), 0);
        lists.fault(0);
        assert_eq!(lists.previous_faults(0), 1);
    }
}
