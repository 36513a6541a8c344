// SPDX-License-Identifier: Apache-2.0
//! The page whose next use is furthest goes first, if a process uses its pages as it did.
//!
//! Pages age while their process runs and not while it waits (as in WSClock: Carr and Hennessy, "WSClock: A Simple and
//! Effective Algorithm for Virtual Memory Management", SOSP 1981). A page that its process has not used for `a` of its own time
//! is taken not to be used in the next `a`; that time comes in turns, and the first turn only when the scheduler says so. Plain
//! LRU evicts, when processes take turns, those pages first whose process is next.

use super::{Registration, Replace};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "virtual-time",
    about: "the page whose next use is furthest, if processes use pages as they did ([how it works](../explanation/pagesim.md#foresight))",
    make: |room| Box::new(VirtualTime::new(room.processes)),
};

#[derive(Clone, Debug, Default)]
struct Process {
    /// Most recently used first.
    list: List,
    /// Time in which it has not had the processor.
    elsewhere: Time,
    /// When it lost the processor; none while it has it.
    left: Option<Time>,
    /// Until its next turn.
    wait: Time,
}

/// A list for each process.
#[derive(Debug)]
pub struct VirtualTime {
    processes: Vec<Process>,
    links: Links,
    /// For each page: its process, and the process's own time at the last use.
    used: Vec<(u32, Time)>,
    now: Time,
    len: usize,
}

impl VirtualTime {
    /// Starts for this number of `processes`.
    pub fn new(processes: usize) -> VirtualTime {
        let processes = vec![Process { left: Some(0), ..Process::default() }; processes];
        VirtualTime { processes, links: Links::default(), used: vec![], now: 0, len: 0 }
    }

    /// A process's own time.
    fn own(&self, pid: Pid) -> Time {
        let process = &self.processes[pid];
        process.left.unwrap_or(self.now) - process.elsewhere
    }

    fn owner(&self, page: PageId) -> Pid {
        self.used[page.index()].0 as Pid
    }

    /// How far the next use of a page is.
    fn distance(&self, page: PageId) -> Time {
        let (pid, used) = self.used[page.index()];
        let age = self.own(pid as Pid).saturating_sub(used);
        self.processes[pid as usize].wait.saturating_add(age)
    }
}

impl Replace for VirtualTime {
    fn insert(&mut self, page: PageId, owner: Pid) {
        let len = self.used.len().max(page.index() + 1);
        self.used.resize(len, (0, 0));
        self.used[page.index()] = (owner as u32, self.own(owner));
        self.links.insert(&mut self.processes[owner].list, End::Head, page.0);
        self.len += 1;
    }

    #[inline]
    fn touch(&mut self, page: PageId, now: Time) {
        self.now = now;
        let (pid, used) = &mut self.used[page.index()];
        let process = &mut self.processes[*pid as usize];
        *used = now - process.elsewhere;
        self.links.move_to(&mut process.list, End::Head, page.0);
    }

    fn demote(&mut self, page: PageId) {
        let owner = self.owner(page);
        self.used[page.index()].1 = 0;
        self.links.move_to(&mut self.processes[owner].list, End::Tail, page.0);
    }

    fn remove(&mut self, page: PageId) {
        let owner = self.owner(page);
        self.links.remove(&mut self.processes[owner].list, page.0);
        self.len -= 1;
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let tails = self.processes.iter().filter_map(|process| {
            let mut at = process.list.at(End::Tail);
            while let Some(id) = at {
                if may(PageId(id)) {
                    return Some(PageId(id));
                }
                at = self.links.before(id);
            }
            None
        });
        let page = tails.max_by_key(|page| (self.distance(*page), page.0))?;
        self.remove(page);
        Some(page)
    }

    fn enter(&mut self, pid: Pid, now: Time) {
        self.now = now;
        let process = &mut self.processes[pid];
        if let Some(left) = process.left.take() {
            process.elsewhere += now - left;
        }
    }

    fn leave(&mut self, pid: Pid, now: Time) {
        self.now = now;
        self.processes[pid].left = Some(now);
    }

    fn expect(&mut self, waits: &[Time]) {
        for (process, wait) in self.processes.iter_mut().zip(waits) {
            process.wait = *wait;
        }
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(replacement: &mut VirtualTime) -> Option<u32> {
        replacement.victim(&|_| true).map(|page| page.0)
    }

    /// By hand, two processes. P0 uses pages 0 and 1 at 10 and 20 and leaves at 30; P1 uses pages 2 and 3 at 40 and 100.
    #[test]
    fn pages_age_in_their_processes_own_time() {
        let mut lists = VirtualTime::new(2);
        lists.enter(0, 0);
        for (page, at) in [(0, 10), (1, 20)] {
            lists.insert(PageId(page), 0);
            lists.touch(PageId(page), at);
        }
        lists.leave(0, 30);
        lists.enter(1, 30);
        for (page, at) in [(2, 40), (3, 100)] {
            lists.insert(PageId(page), 1);
            lists.touch(PageId(page), at);
        }
        // Ages: 20 and 10 of P0's time, 60 and 0 of P1's. By time of last use it would be page 0.
        assert_eq!(victim(&mut lists), Some(2));
        assert_eq!(victim(&mut lists), Some(0));
        // 10 against 0, but P1's next turn is far.
        lists.leave(1, 100);
        lists.expect(&[0, 50]);
        assert_eq!(victim(&mut lists), Some(3));
        assert_eq!(victim(&mut lists), Some(1));
        assert_eq!((victim(&mut lists), lists.len()), (None, 0));
    }
}
