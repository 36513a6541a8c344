// SPDX-License-Identifier: Apache-2.0
//! Simulates waits on the processor, and records all waits of processes for their pages in the report and the log of faults.

use super::Sim;
use crate::faults::Fault;
use crate::pages::{Origin, PageId, Pid};
use crate::settings::Time;
use crate::warm_up::Until;

/// An access that waits for its page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    at: Time,
    /// Time at which the page arrives.
    pub(super) until: Time,
    origin: Origin,
    pub(super) evicted: Option<PageId>,
    /// The turn of the process in which it made the access.
    turn: u32,
    /// Whether the access was made in the warm-up.
    warming: bool,
}

impl Sim {
    /// Describes an access whose process begins to wait now.
    pub(super) fn waiting(&self, pid: Pid, origin: Origin, until: Time) -> Waiting {
        let (at, turn, warming) = (self.core.now, self.core.turns[pid], self.warming != Until::Over);
        Waiting { at, until, origin, evicted: None, turn, warming }
    }

    /// Records an access whose process has waited for its page and now continues.
    #[cold]
    pub(super) fn waited(&mut self, pid: Pid, page: PageId, waiting: Waiting) {
        let Waiting { at, until, origin, evicted, turn, warming } = waiting;
        let (waited, resumed) = (until - at, self.core.now - at);
        // A wait that began in the warm-up does not count after it.
        if warming == (self.warming != Until::Over) {
            self.core.stats.waits[pid].add(waited, resumed);
        }
        if !warming && let Some(log) = &mut self.log {
            let of = |page: PageId| (self.core.pages[page].owner, self.core.pages[page].vpn);
            let fault = Fault { at, pid, page: of(page).1, origin, waited, resumed, evicted: evicted.map(of), turn };
            if let Err(wrong) = log.add(&fault) {
                (self.wrong, self.log) = (Some(wrong), None);
            }
        }
    }

    /// Lets the process wait on the processor. Handles the events of this time, such as calls of the policy. Returns whether the
    /// wait is over. If it is not, other CPUs must be simulated first.
    pub(super) fn spin(&mut self, pid: Pid, until: Time) -> bool {
        let mut from = self.core.now;
        loop {
            // An event may give an idle CPU something to do.
            let to = until.min(self.limit);
            let next = self.core.next_event();
            if next > to || self.core.now >= to {
                self.core.now = self.core.now.max(to);
                break;
            }
            self.core.now = self.core.now.max(next);
            // The warm-up may end here.
            self.core.stats.processes[pid].waited += self.core.now - from;
            from = self.core.now;
            self.events(Some(pid));
        }
        self.core.stats.processes[pid].waited += self.core.now - from;
        let over = self.core.now >= until;
        if !over {
            self.core.spinning = Some(until);
        }
        over
    }
}
