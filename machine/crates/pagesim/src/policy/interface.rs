// SPDX-License-Identifier: Apache-2.0
//! What a policy is asked, and how it is known.

use serde::Serialize;

use crate::core::{Core, Evicted};
use crate::pages::{PageId, Pid};
use crate::settings::{Settings, Time};

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

/// A policy. It is asked for one CPU at a time: `core.running`, `core.sched` and `core.now()` are those of [`Core::cpu`]. Every
/// method but `fault` has the baseline's behaviour unless it is said otherwise.
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

    /// Called at the time that [`Core::call_at`] asked for.
    fn call(&mut self, _core: &mut Core) {}

    /// Whether it can have several CPUs: whether what it keeps of the process that runs is right if there are more.
    fn several_cpus(&self) -> bool {
        true
    }

    /// Which page has to go, if the configuration does not say: the name of an order of replacement
    /// ([`crate::replacement::BUILT_IN`]).
    fn replacement(&self) -> &'static str {
        "lru"
    }

    /// What it costs so far.
    fn bookkeeping(&self) -> Bookkeeping {
        Bookkeeping::default()
    }
}

/// How a policy is known and made.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// What configurations call it.
    pub name: &'static str,
    /// One line for the list of all policies (docs/reference/pagesim.md), in Markdown.
    pub about: &'static str,
    /// Makes it for one simulation.
    pub make: fn(&Settings) -> Box<dyn Policy>,
}
