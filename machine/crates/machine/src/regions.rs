// SPDX-License-Identifier: Apache-2.0
//! Markers, regions of interest and the report.

use std::time::Instant;

use trapless_memory::{Cycle, PhysAddr};
use trapless_nvme::Controller;
use trapless_riscv::Hart;
use trapless_smu_regs::{
    MARKER_FORK, MARKER_MILESTONE, MARKER_MOVE, MARKER_ROI_BEGIN, MARKER_ROI_END, MARKER_UNWATCH, MARKER_WATCH,
    MARKER_WATCH_REGION,
};

use crate::machine::{A0, Machine};
use crate::report::{
    DiskReads, DiskRecord, FaultCount, Instructions, Milestone, NamespaceRecord, Outside, Report, Roi, SmuCounters,
    host_peak_bytes,
};
use crate::stats::MOST_MARKS;
use crate::times::Misses;
use crate::watches::Watches;
use crate::{DetailFrom, End, Moment};

/// CSR number of `satp` and its root page number.
const SATP: u16 = 0x180;
const SATP_PPN: u64 = (1 << 44) - 1;
/// In the place of a region's number: whichever is open.
const ANY: u64 = u64::MAX;
/// a2 of the marker that ends a watch: unmapping begins, or is over.
const UNMAPPING: u64 = 1;
const UNMAPPED: u64 = 2;
/// Most watches that a region tells of one by one.
const MOST_WATCHES_OF_REGION: usize = 32;

/// A region of interest that has begun.
pub(crate) struct OpenRoi {
    number: u64,
    automatic: bool,
    /// How often a program has begun and not ended it.
    depth: u64,
    begin: Cycle,
    started: Instant,
    instructions: Vec<Instructions>,
    smu: SmuCounters,
    misses: Option<Misses>,
    reads: Vec<DiskReads>,
}

/// Keeps one more, if there are not too many.
fn keep<T>(kept: &mut Vec<T>, one: T) -> bool {
    let room = kept.len() < MOST_MARKS;
    if room {
        kept.push(one);
    }
    room
}

impl Machine {
    pub(crate) fn marker(&mut self, hart: usize, imm: u16) {
        let x = |r: u8| self.harts[hart].x(A0 + r);
        let (a0, a1, a2, a3) = (x(0), x(1), x(2), x(3));
        let root = self.harts[hart].csr(SATP).unwrap_or(0) & SATP_PPN;
        let watches = &mut self.recorder.watches;
        // What harts have translated before must be seen again to be counted.
        let mut seen_anew = Vec::new();
        match u64::from(imm) {
            MARKER_ROI_BEGIN if a0 == ANY => self.marks_ignored += 1,
            MARKER_ROI_BEGIN => self.program_begins(a0),
            MARKER_ROI_END => self.program_ends(a0),
            MARKER_WATCH => seen_anew.extend(watches.add(a2, root, a0, a1).then_some((a0, a1))),
            MARKER_WATCH_REGION => seen_anew.extend(watches.add_to_region(root, a0, a1).then_some((a0, a1))),
            MARKER_UNWATCH if a2 == UNMAPPED => watches.unmapped(),
            MARKER_UNWATCH => watches.remove(root, a0, a1, a2 == UNMAPPING),
            MARKER_MOVE => {
                watches.moved(root, [a0, a1, a2, a3]);
                seen_anew.push((a2, a3));
            }
            MARKER_FORK if a1 == 0 => watches.forks(a0, root),
            MARKER_FORK => seen_anew = watches.forked(a0, root),
            MARKER_MILESTONE => {
                let milestone = Milestone {
                    number: a0,
                    cycle: self.harts[hart].now().0,
                    instructions: self.instructions().total(),
                    host_seconds: self.started.elapsed().as_secs_f64(),
                    reads: self.board.reads.clone(),
                    smu_counters: self.smu_counters(),
                };
                self.marks_ignored += u64::from(!keep(&mut self.milestones, milestone));
                if self.detail == DetailFrom::Moment(Moment::Milestone(a0)) {
                    self.set_detail(true);
                }
                if let Some(tracer) = &mut self.tracer {
                    tracer.milestone(a0);
                }
                self.attribute_if(|from| from == DetailFrom::Moment(Moment::Milestone(a0)));
                self.reached |= matches!(self.checkpoint, Some((Moment::Milestone(n), _)) if n == a0);
            }
            _ => {}
        }
        for range in seen_anew {
            self.harts.iter_mut().for_each(|h| h.fence_vma(Some(range)));
        }
        self.keep_region();
    }

    /// A program begins a region. One that is open already is shared with the program that began it; any other one ends.
    fn program_begins(&mut self, number: u64) {
        match &mut self.open_roi {
            Some(open) if open.number == number && !open.automatic => open.depth += 1,
            _ => {
                if let Some(open) = self.open_roi.take() {
                    self.close_roi(open);
                }
                self.begin_roi(number, false);
            }
        }
    }

    /// A program ends a region, or whichever is open and all watches.
    fn program_ends(&mut self, number: u64) {
        if number == ANY {
            self.recorder.watches.forget();
        }
        let ends = |open: &mut OpenRoi| {
            let its_own = open.number == number && !open.automatic;
            open.depth -= u64::from(its_own);
            number == ANY || its_own && open.depth == 0
        };
        if let Some(open) = self.open_roi.take_if(ends) {
            self.close_roi(open);
        }
    }

    /// An automatic region begins when the first mapping is watched for it, unless a program's own is open, and ends with the last.
    fn keep_region(&mut self) {
        let keep = self.recorder.watches.keep_region();
        let kept = std::mem::replace(&mut self.region_kept, keep);
        if let Some(open) = self.open_roi.take_if(|open| open.automatic && !keep) {
            self.close_roi(open);
        }
        if keep && !kept && self.open_roi.is_none() {
            self.begin_roi(self.automatic_regions, true);
            self.automatic_regions += 1;
        }
    }

    fn begin_roi(&mut self, number: u64, automatic: bool) {
        self.recorder.begin(self.rois.len() <= MOST_MARKS);
        if self.detail.in_region(number) {
            self.set_detail(true);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_begins();
        }
        self.open_roi = Some(OpenRoi {
            number,
            automatic,
            depth: 1,
            begin: self.now,
            started: Instant::now(),
            instructions: self.instructions_by_hart().collect(),
            smu: self.smu_counters(),
            misses: self.misses(),
            reads: self.board.reads.clone(),
        });
        self.attribute_region(number);
    }

    pub(crate) fn close_roi(&mut self, open: OpenRoi) {
        let number = open.number;
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_ends(&self.harts);
        }
        self.recorder.end();
        self.end_region();
        let measured = &self.recorder.measured;
        let os_faults = measured.os_faults.values().sum();
        let os_fault = measured.os_fault.summary(self.clock);
        let counters = self.smu_counters();
        let by_hart = self.instructions_by_hart().zip(&open.instructions).map(|(now, before)| now.since(before));
        let by_hart: Vec<Instructions> = by_hart.collect();
        let roi = Roi {
            number: open.number,
            automatic: open.automatic,
            regions: 1,
            begin_cycle: open.begin.0,
            end_cycle: self.now.0,
            sim_seconds: self.clock.micros(self.now - open.begin) / 1e6,
            host_seconds: open.started.elapsed().as_secs_f64(),
            instructions: Instructions::sum(by_hart.iter().copied()),
            instructions_by_hart: by_hart,
            watch: self.recorder.watches.counts(MOST_WATCHES_OF_REGION),
            os_faults,
            os_fault_causes: measured.os_faults.clone(),
            os_faults_open: os_faults - os_fault.count,
            os_fault,
            kernel_faults: measured.kernel_faults,
            misses: self.misses().map(|m| m.since(&open.misses.unwrap_or_default())),
            smu: counters.iter().map(|(k, v)| (*k, v - open.smu.get(k).unwrap_or(&0))).collect(),
            reads: self.board.reads.iter().zip(&open.reads).map(|(now, before)| now.since(before)).collect(),
            hw_miss: measured.misses.summary(self.clock),
            port_miss: measured.port_misses.summary(self.clock),
            nvme_read: measured.nvme_reads.summary(self.clock),
        };
        match self.rois.get_mut(MOST_MARKS) {
            Some(sum) => sum.add(roi),
            None => self.rois.push(roi),
        }
        if self.detail.in_region(number) {
            self.set_detail(false);
        }
    }

    fn smu_counters(&self) -> SmuCounters {
        self.board.smu.iter().flat_map(|smu| smu.counters()).collect()
    }

    /// What caches, TLBs and predictors have missed, if timing is detailed.
    fn misses(&self) -> Option<Misses> {
        let mut misses = self.times.misses()?;
        for [user, supervisor, _, machine] in self.harts.iter().map(Hart::mispredicted) {
            misses.user.branches += user;
            misses.kernel.branches += supervisor + machine;
        }
        Some(misses)
    }

    pub(crate) fn instructions(&self) -> Instructions {
        Instructions::sum(self.instructions_by_hart())
    }

    fn instructions_by_hart(&self) -> impl Iterator<Item = Instructions> {
        self.harts.iter().map(|h| {
            let [user, supervisor, _, machine] = h.retired();
            Instructions { user, supervisor, machine }
        })
    }

    /// What was measured, after [`Machine::run`].
    pub fn report(&self, end: &End) -> Report {
        let by_mode = self.instructions();
        Report {
            schema: 2,
            end: format!("{end:?}"),
            profile: self.profile.clone(),
            disks: self
                .board
                .drives
                .iter()
                .zip(&self.board.reads)
                .map(|(drive, reads)| disk_record(drive, *reads))
                .collect(),
            sim_cycles: self.now.0,
            sim_seconds: self.clock.micros(self.now) / 1e6,
            host_seconds: self.host_seconds,
            host_peak_bytes: host_peak_bytes().unwrap_or(0),
            instructions: by_mode.total(),
            instructions_by_mode: by_mode,
            mips: by_mode.total() as f64 / 1e6 / self.host_seconds.max(1e-9),
            misses: self.misses(),
            milestones: self.milestones.clone(),
            rois: self.rois.clone(),
            outside: self.outside(),
            marks_ignored: self.marks_ignored + self.recorder.watches.ignored(),
            watch: self.recorder.watches.counts(Watches::MOST),
            smu_counters: self.smu_counters(),
            faults: self
                .board
                .drives
                .iter()
                .flat_map(Controller::faults)
                .map(|(fault, struck)| FaultCount { fault: fault.to_owned(), struck })
                .collect(),
            atomic: self.atomic_checked(),
        }
    }

    fn outside(&self) -> Outside {
        let measured = &self.recorder.outside;
        Outside {
            os_faults: measured.os_faults.values().sum(),
            os_fault_causes: measured.os_faults.clone(),
            os_fault: measured.os_fault.summary(self.clock),
            kernel_faults: measured.kernel_faults,
            hw_miss: measured.misses.summary(self.clock),
            port_miss: measured.port_misses.summary(self.clock),
            nvme_read: measured.nvme_reads.summary(self.clock),
        }
    }

    /// Memory between `begin_signature` and `end_signature` of an ELF run, a 32-bit word a line in hex.
    pub fn signature(&self) -> Option<String> {
        use std::fmt::Write;
        let (begin, end) = self.elf.as_ref()?.signature?;
        let mut text = String::new();
        for at in (begin..end).step_by(4) {
            let word = self.board.ram.load::<4>(PhysAddr(at)).map_or(0, u32::from_le_bytes);
            writeln!(text, "{word:08x}").ok()?;
        }
        Some(text)
    }
}

fn disk_record(drive: &Controller, reads: DiskReads) -> DiskRecord {
    let namespaces = drive.formats().map(|(blocks, block_bytes)| NamespaceRecord { blocks, block_bytes });
    DiskRecord { ssd: drive.ssd().clone(), namespaces: namespaces.collect(), reads }
}
