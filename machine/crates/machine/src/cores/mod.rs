// SPDX-License-Identifier: Apache-2.0
//! The harts: what each one is doing, which one runs next, and what their memory accesses cost.

mod slots;
mod times;
mod walk_cache;

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, PAGE_SIZE};
use trapless_riscv::{
    Bus, CodeCache, Env, Exit, Hart, Interrupt, Observer, PredictorConfig, Suspended, Timing, WalkAnswer,
};
use trapless_timing::{Detail, MachineParams};

use slots::Slots;
pub use times::{HartTimes, MissCounts, Misses, Times};
pub use walk_cache::HIT as WALK_CACHE_HIT;

/// What a hart is doing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// Executing.
    Running,
    /// In `wfi`.
    Asleep,
    /// Waiting for the SMU's answer.
    Waiting { id: u64 },
    /// Stopped, as SBI's hart state management defines it.
    Stopped,
}

/// Levels of a hart's interrupt lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// External interrupt for M-mode.
    pub machine_external: bool,
    /// External interrupt for S-mode.
    pub supervisor_external: bool,
    /// Software interrupt for M-mode.
    pub machine_soft: bool,
    /// Timer interrupt for M-mode.
    pub machine_timer: bool,
}

/// One run of a hart in a window.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    hart: usize,
    began: Cycle,
    retired: u64,
    /// Whether the other hart of the core is running.
    beside: bool,
    /// Latest time at which the turn ends.
    pub end: Cycle,
}

/// The part of a checkpoint that belongs to the harts.
#[derive(Serialize, Deserialize)]
pub struct CoresState {
    phases: Vec<Phase>,
    timers: Vec<(u64, bool)>,
    suspended: Vec<Suspended>,
}

/// All harts of the machine.
pub struct Cores {
    harts: Vec<Hart>,
    phases: Vec<Phase>,
    /// SBI timers: the tick of `time` at which STIP rises, and whether it has risen.
    timers: Vec<(u64, bool)>,
    code: CodeCache,
    times: Times,
    slots: Slots,
}

fn retired(hart: &Hart) -> u64 {
    hart.retired().iter().sum()
}

impl Cores {
    /// Creates running harts, as a profile's `machine` says. Reading a page table entry costs `walk_level` cycles.
    pub fn new(harts: Vec<Hart>, code: CodeCache, machine: &MachineParams, walk_level: u32) -> Cores {
        let count = harts.len();
        let threads = (machine.threads_per_core as usize).min(count);
        Cores {
            harts,
            phases: vec![Phase::Running; count],
            timers: vec![(u64::MAX, false); count],
            code,
            times: Times::new(count, threads, machine.walk_cache_entries, walk_level),
            slots: Slots::new(count, threads),
        }
    }

    /// Number of harts.
    pub fn len(&self) -> usize {
        self.harts.len()
    }

    /// All harts.
    pub fn harts(&self) -> &[Hart] {
        &self.harts
    }

    /// All harts, mutable.
    pub fn harts_mut(&mut self) -> &mut [Hart] {
        &mut self.harts
    }

    /// One hart, mutable.
    pub fn hart_mut(&mut self, hart: usize) -> &mut Hart {
        &mut self.harts[hart]
    }

    /// What a hart is doing; `None` if the hart does not exist.
    pub fn phase(&self, hart: usize) -> Option<Phase> {
        self.phases.get(hart).copied()
    }

    /// Sets what a hart is doing from now on.
    pub fn set_phase(&mut self, hart: usize, phase: Phase) {
        self.phases[hart] = phase;
    }

    /// Whether a hart is executing.
    pub fn is_running(&self, hart: usize) -> bool {
        matches!(self.phases[hart], Phase::Running)
    }

    /// Costs of memory accesses.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Costs of memory accesses, mutable, to report accesses of devices.
    pub fn times_mut(&mut self) -> &mut Times {
        &mut self.times
    }

    /// Instructions retired by all harts.
    pub fn retired(&self) -> u64 {
        self.harts.iter().map(retired).sum()
    }

    /// Instructions executed by all harts, retired or not.
    pub fn instructions(&self) -> u64 {
        self.harts.iter().map(Hart::instructions).sum()
    }

    /// Local time of the running hart with the least local time.
    pub fn earliest_running(&self) -> Option<Cycle> {
        let running = self.phases.iter().zip(&self.harts).filter(|(p, _)| matches!(p, Phase::Running));
        running.map(|(_, h)| h.now()).min()
    }

    /// The running hart with the least local time; the first hart if none is running.
    pub fn first_to_run(&self) -> usize {
        let running = (0..self.len()).filter(|&h| self.is_running(h));
        running.min_by_key(|&h| self.harts[h].now()).unwrap_or(0)
    }

    /// Length of the longest window, in which only harts do anything.
    pub fn quantum(&self, machine: &MachineParams, longest: Cycle) -> Cycle {
        let running = |hart: usize| self.is_running(hart);
        let harts = 0..self.len();
        let shared = harts.clone().any(|hart| running(hart) && self.slots.sibling(hart).is_some_and(running));
        let quantum = match harts.filter(|hart| running(*hart)).count() {
            0 | 1 => longest,
            _ if shared => Cycle(machine.quantum_cycles.min(machine.thread_turn_cycles)),
            _ => Cycle(machine.quantum_cycles),
        };
        quantum.min(longest)
    }

    /// Begins a hart's turn in the window that ends at `end`; `None` if the hart is not running or has reached `end`.
    pub fn begin_turn(&self, hart: usize, end: Cycle) -> Option<Turn> {
        let h = &self.harts[hart];
        if !self.is_running(hart) || h.now() >= end {
            return None;
        }
        let beside = self.slots.sibling(hart).is_some_and(|other| self.is_running(other));
        let end = self.slots.reach(hart, h.now(), end, beside);
        Some(Turn { hart, began: h.now(), retired: retired(h), beside, end })
    }

    /// Ends a turn. Returns whether it ended early.
    pub fn end_turn(&mut self, turn: &Turn) -> bool {
        let h = &mut self.harts[turn.hart];
        let early = h.now() < turn.end;
        let wait = self.slots.turn(turn.hart, retired(h) - turn.retired, h.now() - turn.began, turn.beside);
        h.delay(wait);
        early
    }

    /// Runs a hart up to `end`.
    pub fn run<B: Bus, O: Observer>(&mut self, hart: usize, end: Cycle, bus: &mut B, observer: &mut O) -> Exit {
        let Cores { harts, code, times, .. } = self;
        harts[hart].run(&mut Env { bus, code, observer, timing: &mut times.of(hart) }, end)
    }

    /// Runs a hart up to `end`. `make` creates the observer and the costs from the harts before and after this one, and from
    /// this hart's costs.
    pub fn run_among<'a, B: Bus, O: Observer, T: Timing>(
        &'a mut self,
        hart: usize,
        end: Cycle,
        bus: &mut B,
        make: impl FnOnce([&'a mut [Hart]; 2], HartTimes<'a>) -> (O, T),
    ) -> Exit {
        let Cores { harts, code, times, .. } = self;
        let (before, rest) = harts.split_at_mut(hart);
        let [runs, behind @ ..] = rest else { unreachable!("harts are numbered from 0") };
        let (mut observer, mut timing) = make([before, behind], times.of(hart));
        runs.run(&mut Env { bus, code, observer: &mut observer, timing: &mut timing }, end)
    }

    /// Continues a hart's walk with an answer.
    pub fn resume_walk<O: Observer>(&mut self, hart: usize, answer: WalkAnswer, observer: &mut O) {
        self.harts[hart].resume_walk(answer, observer);
    }

    /// Starts a hart that is stopped.
    pub fn start(&mut self, hart: usize, address: u64, opaque: u64, now: Cycle) {
        self.harts[hart].advance_to(now);
        self.harts[hart].enter_supervisor(address, opaque);
        self.phases[hart] = Phase::Running;
    }

    /// Stops all harts except the first; they wait until software starts them.
    pub fn stop_others(&mut self) {
        self.phases[1..].fill(Phase::Stopped);
    }

    /// Remote `sfence.vma` on a hart, for `size` bytes from `start`, or for all addresses.
    pub fn fence(&mut self, hart: usize, start: u64, size: u64) {
        let whole = size == u64::MAX || (start == 0 && size == 0);
        self.harts[hart].fence_vma((!whole).then_some((start, size)));
        let one_page = !whole && size <= PAGE_SIZE - start % PAGE_SIZE;
        match (whole, one_page) {
            (true, _) => self.times.of(hart).fence(None),
            (_, true) => self.times.of(hart).fence(Some(start)),
            _ => self.times.of(hart).fence_range(),
        }
    }

    /// Programs a hart's SBI timer for this tick of `time`.
    pub fn set_timer(&mut self, hart: usize, tick: u64) {
        self.timers[hart] = (tick, false);
        self.harts[hart].set_pending(Interrupt::SupervisorTimer, false);
    }

    /// Ticks of the SBI timers that have not risen yet.
    pub fn timer_ticks(&self) -> impl Iterator<Item = u64> {
        self.timers.iter().filter(|(tick, raised)| !raised && *tick != u64::MAX).map(|(tick, _)| *tick)
    }

    /// Sets a hart's interrupt lines and wakes it if it sleeps. SBI timers up to the tick `time` rise. If an interrupt ends the
    /// hart's wait for the SMU, returns the number of the request (REQ: ISA-4).
    pub fn carry(&mut self, hart: usize, lines: Lines, time: Option<u64>, at: Cycle) -> Option<u64> {
        let h = &mut self.harts[hart];
        h.set_line(Interrupt::MachineExternal, lines.machine_external);
        h.set_line(Interrupt::SupervisorExternal, lines.supervisor_external);
        h.set_line(Interrupt::MachineSoft, lines.machine_soft);
        h.set_line(Interrupt::MachineTimer, lines.machine_timer);
        if let Some(time) = time {
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
                None
            }
            Phase::Waiting { id } if h.interrupt_pending_enabled() => Some(id),
            _ => None,
        }
    }

    /// Begins detailed timing with empty caches, TLBs and predictors, or ends it.
    pub fn set_detail(&mut self, detail: Option<&Detail>, clock: ClockHz) {
        let predictor = detail.map(|d| PredictorConfig {
            history_bits: d.predictor.history_bits,
            targets: d.predictor.targets,
            returns: d.predictor.returns,
            mispredict_cycles: d.predictor.mispredict_cycles,
        });
        self.times.set_detail(detail, clock);
        self.code.set_detail(predictor);
        self.harts.iter_mut().for_each(|h| h.set_detail(predictor));
    }

    /// Forgets what caches, TLBs, translations and issue slots have learnt, and returns the state from which to continue.
    pub fn save(&mut self, detail: Option<&Detail>, clock: ClockHz) -> CoresState {
        self.code.clear();
        self.times.forget(detail, clock);
        self.slots.forget();
        CoresState {
            phases: self.phases.clone(),
            timers: self.timers.clone(),
            suspended: self.harts.iter_mut().map(|h| h.suspend()).collect(),
        }
    }

    /// Continues from a state.
    pub fn restore(&mut self, state: CoresState) {
        for (hart, from) in self.harts.iter_mut().zip(&state.suspended) {
            hart.resume(from);
        }
        (self.phases, self.timers) = (state.phases, state.timers);
    }
}
