// SPDX-License-Identifier: Apache-2.0
//! Foresight, a policy of this project: what A-SPF does for memory-intensive processes it does for all, with what the scheduler
//! and the faults themselves foretell.
//!
//! - Replacement: the page whose next use is furthest, by its process's own time and its place in the scheduler's order
//!   ([`crate::replacement::VirtualTime`]).
//! - Turns are longer by a factor, the same for all: a working set is brought back less often.
//! - While a process runs, the pages that the next one has lost and used in its last turn come back, as far as the drive is idle.
//! - With a fault come the pages that followed it the last time, if they did so more than once, and those of the run of addresses
//!   that it belongs to; both go on as the pages are used, so that they arrive before they are wanted.
//! - A page that such a run has passed goes first: what is read in order is not wanted again soon.
//! - A process that has to wait keeps the processor or not as [`super::Adaptive`] says, but for waits of two context switches.

mod followers;
mod streams;

use std::collections::VecDeque;

use followers::Followers;
use streams::Streams;

use super::adaptive::Waits;
use super::{Bookkeeping, Policy, Registration, Wait};
use crate::core::{Core, Evicted};
use crate::pages::{Origin, PageId, Pid};
use crate::settings::{Settings, Time};

/// The policy of this file.
pub const POLICIES: &[Registration] =
    &[Registration { name: "foresight", about: "ours ([how it works](../explanation/pagesim.md#foresight))", make: |settings| Box::new(Foresight::new(settings)) }];

#[derive(Debug, Default)]
struct Process {
    streams: Streams,
    /// Pages that it lost since its turn, most recently used first; as many as it has frames at most.
    lost: VecDeque<PageId>,
    /// The last page that it had to wait for or that was read ahead and used.
    last: Option<PageId>,
}

/// The policy.
#[derive(Debug)]
pub struct Foresight {
    processes: Vec<Process>,
    followers: Followers,
    waits: Waits,
    /// For each CPU.
    rebuilds: Vec<Rebuild>,
    /// How long each process has to wait for its next turn.
    turns: Vec<Time>,
}

#[derive(Clone, Debug, Default)]
struct Rebuild {
    /// Whose pages come back.
    next: Option<Pid>,
    /// A read of them is underway.
    busy: bool,
}

/// Who sleeps lets others use its share of the processor, so it does when there is more to gain than the switch alone: the
/// switch back, too.
const SWITCHES: f64 = 2.0;
/// Pages remembered of a process.
const LOST: usize = 1 << 16;

impl Foresight {
    /// For the processes of a configuration.
    pub fn new(settings: &Settings) -> Foresight {
        Foresight {
            processes: settings.processes.iter().map(|_| Process::default()).collect(),
            followers: Followers::default(),
            waits: Waits::default(),
            rebuilds: vec![Rebuild::default(); settings.cpu.count as usize],
            turns: vec![0; settings.processes.len()],
        }
    }

    /// Reads ahead for a page that is missing, or was read ahead and is used now.
    fn ahead(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let most = core.settings.foresight.pages;
        let process = &mut self.processes[pid];
        if let Some(last) = process.last.replace(page) {
            self.followers.follow(last, page);
        }
        let vpn = core.pages[page].vpn;
        let (ahead, behind) = process.streams.ahead(vpn, most);
        for near in ahead {
            if let Some(near) = core.pages.mapped(pid, near) {
                core.prefetch(near, Origin::Neighbour);
            }
        }
        if let Some(done) = behind.and_then(|vpn| core.pages.mapped(pid, vpn)) {
            core.demote(done);
        }
        for follower in self.followers.of(page, most) {
            core.prefetch(follower, Origin::Successor);
        }
    }

    /// Keeps some reads of the next process's pages underway.
    fn rebuild(&mut self, core: &mut Core) {
        let cpu = core.cpu();
        let Some(next) = self.rebuilds[cpu].next else { return };
        let mut last = None;
        for _ in 0..core.settings.foresight.depth {
            let Some(page) = self.processes[next].lost.pop_front() else { break };
            if let Some(until) = core.prefetch(page, Origin::Reconstruct) {
                last = Some(until);
            }
        }
        self.rebuilds[cpu].busy = last.is_some();
        match last {
            Some(until) => core.call_at(until),
            None => self.rebuilds[cpu].next = None,
        }
    }
}

impl Policy for Foresight {
    fn replacement(&self) -> &'static str {
        "virtual-time"
    }

    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        self.ahead(core, pid, page);
    }

    fn used(&mut self, core: &mut Core, page: PageId) {
        let entry = &core.pages[page];
        if entry.origin != Origin::Reconstruct {
            self.ahead(core, entry.owner, page);
        }
    }

    fn wait(&mut self, core: &mut Core, page: PageId, until: Time) -> Wait {
        self.waits.decide(core, page, until, SWITCHES)
    }

    fn evicted(&mut self, core: &mut Core, Evicted { page, .. }: Evicted) {
        let entry = &core.pages[page];
        if entry.accessed && !core.runs(entry.owner) {
            let lost = &mut self.processes[entry.owner].lost;
            lost.push_front(page);
            lost.truncate(LOST);
        }
    }

    fn enter(&mut self, core: &mut Core, pid: Pid) {
        self.processes[pid].lost.clear();
        let ready = core.sched.ready();
        // Whoever is not ready comes after all that are. What other CPUs expect stays.
        let own = self.slice(core, pid);
        for (_, turn) in self.turns.iter_mut().enumerate().filter(|(other, _)| core.cpu_of(*other) == core.cpu()) {
            *turn = own * (ready.len() as u64 + 1);
        }
        for (place, other) in ready.iter().enumerate() {
            self.turns[*other] = own * (place as u64 + 1);
        }
        self.turns[pid] = 0;
        core.replacement.expect(&self.turns);
        let rebuild = &mut self.rebuilds[core.cpu()];
        rebuild.next = ready.first().copied();
        if !rebuild.busy {
            self.rebuild(core);
        }
    }

    fn slice(&mut self, core: &mut Core, pid: Pid) -> Time {
        (core.sched.slice(pid) as f64 * core.settings.foresight.slices) as Time
    }

    fn call(&mut self, core: &mut Core) {
        self.rebuild(core);
    }

    /// A place in a list of lost pages, a follower with its confidence, a stream: 8, 8 and 16 bytes.
    fn bookkeeping(&self) -> Bookkeeping {
        let lost: usize = self.processes.iter().map(|process| process.lost.len()).sum();
        let streams = self.processes.len() * streams::COUNT * 16;
        Bookkeeping {
            bytes: (8 * (lost + self.followers.len()) + streams) as u64,
            operations: self.followers.changes(),
        }
    }
}
