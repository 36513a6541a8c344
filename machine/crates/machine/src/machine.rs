// SPDX-License-Identifier: Apache-2.0
//! The order of events: harts run in turn, devices act at their cycles, interrupts come between (docs/explanation/machine.md).

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use trapless_attribution::Attribution;
use trapless_devices::Finish;
use trapless_memory::{Cycle, Ram};
use trapless_riscv::{Exit, Hart, HartState, WalkAnswer, WalkRequest};
use trapless_smu::{Answer, FailReason, Outcome, Request};
use trapless_smu_rtl::{Memory, Parameters, RtlSmu};
use trapless_timing::Profile;
use trapless_trace::Totals;

use crate::board::{Answers, Board};
use crate::boot::{self, Booted};
use crate::checkpoint::{self, Folder, State};
use crate::config::{Boot, Console, DetailFrom, End, Limits, MachineConfig, Moment};
use crate::cores::{Cores, Phase};
use crate::error::Error;
use crate::firmware::{self, Then};
use crate::sbi::A0;
use crate::terminal::Terminal;
use crate::watch::{Debugger, Eyes, Mark, Marked, Report, Scene, TraceConfig, Watchers};

/// Number of windows between two checks of the stop flag and of errors of the host.
const HOUSEKEEPING: u64 = 1024;
/// Longest window. It is limited so that the loop's housekeeping also happens if a busy guest has no events.
const MAX_WINDOW: Cycle = Cycle(1_000_000);
/// Longest window of a program that reports its exit status through `tohost`.
const TOHOST_WINDOW: Cycle = Cycle(1_000);
/// How long an idle interactive run sleeps before it looks for input again.
const IDLE_SLEEP: Duration = Duration::from_millis(5);

/// CSR number of `satp`. `SATP_PPN` is the part of its value that is the root page number.
const SATP: u16 = 0x180;
const SATP_PPN: u64 = (1 << 44) - 1;

/// What the machine does at certain moments of the run.
struct Plan {
    /// When timing becomes detailed.
    detail: DetailFrom,
    /// When to write a checkpoint and end, and its folder.
    checkpoint: Option<(Moment, PathBuf)>,
    /// Whether the guest has passed the checkpoint's milestone.
    reached: bool,
}

/// The progress of the run.
struct Progress {
    now: Cycle,
    /// The number of the last request to the SMU.
    request: u64,
    /// Whether interrupt lines may have changed since the harts were last told of them.
    stale_interrupts: bool,
    /// How the guest, or somebody at the console, has ended the run.
    end: Option<End>,
}

/// A machine, ready to run.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use trapless_machine::{Boot, Console, DetailFrom, End, Engine, Error, Limits, Machine, MachineConfig};
/// use trapless_memory::Cycle;
/// use trapless_timing::Profile;
///
/// // A program of one instruction, `j .`, as firmware in front of a kernel that never runs.
/// let dir = tempfile::tempdir()?;
/// let (firmware, kernel) = (dir.path().join("firmware"), dir.path().join("kernel"));
/// std::fs::write(&firmware, 0x0000_006f_u32.to_le_bytes())?;
/// let mut image = vec![0; 4096];
/// image[8..16].copy_from_slice(&0x20_0000_u64.to_le_bytes()); // where it goes, from the start of RAM
/// image[16..24].copy_from_slice(&4096_u64.to_le_bytes()); // its size
/// image[56..60].copy_from_slice(b"RSC\x05");
/// std::fs::write(&kernel, image)?;
///
/// let config = MachineConfig {
///     profile: Profile::load("vc707", &["machine.harts=1".to_owned()])?,
///     boot: Boot::Linux { kernel, initrd: None, append: String::new(), firmware: Some(firmware) },
///     disks: Vec::new(),
///     faults: Vec::new(),
///     engine: Engine::Interpreter,
///     detail: DetailFrom::Never,
///     checkpoint: None,
///     attribution: None,
/// };
/// let mut machine = Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })?;
/// let end = machine.run(&Limits { max_cycle: Cycle(1_000_000), window: None, stop: &AtomicBool::new(false) })?;
/// assert_eq!(end, End::MaxCycle);
/// assert!(machine.report(&end).instructions > 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Machine {
    profile: Profile,
    cores: Cores,
    board: Board,
    watch: Watchers,
    terminal: Terminal,
    booted: Booted,
    plan: Plan,
    progress: Progress,
}

/// Shows the machine to its watchers.
fn scene<'a>(cores: &'a Cores, board: &'a Board, progress: &Progress) -> Scene<'a> {
    Scene { cores, board, now: progress.now }
}

impl Machine {
    /// Builds the machine and loads what it runs first.
    ///
    /// # Errors
    /// One line that names the file or value that is wrong.
    pub fn new(config: MachineConfig, console: Console) -> Result<Machine, Error> {
        let MachineConfig { profile, boot, disks, faults, engine, detail, checkpoint, attribution } = config;
        if detail != DetailFrom::Never && profile.detail.is_none() {
            return Err(Error::NoDetail(profile.name));
        }
        let saved = match &boot {
            Boot::Checkpoint { dir } => {
                Some((dir, checkpoint::memory(dir, &profile)?, checkpoint::state(dir, &profile)?))
            }
            _ => None,
        };
        let (saved, ram) = saved.map_or((None, None), |(dir, ram, state)| (Some((dir, state)), Some(ram)));
        let builtin_sbi = match (&boot, &saved) {
            (_, Some((_, saved))) => saved.builtin_sbi,
            (boot, None) => matches!(boot, Boot::Linux { firmware: None, .. }),
        };
        let watch = Watchers::new(attribution, &boot, profile.machine.harts as usize, profile.clock())?;
        let drives = boot::drives(&disks, &faults, &profile)?;
        let (cores, board, elf) = boot::assemble(&profile, &boot, ram, drives, engine, builtin_sbi)?;
        let mut machine = Machine {
            profile,
            cores,
            board,
            watch,
            terminal: Terminal::new(console),
            booted: Booted::new(builtin_sbi, elf),
            plan: Plan { detail, checkpoint, reached: false },
            progress: Progress { now: Cycle(0), request: 0, stale_interrupts: true, end: None },
        };
        if let Some((dir, saved)) = saved {
            machine.restore(dir, saved)?;
        }
        Ok(machine)
    }

    /// Parameters with which the RTL of this profile's SMU is built; none if it has no SMU.
    pub fn rtl_parameters(profile: &Profile) -> Option<Parameters> {
        profile.smu.present.then(|| RtlSmu::parameters(&boot::smu_config(profile)))
    }

    /// Replaces the reference model of the SMU by the simulated RTL. Call it before the first instruction.
    ///
    /// # Errors
    /// There is no SMU or no such library, or the machine comes from a checkpoint or is to write one.
    pub fn use_rtl(&mut self, library: &Path) -> Result<(), Error> {
        if self.plan.checkpoint.is_some() || self.progress.now != Cycle(0) {
            return Err(Error::Smu("the SMU's RTL cannot be saved to or read from a checkpoint".to_owned()));
        }
        if self.board.smu().is_none() {
            return Err(Error::Smu("the machine has no SMU that the RTL could replace".to_owned()));
        }
        let memory = Memory { latency: boot::smu_timing(&self.profile).ring_read.0, ..Memory::default() };
        let smu = RtlSmu::load(library, boot::smu_config(&self.profile), memory, None);
        self.board.replace_smu(Box::new(smu.map_err(|e| Error::Smu(e.to_string()))?));
        Ok(())
    }

    /// Lets a debugger stop the machine. That does not change simulated time.
    pub fn debug(&mut self, front: Box<dyn Debugger>) {
        self.watch.debug(front);
    }

    /// Traces memory accesses. That does not change simulated time; code is interpreted while accesses are recorded.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn trace(&mut self, config: TraceConfig) -> Result<(), Error> {
        self.watch.trace(config, &self.profile)
    }

    /// Completes the trace, if there is one, and returns its totals. Call it after the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish_trace(&mut self) -> Result<Option<Totals>, Error> {
        self.watch.finish_trace(&self.cores)
    }

    /// Checks every request for a page. Requests of code in atomic context are reported in the record and on standard error.
    /// `pagefault_disabled` is the offset of that member in the guest's `struct task_struct`; without it only preempt_count and
    /// interrupts are checked. Simulated time does not change.
    pub fn check_atomic(&mut self, pagefault_disabled: Option<u64>) {
        self.watch.check_atomic(pagefault_disabled);
    }

    /// The attribution, if it was asked for.
    pub fn attribution(&self) -> Option<&Attribution> {
        self.watch.attribution()
    }

    /// What the run measured. Call it after [`Machine::run`].
    pub fn report(&self, end: &End) -> Report {
        self.watch.report(*end, &self.profile, &scene(&self.cores, &self.board, &self.progress))
    }

    /// Memory between `begin_signature` and `end_signature` of an ELF run, one 32-bit word per line in hex.
    pub fn signature(&self) -> Option<String> {
        self.booted.signature(self.ram())
    }

    /// The architectural state of every hart.
    pub fn harts(&self) -> Vec<HartState> {
        self.cores.harts().iter().map(Hart::state).collect()
    }

    /// Number of harts that have not executed anything, because the guest has not started them.
    pub fn harts_never_started(&self) -> usize {
        self.cores.harts().iter().filter(|hart| hart.instructions() == 0).count()
    }

    /// The time up to which the machine has run.
    pub fn now(&self) -> Cycle {
        self.progress.now
    }

    /// Guest RAM.
    pub fn ram(&self) -> &Ram {
        self.board.memory()
    }

    /// Writes a checkpoint. This machine then continues exactly as a machine does that is made from the checkpoint.
    ///
    /// # Errors
    /// The folder exists already or cannot be written, or a disk image was written to.
    pub fn save(&mut self, dir: &Path) -> Result<(), Error> {
        let folder = Folder::new(dir)?;
        let board = self.board.save().map_err(|disk| folder.disk_written(disk))?;
        let state = State {
            builtin_sbi: self.booted.builtin_sbi(),
            now: self.progress.now,
            next_request: self.progress.request,
            elf: self.booted.elf().cloned(),
            cores: self.cores.save(self.profile.detail.as_ref(), self.profile.clock()),
            board,
        };
        folder.write(&self.profile, state, self.board.memory_mut())?;
        self.progress.stale_interrupts = true;
        Ok(())
    }

    /// Continues from a checkpoint. RAM is already that of [`checkpoint::memory`].
    fn restore(&mut self, dir: &Path, saved: State) -> Result<(), Error> {
        self.board.restore(saved.board).map_err(|what| checkpoint::does_not_fit(dir, what))?;
        self.cores.restore(saved.cores);
        self.booted = Booted::new(saved.builtin_sbi, saved.elf);
        (self.progress.now, self.progress.request) = (saved.now, saved.next_request);
        self.progress.stale_interrupts = true;
        Ok(())
    }

    /// Runs until the guest or a limit ends the run.
    ///
    /// # Errors
    /// When the guest can never continue, or the host failed a drive or the console.
    pub fn run(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        if self.plan.detail == DetailFrom::Start {
            self.set_detail(true);
        }
        self.watch.run_begins(&scene(&self.cores, &self.board, &self.progress));
        let result = self.run_windows(limits);
        self.watch.last_window();
        let flushed = self.flush_console();
        if self.watch.region_is_open() {
            self.region_ends();
        }
        self.watch.run_ends(&scene(&self.cores, &self.board, &self.progress));
        self.check_host()?;
        let end = result?;
        flushed?;
        Ok(end)
    }

    fn run_windows(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        let longest = limits.window.unwrap_or(if self.booted.elf().is_some() { TOHOST_WINDOW } else { MAX_WINDOW });
        let mut windows: u64 = 0;
        loop {
            let (changed, end) = self.watch.debug_point(&mut self.cores, self.board.memory_mut());
            self.progress.stale_interrupts |= changed;
            if let Some(end) = end {
                return Ok(end);
            }
            if windows.is_multiple_of(HOUSEKEEPING) {
                if limits.stop.load(Ordering::Relaxed) {
                    return Ok(End::Stopped);
                }
                self.check_host()?;
                self.take_input();
            }
            windows += 1;

            let earliest = self.cores.earliest_running();
            let event = self.next_event();
            let Some(at) = earliest.or((event < Cycle::NEVER).then_some(event)) else {
                self.wait_for_input(limits)?;
                continue;
            };
            if at > limits.max_cycle {
                return Ok(End::MaxCycle);
            }
            self.progress.now = self.progress.now.max(at);
            if event <= at {
                self.events(at);
            }
            if self.progress.stale_interrupts {
                self.carry_interrupts(at);
            }
            self.window(at, longest);
            if let DetailFrom::Moment(moment @ Moment::Instructions(_)) = self.plan.detail
                && self.is_due(moment)
            {
                self.set_detail(true);
            }
            self.watch.window_over(&scene(&self.cores, &self.board, &self.progress));
            if let Some((moment, _)) = &self.plan.checkpoint
                && self.is_due(*moment)
                && let Some((_, dir)) = self.plan.checkpoint.take()
            {
                self.flush_console()?;
                self.save(&dir)?;
                return Ok(End::Checkpoint);
            }
            if self.board.peripherals().uart.has_output() {
                self.flush_console()?;
            }
            if let Some(end) = self.finished() {
                return Ok(end);
            }
        }
    }

    /// Whether this moment of the plan has come.
    fn is_due(&self, moment: Moment) -> bool {
        match moment {
            Moment::Milestone(_) => self.plan.reached,
            Moment::Instructions(n) => self.cores.retired() >= n,
        }
    }

    /// Begins or ends detailed timing. This is final unless regions of interest decide.
    fn set_detail(&mut self, on: bool) {
        if !self.plan.detail.by_regions() {
            self.plan.detail = DetailFrom::Never;
        }
        let detail = self.profile.detail.as_ref().filter(|_| on);
        let timing = boot::smu_timing(&self.profile);
        self.board.set_smu_timing(if detail.is_some_and(|d| d.caches.smu_timed) { timing.logic() } else { timing });
        self.cores.set_detail(detail, self.profile.clock());
    }

    /// Time of the next event that does not come from a running hart.
    fn next_event(&self) -> Cycle {
        let aclint = &self.board.peripherals().aclint;
        let next = self.board.next_event().min(aclint.next_event(self.progress.now));
        self.cores.timer_ticks().fold(next, |next, tick| next.min(aclint.cycle_of(tick)))
    }

    /// Does what is due at or before `at`.
    fn events(&mut self, at: Cycle) {
        let Machine { board, watch, cores, .. } = self;
        let mut answers = Answers::default();
        board.advance(at, cores.times_mut(), &mut |drive, record| watch.command(drive, record), &mut answers);
        answers.over.iter().for_each(|miss| watch.miss_over(miss));
        answers.ports.iter().for_each(|answer| watch.port_answered(answer));
        for answer in &answers.walkers {
            self.answer(answer);
        }
        self.progress.stale_interrupts = true;
    }

    /// Lets every running hart run to the end of the window that begins at `at`.
    fn window(&mut self, at: Cycle, longest: Cycle) {
        let quantum = self.cores.quantum(&self.profile.machine, longest);
        // The window must not be empty even if an event is due, so that each running hart makes at least one step.
        let end = (at + quantum).min(self.next_event()).max(at + Cycle(1));
        for hart in 0..self.cores.len() {
            let Some(turn) = self.cores.begin_turn(hart, end) else { continue };
            let exit = self.run_hart(hart, turn.end);
            self.watch.looked_at(hart, &self.cores, &mut self.board);
            let early = self.cores.end_turn(&turn) || self.board.finish().is_some();
            match exit {
                Exit::QuantumEnd | Exit::Step => {}
                Exit::Wfi => self.cores.set_phase(hart, Phase::Asleep),
                Exit::SbiCall => self.sbi_call(hart),
                Exit::Marker { imm } => self.marker(hart, imm),
                Exit::SmuWait(request) => self.ask_smu(hart, &request),
            }
            self.watch.ran(hart, &self.cores, self.board.memory());
            self.progress.stale_interrupts |= early || !matches!(exit, Exit::QuantumEnd);
            if early {
                break;
            }
        }
    }

    /// Runs a hart up to `end`.
    fn run_hart(&mut self, hart: usize, end: Cycle) -> Exit {
        let Machine { board, watch, cores, .. } = self;
        match watch.eyes(hart, cores) {
            Eyes::Plain(recorder) => cores.run(hart, end, board, recorder),
            Eyes::Each(each) => cores.run_among(hart, end, board, |others, times| (each.among(others), times)),
            Eyes::Jumps(jumps) => {
                board.keep_asked(true);
                let exit = cores.run_among(hart, end, board, |_, times| {
                    let counted = jumps.counted(times);
                    (jumps, counted)
                });
                watch.asked(hart, board.keep_asked(false));
                exit
            }
        }
    }

    /// Passes a walker's request to the SMU.
    fn ask_smu(&mut self, hart: usize, walk: &WalkRequest) {
        let now = self.cores.harts()[hart].now();
        self.progress.request += 1;
        let id = self.progress.request;
        let WalkRequest { pte_pa, pmd_pa, pud_pa, seen, .. } = *walk;
        let request = Request { pte: pte_pa, pmd: pmd_pa, pud: pud_pa, seen, hart: hart as u32, id };
        if self.board.request(now, request).is_none() {
            return self.resume_walk(hart, WalkAnswer::Failed);
        }
        self.watch.requested(hart, walk, now, &self.cores, self.board.memory());
        self.cores.set_phase(hart, Phase::Waiting { id });
    }

    /// Gives the SMU's answer to the hart that waits for it.
    fn answer(&mut self, answer: &Answer) {
        let hart = answer.hart as usize;
        let Some(Phase::Waiting { id }) = self.cores.phase(hart) else { return };
        if id != answer.id {
            return;
        }
        self.watch.answered(hart, answer);
        let walk = match answer.outcome {
            Outcome::Done(_) => WalkAnswer::Done,
            Outcome::Changed(pte) => WalkAnswer::Changed(pte),
            Outcome::Failed(FailReason::Bus) => WalkAnswer::BusError,
            Outcome::Failed(_) => WalkAnswer::Failed,
        };
        self.resume(hart, walk, answer.at);
    }

    /// Ends a wait from the walker's side, as an interrupt does; the miss itself continues.
    fn stop_waiting(&mut self, hart: usize, id: u64, at: Cycle) {
        self.board.abandon(hart, id);
        self.watch.abandoned(hart);
        self.resume(hart, WalkAnswer::Interrupted, at);
    }

    /// Lets a hart that waited continue with an answer.
    fn resume(&mut self, hart: usize, answer: WalkAnswer, at: Cycle) {
        self.cores.hart_mut(hart).advance_to(at);
        self.resume_walk(hart, answer);
        self.cores.set_phase(hart, Phase::Running);
        self.watch.resumed(hart, &self.cores);
    }

    /// Continues a hart's walk. Watchers see the trap with which it may end.
    fn resume_walk(&mut self, hart: usize, answer: WalkAnswer) {
        match self.watch.eyes(hart, &self.cores) {
            Eyes::Plain(recorder) => self.cores.resume_walk(hart, answer, recorder),
            Eyes::Each(mut each) => self.cores.resume_walk(hart, answer, &mut each),
            Eyes::Jumps(mut jumps) => self.cores.resume_walk(hart, answer, &mut jumps),
        }
    }

    /// Sets the harts' interrupt lines, wakes sleeping harts and ends waits (REQ: ISA-4).
    fn carry_interrupts(&mut self, at: Cycle) {
        self.progress.stale_interrupts = false;
        self.board.route_interrupts();
        let time = self.booted.builtin_sbi().then(|| self.board.peripherals().aclint.mtime(at));
        for hart in 0..self.cores.len() {
            let lines = self.board.lines(hart, at);
            if let Some(id) = self.cores.carry(hart, lines, time, at) {
                self.stop_waiting(hart, id, at);
            }
        }
    }

    /// Serves the SBI call of a hart. A request of a fenced hart that the SMU has not accepted yet is withdrawn, because it
    /// carries an old entry (OS-4).
    fn sbi_call(&mut self, hart: usize) {
        let cost = Cycle(self.profile.machine.sbi_call_cycles);
        match firmware::call(hart, cost, &mut self.cores, &mut self.board) {
            Then::Nothing => {}
            Then::End(end) => self.progress.end = Some(end),
            Then::Fence(harts, start, size) => {
                let at = self.cores.harts()[hart].now();
                for hart in harts {
                    self.cores.fence(hart, start, size);
                    if let Some(Phase::Waiting { id }) = self.cores.phase(hart)
                        && self.board.is_held(hart)
                    {
                        self.stop_waiting(hart, id, at);
                    }
                }
            }
        }
    }

    /// Does what a marker asks for.
    fn marker(&mut self, hart: usize, imm: u16) {
        let h = &self.cores.harts()[hart];
        let args = [0, 1, 2, 3].map(|n| h.x(A0 + n));
        let mark = Mark { number: imm.into(), args, root: h.csr(SATP).unwrap_or(0) & SATP_PPN, hart };
        let marked = self.watch.mark(&mark, &scene(&self.cores, &self.board, &self.progress));
        self.act(marked);
        let kept = self.watch.keep_region();
        self.act(kept);
    }

    fn act(&mut self, marked: Marked) {
        if marked.ends {
            self.region_ends();
        }
        if let Some((number, automatic)) = marked.begins {
            if self.plan.detail.in_region(number) {
                self.set_detail(true);
            }
            self.watch.region_begins(number, automatic, &scene(&self.cores, &self.board, &self.progress));
        }
        if let Some(number) = marked.milestone {
            if self.plan.detail == DetailFrom::Moment(Moment::Milestone(number)) {
                self.set_detail(true);
            }
            self.watch.milestone(number, &scene(&self.cores, &self.board, &self.progress));
            self.plan.reached |= matches!(self.plan.checkpoint, Some((Moment::Milestone(n), _)) if n == number);
        }
        for range in marked.seen_anew {
            self.cores.harts_mut().iter_mut().for_each(|h| h.fence_vma(Some(range)));
        }
    }

    /// Ends the open region of interest.
    fn region_ends(&mut self) {
        let ended = self.watch.region_ends(&scene(&self.cores, &self.board, &self.progress));
        if ended.is_some_and(|number| self.plan.detail.in_region(number)) {
            self.set_detail(false);
        }
    }

    fn finished(&self) -> Option<End> {
        if let Some(finish) = self.board.finish() {
            return Some(match finish {
                Finish::PowerOff => End::PowerOff,
                Finish::Reset => End::Reset,
                Finish::Fail(code) => End::Failed(code),
            });
        }
        self.booted.to_host(self.ram()).map(End::ToHost).or(self.progress.end)
    }

    fn check_host(&mut self) -> Result<(), Error> {
        let failure = self.watch.failure().or_else(|| self.board.host_error().map(Error::Disk));
        failure.map_or(Ok(()), Err)
    }

    fn flush_console(&mut self) -> Result<(), Error> {
        self.terminal.print(&mut self.board.peripherals_mut().uart)
    }

    fn take_input(&mut self) {
        self.progress.stale_interrupts |= self.terminal.type_in(&mut self.board.peripherals_mut().uart);
    }

    /// Waits for input: no event is due, so only somebody at the console can make the machine continue.
    fn wait_for_input(&mut self, limits: &Limits<'_>) -> Result<(), Error> {
        if !self.terminal.is_interactive() {
            return Err(Error::Deadlock(self.progress.now.0));
        }
        std::thread::sleep(IDLE_SLEEP);
        if limits.stop.load(Ordering::Relaxed) {
            self.progress.end = Some(End::Stopped);
        }
        self.take_input();
        if self.progress.stale_interrupts {
            self.carry_interrupts(self.progress.now);
        }
        Ok(())
    }
}
