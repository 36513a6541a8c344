// SPDX-License-Identifier: Apache-2.0
//! Markers and regions of interest.

use std::time::Instant;

use trapless_memory::{ClockHz, Cycle};
use trapless_smu_regs::{
    MARKER_FORK, MARKER_MILESTONE, MARKER_MOVE, MARKER_ROI_BEGIN, MARKER_ROI_END, MARKER_UNWATCH, MARKER_WATCH,
    MARKER_WATCH_REGION,
};

use super::recorder::Recorder;
use super::report::{Instructions, Milestone, Roi};
use super::scene::Scene;
use super::stats::MOST_MARKS;
use crate::board::{DiskReads, SmuCounters};
use crate::cores::Misses;

/// Stands for a region's number: whichever region is open.
const ANY: u64 = u64::MAX;
/// Values of a2 of the marker that ends a watch: unmapping begins, or unmapping is over.
const UNMAPPING: u64 = 1;
const UNMAPPED: u64 = 2;
/// Maximum number of watched mappings that a region records one by one.
const MOST_WATCHES_OF_REGION: usize = 32;

/// A region of interest that has begun.
struct OpenRoi {
    number: u64,
    automatic: bool,
    /// How many more times programs have begun the region than ended it.
    depth: u64,
    begin: Cycle,
    started: Instant,
    instructions: Vec<Instructions>,
    smu: SmuCounters,
    misses: Option<Misses>,
    reads: Vec<DiskReads>,
}

/// Keeps `one` more element, unless there are too many. Returns whether it is kept.
fn keep<T>(kept: &mut Vec<T>, one: T) -> bool {
    let room = kept.len() < MOST_MARKS;
    if room {
        kept.push(one);
    }
    room
}

/// A marker that the guest has executed.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Number of the marker.
    pub number: u64,
    /// Registers a0 to a3.
    pub args: [u64; 4],
    /// Page number of the hart's root page table.
    pub root: u64,
    /// The hart.
    pub hart: usize,
}

/// What a marker asks the machine to do. The fields are in the order in which to do it.
#[derive(Debug, Default)]
pub struct Marked {
    /// Whether the open region of interest ends.
    pub ends: bool,
    /// The region that begins: its number, and whether it is automatic.
    pub begins: Option<(u64, bool)>,
    /// The milestone that is passed.
    pub milestone: Option<u64>,
    /// Ranges of virtual addresses that harts must translate again, because only then their accesses are counted.
    pub seen_anew: Vec<(u64, u64)>,
}

/// Regions of interest and milestones of a run.
#[derive(Default)]
pub struct Regions {
    milestones: Vec<Milestone>,
    open: Option<OpenRoi>,
    closed: Vec<Roi>,
    /// Number of automatic regions so far: those that began because mappings were watched. `kept`: such mappings exist now.
    automatic: u64,
    kept: bool,
    ignored: u64,
}

impl Regions {
    /// Regions that have ended.
    pub fn closed(&self) -> &[Roi] {
        &self.closed
    }

    /// Milestones that were passed.
    pub fn milestones(&self) -> &[Milestone] {
        &self.milestones
    }

    /// Markers that were ignored.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Whether a region is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Handles a marker that the guest has executed. Call [`Regions::keep`] after doing what the result asks for.
    pub fn mark(&mut self, mark: &Mark, started: Instant, recorder: &mut Recorder, scene: &Scene<'_>) -> Marked {
        let [a0, a1, a2, a3] = mark.args;
        let root = mark.root;
        let watches = recorder.watches_mut();
        let mut marked = Marked::default();
        let seen_anew = &mut marked.seen_anew;
        match mark.number {
            MARKER_ROI_BEGIN if a0 == ANY => self.ignored += 1,
            MARKER_ROI_BEGIN => return self.program_begins(a0),
            MARKER_ROI_END => {
                if a0 == ANY {
                    watches.forget();
                }
                marked.ends = self.program_ends(a0);
            }
            MARKER_WATCH => seen_anew.extend(watches.add(a2, root, a0, a1).then_some((a0, a1))),
            MARKER_WATCH_REGION => seen_anew.extend(watches.add_to_region(root, a0, a1).then_some((a0, a1))),
            MARKER_UNWATCH if a2 == UNMAPPED => watches.unmapped(),
            MARKER_UNWATCH => watches.remove(root, a0, a1, a2 == UNMAPPING),
            MARKER_MOVE => {
                watches.moved(root, [a0, a1, a2, a3]);
                seen_anew.push((a2, a3));
            }
            MARKER_FORK if a1 == 0 => watches.forks(a0, root),
            MARKER_FORK => *seen_anew = watches.forked(a0, root),
            MARKER_MILESTONE => {
                let milestone = Milestone {
                    number: a0,
                    cycle: scene.cores.harts()[mark.hart].now().0,
                    instructions: scene.instructions().total(),
                    host_seconds: started.elapsed().as_secs_f64(),
                    reads: scene.board.reads().to_vec(),
                    smu_counters: scene.board.smu_counters(),
                };
                self.ignored += u64::from(!keep(&mut self.milestones, milestone));
                marked.milestone = Some(a0);
            }
            _ => {}
        }
        marked
    }

    /// Begins a region of a program. If the program's region is open already, both begins share it; any other open region ends.
    fn program_begins(&mut self, number: u64) -> Marked {
        match &mut self.open {
            Some(open) if open.number == number && !open.automatic => {
                open.depth += 1;
                Marked::default()
            }
            open => Marked { ends: open.is_some(), begins: Some((number, false)), ..Marked::default() },
        }
    }

    /// Ends a region of a program, or whichever is open. Returns whether the open region ends.
    fn program_ends(&mut self, number: u64) -> bool {
        self.open.as_mut().is_some_and(|open| {
            let its_own = open.number == number && !open.automatic;
            open.depth -= u64::from(its_own);
            number == ANY || its_own && open.depth == 0
        })
    }

    /// Begins an automatic region when the first mapping keeps one open, unless a region is open; ends it with the last mapping.
    pub fn keep(&mut self, keep: bool) -> Marked {
        let kept = std::mem::replace(&mut self.kept, keep);
        let ends = self.open.as_ref().is_some_and(|open| open.automatic && !keep);
        let mut marked = Marked { ends, ..Marked::default() };
        if keep && !kept && self.open.is_none() {
            marked.begins = Some((self.automatic, true));
            self.automatic += 1;
        }
        marked
    }

    /// Begins a region.
    pub fn begin(&mut self, number: u64, automatic: bool, recorder: &mut Recorder, scene: &Scene<'_>) {
        recorder.begin(self.closed.len() <= MOST_MARKS);
        self.open = Some(OpenRoi {
            number,
            automatic,
            depth: 1,
            begin: scene.now,
            started: Instant::now(),
            instructions: scene.instructions_by_hart().collect(),
            smu: scene.board.smu_counters(),
            misses: scene.misses(),
            reads: scene.board.reads().to_vec(),
        });
    }

    /// Ends the open region and returns its number.
    pub fn end(&mut self, clock: ClockHz, recorder: &mut Recorder, scene: &Scene<'_>) -> Option<u64> {
        let open = self.open.take()?;
        recorder.end();
        let measured = recorder.measured();
        let os_faults = measured.os_faults.values().sum();
        let os_fault = measured.os_fault.summary(clock);
        let counters = scene.board.smu_counters();
        let by_hart = scene.instructions_by_hart().zip(&open.instructions).map(|(now, before)| now.since(before));
        let by_hart: Vec<Instructions> = by_hart.collect();
        let roi = Roi {
            number: open.number,
            automatic: open.automatic,
            regions: 1,
            begin_cycle: open.begin.0,
            end_cycle: scene.now.0,
            sim_seconds: clock.micros(scene.now - open.begin) / 1e6,
            host_seconds: open.started.elapsed().as_secs_f64(),
            instructions: Instructions::sum(by_hart.iter().copied()),
            instructions_by_hart: by_hart,
            watch: recorder.watches().counts(MOST_WATCHES_OF_REGION),
            os_faults,
            os_fault_causes: measured.os_faults.clone(),
            os_faults_open: os_faults - os_fault.count,
            os_fault,
            kernel_faults: measured.kernel_faults,
            misses: scene.misses().map(|m| m.since(&open.misses.unwrap_or_default())),
            smu: counters.iter().map(|(k, v)| (*k, v - open.smu.get(k).unwrap_or(&0))).collect(),
            reads: scene.board.reads().iter().zip(&open.reads).map(|(now, before)| now.since(before)).collect(),
            hw_miss: measured.misses.summary(clock),
            port_miss: measured.port_misses.summary(clock),
            nvme_read: measured.nvme_reads.summary(clock),
        };
        match self.closed.get_mut(MOST_MARKS) {
            Some(sum) => sum.add(roi),
            None => self.closed.push(roi),
        }
        Some(open.number)
    }
}
