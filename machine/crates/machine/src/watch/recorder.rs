// SPDX-License-Identifier: Apache-2.0
//! Listens to harts, SMU and drives, and keeps what the report needs. It never changes what happens.

use std::collections::BTreeMap;

use trapless_memory::{Cycle, PAGE_SHIFT};
use trapless_nvme::CommandRecord;
use trapless_riscv::{Access, Fill, Observer, PageFault, Privilege, TrapInfo, WalkRequest, pte};
use trapless_smu::{Answer, FailReason, Miss, Outcome};

use super::frames::Installed;
use super::misses::Misses;
use super::stats::{Latency, MissTimes, MissTotals};
use super::watches::Watches;

/// NVM command set: read.
const NVME_READ: u8 = 0x02;
/// Pages with a page fault that is not over.
const MOST_FAULTED_PAGES: usize = 4096;

/// What is measured of a region of interest.
#[derive(Default)]
pub struct Measured {
    /// Misses that walkers had the SMU serve.
    pub misses: MissTotals,
    /// The same of software request ports.
    pub port_misses: MissTotals,
    /// NVMe reads, doorbell to completion entry.
    pub nvme_reads: Latency,
    /// Page faults of user accesses to watched mappings, by what the walker found.
    pub os_faults: BTreeMap<&'static str, u64>,
    /// The same, from the trap until the access succeeds.
    pub os_fault: Latency,
    /// Page faults of the kernel's own accesses to watched mappings.
    pub kernel_faults: u64,
}

/// A miss that has ended: hart (none: a port), address, steps.
pub type EndedMiss = (Option<usize>, u64, MissTimes);

/// Listens, and keeps what the report needs.
pub struct Recorder {
    watches: Watches,
    /// What was measured in the current region, or in the last one.
    measured: Measured,
    /// What was measured while no region was open.
    outside: Measured,
    /// Misses that have ended, for whoever takes them.
    ended: Option<Vec<EndedMiss>>,
    /// Pages installed without metadata, if anybody wants to know.
    installed: Option<Installed>,
    /// A region is open.
    open: bool,
    hart: usize,
    misses: Misses,
    /// Why the SMU last refused each hart.
    refusals: Vec<Option<FailReason>>,
    /// Page faults that are not over, by root table and page.
    faults: BTreeMap<(u64, u64), Vec<(Access, Cycle)>>,
}

impl Recorder {
    /// Starts without records, for this number of `harts`. `installed`: also follow pages that are installed without metadata.
    pub fn new(harts: usize, installed: bool) -> Recorder {
        Recorder {
            watches: Watches::default(),
            measured: Measured::default(),
            outside: Measured::default(),
            ended: None,
            installed: installed.then(Installed::new),
            open: false,
            hart: 0,
            misses: Misses::new(harts),
            refusals: vec![None; harts],
            faults: BTreeMap::new(),
        }
    }

    /// Watched mappings.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Watched mappings, to change.
    pub fn watches_mut(&mut self) -> &mut Watches {
        &mut self.watches
    }

    /// What was measured in the current region, or in the last one.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// What was measured while no region was open.
    pub fn outside(&self) -> &Measured {
        &self.outside
    }

    /// Pages installed without metadata, if they are followed.
    pub fn installed_mut(&mut self) -> Option<&mut Installed> {
        self.installed.as_mut()
    }

    /// From now on keeps the misses that end, or keeps them no more.
    pub fn keep_ended(&mut self, keep: bool) {
        self.ended = keep.then(Vec::new);
    }

    /// Takes the misses that have ended.
    pub fn take_ended(&mut self) -> impl Iterator<Item = EndedMiss> {
        self.ended.iter_mut().flat_map(|ended| ended.drain(..))
    }

    /// The hart that runs next.
    pub fn select(&mut self, hart: usize) {
        self.hart = hart;
    }

    /// A region begins; `afresh`, or its measurements add to those of the last one.
    pub fn begin(&mut self, afresh: bool) {
        self.settle();
        if afresh {
            self.measured = Measured::default();
        }
        self.faults.clear();
        self.open = true;
    }

    /// A region ends.
    pub fn end(&mut self) {
        self.settle();
        self.faults.clear();
        self.open = false;
    }

    /// Misses that are installed belong to what ends now.
    fn settle(&mut self) {
        self.misses.settle();
        self.take_misses();
    }

    /// Where to measure now.
    fn measure(&mut self) -> &mut Measured {
        if self.open { &mut self.measured } else { &mut self.outside }
    }

    /// A drive finished a command.
    pub fn command(&mut self, record: &CommandRecord) {
        if record.opcode != NVME_READ || record.sqid == 0 {
            return;
        }
        self.measure().nvme_reads.add(record.completed.since(record.doorbell));
        self.misses.read(record);
    }

    /// A walker's request left its hart at `now`.
    pub fn requested(&mut self, hart: usize, request: &WalkRequest, now: Cycle) {
        self.watches.requested(request.root_ppn, request.va);
        self.misses.requested(hart, request, now);
        self.take_misses();
    }

    /// The SMU's part of a miss is over. Before the answers to those who wait.
    pub fn miss_over(&mut self, miss: &Miss) {
        self.misses.over(miss);
        self.take_misses();
    }

    /// The SMU answered a hart that waited.
    pub fn answered(&mut self, hart: usize, answer: &Answer) {
        self.refusals[hart] = match answer.outcome {
            Outcome::Failed(reason) => Some(reason),
            Outcome::Done(_) | Outcome::Changed(_) => None,
        };
        self.misses.answered(hart, matches!(answer.outcome, Outcome::Done(_)));
    }

    /// The hart stopped waiting without an answer.
    pub fn abandoned(&mut self, hart: usize) {
        self.misses.abandoned(hart);
        self.take_misses();
    }

    fn take_misses(&mut self) {
        for sample in self.misses.take() {
            let measured = self.measure();
            let of = if sample.port { &mut measured.port_misses } else { &mut measured.misses };
            of.add(&sample);
            if let (Some(ended), Some(times)) = (&mut self.ended, sample.times) {
                ended.push((sample.hart, sample.va, times));
            }
        }
    }

    /// What the walker found that made a page fault.
    fn cause(&self, fault: PageFault) -> &'static str {
        match fault {
            PageFault::Absent => "not_armed",
            PageFault::Armed => "hardware_off",
            PageFault::Permission => "permission",
            PageFault::AccessedDirty => "accessed_dirty",
            PageFault::Malformed => "malformed",
            PageFault::Changed => "changed",
            PageFault::Refused => match self.refusals[self.hart] {
                Some(FailReason::NoFrame) => "no_frame",
                Some(FailReason::Device) => "device",
                Some(FailReason::Bus) => "bus",
                Some(FailReason::Disabled) => "disabled",
                Some(FailReason::Descriptor) => "descriptor",
                Some(FailReason::Timeout) => "timeout",
                None => "refused",
            },
        }
    }

    /// A user access to a watched page raised a page fault.
    fn faulted(&mut self, trap: &TrapInfo, (access, fault): (Access, PageFault)) {
        let cause = self.cause(fault);
        *self.measure().os_faults.entry(cause).or_default() += 1;
        if self.faults.len() == MOST_FAULTED_PAGES {
            self.faults.pop_first();
        }
        self.faults.entry((trap.root_ppn, trap.tval >> PAGE_SHIFT)).or_default().push((access, trap.now));
    }

    /// A user access found a translation: the faults of accesses that it allows are over.
    fn succeeded(&mut self, fill: &Fill) {
        let page = (fill.root_ppn, fill.va >> PAGE_SHIFT);
        let Some(faults) = self.faults.get_mut(&page) else { return };
        let allowed = |access: Access| match access {
            Access::Fetch => fill.pte & pte::X != 0,
            Access::Load => fill.pte & pte::R != 0,
            Access::Store => fill.pte & (pte::W | pte::D) == pte::W | pte::D,
        };
        let (over, left): (Vec<_>, Vec<_>) = faults.drain(..).partition(|(access, _)| allowed(*access));
        *faults = left;
        if faults.is_empty() {
            self.faults.remove(&page);
        }
        over.iter().for_each(|(_, since)| self.measure().os_fault.add(fill.now.since(*since)));
    }
}

impl Observer for Recorder {
    fn trap(&mut self, trap: &TrapInfo) {
        self.misses.goes_on(self.hart, trap.now, true);
        self.take_misses();
        let Some(fault) = trap.page_fault else { return };
        if trap.from != Privilege::User {
            self.measure().kernel_faults += u64::from(self.watches.has(trap.root_ppn, trap.tval));
        } else if self.watches.faulted(trap.root_ppn, trap.tval) {
            self.faulted(trap, fault);
        }
    }

    fn fill(&mut self, fill: &Fill) {
        if let Some(installed) = &mut self.installed {
            installed.used(fill.at, fill.pte);
        }
        if fill.privilege == Privilege::User {
            self.watches.touched(fill.root_ppn, fill.va);
            if !self.faults.is_empty() {
                self.succeeded(fill);
            }
        }
        self.misses.found(self.hart, fill.va >> PAGE_SHIFT, fill.now);
        self.take_misses();
    }
}
