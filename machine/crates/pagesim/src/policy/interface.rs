// SPDX-License-Identifier: Apache-2.0
//! The interface between the simulator and a policy.

use serde::Serialize;

use crate::core::{Core, Evicted};
use crate::pages::{PageId, Pid};
use crate::settings::{Settings, Time};

/// What a process does until its page arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It keeps the processor (synchronous handling).
    Spin,
    /// It sleeps, and another process runs (asynchronous handling).
    Switch,
}

/// The costs of a policy itself (ASPF IV-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bookkeeping {
    /// Memory of its structures in bytes, with the sizes that the paper states.
    pub bytes: u64,
    /// Number of changes to its lists and sets.
    pub operations: u64,
}

/// A policy. The simulator calls it for one CPU at a time: `core.running`, `core.sched` and `core.now()` belong to [`Core::cpu`].
/// Each method except `fault` has a default, which is the behaviour of the policy `sync`.
pub trait Policy {
    /// Called when a page of the running process is missing and its read has begun. The policy may prefetch other pages.
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId);

    /// Called when the running process needs a page that arrives at the time `until`. Returns how it waits.
    fn wait(&mut self, _core: &mut Core, _page: PageId, _until: Time) -> Wait {
        Wait::Spin
    }

    /// Called when a prefetched page is accessed for the first time.
    fn used(&mut self, _core: &mut Core, _page: PageId) {}

    /// Called when a page has left DRAM. The page may be on its way back already.
    fn evicted(&mut self, _core: &mut Core, _evicted: Evicted) {}

    /// Takes the process that runs next out of the queue.
    fn take_next(&mut self, core: &mut Core) -> Option<Pid> {
        core.sched.take_next()
    }

    /// Called when a process begins a turn.
    fn enter(&mut self, _core: &mut Core, _pid: Pid) {}

    /// Returns the length of the slice that begins now, at the beginning of a turn or after [`Policy::goes_on`].
    fn slice(&mut self, core: &mut Core, pid: Pid) -> Time {
        core.sched.slice(pid)
    }

    /// Called at the end of the slice. Returns whether the process continues with another slice.
    fn goes_on(&mut self, core: &mut Core, pid: Pid) -> bool {
        core.sched.goes_on(pid)
    }

    /// Called when a process leaves the processor: its slice is over, it sleeps, or it has ended.
    fn leave(&mut self, _core: &mut Core, _pid: Pid) {}

    /// Puts a process back into the queue, because its slice is over or a woken process preempts it.
    fn put_back(&mut self, core: &mut Core, pid: Pid) {
        core.sched.put_back(pid);
    }

    /// Called at the time that was given to [`Core::call_at`].
    fn call(&mut self, _core: &mut Core) {}

    /// Whether the policy supports several CPUs. It does if its state stays right when several processes run at the same time.
    fn several_cpus(&self) -> bool {
        true
    }

    /// The order of replacement to use if the configuration names none ([`crate::replacement::BUILT_IN`]).
    fn replacement(&self) -> &'static str {
        "lru"
    }

    /// Returns its costs so far.
    fn bookkeeping(&self) -> Bookkeeping {
        Bookkeeping::default()
    }
}

/// The name of a policy, its description, and the function that makes it.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The name in configurations.
    pub name: &'static str,
    /// One line for the list of all policies (docs/reference/pagesim.md), in Markdown.
    pub about: &'static str,
    /// Makes the policy for one simulation.
    pub make: fn(&Settings) -> Box<dyn Policy>,
}
