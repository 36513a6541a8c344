// SPDX-License-Identifier: Apache-2.0
//! What to do about faults: one file for each policy.

mod adaptive;
mod agg;
mod aspf;
mod foresight;
mod leap;
mod plain;
mod readahead;
mod virt;

pub use adaptive::Adaptive;
pub use agg::Agg;
pub use aspf::Aspf;
pub use foresight::Foresight;
pub use leap::Leap;
pub use plain::{Async, Sync};
pub use readahead::{ReadaheadCluster, ReadaheadVma};
pub use virt::Virt;

use serde::Serialize;

use crate::core::{Core, Evicted};
use crate::pages::{PageId, Pid};
use crate::settings::{PolicyName, Settings, Time};

/// What a process does until its page is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It keeps the processor (synchronous handling).
    Spin,
    /// It sleeps, and another one runs (asynchronous handling).
    Switch,
}

/// What a policy itself costs (ASPF IV-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bookkeeping {
    /// Memory of its structures, in the sizes that the paper states, bytes.
    pub bytes: u64,
    /// Changes of its lists and sets.
    pub operations: u64,
}

/// A policy. Every method but `fault` has the baseline's behaviour unless it is said otherwise.
pub trait Policy {
    /// A page of the running process is missing; its read has begun. What else is to be read?
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId);

    /// The running process needs a page that is there at `until`.
    fn wait(&mut self, _core: &mut Core, _page: PageId, _until: Time) -> Wait {
        Wait::Spin
    }

    /// A page that was read ahead is accessed for the first time.
    fn used(&mut self, _core: &mut Core, _page: PageId) {}

    /// A page has left DRAM (it may be on its way back already).
    fn evicted(&mut self, _core: &mut Core, _evicted: Evicted) {}

    /// Takes the process that is to run next out of the queue.
    fn take_next(&mut self, core: &mut Core) -> Option<Pid> {
        core.sched.take_next()
    }

    /// A process gets the processor.
    fn enter(&mut self, _core: &mut Core, _pid: Pid) {}

    /// How long it may run.
    fn slice(&mut self, core: &mut Core, pid: Pid) -> Time {
        core.sched.slice(pid)
    }

    /// At the end of its slice: whether it goes on with another one.
    fn goes_on(&mut self, core: &mut Core, pid: Pid) -> bool {
        core.sched.goes_on(pid)
    }

    /// A process loses the processor: its time is over, it sleeps, or it has ended.
    fn leave(&mut self, _core: &mut Core, _pid: Pid) {}

    /// A process whose time is over, or that a woken one preempts, is ready still.
    fn put_back(&mut self, core: &mut Core, pid: Pid) {
        core.sched.put_back(pid);
    }

    /// As asked for by [`Core::call_at`].
    fn call(&mut self, _core: &mut Core) {}

    /// What it costs so far.
    fn bookkeeping(&self) -> Bookkeeping {
        Bookkeeping::default()
    }
}

/// The policy of a configuration; the offline optimum is no policy, but a computation ([`crate::optimum`]).
pub fn from_settings(settings: &Settings) -> Box<dyn Policy> {
    let labels = || settings.processes.iter().map(|process| process.intense).collect::<Vec<_>>();
    match settings.policy {
        // The optimum is computed from a run in which no page is missing.
        PolicyName::Sync | PolicyName::Optimum => Box::new(Sync),
        PolicyName::Async => Box::new(Async),
        PolicyName::Virt => Box::new(Virt),
        PolicyName::Agg => Box::new(Agg),
        PolicyName::Aspf => Box::new(Aspf::new(settings, Some(labels()))),
        PolicyName::AspfStar => Box::new(Aspf::new(settings, None)),
        PolicyName::Adaptive => Box::new(Adaptive::default()),
        PolicyName::Foresight => Box::new(Foresight::new(settings)),
        PolicyName::ReadaheadCluster => Box::new(ReadaheadCluster::new()),
        PolicyName::ReadaheadVma => Box::new(ReadaheadVma::default()),
        PolicyName::Leap => Box::new(Leap::new(settings.processes.len())),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A system of so many frames and one process for each mapped range of pages (first, count).
    pub(crate) fn core(frames: u32, mapped: &[(u64, u64)]) -> Core {
        let process = |n| format!("[[process]]\nname = \"P{n}\"\ntrace = \"\"\n");
        let processes: String = (0..mapped.len()).map(process).collect();
        let text = format!("policy = \"sync\"\n[memory]\nframes = {frames}\nreserve = 0\n{processes}");
        let settings: Settings = toml::from_str(&text).unwrap();
        Core::new(&settings, &mapped.iter().map(|range| vec![*range]).collect::<Vec<_>>()).unwrap()
    }
}
