// SPDX-License-Identifier: Apache-2.0
//! Markers, regions of interest and the report.

use std::time::Instant;

use trapless_memory::{Cycle, PhysAddr};
use trapless_nvme::Controller;
use trapless_riscv::Hart;
use trapless_smu_regs::{MARKER_MILESTONE, MARKER_ROI_BEGIN, MARKER_ROI_END, MARKER_UNWATCH, MARKER_WATCH};

use crate::machine::{A0, Machine};
use crate::report::{
    DiskRecord, FaultCount, Instructions, Milestone, NamespaceRecord, Report, Roi, SmuCounters, host_peak_bytes,
};
use crate::stats::MOST_MARKS;
use crate::times::Misses;
use crate::{DetailFrom, End, Moment};

/// CSR number of `satp` and its root page number.
const SATP: u16 = 0x180;
const SATP_PPN: u64 = (1 << 44) - 1;

/// A region of interest that has begun.
pub(crate) struct OpenRoi {
    number: u64,
    begin: Cycle,
    started: Instant,
    instructions: Vec<Instructions>,
    smu: SmuCounters,
    misses: Option<Misses>,
    faults: u64,
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
        let (a0, a1, a2) = (x(0), x(1), x(2));
        let root = self.harts[hart].csr(SATP).unwrap_or(0) & SATP_PPN;
        match u64::from(imm) {
            MARKER_ROI_BEGIN => self.begin_roi(a0),
            MARKER_ROI_END => {
                if let Some(open) = self.open_roi.take_if(|open| open.number == a0) {
                    self.close_roi(open);
                }
            }
            MARKER_WATCH => {
                if !self.recorder.watches.add(a2, root, a0, a1) {
                    self.marks_ignored += 1;
                }
                // What the hart has translated before must be seen again to be counted.
                self.harts.iter_mut().for_each(|h| h.fence_vma(Some((a0, a1))));
            }
            MARKER_UNWATCH => self.recorder.watches.remove(root, a0),
            MARKER_MILESTONE => {
                let milestone = Milestone {
                    number: a0,
                    cycle: self.harts[hart].now().0,
                    instructions: self.instructions().total(),
                    host_seconds: self.started.elapsed().as_secs_f64(),
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
    }

    fn begin_roi(&mut self, number: u64) {
        self.recorder.reset();
        if self.detail.in_region(number) {
            self.set_detail(true);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_begins();
        }
        self.open_roi = Some(OpenRoi {
            number,
            begin: self.now,
            started: Instant::now(),
            instructions: self.instructions_by_hart().collect(),
            smu: self.smu_counters(),
            misses: self.misses(),
            faults: self.recorder.watches.faults(),
        });
        self.attribute_region(number);
    }

    pub(crate) fn close_roi(&mut self, open: OpenRoi) {
        let number = open.number;
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_ends(&self.harts);
        }
        self.end_region();
        let counters = self.smu_counters();
        let by_hart = self.instructions_by_hart().zip(&open.instructions).map(|(now, before)| now.since(before));
        let by_hart: Vec<Instructions> = by_hart.collect();
        let roi = Roi {
            number: open.number,
            begin_cycle: open.begin.0,
            end_cycle: self.now.0,
            sim_seconds: self.clock.micros(self.now - open.begin) / 1e6,
            host_seconds: open.started.elapsed().as_secs_f64(),
            instructions: Instructions::sum(by_hart.iter().copied()),
            instructions_by_hart: by_hart,
            watch: self.recorder.watches.counts(),
            os_faults: self.recorder.watches.faults() - open.faults,
            misses: self.misses().map(|m| m.since(&open.misses.unwrap_or_default())),
            smu: counters.iter().map(|(k, v)| (*k, v - open.smu.get(k).unwrap_or(&0))).collect(),
            hw_miss: self.recorder.misses.summary(self.clock),
            port_miss: self.recorder.port_misses.summary(self.clock),
            nvme_read: self.recorder.nvme_reads.summary(self.clock),
        };
        self.marks_ignored += u64::from(!keep(&mut self.rois, roi));
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
            schema: 1,
            end: format!("{end:?}"),
            profile: self.profile.clone(),
            disks: self.board.drives.iter().map(disk_record).collect(),
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
            marks_ignored: self.marks_ignored,
            watch: self.recorder.watches.counts(),
            smu_counters: self.smu_counters(),
            faults: self
                .board
                .drives
                .iter()
                .flat_map(Controller::faults)
                .map(|(fault, struck)| FaultCount { fault: fault.to_owned(), struck })
                .collect(),
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

fn disk_record(drive: &Controller) -> DiskRecord {
    let namespaces = drive.formats().map(|(blocks, block_bytes)| NamespaceRecord { blocks, block_bytes });
    DiskRecord { ssd: drive.ssd().clone(), namespaces: namespaces.collect() }
}
