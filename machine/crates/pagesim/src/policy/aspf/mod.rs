// SPDX-License-Identifier: Apache-2.0
//! A-SPF and A-SPF*: adaptive synchronous page fault handling (ASPF III). studies/aspf/choices.md explains what the paper leaves
//! open.

pub mod demand;
pub mod postpone;
pub mod reconstruct;
pub mod sets;
pub mod settings;

use demand::Predictor;
use postpone::Postpone;
use reconstruct::UllLists;
use sets::Sets;
use settings::{Accessed, Rebuilt};

use super::{Bookkeeping, Policy, Registration};
use crate::core::{Core, Evicted};
use crate::pages::{Origin, PageId, Pid, Place};
use crate::settings::{Settings, Time};

/// The policies of this file.
pub const POLICIES: &[Registration] = &[
    Registration {
        name: "aspf",
        about: "A-SPF: sets (algorithm 1), postpone queue (2), reconstruct lists (3), labels from the configuration",
        make: |settings| {
            let labels = settings.processes.iter().map(|process| process.intense).collect();
            Box::new(Aspf::new(settings, Some(labels)))
        },
    },
    Registration {
        name: "aspf-star",
        about: "A-SPF*: labels from the predictor (algorithm 4)",
        make: |settings| Box::new(Aspf::new(settings, None)),
    },
];

/// The paper's four designs together. With fixed labels this is A-SPF; with labels from the predictor it is A-SPF*.
#[derive(Debug)]
pub struct Aspf {
    sets: Sets,
    postpone: Postpone,
    lists: UllLists,
    predictor: Option<Predictor>,
    /// Whether each process is memory-intensive.
    intense: Vec<bool>,
    /// The page of each process's last fault. Without `sets_span_turns`, only faults of the current turn count.
    previous: Vec<Option<PageId>>,
    /// The next memory-intensive process, and the number of pages that may still be read for it.
    rebuilding: Option<(Pid, u64)>,
}

impl Aspf {
    /// Makes A-SPF if there are `labels`, and A-SPF* otherwise.
    pub fn new(settings: &Settings, labels: Option<Vec<bool>>) -> Aspf {
        let count = settings.processes.len();
        let predictor = labels.is_none().then(|| Predictor::new(count, &settings.aspf));
        Aspf {
            sets: Sets::new(&settings.aspf, settings.prefetch.pages),
            postpone: Postpone::new(count),
            lists: UllLists::new(count),
            predictor,
            intense: labels.unwrap_or(vec![false; count]),
            previous: vec![None; count],
            rebuilding: None,
        }
    }

    /// Finds the memory-intensive process whose pages are read while another process runs.
    fn next_intense(&self, core: &Core) -> Option<Pid> {
        let mut order = core.sched.ready().into_iter().chain(self.postpone.queue());
        match core.settings.aspf.rebuilt {
            Rebuilt::AnyIntense => order.find(|pid| self.intense[*pid]),
            Rebuilt::NextOnly => order.next().filter(|pid| self.intense[*pid]),
        }
    }

    /// Keeps some reads for the next memory-intensive process under way (III-B3).
    fn rebuild(&mut self, core: &mut Core) {
        let Some((pid, ref mut left)) = self.rebuilding else { return };
        let mut last = None;
        for _ in 0..core.settings.aspf.reconstruct_depth {
            if *left == 0 {
                break;
            }
            let Some(page) = self.lists.first(pid) else { break };
            core.keep(page);
            let until = core.prefetch(page, Origin::Reconstruct);
            if until.is_none() && core.is_out(page) {
                // No frame is free now.
                break;
            }
            self.lists.forget(core, page);
            *left -= 1;
            last = until.or(last);
        }
        match last {
            Some(until) => core.call_at(until),
            None => self.rebuilding = None,
        }
    }
}

impl Policy for Aspf {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        if let Some(predictor) = &mut self.predictor {
            predictor.fault(pid, core.now());
        }
        self.lists.fault(pid);
        // Whether the page was accessed before it left DRAM. If not, it had been prefetched in vain (III-B1).
        let accessed = !self.lists.is_inactive(page);
        self.lists.forget(core, page);
        let previous = self.previous[pid].replace(page);
        self.sets.group(previous, page, accessed);
        for page in self.sets.candidates(page, |page| core.is_out(page)) {
            if core.prefetch(page, Origin::Set).is_some() {
                self.sets.prefetched(page);
                self.lists.forget(core, page);
            }
        }
    }

    fn evicted(&mut self, core: &mut Core, Evicted { page, .. }: Evicted) {
        let entry = &core.pages[page];
        if !core.is_out(page) && entry.place != Place::Writing {
            // The page is on its way back already.
            return;
        }
        if entry.origin == Origin::Set && !entry.accessed {
            self.sets.missed(page);
        }
        let accessed = match core.settings.aspf.accessed {
            Accessed::SinceRead => entry.accessed,
            Accessed::LastTurn => core.accessed_in_last_turn(page),
        };
        self.lists.insert(entry.owner, page, accessed);
    }

    fn take_next(&mut self, core: &mut Core) -> Option<Pid> {
        self.postpone.take_next(&mut *core.sched)
    }

    fn enter(&mut self, core: &mut Core, pid: Pid) {
        self.lists.turn(pid);
        if let Some(predictor) = &mut self.predictor {
            predictor.enter(pid, core.now());
        }
        if !core.settings.aspf.sets_span_turns {
            self.previous[pid] = None;
        }
        if self.intense[pid] {
            self.rebuilding = None;
            return;
        }
        let rebuilding = self.next_intense(core).map(|next| {
            let pages = self.lists.previous_faults(next).min(core.settings.aspf.max_reconstruct.into());
            (next, pages)
        });
        let idle = self.rebuilding.is_none();
        self.rebuilding = rebuilding;
        if idle {
            self.rebuild(core);
        }
    }

    fn slice(&mut self, core: &mut Core, pid: Pid) -> Time {
        if core.settings.aspf.postponed_are_ready {
            core.sched.slice_beside(pid, &self.postpone.queue().collect::<Vec<_>>())
        } else {
            core.sched.slice(pid)
        }
    }

    fn goes_on(&mut self, core: &mut Core, pid: Pid) -> bool {
        self.postpone.goes_on(&mut *core.sched, pid)
    }

    fn leave(&mut self, core: &mut Core, pid: Pid) {
        if let Some(predictor) = &mut self.predictor {
            self.intense[pid] = predictor.is_intense(pid, core.now());
        }
    }

    fn put_back(&mut self, core: &mut Core, pid: Pid) {
        self.postpone.put_back(&mut *core.sched, pid, &self.intense);
    }

    fn call(&mut self, core: &mut Core) {
        self.rebuild(core);
    }

    /// The paper has one processor, and so one postpone queue and one next process.
    fn several_cpus(&self) -> bool {
        false
    }

    fn bookkeeping(&self) -> Bookkeeping {
        let mut all = Bookkeeping::default();
        for part in [self.sets.cost(), self.lists.cost(), self.postpone.cost()] {
            all.bytes += part.bytes;
            all.operations += part.operations;
        }
        all.bytes += self.predictor.as_ref().map_or(0, Predictor::bytes);
        all
    }
}
