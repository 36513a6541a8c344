// SPDX-License-Identifier: Apache-2.0
//! Evicts the page whose next use is furthest away, assuming that each process uses its pages as before.
//!
//! Pages age while their process runs, and not while it waits (as in WSClock: Carr and Hennessy, "WSClock: A Simple and Effective
//! Algorithm for Virtual Memory Management", SOSP 1981). Assume that a process has not used a page for the time `a`, measured in
//! the process's own time. Then the order expects no use in the next `a` of this time. The process gets this time in turns, and
//! the scheduler's order tells when the next turn begins. Plain LRU does the opposite when processes take turns: it evicts the
//! pages of the next process first.

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
    /// The most recently used page is first.
    list: List,
    /// Time in which it did not run.
    elsewhere: Time,
    /// Time at which its last turn ended. `None` while it runs.
    left: Option<Time>,
    /// Time until its next turn.
    wait: Time,
}

/// The state of the order. Each process has a list.
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
    /// Makes empty lists for this number of `processes`.
    pub fn new(processes: usize) -> VirtualTime {
        let processes = vec![Process { left: Some(0), ..Process::default() }; processes];
        VirtualTime { processes, links: Links::default(), used: vec![], now: 0, len: 0 }
    }

    /// The own time of a process.
    fn own(&self, pid: Pid) -> Time {
        let process = &self.processes[pid];
        process.left.unwrap_or(self.now) - process.elsewhere
    }

    fn owner(&self, page: PageId) -> Pid {
        self.used[page.index()].0 as Pid
    }

    /// The expected time until the next use of a page.
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

    /// Two processes, by hand. P0 uses pages 0 and 1 at 10 and 20 and leaves at 30. P1 uses pages 2 and 3 at 40 and 100.
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
        // The ages are 20 and 10 in P0's time, 60 and 0 in P1's. LRU would evict page 0.
        assert_eq!(victim(&mut lists), Some(2));
        assert_eq!(victim(&mut lists), Some(0));
        // The ages are 10 and 0, but P1's next turn is far away.
        lists.leave(1, 100);
        lists.expect(&[0, 50]);
        assert_eq!(victim(&mut lists), Some(3));
        assert_eq!(victim(&mut lists), Some(1));
        assert_eq!((victim(&mut lists), lists.len()), (None, 0));
    }
}
