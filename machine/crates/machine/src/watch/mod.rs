// SPDX-License-Identifier: Apache-2.0
//! Watchers of a machine: measurements, regions of interest, traces, the debugger, attribution, the check for atomic context.
//!
//! The machine tells [`Watchers`] what happens. Nothing that they answer is visible to the guest, and no miss goes through them.
//! Only a debugger changes the machine, when its user asks for that.

mod atomic;
mod attribute;
mod debug;
mod eyes;
mod frames;
mod misses;
mod recorder;
mod regions;
mod report;
mod scene;
mod stats;
mod tracer;
mod watches;

use std::time::Instant;

use trapless_attribution::Attribution;
use trapless_memory::{ClockHz, Cycle, Ram};
use trapless_nvme::{CommandRecord, Controller};
use trapless_riscv::WalkRequest;
use trapless_smu::{Answer, Miss};
use trapless_timing::Profile;
use trapless_trace::Totals;

use crate::board::{Asked, Board, DiskReads};
use crate::config::{AttributionConfig, Boot, DetailFrom, End, Moment};
use crate::cores::Cores;
use crate::error::Error;
use atomic::AtomicCheck;
pub use atomic::{Asker, AtomicChecked, AtomicRequest};
use attribute::Attributed;
use debug::Debugging;
pub use debug::{Debugger, Orders, Register, Stop, View, Watchpoint, Why};
use eyes::Each;
pub use eyes::Eyes;
use recorder::Recorder;
use regions::Regions;
pub use regions::{Mark, Marked};
use report::{DiskRecord, FaultCount, NamespaceRecord, Outside, host_peak_bytes};
pub use report::{Report, Roi};
pub use scene::Scene;
use tracer::Tracer;
pub use tracer::{TraceConfig, TraceFrom};
pub use watches::WatchCounts;
use watches::Watches;

/// All watchers of a machine.
pub struct Watchers {
    clock: ClockHz,
    recorder: Recorder,
    regions: Regions,
    tracer: Option<Tracer>,
    debug: Option<Debugging>,
    atomic: Option<AtomicCheck>,
    attribution: Option<Attributed>,
    started: Instant,
    host_seconds: f64,
}

impl Watchers {
    /// Creates the watchers of a machine that starts with `boot`.
    ///
    /// # Errors
    /// A file that the attribution needs is wrong.
    pub fn new(
        attribution: Option<AttributionConfig>,
        boot: &Boot,
        harts: usize,
        clock: ClockHz,
    ) -> Result<Watchers, Error> {
        let attribution = attribution.map(|config| Attributed::new(config, boot, harts, clock)).transpose()?;
        Ok(Watchers {
            clock,
            recorder: Recorder::new(harts, attribution.is_some()),
            regions: Regions::default(),
            tracer: None,
            debug: None,
            atomic: None,
            attribution,
            started: Instant::now(),
            host_seconds: 0.0,
        })
    }

    /// Adds a trace.
    pub fn trace(&mut self, config: TraceConfig, profile: &Profile) -> Result<(), Error> {
        self.tracer = Some(Tracer::new(config, profile).map_err(Error::Trace)?);
        Ok(())
    }

    /// Completes the trace, if there is one, and returns its totals.
    pub fn finish_trace(&mut self, cores: &Cores) -> Result<Option<Totals>, Error> {
        self.tracer.take().map(|tracer| tracer.finish(cores.harts())).transpose()
    }

    /// Adds a debugger.
    pub fn debug(&mut self, front: Box<dyn Debugger>) {
        self.debug = Some(Debugging::new(front));
    }

    /// Adds a check of every request for a page.
    pub fn check_atomic(&mut self, pagefault_disabled: Option<u64>) {
        self.atomic = Some(AtomicCheck::new(pagefault_disabled));
    }

    /// The attribution, if it was asked for.
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.as_ref().map(Attributed::accounts)
    }

    /// The error of a watcher, if the host failed it.
    pub fn failure(&mut self) -> Option<Error> {
        self.tracer.as_mut().and_then(Tracer::failure)
    }

    /// Notes that a run begins.
    pub fn run_begins(&mut self, scene: &Scene<'_>) {
        self.started = Instant::now();
        self.attribute_if(|from| from == DetailFrom::Start, scene);
    }

    /// Notes that the last window of a run is over.
    pub fn last_window(&mut self) {
        self.host_seconds = self.started.elapsed().as_secs_f64();
    }

    /// Notes that a run ends. Its regions of interest have ended before.
    pub fn run_ends(&mut self, scene: &Scene<'_>) {
        if let Some(a) = &mut self.attribution {
            a.close(&mut self.recorder, scene);
        }
    }

    /// Lets the debugger stop the machine between windows. Returns whether it has changed something, and an end if it wants one.
    #[inline]
    pub fn debug_point(&mut self, cores: &mut Cores, ram: &mut Ram) -> (bool, Option<End>) {
        let Some(debug) = &mut self.debug else { return (false, None) };
        let mut changed = false;
        if debug.wants_stop() {
            let stop = Stop { hart: cores.first_to_run(), why: Why::Asked };
            changed = debug.stop(stop, cores.harts_mut().iter_mut().collect(), ram);
        }
        (changed, debug.kills().then_some(End::Stopped))
    }

    /// Notes that a window is over.
    pub fn window_over(&mut self, scene: &Scene<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.retired(scene.cores.instructions());
        }
        if let Some(a) = &self.attribution {
            if let DetailFrom::Moment(Moment::Instructions(n)) = a.from()
                && scene.cores.retired() >= n
            {
                self.attribute_if(|_| true, scene);
            }
            if let Some(a) = &mut self.attribution {
                a.look_at_frames(false, &mut self.recorder, scene);
            }
        }
    }

    /// Returns the observer of a hart that runs now.
    #[inline]
    pub fn eyes(&mut self, hart: usize, cores: &Cores) -> Eyes<'_> {
        let Watchers { recorder, tracer, debug, attribution, .. } = self;
        recorder.select(hart);
        if let Some(a) = attribution.as_mut().filter(|a| a.is_open()) {
            return Eyes::Jumps(a.follow(hart, recorder, cores));
        }
        let tracer = tracer.as_mut().filter(|t| t.is_on());
        let debug = debug.as_mut().filter(|d| d.looks());
        if tracer.is_none() && debug.is_none() {
            return Eyes::Plain(recorder);
        }
        Eyes::Each(Each { recorder, tracer, debug, id: hart, others: [&mut [], &mut []] })
    }

    /// Notes what a followed hart has asked of devices.
    pub fn asked(&mut self, hart: usize, asked: Vec<Asked>) {
        if let Some(a) = &mut self.attribution {
            a.asked(hart, asked);
        }
    }

    /// Notes that a hart has run, possibly up to its store to a request port.
    #[inline]
    pub fn looked_at(&mut self, hart: usize, cores: &Cores, board: &mut Board) {
        if let Some(check) = &mut self.atomic
            && board.take_port_asked()
        {
            check.look(hart, &cores.harts()[hart], board.memory(), Asker::Port, None);
        }
    }

    /// Notes that a hart has run, and that the machine has handled the event that ended the run.
    #[inline]
    pub fn ran(&mut self, hart: usize, cores: &Cores, ram: &Ram) {
        if let Some(a) = self.attribution.as_mut().filter(|a| a.is_open()) {
            a.ran(hart, &mut self.recorder, cores, ram);
        }
    }

    /// Notes that a walker's request has left its hart for the SMU.
    pub fn requested(&mut self, hart: usize, walk: &WalkRequest, now: Cycle, cores: &Cores, ram: &Ram) {
        if let Some(check) = &mut self.atomic {
            check.look(hart, &cores.harts()[hart], ram, Asker::Walker, Some(walk.va));
        }
        self.recorder.requested(hart, walk, now);
    }

    /// Notes that the SMU has answered a waiting hart.
    pub fn answered(&mut self, hart: usize, answer: &Answer) {
        self.recorder.answered(hart, answer);
    }

    /// Notes that a hart has stopped waiting without an answer.
    pub fn abandoned(&mut self, hart: usize) {
        self.recorder.abandoned(hart);
    }

    /// Notes that a hart has continued its walk.
    pub fn resumed(&mut self, hart: usize, cores: &Cores) {
        if let Some(a) = self.attribution.as_mut().filter(|a| a.is_open()) {
            a.resumed(hart, cores);
        }
    }

    /// Notes that a drive has finished a command.
    pub fn command(&mut self, drive: usize, record: &CommandRecord) {
        self.recorder.command(record);
        if let Some(a) = &mut self.attribution {
            a.command(drive, record);
        }
    }

    /// Notes that the SMU has finished its part of a miss. Called before the answers to the waiting harts.
    pub fn miss_over(&mut self, miss: &Miss) {
        self.recorder.miss_over(miss);
    }

    /// Notes that the SMU has answered a request port.
    pub fn port_answered(&mut self, answer: &Answer) {
        if let Some(a) = &mut self.attribution {
            a.port_answered(answer);
        }
    }

    /// Notes that the guest has executed a marker. Call [`Watchers::keep_region`] after doing what the result asks for.
    pub fn mark(&mut self, mark: &Mark, scene: &Scene<'_>) -> Marked {
        self.regions.mark(mark, self.started, &mut self.recorder, scene)
    }

    /// Whether an automatic region begins or ends, according to what is watched now.
    pub fn keep_region(&mut self) -> Marked {
        self.regions.keep(self.recorder.watches().keep_region())
    }

    /// Notes that the guest has passed a milestone.
    pub fn milestone(&mut self, number: u64, scene: &Scene<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.milestone(number);
        }
        self.attribute_if(|from| from == DetailFrom::Moment(Moment::Milestone(number)), scene);
    }

    /// Whether a region of interest is open.
    pub fn region_is_open(&self) -> bool {
        self.regions.is_open()
    }

    /// Begins a region of interest.
    pub fn region_begins(&mut self, number: u64, automatic: bool, scene: &Scene<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_begins();
        }
        self.regions.begin(number, automatic, &mut self.recorder, scene);
        if let Some(a) = &mut self.attribution {
            if a.from().by_regions() {
                a.close(&mut self.recorder, scene);
            }
            if a.from().in_region(number) {
                a.open(Some(number), &mut self.recorder, scene);
            }
        }
    }

    /// Ends the open region of interest and returns its number.
    pub fn region_ends(&mut self, scene: &Scene<'_>) -> Option<u64> {
        if let Some(tracer) = &mut self.tracer {
            tracer.roi_ends(scene.cores.harts());
        }
        let number = self.regions.end(self.clock, &mut self.recorder, scene);
        if let Some(a) = self.attribution.as_mut().filter(|a| a.from().by_regions()) {
            a.close(&mut self.recorder, scene);
        }
        number
    }

    /// Opens a window of the attribution if that is `due`.
    fn attribute_if(&mut self, due: impl Fn(DetailFrom) -> bool, scene: &Scene<'_>) {
        if let Some(a) = self.attribution.as_mut().filter(|a| !a.is_open() && due(a.from())) {
            a.open(None, &mut self.recorder, scene);
        }
    }

    /// What the run measured.
    pub fn report(&self, end: End, profile: &Profile, scene: &Scene<'_>) -> Report {
        let by_mode = scene.instructions();
        let drives = scene.board.peripherals().drives();
        let watches = self.recorder.watches();
        Report {
            schema: 2,
            end: format!("{end:?}"),
            profile: profile.clone(),
            disks: drives.iter().zip(scene.board.reads()).map(|(drive, reads)| disk_record(drive, *reads)).collect(),
            sim_cycles: scene.now.0,
            sim_seconds: self.clock.micros(scene.now) / 1e6,
            host_seconds: self.host_seconds,
            host_peak_bytes: host_peak_bytes().unwrap_or(0),
            instructions: by_mode.total(),
            instructions_by_mode: by_mode,
            mips: by_mode.total() as f64 / 1e6 / self.host_seconds.max(1e-9),
            misses: scene.misses(),
            milestones: self.regions.milestones().to_vec(),
            rois: self.regions.closed().to_vec(),
            outside: self.outside(),
            marks_ignored: self.regions.ignored() + watches.ignored(),
            watch: watches.counts(Watches::MOST),
            smu_counters: scene.board.smu_counters(),
            faults: drives
                .iter()
                .flat_map(Controller::faults)
                .map(|(fault, struck)| FaultCount { fault: fault.to_owned(), struck })
                .collect(),
            atomic: self.atomic.as_ref().map(|check| check.checked().clone()),
        }
    }

    fn outside(&self) -> Outside {
        let measured = self.recorder.outside();
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
}

fn disk_record(drive: &Controller, reads: DiskReads) -> DiskRecord {
    let namespaces = drive.formats().map(|(blocks, block_bytes)| NamespaceRecord { blocks, block_bytes });
    DiskRecord { ssd: drive.ssd().clone(), namespaces: namespaces.collect(), reads }
}
