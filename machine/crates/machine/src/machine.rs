// SPDX-License-Identifier: Apache-2.0
//! The order of events: harts in turn, devices at their cycles, interrupts, SBI calls and markers between.

use std::time::{Duration, Instant};

use trapless_devices::{Aclint, Finish};
use trapless_memory::{ClockHz, Cycle, Dma, PhysAddr, Ram};
use trapless_nvme::{Controller, ControllerConfig, ImageMode, open_image};
use trapless_riscv::{
    CodeCache, CostTable, Env, Exit, Hart, HartConfig, Interrupt, SmuWalkConfig, Timing, WalkAnswer, WalkRequest,
};
use trapless_smu::{Answer, FailReason, Outcome, Request, Smu, SmuConfig, SmuTiming};
use trapless_smu_regs::{MARKER_MILESTONE, MARKER_ROI_BEGIN, MARKER_ROI_END, MARKER_UNWATCH, MARKER_WATCH};
use trapless_timing::{CoreCosts, Profile, SsdTiming};

use crate::board::Board;
use crate::fdt::{self, FdtConfig};
use crate::recorder::Recorder;
use crate::report::{Instructions, Milestone, Report, Roi, SmuCounters};
use crate::sbi::{self, Call};
use crate::walk_cache::{self, WalkCache};
use crate::{Boot, Console, DiskConfig, DiskWrites, End, Error, Limits, MachineConfig, load, map};

/// Windows between two looks at the stop flag and the host's health.
const HOUSEKEEPING: u64 = 1024;
/// Longest window, so that a busy guest without events still meets the housekeeping.
const MAX_WINDOW: Cycle = Cycle(1_000_000);
/// Longest window of a program that reports through `tohost`.
const TOHOST_WINDOW: Cycle = Cycle(1_000);
/// How long an idle interactive run sleeps between looks for input.
const IDLE_SLEEP: Duration = Duration::from_millis(5);

/// CSR number of `satp` and its root page number.
const SATP: u16 = 0x180;
const SATP_PPN: u64 = (1 << 44) - 1;

/// Registers a0, a1, a6 and a7.
const A0: u8 = 10;
const A1: u8 = 11;
const A6: u8 = 16;
const A7: u8 = 17;

/// What a hart is doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    /// In `wfi`.
    Asleep,
    /// For the SMU's answer.
    Waiting {
        request: WalkRequest,
        id: u64,
        accepted: bool,
        deadline: Cycle,
    },
    /// Stopped in the sense of SBI's hart state management.
    Stopped,
}

struct OpenRoi {
    number: u64,
    begin: Cycle,
    started: Instant,
    instructions: Instructions,
    smu: SmuCounters,
}

/// A machine, ready to run.
pub struct Machine {
    profile: Profile,
    clock: ClockHz,
    board: Board,
    harts: Vec<Hart>,
    phases: Vec<Phase>,
    /// SBI timers: the tick of `time` at which STIP rises, and whether it has.
    timers: Vec<(u64, bool)>,
    code: CodeCache,
    walk_caches: Vec<WalkCache>,
    recorder: Recorder,
    console: Console,
    builtin_sbi: bool,
    elf: Option<load::LoadedElf>,
    next_request: u64,
    now: Cycle,
    /// Interrupts may have changed since they were last carried to the harts.
    stale_interrupts: bool,
    end: Option<End>,
    started: Instant,
    host_seconds: f64,
    milestones: Vec<Milestone>,
    open_roi: Option<OpenRoi>,
    rois: Vec<Roi>,
}

/// Sinks that need the machine collect first.
type Answers = Vec<Answer>;

impl Machine {
    /// Builds the machine and loads what it starts with.
    ///
    /// # Errors
    /// One line that names the file or value that is wrong.
    pub fn new(config: MachineConfig, console: Console) -> Result<Machine, Error> {
        let MachineConfig { profile, boot, disks } = config;
        let clock = profile.clock();
        let harts = profile.machine.harts as usize;
        let mut ram = Ram::new(map::RAM_BASE, profile.machine.memory_bytes)?;
        let drives = open_drives(&disks, &profile)?;
        let smu = profile.smu.present.then(|| Smu::new(smu_config(&profile))).transpose();
        let smu = smu.map_err(|e| Error::Profile(e.to_string()))?;

        let builtin_sbi = matches!(&boot, Boot::Linux { firmware: None, .. });
        let walk = smu.is_some().then_some(SmuWalkConfig { wait_limit: profile.smu.wait_limit_cycles });
        let costs = cost_table(&profile.core);
        let make = |id: usize| {
            let config = HartConfig { costs, smu: walk, sbi_exits: builtin_sbi, ..HartConfig::new(id as u64) };
            Hart::new(config, map::RAM_BASE.0)
        };
        let mut cores: Vec<Hart> = (0..harts).map(make).collect();
        let mut phases = vec![Phase::Running; harts];
        let elf = boot_images(&mut ram, &boot, &profile, &mut cores)?;
        if builtin_sbi {
            phases[1..].fill(Phase::Stopped);
        }
        let aclint = Aclint::new(harts, clock, profile.machine.timebase_hz);
        Ok(Machine {
            board: Board::new(ram, aclint, harts, drives, smu),
            clock,
            harts: cores,
            phases,
            timers: vec![(u64::MAX, false); harts],
            code: CodeCache::default(),
            walk_caches: vec![WalkCache::new(profile.machine.walk_cache_entries, profile.core.walk_level); harts],
            recorder: Recorder::new(harts),
            console,
            builtin_sbi,
            elf,
            next_request: 0,
            now: Cycle(0),
            stale_interrupts: true,
            end: None,
            started: Instant::now(),
            host_seconds: 0.0,
            milestones: Vec::new(),
            open_roi: None,
            rois: Vec::new(),
            profile,
        })
    }

    /// Runs until the guest or a limit ends it.
    ///
    /// # Errors
    /// When the guest can never go on, or the host failed a drive or the console.
    pub fn run(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        self.started = Instant::now();
        let result = self.run_windows(limits);
        self.host_seconds = self.started.elapsed().as_secs_f64();
        let flushed = self.flush_console();
        if let Some(open) = self.open_roi.take() {
            self.close_roi(open);
        }
        self.check_host()?;
        let end = result?;
        flushed?;
        Ok(end)
    }

    fn run_windows(&mut self, limits: &Limits<'_>) -> Result<End, Error> {
        let longest = if self.elf.is_some() { TOHOST_WINDOW } else { MAX_WINDOW };
        let mut windows: u64 = 0;
        loop {
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
            if self.board.uart.has_output() {
                self.flush_console()?;
            }
            if let Some(end) = self.finished() {
                return Ok(end);
            }
        }
    }

    fn earliest_running(&self) -> Option<Cycle> {
        let running = self.phases.iter().zip(&self.harts).filter(|(p, _)| matches!(p, Phase::Running));
        running.map(|(_, h)| h.now()).min()
    }

    /// When something other than a running hart is next due.
    fn next_event(&self) -> Cycle {
        let mut next = self.board.next_event().min(self.board.aclint.next_event(self.now));
        for (phase, (tick, raised)) in self.phases.iter().zip(&self.timers) {
            if !raised && *tick != u64::MAX {
                next = next.min(self.board.aclint.cycle_of(*tick));
            }
            if let Phase::Waiting { deadline, .. } = phase {
                next = next.min(*deadline);
            }
        }
        next
    }

    /// Does what is due at or before `at`.
    fn events(&mut self, at: Cycle) {
        let mut answers = Answers::new();
        let Machine { board, recorder, .. } = self;
        board.advance(at, &mut |_, record| recorder.command(record), &mut |answer| answers.push(answer));
        for answer in &answers {
            self.answer(answer);
        }
        for hart in 0..self.harts.len() {
            if let Phase::Waiting { id, deadline, .. } = self.phases[hart]
                && deadline <= at
            {
                self.stop_waiting(hart, id, WalkAnswer::LimitReached, deadline);
            }
        }
        self.stale_interrupts = true;
    }

    /// Lets every running hart run up to the end of the window that begins at `at`.
    fn window(&mut self, at: Cycle, longest: Cycle) {
        let running = self.phases.iter().filter(|p| matches!(p, Phase::Running)).count();
        let quantum = if running > 1 { Cycle(self.profile.machine.quantum_cycles) } else { longest };
        // An event that is due keeps the window from being empty: whatever runs makes at least one step.
        let end = (at + quantum.min(longest)).min(self.next_event()).max(at + Cycle(1));
        for hart in 0..self.harts.len() {
            if !matches!(self.phases[hart], Phase::Running) || self.harts[hart].now() >= end {
                continue;
            }
            self.recorder.select(hart);
            let mut env = Env {
                bus: &mut self.board,
                code: &mut self.code,
                observer: &mut self.recorder,
                timing: &mut self.walk_caches[hart],
            };
            let exit = self.harts[hart].run(&mut env, end);
            let early = self.harts[hart].now() < end || self.board.finish.is_some();
            match exit {
                Exit::QuantumEnd | Exit::Step => {}
                Exit::Wfi => self.phases[hart] = Phase::Asleep,
                Exit::SbiCall => self.sbi_call(hart),
                Exit::Marker { imm } => self.marker(hart, imm),
                Exit::SmuWait(request) => self.ask_smu(hart, request),
            }
            self.stale_interrupts |= early || !matches!(exit, Exit::QuantumEnd);
            if early {
                break;
            }
        }
    }

    /// Hands a walker's request to the SMU.
    fn ask_smu(&mut self, hart: usize, walk: WalkRequest) {
        let now = self.harts[hart].now();
        let Some(smu) = &mut self.board.smu else {
            self.harts[hart].resume_walk(WalkAnswer::Failed, &mut self.recorder);
            return;
        };
        self.next_request += 1;
        let id = self.next_request;
        let accept = smu.request(
            now,
            Request {
                pte: walk.pte_pa,
                pmd: walk.pmd_pa,
                pud: walk.pud_pa,
                seen: walk.seen,
                hart: hart as u32,
                id,
            },
        );
        self.recorder.requested(hart, &walk, now);
        let deadline = self.harts[hart].wait_limit().map_or(Cycle::NEVER, |limit| now + limit);
        let accepted = matches!(accept, trapless_smu::Accept::Accepted);
        self.phases[hart] = Phase::Waiting { request: walk, id, accepted, deadline };
    }

    /// Takes the SMU's answer to the hart that waits for it.
    fn answer(&mut self, answer: &Answer) {
        let hart = answer.hart as usize;
        let Some(Phase::Waiting { request, id, .. }) = self.phases.get(hart).copied() else { return };
        if id != answer.id {
            return;
        }
        self.recorder.answered(hart, &request, answer);
        let walk = match answer.outcome {
            Outcome::Done(_) => WalkAnswer::Done,
            Outcome::Changed(pte) => WalkAnswer::Changed(pte),
            Outcome::Failed(FailReason::Bus) => WalkAnswer::BusError,
            Outcome::Failed(_) => WalkAnswer::Failed,
        };
        self.resume(hart, walk, answer.at);
    }

    /// Ends a wait from the walker's side; the miss goes on.
    fn stop_waiting(&mut self, hart: usize, id: u64, why: WalkAnswer, at: Cycle) {
        if let Some(smu) = &mut self.board.smu {
            smu.abandon(hart as u32, id);
        }
        self.recorder.abandoned(hart);
        self.resume(hart, why, at);
    }

    fn resume(&mut self, hart: usize, answer: WalkAnswer, at: Cycle) {
        self.recorder.select(hart);
        self.harts[hart].advance_to(at);
        self.harts[hart].resume_walk(answer, &mut self.recorder);
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
                Phase::Waiting { id, .. } if h.interrupt_pending_enabled() => {
                    self.stop_waiting(hart, id, WalkAnswer::Interrupted, at);
                }
                _ => {}
            }
        }
    }

    fn sbi_call(&mut self, hart: usize) {
        let x = |r: u8| self.harts[hart].x(r);
        let args = [x(A0), x(A0 + 1), x(A0 + 2), x(A0 + 3), x(A0 + 4)];
        let call = sbi::decode(x(A7), x(A6), args);
        let cost = Cycle(self.profile.machine.sbi_call_cycles);
        let now = self.harts[hart].now() + cost;
        self.harts[hart].advance_to(now);
        let (mut error, mut value) = (sbi::error::SUCCESS, 0);
        match call {
            Call::Value(v) => value = v,
            Call::NotSupported => error = sbi::error::NOT_SUPPORTED,
            Call::SetTimer(tick) => {
                self.timers[hart] = (tick, false);
                self.harts[hart].set_pending(Interrupt::SupervisorTimer, false);
            }
            Call::SendIpi(mask) => match mask.harts(self.harts.len()) {
                Some(list) => {
                    list.into_iter().for_each(|h| self.harts[h].set_pending(Interrupt::SupervisorSoft, true));
                }
                None => error = sbi::error::INVALID_PARAM,
            },
            // Predecoded code follows every write to RAM, so a hart that fetches again already sees it.
            Call::FenceI(mask) if mask.harts(self.harts.len()).is_some() => {}
            Call::FenceI(_) => error = sbi::error::INVALID_PARAM,
            Call::SfenceVma(mask, start, size) => match mask.harts(self.harts.len()) {
                Some(list) => list.into_iter().for_each(|h| self.remote_fence(h, start, size, now)),
                None => error = sbi::error::INVALID_PARAM,
            },
            Call::HartStart(target, address, opaque) => error = self.start_hart(target, address, opaque, now),
            Call::HartStop => {
                self.phases[hart] = Phase::Stopped;
                return;
            }
            Call::HartStatus(target) => match self.phases.get(target as usize) {
                Some(Phase::Stopped) => value = 1,
                Some(_) => {}
                None => error = sbi::error::INVALID_PARAM,
            },
            Call::HartSuspend => {
                if !self.harts[hart].wakes() {
                    self.phases[hart] = Phase::Asleep;
                }
            }
            Call::Reset(kind, reason) => {
                self.end = Some(match (kind, reason) {
                    (0, 0) => End::PowerOff,
                    (0, _) => End::Failed(1),
                    _ => End::Reset,
                });
                return;
            }
            Call::ConsoleWrite(len, address) => match self.console_write(len, address) {
                Some(written) => value = written,
                None => error = sbi::error::INVALID_ADDRESS,
            },
            Call::ConsoleByte(byte) => self.print(&[byte]),
            Call::LegacyPut(byte) => self.print(&[byte]),
            Call::LegacyGet => error = -1,
        }
        let h = &mut self.harts[hart];
        h.set_x(A0, error as u64);
        if !matches!(call, Call::LegacyPut(_) | Call::LegacyGet) {
            h.set_x(A1, value);
        }
    }

    /// `sfence.vma` on a hart. A request that the SMU has not accepted yet is taken back: it carries an old entry (OS-4).
    fn remote_fence(&mut self, hart: usize, start: u64, size: u64, at: Cycle) {
        let whole = size == u64::MAX || (start == 0 && size == 0);
        self.harts[hart].fence_vma((!whole).then_some((start, size)));
        self.walk_caches[hart].fence();
        if let Phase::Waiting { id, accepted: false, .. } = self.phases[hart] {
            self.stop_waiting(hart, id, WalkAnswer::Interrupted, at);
        }
    }

    fn start_hart(&mut self, target: u64, address: u64, opaque: u64, now: Cycle) -> i64 {
        let index = target as usize;
        match self.phases.get(index) {
            None => sbi::error::INVALID_PARAM,
            Some(Phase::Stopped) if self.board.ram.offset(PhysAddr(address), 4).is_none() => sbi::error::INVALID_ADDRESS,
            Some(Phase::Stopped) => {
                self.harts[index].advance_to(now);
                self.harts[index].enter_supervisor(address, opaque);
                self.phases[index] = Phase::Running;
                sbi::error::SUCCESS
            }
            Some(_) => sbi::error::ALREADY_AVAILABLE,
        }
    }

    /// Prints bytes of guest memory; how many, or `None` when they are not in RAM.
    fn console_write(&mut self, len: u64, address: u64) -> Option<u64> {
        /// One call prints at most so much, as the specification allows.
        const MOST: u64 = 4096;
        let mut bytes = vec![0; len.min(MOST) as usize];
        Dma::read(&mut self.board.ram, PhysAddr(address), &mut bytes).ok()?;
        self.print(&bytes);
        Some(bytes.len() as u64)
    }

    /// Firmware output goes where the UART's goes, in order.
    fn print(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.board.uart.mmio_write(0, 1, u64::from(*byte));
        }
    }

    fn marker(&mut self, hart: usize, imm: u16) {
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
                self.recorder.watches.add(a2, root, a0, a1);
                // What the hart has translated before must be seen again to be counted.
                self.harts.iter_mut().for_each(|h| h.fence_vma(Some((a0, a1))));
            }
            MARKER_UNWATCH => self.recorder.watches.remove(root, a0),
            MARKER_MILESTONE => self.milestones.push(Milestone {
                number: a0,
                cycle: self.harts[hart].now().0,
                instructions: self.instructions().total(),
                host_seconds: self.started.elapsed().as_secs_f64(),
            }),
            _ => {}
        }
    }

    fn begin_roi(&mut self, number: u64) {
        self.recorder.reset();
        self.open_roi = Some(OpenRoi {
            number,
            begin: self.now,
            started: Instant::now(),
            instructions: self.instructions(),
            smu: self.smu_counters(),
        });
    }

    fn close_roi(&mut self, open: OpenRoi) {
        let counters = self.smu_counters();
        self.rois.push(Roi {
            number: open.number,
            begin_cycle: open.begin.0,
            end_cycle: self.now.0,
            sim_seconds: self.clock.micros(self.now - open.begin) / 1e6,
            host_seconds: open.started.elapsed().as_secs_f64(),
            instructions: self.instructions().since(&open.instructions),
            watch: self.recorder.watches.counts(),
            smu: counters.iter().map(|(k, v)| (*k, v - open.smu.get(k).unwrap_or(&0))).collect(),
            hw_miss: self.recorder.misses.summary(self.clock),
            nvme_read: self.recorder.nvme_reads.summary(self.clock),
        });
    }

    fn smu_counters(&self) -> SmuCounters {
        self.board.smu.iter().flat_map(Smu::counters).collect()
    }

    fn instructions(&self) -> Instructions {
        self.harts.iter().fold(Instructions::default(), |sum, h| {
            let [user, supervisor, _, machine] = h.retired();
            Instructions {
                user: sum.user + user,
                supervisor: sum.supervisor + supervisor,
                machine: sum.machine + machine,
            }
        })
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

    fn check_host(&self) -> Result<(), Error> {
        match self.board.drives.iter().find_map(Controller::host_error) {
            Some(e) => Err(Error::Disk(e.to_string())),
            None => Ok(()),
        }
    }

    fn flush_console(&mut self) -> Result<(), Error> {
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

    /// What was measured, after [`Machine::run`].
    pub fn report(&self, end: &End) -> Report {
        let by_mode = self.instructions();
        Report {
            schema: 1,
            end: format!("{end:?}"),
            profile: self.profile.clone(),
            sim_cycles: self.now.0,
            sim_seconds: self.clock.micros(self.now) / 1e6,
            host_seconds: self.host_seconds,
            instructions: by_mode.total(),
            instructions_by_mode: by_mode,
            mips: by_mode.total() as f64 / 1e6 / self.host_seconds.max(1e-9),
            milestones: self.milestones.clone(),
            rois: self.rois.clone(),
            watch: self.recorder.watches.counts(),
            smu_counters: self.smu_counters(),
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

fn open_drives(disks: &[DiskConfig], profile: &Profile) -> Result<Vec<Controller>, Error> {
    /// Bus 0 has 32 devices, one of them the bridge.
    const MOST: usize = 31;
    if disks.len() > MOST {
        return Err(Error::TooManyDisks(disks.len()));
    }
    let open = |(index, disk): (usize, &DiskConfig)| {
        let mode = match disk.writes {
            DiskWrites::ToFile => ImageMode::ReadWrite,
            DiskWrites::Fail => ImageMode::ReadOnly,
            DiskWrites::InMemory => ImageMode::Snapshot,
        };
        let backend = open_image(&disk.path, mode).map_err(|e| Error::Disk(e.to_string()))?;
        let config = ControllerConfig {
            serial: format!("TRAPLESS{index}"),
            block_bytes: profile.ssd.block_bytes,
            max_transfer_pages: profile.ssd.max_transfer_pages,
            max_io_queues: profile.ssd.max_io_queues,
            max_queue_entries: profile.ssd.max_queue_entries,
        };
        let timing = SsdTiming::new(&profile.ssd, profile.clock());
        Ok(Controller::new(config, timing, backend))
    };
    disks.iter().enumerate().map(open).collect()
}

fn smu_config(profile: &Profile) -> SmuConfig {
    let s = &profile.smu;
    let ns = |ns: f64| profile.clock().cycles(trapless_memory::Picos::from_nanos(ns));
    SmuConfig {
        pmshr_entries: s.pmshr_entries.min(255) as u8,
        prefetch_depth: s.prefetch_entries.min(255) as u8,
        harts: profile.machine.harts.min(255) as u8,
        socket: 0,
        timeout: Cycle(0),
        completion_hints: true,
        timing: SmuTiming {
            request: Cycle(s.request_cycles),
            cam: Cycle(s.cam_cycles),
            command_write: ns(s.command_write_ns),
            doorbell: ns(s.doorbell_ns),
            completion: Cycle(s.completion_cycles),
            update: Cycle(s.update_cycles),
            notify: Cycle(s.notify_cycles),
            poll_interval: Cycle(s.poll_interval_cycles),
            ring_read: ns(s.ring_read_ns),
        },
    }
}

fn cost_table(c: &CoreCosts) -> CostTable {
    CostTable {
        alu: c.alu,
        mul: c.mul,
        div: c.div,
        load: c.load,
        store: c.store,
        amo: c.amo,
        branch: c.branch,
        branch_taken: c.branch_taken.saturating_sub(c.branch),
        jump: c.jump,
        system: c.csr,
        fence: c.fence,
        fp_add: c.fp_add,
        fp_mul: c.fp_mul,
        fp_div: c.fp_div,
        fp_sqrt: c.fp_sqrt,
        fp_move: c.fp_move,
        trap: c.trap_entry,
        pte_read: walk_cache::HIT,
        misaligned: c.misaligned,
    }
}

/// Loads what runs first and sets the harts to it.
fn boot_images(
    ram: &mut Ram,
    boot: &Boot,
    profile: &Profile,
    harts: &mut [Hart],
) -> Result<Option<load::LoadedElf>, Error> {
    let (kernel, initrd, append, firmware) = match boot {
        Boot::Elf { file } => {
            let elf = load::elf(ram, file)?;
            for hart in harts {
                hart.set_pc(elf.entry);
            }
            return Ok(Some(elf));
        }
        Boot::Linux { kernel, initrd, append, firmware } => (kernel, initrd, append, firmware),
    };
    let image = load::linux_image(ram, kernel)?;
    let top = (map::RAM_BASE.0 + ram.size()).saturating_sub(load::DEVICE_TREE_ROOM);
    let initrd = initrd.as_deref().map(|path| load::initrd(ram, path, image.end, top)).transpose()?;
    let floor = initrd.map_or(image.end, |(_, end)| end);
    let tree = fdt::build(&FdtConfig {
        harts: profile.machine.harts,
        memory: ram.size(),
        timebase_hz: profile.machine.timebase_hz,
        bootargs: append,
        initrd,
        smu: profile.smu.present,
    })
    .map_err(|e| Error::CommandLine(e.to_string()))?;
    let dtb = load::device_tree(ram, &tree, floor)?;
    if let Some(path) = firmware {
        load::firmware(ram, path)?;
        for (id, hart) in harts.iter_mut().enumerate() {
            hart.set_x(A0, id as u64);
            hart.set_x(A1, dtb);
        }
    } else {
        harts[0].enter_supervisor(image.entry, dtb);
    }
    Ok(None)
}
