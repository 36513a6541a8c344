// SPDX-License-Identifier: Apache-2.0
//! The simulation: processes take turns on processors and replay their traces.

mod several;
mod waiting;

use trapless_trace::Kind;

use crate::Error;
use crate::core::{Core, Event};
use crate::faults::Log;
use crate::input::{Source, Step};
use crate::pages::{LINES, Origin, Pid, Place};
use crate::policy::{self, Policy, Wait};
use crate::settings::{Settings, Time, ns, us};
use crate::warm_up::{Until, WarmUp, too_long};
use waiting::Waiting;

/// Why a process leaves the processor.
enum Left {
    /// Its slice is over, or a woken process preempts it.
    Preempted,
    /// It waits for a page that arrives at this time.
    Asleep(Time),
    /// Its trace has ended.
    Ended,
    /// It does not leave, but another CPU is simulated first.
    Paused,
}

/// The simulation's state of a process.
struct Program {
    source: Box<dyn Source>,
    /// The line of an access that waits for its page.
    pending: Option<u64>,
    pending_store: bool,
    waiting: Option<Waiting>,
    /// Time at which the process became ready.
    ready: Time,
}

/// The turn of the process that a CPU runs.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// The process that ran last, unless it has left the processor to sleep or end.
    last: Option<Pid>,
    started: bool,
    /// Whether the switch to the process is over, but its turn has not begun.
    entering: bool,
    slice_start: Time,
    slice: Time,
    /// Time up to which the process's processor time has been counted.
    counted: Time,
    /// Whether a woken process preempts it.
    preempted: bool,
}

/// A simulation.
///
/// ```
/// use trapless_pagesim::Error;
/// use trapless_pagesim::input::{Kind, Source, Step, Tail};
/// use trapless_pagesim::settings::Settings;
/// use trapless_pagesim::sim::Sim;
///
/// /// Loads from pages, one after another.
/// struct Loads(Vec<u64>);
///
/// impl Source for Loads {
///     fn next(&mut self) -> Result<Option<Step>, Error> {
///         let step = |page| Step { line: page * 64, kind: Kind::Load, instructions: 1000, repeats: 0 };
///         Ok(self.0.pop().map(step))
///     }
///     fn tail(&self) -> Tail {
///         Tail::default()
///     }
///     fn accesses(&self) -> Option<u64> {
///         None
///     }
///     fn name(&self) -> &str {
///         "loads"
///     }
/// }
///
/// let text = "policy = 'virt'\n[prefetch]\npages = 1\n[memory]\nframes = 64\n[[process]]\nname = 'P'\ntrace = ''\n";
/// let settings: Settings = toml::from_str(text)?;
/// let mut sim = Sim::new(&settings, vec![Box::new(Loads(vec![6, 5]))], &[vec![(0, 16)]])?;
/// sim.run(&mut |_| ())?;
/// // Page 5 is missing; page 6 is read with it.
/// assert_eq!((sim.core.stats.processes[0].faults, sim.core.stats.reads), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sim {
    /// The system.
    pub core: Core,
    /// The warm-up that has ended, if there was one.
    pub warm_up: Option<WarmUp>,
    /// Gets every access that waited for its page, except those of the warm-up.
    pub log: Option<Log>,
    /// The error of a log that could not be written.
    wrong: Option<Error>,
    warming: Until,
    policy: Box<dyn Policy>,
    programs: Vec<Program>,
    instruction: Time,
    dram: Time,
    switch: Time,
    fault: Time,
    alive: usize,
    /// The turn on the CPU that is being simulated.
    turn: Turn,
    /// The turns on the other CPUs.
    turns: Vec<Turn>,
    quantum: Time,
    /// Time at which another CPU must be simulated.
    limit: Time,
}

impl Sim {
    /// Makes a simulation of `settings`. Each program has its accesses in `sources` and its ranges of virtual pages (first,
    /// count) in `mapped`.
    ///
    /// # Errors
    /// A setting is out of range, or no policy has this name.
    pub fn new(settings: &Settings, sources: Vec<Box<dyn Source>>, mapped: &[Vec<(u64, u64)>]) -> Result<Sim, Error> {
        Sim::with_policy(settings, policy::built_in().make(settings)?, sources, mapped)
    }

    /// Makes a simulation with a policy from the caller.
    ///
    /// # Errors
    /// A setting is out of range, or the policy does not support several CPUs.
    pub fn with_policy(
        settings: &Settings,
        policy: Box<dyn Policy>,
        sources: Vec<Box<dyn Source>>,
        mapped: &[Vec<(u64, u64)>],
    ) -> Result<Sim, Error> {
        if settings.cpu.count > 1 && !policy.several_cpus() {
            let Settings { policy, cpu, .. } = settings;
            return Err(Error::Settings(format!(
                "policy {policy}: supports only one CPU; set cpu.count to 1, not {}",
                cpu.count
            )));
        }
        let core = Core::new(settings, mapped, policy.replacement())?;
        let cpu = &settings.cpu;
        let (switch, fault) = (us(cpu.context_switch_us), us(cpu.fault_us));
        let (instruction, dram) = (ns(cpu.instruction_ns), ns(settings.memory.dram_ns));
        let programs: Vec<_> = sources
            .into_iter()
            .map(|source| Program { source, pending: None, pending_store: false, waiting: None, ready: 0 })
            .collect();
        let (alive, warming) = (programs.len(), Until::of(settings));
        let all = programs.iter().try_fold(0, |sum: u64, program| Some(sum.saturating_add(program.source.accesses()?)));
        if let (Until::Accesses(wanted), Some(all)) = (warming, all)
            && wanted >= all
        {
            return Err(too_long(settings, all, None));
        }
        let mut sim = Sim {
            core,
            warm_up: None,
            log: None,
            wrong: None,
            warming,
            policy,
            programs,
            instruction,
            dram,
            switch,
            fault,
            alive,
            turn: Turn::default(),
            turns: vec![Turn::default(); cpu.count as usize],
            quantum: us(cpu.quantum_us),
            limit: Time::MAX,
        };
        for pid in 0..alive {
            sim.core.switch_to(sim.core.cpu_of(pid));
            sim.core.sched.put_back(pid);
        }
        sim.core.switch_to(0);
        if let Until::Time(end) = warming {
            sim.core.at(end, Event::WarmedUp);
        }
        Ok(sim)
    }

    /// Returns the costs of the policy. Changes of its lists in the warm-up are not counted.
    pub fn bookkeeping(&self) -> policy::Bookkeeping {
        let mut cost = self.policy.bookkeeping();
        cost.operations -= self.warm_up.as_ref().map_or(0, |warm_up| warm_up.operations);
        cost
    }

    /// Number of accesses so far, including those of the warm-up.
    pub fn accesses(&self) -> u64 {
        let counted: u64 = self.core.stats.processes.iter().map(|process| process.accesses).sum();
        counted + self.warm_up.as_ref().map_or(0, |warm_up| warm_up.accesses)
    }

    /// Runs until all traces have ended. Calls `progress` now and then with the number of accesses so far.
    ///
    /// # Errors
    /// A trace cannot be read or is incomplete; the policy has [failed](Core::fail); the log cannot be written; or nothing
    /// follows the warm-up.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        while self.alive > 0 {
            self.turn()?;
            progress(self.accesses());
        }
        let empty = self.warm_up.as_ref().is_some_and(|warm_up| warm_up.accesses == self.accesses());
        if empty || self.warming != Until::Over {
            return Err(too_long(&self.core.settings, self.accesses(), Some(self.core.now)));
        }
        Ok(())
    }

    /// Simulates the turn of one process, from its dispatch until it leaves the processor. With several CPUs, simulates the CPU
    /// that is furthest behind, until another CPU must be simulated or the turn ends.
    ///
    /// # Errors
    /// The errors of [`Sim::run`].
    pub fn turn(&mut self) -> Result<(), Error> {
        let several = self.core.cpus() > 1;
        if several {
            self.choose();
        }
        let Some(pid) = self.core.running.or_else(|| self.dispatch()) else { return Ok(()) };
        if self.turn.entering {
            if self.core.now >= self.limit {
                return Ok(());
            }
            self.enter(pid);
        }
        let left = match self.warming {
            Until::Accesses(_) => self.steps::<true>(pid)?,
            _ => self.steps::<false>(pid)?,
        };
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if matches!(left, Left::Paused) {
            return self.core.failed();
        }
        self.count(pid);
        self.core.running = None;
        let stamp = self.core.stamp();
        self.core.replacement.leave(pid, stamp);
        self.policy.leave(&mut self.core, pid);
        self.programs[pid].ready = self.core.now;
        match left {
            Left::Paused => {}
            Left::Preempted => self.policy.put_back(&mut self.core, pid),
            Left::Asleep(until) => {
                self.core.sched.sleep(pid);
                self.core.at(until, Event::Wake(pid));
                self.core.asleep += 1;
                self.turn.last = None;
            }
            Left::Ended => {
                self.core.sched.sleep(pid);
                if several {
                    self.count_all();
                }
                self.core.stats.ended(pid, self.core.now);
                self.alive -= 1;
                self.turn.last = None;
            }
        }
        self.settle();
        if several {
            if self.alive > 0 { self.balance() } else { self.finish() }
        }
        self.core.failed()
    }

    /// Chooses the process to run and switches to it. Returns `None` if this CPU has nothing to do before the next event.
    fn dispatch(&mut self) -> Option<Pid> {
        let several = self.core.cpus() > 1;
        let pid = loop {
            self.events(None);
            if let Some(pid) = self.policy.take_next(&mut self.core) {
                break pid;
            }
            if several {
                return None;
            }
            let next = self.core.next_event().max(self.core.now);
            assert!(next != Time::MAX, "processes wait for nothing");
            self.idle_until(next);
        };
        if self.turn.last != Some(pid) && self.turn.started {
            self.core.now += self.switch;
            self.core.stats.switches += 1;
            self.core.cpu_stats().switches += 1;
        }
        (self.turn.started, self.turn.last, self.core.running) = (true, Some(pid), Some(pid));
        self.turn.entering = true;
        Some(pid)
    }

    /// Begins the turn of the process that was switched to.
    fn enter(&mut self, pid: Pid) {
        self.turn.entering = false;
        self.turn.counted = self.core.now;
        self.turn.preempted = false;
        let waited = self.core.now.saturating_sub(self.programs[pid].ready.max(self.core.stats.since));
        let process = &mut self.core.stats.processes[pid];
        process.longest_wait = process.longest_wait.max(waited);
        self.core.turns[pid] += 1;
        let stamp = self.core.stamp();
        self.core.replacement.enter(pid, stamp);
        self.policy.enter(&mut self.core, pid);
        self.settle();
        self.new_slice(pid);
    }

    fn new_slice(&mut self, pid: Pid) {
        self.turn.slice_start = self.core.now;
        self.turn.slice = self.policy.slice(&mut self.core, pid);
    }

    /// Tells the policy about the pages that left DRAM.
    fn settle(&mut self) {
        while let Some(evicted) = self.core.evicted.pop_front() {
            self.policy.evicted(&mut self.core, evicted);
        }
    }

    /// Counts the running process's time.
    fn count(&mut self, pid: Pid) {
        let (from, to) = (self.turn.counted, self.core.now);
        self.core.sched.ran(pid, to - from);
        self.core.ran(pid, from, to);
        self.turn.counted = to;
    }

    /// Handles all events that are due.
    fn events(&mut self, running: Option<Pid>) {
        while let Some(event) = self.core.due() {
            match event {
                Event::Written(..) => {}
                Event::WarmedUp => self.begin_to_count(running),
                Event::Call => {
                    self.policy.call(&mut self.core);
                    self.settle();
                }
                Event::Wake(woken) => {
                    self.core.asleep -= 1;
                    if self.core.cpus() > 1 && self.wakes_elsewhere(woken) {
                        continue;
                    }
                    self.programs[woken].ready = self.core.now;
                    if let Some(pid) = running {
                        self.count(pid);
                    }
                    self.core.sched.wake(woken);
                    self.turn.preempted |= running.is_some_and(|pid| self.core.sched.preempts(pid, woken));
                }
            }
        }
    }

    /// Ends the warm-up: statistics begin anew.
    fn begin_to_count(&mut self, running: Option<Pid>) {
        let (accesses, end) = (self.accesses(), self.core.now);
        if let Some(pid) = running {
            self.core.ran(pid, self.turn.counted, end);
        }
        if self.core.cpus() > 1 {
            self.count_others(end);
        }
        let next = self.core.stats.following(&self.core.settings, end);
        let stats = std::mem::replace(&mut self.core.stats, next);
        let operations = self.policy.bookkeeping().operations;
        self.warm_up = Some(WarmUp { stats, accesses, operations });
        self.warming = Until::Over;
    }

    /// Replays a process's trace until it leaves the processor. With `WARMING`, checks before each access whether the warm-up,
    /// which lasts a number of accesses, is over.
    fn steps<const WARMING: bool>(&mut self, pid: Pid) -> Result<Left, Error> {
        let spun = self.core.spinning.take();
        if spun.is_some_and(|until| !self.spin(pid, until)) {
            return Ok(Left::Paused);
        }
        if let Some(line) = self.programs[pid].pending.take() {
            let (store, waiting) = (self.programs[pid].pending_store, self.programs[pid].waiting.take());
            if let Some(left) = self.memory(pid, line, store, waiting) {
                return Ok(left);
            }
        }
        // Events that were due while the process waited come first.
        let mut look = spun.is_some();
        loop {
            self.core.failed()?;
            let stop = if std::mem::take(&mut look) {
                0
            } else {
                (self.turn.slice_start + self.turn.slice).min(self.core.next_event()).min(self.limit)
            };
            // Until this time, only the process's own accesses happen.
            while self.core.now < stop {
                if WARMING && self.warming == Until::Accesses(0) {
                    self.begin_to_count(Some(pid));
                }
                let Some(step) = self.programs[pid].source.next()? else {
                    let tail = self.programs[pid].source.tail();
                    let accesses = tail.repeats.iter().sum();
                    self.pass(pid, tail.instructions, accesses);
                    self.warming.made(accesses);
                    return Ok(Left::Ended);
                };
                let Step { line, kind, instructions, repeats } = step;
                self.pass(pid, instructions, repeats + 1);
                if WARMING {
                    self.warming.made(repeats + 1);
                }
                let store = kind == Kind::Store;
                let cached = self.core.line(pid, line);
                match self.core.cache(pid).touch(cached) {
                    Some(dirty) if *dirty >= store => {}
                    Some(dirty) => {
                        *dirty = true;
                        self.core.store(pid, line / LINES);
                    }
                    None => {
                        let moved = self.moved();
                        if let Some(left) = self.memory(pid, line, store, None) {
                            return Ok(left);
                        }
                        if self.moved() != moved {
                            // A read, or a consequence of it, may be the next event.
                            break;
                        }
                    }
                }
            }
            self.events(Some(pid));
            if self.core.now >= self.turn.slice_start + self.turn.slice {
                self.count(pid);
                if self.core.cpus() > 1 {
                    self.balance();
                }
                if !self.policy.goes_on(&mut self.core, pid) {
                    return Ok(Left::Preempted);
                }
                self.new_slice(pid);
            } else if self.turn.preempted {
                return Ok(Left::Preempted);
            }
            if self.core.now >= self.limit {
                return Ok(Left::Paused);
            }
        }
    }

    /// Returns a value that changes when pages come to DRAM, and when statistics begin anew.
    #[inline]
    fn moved(&self) -> (u64, Time) {
        let stats = &self.core.stats;
        (stats.came(), stats.since)
    }

    /// Keeps an access that the process makes when it continues, and returns how the process leaves.
    fn stopped(&mut self, pid: Pid, line: u64, store: bool, waiting: Option<Waiting>, left: Left) -> Option<Left> {
        self.programs[pid].waiting = waiting;
        (self.programs[pid].pending, self.programs[pid].pending_store) = (Some(line), store);
        Some(left)
    }

    /// Counts instructions with their time, and accesses. An access takes time only if it misses the cache.
    #[inline]
    fn pass(&mut self, pid: Pid, instructions: u64, accesses: u64) {
        let process = &mut self.core.stats.processes[pid];
        process.instructions += instructions;
        process.accesses += accesses;
        self.core.now += instructions * self.instruction;
    }

    /// Makes an access that the cache does not serve. `waiting` is set if the process has waited for its page before. Returns how
    /// the process leaves if it sleeps, or if other CPUs must be simulated before the access is done.
    fn memory(&mut self, pid: Pid, line: u64, store: bool, mut waiting: Option<Waiting>) -> Option<Left> {
        let page = self.core.pages.accessed(pid, line / LINES);
        let (mut late, mut rescued) = (false, false);
        self.core.pages[page].awaited = true;
        loop {
            match self.core.place(page) {
                Place::Resident => break,
                Place::Writing => {
                    self.core.rescue(page);
                    rescued = true;
                }
                Place::Reading(until) => {
                    if !late && self.core.pages[page].origin != Origin::Demand {
                        self.core.stats.processes[pid].late += 1;
                        waiting = Some(self.waiting(pid, self.core.pages[page].origin, until));
                    }
                    late = true;
                    if self.policy.wait(&mut self.core, page, until) == Wait::Switch {
                        return self.stopped(pid, line, store, waiting, Left::Asleep(until));
                    }
                    if !self.spin(pid, until) {
                        return self.stopped(pid, line, store, waiting, Left::Paused);
                    }
                }
                Place::Device => {
                    late = true;
                    let into = self.core.now - self.turn.slice_start;
                    self.core.stats.fault(pid, self.core.now, into, self.turn.slice);
                    let mut began = self.waiting(pid, Origin::Demand, self.core.now);
                    let others = self.core.evicted.len();
                    self.core.now += self.fault;
                    began.until = self.core.demand(page);
                    began.evicted = self.core.evicted.get(others).map(|evicted| evicted.page);
                    waiting = Some(began);
                    self.policy.fault(&mut self.core, pid, page);
                    self.settle();
                }
            }
        }
        if let Some(waiting) = waiting {
            self.waited(pid, page, waiting);
        }
        if let Some(watch) = &mut self.core.watch {
            watch(page, &mut self.core.pages[page], self.core.now);
        }
        let turn = self.core.turns[pid];
        let entry = &mut self.core.pages[page];
        entry.turn = turn;
        let fresh = !std::mem::replace(&mut entry.accessed, true);
        let first = fresh && entry.origin != Origin::Demand;
        entry.dirty |= store;
        entry.awaited = false;
        let stamp = self.core.stamp();
        if fresh || rescued {
            self.core.replacement.first(page, stamp);
        } else {
            self.core.replacement.touch(page, stamp);
        }
        let cached = self.core.line(pid, line);
        self.core.cache(pid).insert(cached, store);
        if first {
            self.core.stats.used(self.core.pages[page].origin);
            self.policy.used(&mut self.core, page);
            self.settle();
        }
        self.core.stats.processes[pid].cache_misses += 1;
        self.core.now += self.dram;
        None
    }
}
