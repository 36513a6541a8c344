// SPDX-License-Identifier: Apache-2.0
//! The simulation: processes take turns on processors and replay their traces.

mod several;

use trapless_trace::Kind;

use crate::Error;
use crate::core::{Core, Event};
use crate::faults::{Fault, Log};
use crate::input::{Source, Step};
use crate::pages::{LINES, Origin, PageId, Pid, Place};
use crate::policy::{self, Policy, Wait};
use crate::settings::{Settings, Time, ns, us};
use crate::warm_up::{Until, WarmUp, too_long};

/// Why a process no longer runs.
enum Left {
    /// Its time is over, or another one woke.
    Preempted,
    /// It waits for a page that is there at that time.
    Asleep(Time),
    /// Its trace is over.
    Ended,
    /// It has not left, but another CPU is to be simulated first.
    Paused,
}

/// An access whose page is not there.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Time,
    /// When the page is there.
    until: Time,
    origin: Origin,
    evicted: Option<PageId>,
    /// The process's turn.
    turn: u32,
    /// It was made in the warm-up.
    warming: bool,
}

/// A process as the simulation drives it.
struct Program {
    source: Box<dyn Source>,
    /// A step that waits for its page.
    pending: Option<u64>,
    pending_store: bool,
    waiting: Option<Waiting>,
    /// When it became ready.
    ready: Time,
}

/// The turn of the process that a CPU runs.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// The process that ran last, if it still has the processor.
    last: Option<Pid>,
    started: bool,
    /// The switch to the process is over, but it has not begun.
    entering: bool,
    slice_start: Time,
    slice: Time,
    /// Time up to which the running process is accounted for.
    counted: Time,
    /// A process that woke is to have the processor.
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
    /// The warm-up, if there was one.
    pub warm_up: Option<WarmUp>,
    /// Gets every access that waited for its page; not those of the warm-up.
    pub log: Option<Log>,
    /// The log could not be written.
    wrong: Option<Error>,
    warming: Until,
    policy: Box<dyn Policy>,
    programs: Vec<Program>,
    instruction: Time,
    dram: Time,
    switch: Time,
    fault: Time,
    alive: usize,
    /// On the CPU at hand.
    turn: Turn,
    /// On each other CPU.
    turns: Vec<Turn>,
    quantum: Time,
    /// When another CPU is to be simulated.
    limit: Time,
}

impl Sim {
    /// A simulation of `settings`, whose programs come from `sources` and have the `mapped` ranges of virtual pages (first,
    /// count).
    ///
    /// # Errors
    /// A setting is out of range, or there is no such policy.
    pub fn new(settings: &Settings, sources: Vec<Box<dyn Source>>, mapped: &[Vec<(u64, u64)>]) -> Result<Sim, Error> {
        Sim::with_policy(settings, policy::built_in().make(settings)?, sources, mapped)
    }

    /// The same with a policy that the caller gives.
    ///
    /// # Errors
    /// A setting is out of range, or the policy cannot have several CPUs.
    pub fn with_policy(
        settings: &Settings,
        policy: Box<dyn Policy>,
        sources: Vec<Box<dyn Source>>,
        mapped: &[Vec<(u64, u64)>],
    ) -> Result<Sim, Error> {
        if settings.cpu.count > 1 && !policy.several_cpus() {
            let Settings { policy, cpu, .. } = settings;
            return Err(Error::Settings(format!(
                "policy {policy}: is for one CPU; cpu.count must be 1, not {}",
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

    /// What the policy costs; its changes without those of the warm-up.
    pub fn bookkeeping(&self) -> policy::Bookkeeping {
        let mut cost = self.policy.bookkeeping();
        cost.operations -= self.warm_up.as_ref().map_or(0, |warm_up| warm_up.operations);
        cost
    }

    /// Accesses so far, with those of the warm-up.
    pub fn accesses(&self) -> u64 {
        let counted: u64 = self.core.stats.processes.iter().map(|process| process.accesses).sum();
        counted + self.warm_up.as_ref().map_or(0, |warm_up| warm_up.accesses)
    }

    /// Runs until all traces are over. `progress` is called now and then with the number of accesses done.
    ///
    /// # Errors
    /// A trace cannot be read, or is not whole; the policy has [failed](Core::fail); the log cannot be written; or nothing
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

    /// One process's turn, from dispatch until it leaves the processor. With several CPUs: as much of the turn on the CPU that is
    /// furthest behind as is to be simulated before another CPU.
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

    /// Chooses the process that is to run, and switches to it. None: this CPU has nothing to do until an event.
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

    /// The process that was switched to begins its turn.
    fn enter(&mut self, pid: Pid) {
        self.turn.entering = false;
        self.turn.counted = self.core.now;
        self.turn.preempted = false;
        let waited = self.core.now - self.programs[pid].ready.max(self.core.stats.since);
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

    /// Tells the policy what left DRAM.
    fn settle(&mut self) {
        while let Some(evicted) = self.core.evicted.pop_front() {
            self.policy.evicted(&mut self.core, evicted);
        }
    }

    /// Accounts for the running process's time.
    fn count(&mut self, pid: Pid) {
        let (from, to) = (self.turn.counted, self.core.now);
        self.core.sched.ran(pid, to - from);
        self.core.ran(pid, from, to);
        self.turn.counted = to;
    }

    /// Deals with all that is due.
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

    /// The warm-up is over: statistics begin anew.
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

    /// Replays a process's trace until it has to leave. `WARMING`: a warm-up may be over before any access.
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
        // What came to pass while it waited is seen to first.
        let mut look = spun.is_some();
        loop {
            self.core.failed()?;
            let stop = if std::mem::take(&mut look) {
                0
            } else {
                (self.turn.slice_start + self.turn.slice).min(self.core.next_event()).min(self.limit)
            };
            // Up to here nothing happens but the process's own accesses.
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
                match self.core.cache(pid).touch(Core::line(pid, line)) {
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
                            // A read, or what came of one, may be the next event.
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

    /// Changes when pages have moved; or when the count of it begins anew.
    #[inline]
    fn moved(&self) -> (u64, Time) {
        let stats = &self.core.stats;
        (stats.came(), stats.since)
    }

    /// The process has its access before it.
    fn stopped(&mut self, pid: Pid, line: u64, store: bool, waiting: Option<Waiting>, left: Left) -> Option<Left> {
        self.programs[pid].waiting = waiting;
        (self.programs[pid].pending, self.programs[pid].pending_store) = (Some(line), store);
        Some(left)
    }

    /// Instructions and accesses that the cache serves.
    #[inline]
    fn pass(&mut self, pid: Pid, instructions: u64, accesses: u64) {
        let process = &mut self.core.stats.processes[pid];
        process.instructions += instructions;
        process.accesses += accesses;
        self.core.now += instructions * self.instruction;
    }

    /// An access that the cache does not serve; `waiting` if its process has waited for its page. If the process sleeps, or other
    /// CPUs go on before the access is done: that.
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
        self.core.cache(pid).insert(Core::line(pid, line), store);
        if first {
            self.core.stats.used(self.core.pages[page].origin);
            self.policy.used(&mut self.core, page);
            self.settle();
        }
        self.core.stats.processes[pid].cache_misses += 1;
        self.core.now += self.dram;
        None
    }

    /// An access by a process that waits from now on.
    fn waiting(&self, pid: Pid, origin: Origin, until: Time) -> Waiting {
        let (at, turn, warming) = (self.core.now, self.core.turns[pid], self.warming != Until::Over);
        Waiting { at, until, origin, evicted: None, turn, warming }
    }

    /// A process that waited for a page goes on.
    #[cold]
    fn waited(&mut self, pid: Pid, page: PageId, waiting: Waiting) {
        let Waiting { at, until, origin, evicted, turn, warming } = waiting;
        let (waited, resumed) = (until - at, self.core.now - at);
        // What the warm-up counts as a fault is none of those that follow.
        if warming == (self.warming != Until::Over) {
            self.core.stats.waits[pid].add(waited, resumed);
        }
        if !warming && let Some(log) = &mut self.log {
            let of = |page: PageId| (self.core.pages[page].owner, self.core.pages[page].vpn);
            let fault = Fault { at, pid, page: of(page).1, origin, waited, resumed, evicted: evicted.map(of), turn };
            if let Err(wrong) = log.add(&fault) {
                (self.wrong, self.log) = (Some(wrong), None);
            }
        }
    }

    /// Waits with the processor; the policy's own work goes on. Whether the wait is over: if not, other CPUs are to go on.
    fn spin(&mut self, pid: Pid, until: Time) -> bool {
        let mut from = self.core.now;
        loop {
            // An event may give an idle CPU something to do.
            let to = until.min(self.limit);
            let next = self.core.next_event();
            if next > to || self.core.now >= to {
                self.core.now = self.core.now.max(to);
                break;
            }
            self.core.now = self.core.now.max(next);
            // The warm-up may end here.
            self.core.stats.processes[pid].waited += self.core.now - from;
            from = self.core.now;
            self.events(Some(pid));
        }
        self.core.stats.processes[pid].waited += self.core.now - from;
        let over = self.core.now >= until;
        if !over {
            self.core.spinning = Some(until);
        }
        over
    }
}
