// SPDX-License-Identifier: Apache-2.0
//! Listens to harts, SMU and drives, and keeps what the report needs. It never changes what happens.

use std::collections::VecDeque;

use trapless_memory::{Cycle, PAGE_SHIFT};
use trapless_nvme::CommandRecord;
use trapless_riscv::{Fill, Observer, Privilege, TrapInfo, WalkRequest};
use trapless_smu::{Answer, Outcome};
use trapless_smu_regs::PTE_LBA;

use crate::stats::{Latency, MissTimes, Misses, Watches};

/// Exception codes of page faults on fetch, load and store.
const PAGE_FAULTS: [u64; 3] = [12, 13, 15];
/// NVM command set: read.
const NVME_READ: u8 = 0x02;
/// Completions remembered to find the device's end of a miss; more than any PMSHR has entries.
const REMEMBERED: usize = 512;

/// A miss that a hart waits for, or has been answered and not yet resumed from.
#[derive(Clone, Copy)]
struct Pending {
    page: u64,
    times: MissTimes,
    answered: bool,
}

/// Everything recorded while a region of interest is open, and since the start.
#[derive(Default)]
pub struct Recorder {
    /// Watched mappings.
    pub watches: Watches,
    /// Misses served by the SMU, in the current region.
    pub misses: Misses,
    /// NVMe reads, doorbell to completion entry, in the current region.
    pub nvme_reads: Latency,
    hart: usize,
    pending: Vec<Option<Pending>>,
    recent: VecDeque<(u64, Cycle, Cycle)>,
}

impl Recorder {
    /// For so many harts.
    pub fn new(harts: usize) -> Recorder {
        Recorder { pending: vec![None; harts], ..Recorder::default() }
    }

    /// The hart that runs next.
    pub fn select(&mut self, hart: usize) {
        self.hart = hart;
    }

    /// Starts the measurements of a region afresh.
    pub fn reset(&mut self) {
        self.misses = Misses::default();
        self.nvme_reads = Latency::default();
    }

    /// A drive finished a command.
    pub fn command(&mut self, record: &CommandRecord) {
        if record.opcode != NVME_READ || record.sqid == 0 {
            return;
        }
        self.nvme_reads.add(record.completed.since(record.doorbell));
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back((record.slba, record.doorbell, record.completed));
    }

    /// A walker's request left its hart at `now`.
    pub fn requested(&mut self, hart: usize, request: &WalkRequest, now: Cycle) {
        if request.privilege == Privilege::User {
            self.watches.requested(request.root_ppn, request.va);
        }
        let times = MissTimes { walk: request.started, request: now, ..MissTimes::default() };
        self.pending[hart] = Some(Pending { page: request.va >> PAGE_SHIFT, times, answered: false });
    }

    /// The SMU answered a hart that waited.
    pub fn answered(&mut self, hart: usize, request: &WalkRequest, answer: &Answer) {
        let Some(pending) = &mut self.pending[hart] else { return };
        // A request that joined another's miss shares its end but not its beginning: only first requests are timed.
        if !matches!(answer.outcome, Outcome::Done(_)) || answer.joined {
            self.pending[hart] = None;
            return;
        }
        let s = &answer.stamps;
        let (Some(doorbell), Some(seen)) = (s.doorbell, s.completion) else {
            self.pending[hart] = None;
            return;
        };
        let lba = PTE_LBA.get(request.seen);
        let end = self.recent.iter().rev().find(|(slba, rung, _)| *slba == lba && *rung == doorbell);
        let t = &mut pending.times;
        t.allocated = s.allocated.unwrap_or(t.request);
        t.frame = s.frame.unwrap_or(t.allocated);
        t.command = s.command.unwrap_or(t.frame);
        t.doorbell = doorbell;
        t.seen = seen;
        t.device_done = end.map_or(seen, |e| e.2);
        t.installed = s.pud.or(s.pte).unwrap_or(seen);
        t.answered = answer.at;
        pending.answered = true;
    }

    /// The hart stopped waiting without an answer.
    pub fn abandoned(&mut self, hart: usize) {
        self.pending[hart] = None;
    }
}

impl Observer for Recorder {
    fn trap(&mut self, trap: &TrapInfo) {
        if trap.from == Privilege::User && PAGE_FAULTS.contains(&trap.cause) {
            self.watches.faulted(trap.root_ppn, trap.tval);
        }
    }

    fn fill(&mut self, fill: &Fill) {
        if fill.privilege == Privilege::User {
            self.watches.touched(fill.root_ppn, fill.va);
        }
        if let Some(pending) = &mut self.pending[self.hart]
            && pending.answered
        {
            if pending.page == fill.va >> PAGE_SHIFT {
                pending.times.resumed = fill.now;
                self.misses.add(&pending.times);
            }
            self.pending[self.hart] = None;
        }
    }
}
