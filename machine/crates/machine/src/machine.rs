// SPDX-License-Identifier: Apache-2.0
//! The order of events: harts in turn, devices at their cycles, interrupts between (docs/design/machine.md).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trapless_devices::Finish;
use trapless_memory::{ClockHz, Cycle, PhysAddr, Ram};
use trapless_nvme::{CommandRecord, Controller};
use trapless_riscv::{CodeCache, Exit, Hart, HartState, Interrupt, PredictorConfig, WalkAnswer, WalkRequest};
use trapless_smu::{Answer, FailReason, Miss, Outcome, Request, SmuSink};
use trapless_timing::Profile;

use crate::assemble;
use crate::atomic::AtomicCheck;
use crate::attribute::Attributed;
use crate::board::Board;
use crate::debug::Debugging;
use crate::recorder::Recorder;
use crate::regions::OpenRoi;
use crate::report::{Milestone, Roi};
use crate::slots::Slots;
use crate::times::Times;
use crate::tracer::Tracer;
use crate::{Console, DetailFrom, End, Error, Limits, Moment, load};

/// Windows between two looks at the stop flag and the host's health.
const HOUSEKEEPING: u64 = 1024;
/// Longest window, so that a busy guest without events still meets the housekeeping.
const MAX_WINDOW: Cycle = Cycle(1_000_000);
/// Longest window of a program that reports through `tohost`.
const TOHOST_WINDOW: Cycle = Cycle(1_000);
/// How long an idle interactive run sleeps between looks for input.
const IDLE_SLEEP: Duration = Duration::from_millis(5);

/// Registers a0, a1, a6 and a7.
pub(crate) const A0: u8 = 10;
pub(crate) const A1: u8 = 11;
pub(crate) const A6: u8 = 16;
pub(crate) const A7: u8 = 17;

/// What a hart is doing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Executing.
    Running,
    /// In `wfi`.
    Asleep,
    /// For the SMU's answer.
    Waiting { id: u64 },
    /// Stopped in the sense of SBI's hart state management.
    Stopped,
}

/// A machine, ready to run.
pub struct Machine {
    pub(crate) profile: Profile,
    pub(crate) clock: ClockHz,
    pub(crate) board: Board,
    pub(crate) harts: Vec<Hart>,
    pub(crate) phases: Vec<Phase>,
    /// SBI timers: the tick of `time` at which STIP rises, and whether it has.
    pub(crate) timers: Vec<(u64, bool)>,
    pub(crate) code: CodeCache,
    pub(crate) times: Times,
    pub(crate) slots: Slots,
    /// When timing becomes detailed.
    pub(crate) detail: DetailFrom,
    /// When to write a checkpoint and end, and whether its milestone was passed.
    pub(crate) checkpoint: Option<(Moment, PathBuf)>,
    pub(crate) reached: bool,
    pub(crate) recorder: Recorder,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) debug: Option<Debugging>,
    /// Looks at requests for pages, if anybody wants to know of those in atomic context.
    pub(crate) atomic: Option<AtomicCheck>,
    /// Where cycles go, if anybody wants to know.
    pub(crate) attribution: Option<Attributed>,
    pub(crate) console: Console,
    pub(crate) builtin_sbi: bool,
    pub(crate) elf: Option<load::LoadedElf>,
    pub(crate) next_request: u64,
    pub(crate) now: Cycle,
    /// Interrupts may have changed since they were last carried to the harts.
    pub(crate) stale_interrupts: bool,
    pub(crate) end: Option<End>,
    pub(crate) started: Instant,
    pub(crate) host_seconds: f64,
    pub(crate) milestones: Vec<Milestone>,
    pub(crate) open_roi: Option<OpenRoi>,
    pub(crate) rois: Vec<Roi>,
    /// Regions that began because mappings were watched for it, and whether some are.
    pub(crate) automatic_regions: u64,
    pub(crate) region_kept: bool,
    pub(crate) marks_ignored: u64,
}

/// What the SMU says. Walkers' answers need the whole machine, so they are collected first.
#[derive(Default)]
struct Answers {
    walkers: Vec<Answer>,
    ports: Vec<Answer>,
    over: Vec<Miss>,
}

impl SmuSink for Answers {
    fn answer(&mut self, answer: Answer) {
        self.walkers.push(answer);
    }

    fn port_answered(&mut self, answer: &Answer) {
        self.ports.push(*answer);
    }

    fn miss_over(&mut self, miss: &Miss) {
        self.over.push(*miss);
    }
}

/// Whether a moment has come; `reached`: its milestone was passed.
pub(crate) fn is_due(moment: Moment, reached: bool, harts: &[Hart]) -> bool {
    match moment {
        Moment::Milestone(_) => reached,
        Moment::Instructions(n) => harts.iter().flat_map(Hart::retired).sum::<u64>() >= n,
    }
}

impl Machine {
    /// Everything architectural of every hart.
    pub fn harts(&self) -> Vec<HartState> {
        self.harts.iter().map(Hart::state).collect()
    }

    /// How many harts have executed nothing: the guest has not started them.
    pub fn harts_never_started(&self) -> usize {
        self.harts.iter().filter(|hart| hart.instructions() == 0).count()
    }

    /// The time up to which the machine has run.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Guest RAM.
    pub fn ram(&self) -> &Ram {
        &self.board.ram
    }

    /// Runs until the guest or a limit ends it.
    ///
    /// # Errors
    /// When the guest can never go on, or the host failed a drive or the console.
    pub fn run(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        self.started = Instant::now();
        if self.detail == DetailFrom::Start {
            self.set_detail(true);
        }
        self.attribute_if(|from| from == DetailFrom::Start);
        let result = self.run_windows(limits);
        self.host_seconds = self.started.elapsed().as_secs_f64();
        let flushed = self.flush_console();
        if let Some(open) = self.open_roi.take() {
            self.close_roi(open);
        }
        self.stop_attributing();
        self.check_host()?;
        let end = result?;
        flushed?;
        Ok(end)
    }

    fn run_windows(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        let longest = limits.window.unwrap_or(if self.elf.is_some() { TOHOST_WINDOW } else { MAX_WINDOW });
        let mut windows: u64 = 0;
        loop {
            if self.debug.is_some()
                && let Some(end) = self.debug_point()
            {
                return Ok(end);
            }
            if windows % HOUSEKEEPING == 0 {
                if limits.stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return Ok(End::Stopped);
                }
                self.check_host()?;
                self.take_input();
            }
            windows += 1;

            let earliest = self.earliest_running();
            let event = self.next_event();
            let Some(at) = earliest.or((event < Cycle::NEVER).then_some(event)) else {
                self.wait_for_input(limits)?;
                continue;
            };
            if at > limits.max_cycle {
                return Ok(End::MaxCycle);
            }
            self.now = self.now.max(at);
            if event <= at {
                self.events(at);
            }
            if self.stale_interrupts {
                self.carry_interrupts(at);
            }
            self.window(at, longest);
            if self.detail_is_due() {
                self.set_detail(true);
            }
            if let Some(tracer) = &mut self.tracer {
                tracer.retired(self.harts.iter().map(Hart::instructions).sum());
            }
            self.attribute_when_due();
            self.look_at_frames(false);
            if let Some((_, dir)) = self.checkpoint.take_if(|(moment, _)| is_due(*moment, self.reached, &self.harts)) {
                self.flush_console()?;
                self.save(&dir)?;
                return Ok(End::Checkpoint);
            }
            if self.board.uart.has_output() {
                self.flush_console()?;
            }
            if let Some(end) = self.finished() {
                return Ok(end);
            }
        }
    }

    /// Begins or ends detailed timing; a decision for good, unless regions of interest decide.
    pub(crate) fn set_detail(&mut self, on: bool) {
        if !self.detail.by_regions() {
            self.detail = DetailFrom::Never;
        }
        let detail = self.profile.detail.as_ref().filter(|_| on);
        let predictor = detail.map(|d| PredictorConfig {
            history_bits: d.predictor.history_bits,
            targets: d.predictor.targets,
            returns: d.predictor.returns,
            mispredict_cycles: d.predictor.mispredict_cycles,
        });
        self.times.set_detail(detail, self.clock);
        if let Some(smu) = &mut self.board.smu {
            let timing = assemble::smu_timing(&self.profile);
            smu.set_timing(if detail.is_some_and(|d| d.caches.smu_timed) { timing.logic() } else { timing });
        }
        self.code.set_detail(predictor);
        self.harts.iter_mut().for_each(|h| h.set_detail(predictor));
    }

    fn detail_is_due(&self) -> bool {
        matches!(self.detail, DetailFrom::Moment(moment @ Moment::Instructions(_)) if is_due(moment, false, &self.harts))
    }

    fn earliest_running(&self) -> Option<Cycle> {
        let running = self.phases.iter().zip(&self.harts).filter(|(p, _)| matches!(p, Phase::Running));
        running.map(|(_, h)| h.now()).min()
    }

    /// When something other than a running hart is next due.
    fn next_event(&self) -> Cycle {
        let mut next = self.board.next_event().min(self.board.aclint.next_event(self.now));
        for (tick, raised) in &self.timers {
            if !raised && *tick != u64::MAX {
                next = next.min(self.board.aclint.cycle_of(*tick));
            }
        }
        next
    }

    /// Does what is due at or before `at`.
    fn events(&mut self, at: Cycle) {
        let mut answers = Answers::default();
        let Machine { board, recorder, attribution, times, .. } = self;
        let note = &mut |drive: usize, record: &CommandRecord| {
            recorder.command(record);
            if let Some(a) = attribution {
                a.command(drive, record);
            }
        };
        board.advance(at, times, note, &mut answers);
        for miss in &answers.over {
            recorder.miss_over(miss);
        }
        for answer in &answers.ports {
            if let Some(a) = attribution {
                a.port_answered(answer);
            }
        }
        for answer in &answers.walkers {
            self.answer(answer);
        }
        self.stale_interrupts = true;
    }

    /// Lets every running hart run up to the end of the window that begins at `at`.
    fn window(&mut self, at: Cycle, longest: Cycle) {
        let running = |hart: usize| matches!(self.phases[hart], Phase::Running);
        let harts = 0..self.phases.len();
        let shared = harts.clone().any(|hart| running(hart) && self.slots.sibling(hart).is_some_and(running));
        let quantum = match harts.filter(|hart| running(*hart)).count() {
            0 | 1 => longest,
            _ if shared => Cycle(self.profile.machine.quantum_cycles.min(self.profile.machine.thread_turn_cycles)),
            _ => Cycle(self.profile.machine.quantum_cycles),
        };
        // An event that is due keeps the window from being empty: whatever runs makes at least one step.
        let end = (at + quantum.min(longest)).min(self.next_event()).max(at + Cycle(1));
        for hart in 0..self.harts.len() {
            if !matches!(self.phases[hart], Phase::Running) || self.harts[hart].now() >= end {
                continue;
            }
            let issued = |h: &Hart| h.retired().iter().sum::<u64>();
            let beside = self.slots.sibling(hart).is_some_and(|other| matches!(self.phases[other], Phase::Running));
            let (began, before) = (self.harts[hart].now(), issued(&self.harts[hart]));
            let end = self.slots.reach(hart, began, end, beside);
            let exit = self.run_hart(hart, end);
            self.check_port(hart);
            let h = &mut self.harts[hart];
            let early = h.now() < end || self.board.finish.is_some();
            let wait = self.slots.turn(hart, issued(h) - before, h.now() - began, beside);
            h.delay(wait);
            match exit {
                Exit::QuantumEnd | Exit::Step => {}
                Exit::Wfi => self.phases[hart] = Phase::Asleep,
                Exit::SbiCall => self.sbi_call(hart),
                Exit::Marker { imm } => self.marker(hart, imm),
                Exit::SmuWait(request) => self.ask_smu(hart, request),
            }
            self.note_hart(hart);
            self.stale_interrupts |= early || !matches!(exit, Exit::QuantumEnd);
            if early {
                break;
            }
        }
    }

    /// Hands a walker's request to the SMU.
    fn ask_smu(&mut self, hart: usize, walk: WalkRequest) {
        self.check_walker(hart, walk.va);
        let now = self.harts[hart].now();
        let Some(smu) = &mut self.board.smu else {
            self.harts[hart].resume_walk(WalkAnswer::Failed, &mut self.recorder);
            return;
        };
        self.next_request += 1;
        let id = self.next_request;
        smu.request(
            now,
            Request { pte: walk.pte_pa, pmd: walk.pmd_pa, pud: walk.pud_pa, seen: walk.seen, hart: hart as u32, id },
        );
        self.recorder.requested(hart, &walk, now);
        self.phases[hart] = Phase::Waiting { id };
    }

    /// Takes the SMU's answer to the hart that waits for it.
    fn answer(&mut self, answer: &Answer) {
        let hart = answer.hart as usize;
        let Some(Phase::Waiting { id }) = self.phases.get(hart).copied() else { return };
        if id != answer.id {
            return;
        }
        self.recorder.answered(hart, answer);
        let walk = match answer.outcome {
            Outcome::Done(_) => WalkAnswer::Done,
            Outcome::Changed(pte) => WalkAnswer::Changed(pte),
            Outcome::Failed(FailReason::Bus) => WalkAnswer::BusError,
            Outcome::Failed(_) => WalkAnswer::Failed,
        };
        self.resume(hart, walk, answer.at);
    }

    /// Ends a wait from the walker's side, as an interrupt does; the miss goes on.
    pub(crate) fn stop_waiting(&mut self, hart: usize, id: u64, at: Cycle) {
        if let Some(smu) = &mut self.board.smu {
            smu.abandon(hart as u32, id);
        }
        self.recorder.abandoned(hart);
        self.resume(hart, WalkAnswer::Interrupted, at);
    }

    fn resume(&mut self, hart: usize, answer: WalkAnswer, at: Cycle) {
        self.recorder.select(hart);
        self.harts[hart].advance_to(at);
        self.resume_walk(hart, answer);
        self.phases[hart] = Phase::Running;
    }

    /// Carries interrupt levels to the harts, wakes sleepers and breaks off waits (REQ: ISA-4).
    fn carry_interrupts(&mut self, at: Cycle) {
        self.stale_interrupts = false;
        self.board.route_interrupts();
        let time = self.board.aclint.mtime(at);
        for hart in 0..self.harts.len() {
            let h = &mut self.harts[hart];
            h.set_line(Interrupt::MachineExternal, self.board.plic.pending(2 * hart));
            h.set_line(Interrupt::SupervisorExternal, self.board.plic.pending(2 * hart + 1));
            h.set_line(Interrupt::MachineSoft, self.board.aclint.msip(hart));
            h.set_line(Interrupt::MachineTimer, self.board.aclint.mtip(hart, at));
            if self.builtin_sbi {
                let (tick, raised) = &mut self.timers[hart];
                if !*raised && *tick <= time {
                    *raised = true;
                    h.set_pending(Interrupt::SupervisorTimer, true);
                }
            }
            match self.phases[hart] {
                Phase::Asleep if h.wakes() => {
                    h.advance_to(at);
                    self.phases[hart] = Phase::Running;
                }
                Phase::Waiting { id } if h.interrupt_pending_enabled() => self.stop_waiting(hart, id, at),
                _ => {}
            }
        }
    }

    fn finished(&mut self) -> Option<End> {
        if let Some(finish) = self.board.finish {
            return Some(match finish {
                Finish::PowerOff => End::PowerOff,
                Finish::Reset => End::Reset,
                Finish::Fail(code) => End::Failed(code),
            });
        }
        if let Some(tohost) = self.elf.as_ref().and_then(|e| e.tohost)
            && let Some(value) = self.board.ram.load::<8>(PhysAddr(tohost)).map(u64::from_le_bytes)
            && value != 0
        {
            return Some(End::ToHost(if value == 1 { 0 } else { (value >> 1).clamp(1, 255) as u8 }));
        }
        self.end
    }

    pub(crate) fn check_host(&mut self) -> Result<(), Error> {
        if let Some(e) = self.tracer.as_mut().and_then(Tracer::failure) {
            return Err(e);
        }
        match self.board.drives.iter().find_map(Controller::host_error) {
            Some(e) => Err(Error::Disk(e.to_string())),
            None => Ok(()),
        }
    }

    pub(crate) fn flush_console(&mut self) -> Result<(), Error> {
        let bytes = self.board.uart.take_output();
        let out = &mut self.console.output;
        out.write_all(&bytes).and_then(|()| out.flush()).map_err(Error::Console)
    }

    fn take_input(&mut self) {
        if let Some(input) = &self.console.input {
            let bytes: Vec<u8> = input.try_iter().collect();
            if !bytes.is_empty() {
                self.board.uart.push_input(&bytes);
                self.stale_interrupts = true;
            }
        }
    }

    /// Nothing is due in the machine: only somebody at the console can make it go on.
    fn wait_for_input(&mut self, limits: &Limits<'_>) -> Result<(), Error> {
        if self.console.input.is_none() {
            return Err(Error::Deadlock(self.now.0));
        }
        std::thread::sleep(IDLE_SLEEP);
        if limits.stop.load(std::sync::atomic::Ordering::Relaxed) {
            self.end = Some(End::Stopped);
        }
        self.take_input();
        if self.stale_interrupts {
            self.carry_interrupts(self.now);
        }
        Ok(())
    }
}
