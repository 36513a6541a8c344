// SPDX-License-Identifier: Apache-2.0
//! Records what the report needs of harts, SMU and drives. It never changes what happens.

use std::collections::BTreeMap;

use trapless_memory::{Cycle, PAGE_SHIFT};
use trapless_nvme::CommandRecord;
use trapless_riscv::{Access, Fill, Observer, PageFault, Privilege, TrapInfo, WalkRequest, pte};
use trapless_smu::{Answer, FailReason, Miss, Outcome};

use super::frames::Installed;
use super::misses::Misses;
use super::stats::{Latency, MissTimes, MissTotals};
use super::watches::Watches;

/// Opcode of a read in the NVM command set.
const NVME_READ: u8 = 0x02;
/// Maximum number of pages that are remembered because a page fault on them is not over.
const MOST_FAULTED_PAGES: usize = 4096;

/// Measurements of a region of interest.
#[derive(Default)]
pub struct Measured {
    /// Misses that the SMU served for walkers.
    pub misses: MissTotals,
    /// Misses that the SMU served for software request ports.
    pub port_misses: MissTotals,
    /// NVMe reads, from doorbell to completion entry.
    pub nvme_reads: Latency,
    /// Number of page faults of user accesses to watched mappings, by what the walker found.
    pub os_faults: BTreeMap<&'static str, u64>,
    /// Time of these page faults, from the trap until the access succeeds.
    pub os_fault: Latency,
    /// Number of page faults of the kernel's own accesses to watched mappings.
    pub kernel_faults: u64,
}

/// A miss that has ended: hart (none for a port), address, steps.
pub type EndedMiss = (Option<usize>, u64, MissTimes);

/// The recorder: keeps what the report needs.
pub struct Recorder {
    watches: Watches,
    /// Measurements of the current region, or of the last one.
    measured: Measured,
    /// Measurements while no region was open.
    outside: Measured,
    /// Misses that have ended, until somebody takes them; none if nobody wants them.
    ended: Option<Vec<EndedMiss>>,
    /// Pages installed and not yet adopted; none if nobody wants them.
    installed: Option<Installed>,
    /// Whether a region is open.
    open: bool,
    hart: usize,
    misses: Misses,
    /// Why the SMU last refused each hart.
    refusals: Vec<Option<FailReason>>,
    /// Page faults that are not over, by root table and page.
    faults: BTreeMap<(u64, u64), Vec<(Access, Cycle)>>,
}

impl Recorder {
    /// Starts without records, for this number of `harts`. `installed`: also follow pages that are installed and not yet adopted.
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

    /// Watched mappings, mutable.
    pub fn watches_mut(&mut self) -> &mut Watches {
        &mut self.watches
    }

    /// Measurements of the current region, or of the last one.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Measurements while no region was open.
    pub fn outside(&self) -> &Measured {
        &self.outside
    }

    /// Pages installed and not yet adopted, if they are followed.
    pub fn installed_mut(&mut self) -> Option<&mut Installed> {
        self.installed.as_mut()
    }

    /// Starts or stops keeping the misses that end.
    pub fn keep_ended(&mut self, keep: bool) {
        self.ended = keep.then(Vec::new);
    }

    /// Takes the misses that have ended.
    pub fn take_ended(&mut self) -> impl Iterator<Item = EndedMiss> {
        self.ended.iter_mut().flat_map(|ended| ended.drain(..))
    }

    /// Sets the hart that runs next.
    pub fn select(&mut self, hart: usize) {
        self.hart = hart;
    }

    /// Begins a region. Unless `afresh`, its measurements add to those of the last region.
    pub fn begin(&mut self, afresh: bool) {
        self.settle();
        if afresh {
            self.measured = Measured::default();
        }
        self.faults.clear();
        self.open = true;
    }

    /// Ends a region.
    pub fn end(&mut self) {
        self.settle();
        self.faults.clear();
        self.open = false;
    }

    /// Counts misses whose page is installed for what ends now.
    fn settle(&mut self) {
        self.misses.settle();
        self.take_misses();
    }

    /// Where measurements belong now.
    fn measure(&mut self) -> &mut Measured {
        if self.open { &mut self.measured } else { &mut self.outside }
    }

    /// Notes that a drive has finished a command.
    pub fn command(&mut self, record: &CommandRecord) {
        if record.opcode != NVME_READ || record.sqid == 0 {
            return;
        }
        self.measure().nvme_reads.add(record.completed.since(record.doorbell));
        self.misses.read(record);
    }

    /// Notes that a walker's request left its hart at `now`.
    pub fn requested(&mut self, hart: usize, request: &WalkRequest, now: Cycle) {
        self.watches.requested(request.root_ppn, request.va);
        self.misses.requested(hart, request, now);
        self.take_misses();
    }

    /// Notes that the SMU has finished its part of a miss. Called before the answers to the waiting harts.
    pub fn miss_over(&mut self, miss: &Miss) {
        self.misses.over(miss);
        self.take_misses();
    }

    /// Notes that the SMU has answered a waiting hart.
    pub fn answered(&mut self, hart: usize, answer: &Answer) {
        self.refusals[hart] = match answer.outcome {
            Outcome::Failed(reason) => Some(reason),
            Outcome::Done(_) | Outcome::Changed(_) => None,
        };
        self.misses.answered(hart, matches!(answer.outcome, Outcome::Done(_)));
    }

    /// Notes that a hart has stopped waiting without an answer.
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

    /// Name of what the walker found when it raised a page fault.
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

    /// Notes that a user access to a watched page raised a page fault.
    fn faulted(&mut self, trap: &TrapInfo, (access, fault): (Access, PageFault)) {
        let cause = self.cause(fault);
        *self.measure().os_faults.entry(cause).or_default() += 1;
        if self.faults.len() == MOST_FAULTED_PAGES {
            self.faults.pop_first();
        }
        self.faults.entry((trap.root_ppn, trap.tval >> PAGE_SHIFT)).or_default().push((access, trap.now));
    }

    /// Notes that a user access found a translation. This ends the page faults of all accesses that the translation allows.
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
