// SPDX-License-Identifier: Apache-2.0
//! Foresight, a policy of this project. It does for all processes what A-SPF does for memory-intensive ones. It predicts uses of
//! pages from the scheduler and from the faults themselves.
//!
//! - Replacement: evicts the page whose next use is furthest away, judged by its process's own time and by the process's place in
//!   the scheduler's order ([`crate::replacement::VirtualTime`]).
//! - Turns are longer by a factor that is the same for all processes. So a working set is brought back less often.
//! - While a process runs, the policy reads pages of the next process back: those that it used in its last turn and lost. It
//!   keeps only a few of these reads under way.
//! - At a fault, it also reads the pages that followed the missing page more than once, and the next pages of the run of
//!   addresses that the missing page belongs to. When these pages are used, it reads on in the same way, so that later pages
//!   arrive in time.
//! - A page that such a run has passed is evicted first, because pages that are read in order are not used again soon.
//! - Whether a waiting process keeps the processor is decided as by the policy `adaptive`, with a threshold of two context
//!   switches.

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
    /// Pages that it lost since its last turn, the most recent first. At most [`LOST`].
    lost: VecDeque<PageId>,
    /// The last page that it had to wait for, or that was prefetched and then used.
    last: Option<PageId>,
}

/// The policy's state.
#[derive(Debug)]
pub struct Foresight {
    processes: Vec<Process>,
    followers: Followers,
    waits: Waits,
    /// The reads for the next process, for each CPU.
    rebuilds: Vec<Rebuild>,
    /// Time until the next turn of each process.
    turns: Vec<Time>,
}

#[derive(Clone, Debug, Default)]
struct Rebuild {
    /// The process whose pages are read.
    next: Option<Pid>,
    /// Whether a read of them is under way.
    busy: bool,
}

/// Number of context switches that a wait must exceed for the process to sleep. A process that sleeps gives its share of the
/// processor away, so the gain must pay for the switch back as well.
const SWITCHES: f64 = 2.0;
/// Largest number of lost pages that are remembered for a process.
const LOST: usize = 1 << 16;

impl Foresight {
    /// Makes the policy for the processes of a configuration.
    pub fn new(settings: &Settings) -> Foresight {
        Foresight {
            processes: settings.processes.iter().map(|_| Process::default()).collect(),
            followers: Followers::default(),
            waits: Waits::default(),
            rebuilds: vec![Rebuild::default(); settings.cpu.count as usize],
            turns: vec![0; settings.processes.len()],
        }
    }

    /// Prefetches after a fault, or after the first use of a prefetched page.
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

    /// Keeps some reads of the next process's pages under way.
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
        // Processes that are not ready come after all that are. The estimates for processes of other CPUs stay as they are.
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

    /// Counts 8 bytes for an entry in a list of lost pages, 8 for a follower with its confidence, and 16 for a stream.
    fn bookkeeping(&self) -> Bookkeeping {
        let lost: usize = self.processes.iter().map(|process| process.lost.len()).sum();
        let streams = self.processes.len() * streams::COUNT * 16;
        Bookkeeping {
            bytes: (8 * (lost + self.followers.len()) + streams) as u64,
            operations: self.followers.changes(),
        }
    }
}
