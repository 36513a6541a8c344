// SPDX-License-Identifier: Apache-2.0
//! Listens to harts, SMU and drives, and keeps what the report needs. It never changes what happens.

use std::collections::VecDeque;

use trapless_memory::{Cycle, PAGE_SHIFT};
use trapless_nvme::CommandRecord;
use trapless_riscv::{Fill, Observer, Privilege, TrapInfo, WalkRequest};
use trapless_smu::{Answer, Outcome};
use trapless_smu_regs::PTE_LBA;

use crate::frames::Installed;
use crate::stats::{Latency, MissTimes, Misses};
use crate::watches::Watches;

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
    /// Misses that walkers had the SMU serve, in the current region.
    pub misses: Misses,
    /// The same of software request ports.
    pub port_misses: Misses,
    /// NVMe reads, doorbell to completion entry, in the current region.
    pub nvme_reads: Latency,
    /// Misses that have ended, for whoever takes them: hart (none: a port), address, steps.
    pub ended: Option<Vec<(Option<usize>, u64, MissTimes)>>,
    /// Pages installed without metadata, if anybody wants to know.
    pub installed: Option<Installed>,
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
        self.port_misses = Misses::default();
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
    pub fn answered(&mut self, hart: usize, answer: &Answer) {
        let times = self.times(answer);
        let Some(pending) = &mut self.pending[hart] else { return };
        match times {
            Some(t) => {
                pending.times = MissTimes { walk: pending.times.walk, request: pending.times.request, ..t };
                pending.answered = true;
            }
            None => self.pending[hart] = None,
        }
    }

    /// The SMU answered a software request port. When software notices is its own affair: the miss ends with the answer.
    pub fn port_answered(&mut self, answer: &Answer) {
        if let Some(times) = self.times(answer) {
            let times = MissTimes { resumed: answer.at, ..times };
            self.port_misses.add(&times);
            if let Some(ended) = &mut self.ended {
                ended.push((None, 0, times));
            }
        }
    }

    /// The steps of a miss that ended with the page installed, for the one who asked first: one who joined shares its end
    /// but not its beginning.
    fn times(&self, answer: &Answer) -> Option<MissTimes> {
        if !matches!(answer.outcome, Outcome::Done(_)) || answer.joined {
            return None;
        }
        let s = &answer.stamps;
        let (doorbell, seen) = (s.doorbell?, s.completion?);
        let lba = PTE_LBA.get(answer.seen);
        let end = self.recent.iter().rev().find(|(slba, rung, _)| *slba == lba && *rung == doorbell);
        let allocated = s.allocated.unwrap_or(answer.asked);
        let frame = s.frame.unwrap_or(allocated);
        Some(MissTimes {
            walk: answer.asked,
            request: answer.asked,
            allocated,
            frame,
            doorbell,
            device_done: end.map_or(seen, |e| e.2),
            seen,
            installed: s.pud.or(s.pte).unwrap_or(seen),
            resumed: Cycle(0),
        })
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
        if let Some(installed) = &mut self.installed {
            installed.used(fill.at, fill.pte);
        }
        if fill.privilege == Privilege::User {
            self.watches.touched(fill.root_ppn, fill.va);
        }
        if let Some(pending) = &mut self.pending[self.hart]
            && pending.answered
        {
            if pending.page == fill.va >> PAGE_SHIFT {
                pending.times.resumed = fill.now;
                self.misses.add(&pending.times);
                if let Some(ended) = &mut self.ended {
                    ended.push((Some(self.hart), fill.va, pending.times));
                }
            }
            self.pending[self.hart] = None;
        }
    }
}
