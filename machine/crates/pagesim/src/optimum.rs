// SPDX-License-Identifier: Apache-2.0
//! The offline optimum: Belady's replacement and perfect prefetch.
//!
//! First the programs run with all pages in DRAM. The uses of pages that the CPU cache does not serve, each with its time, form
//! the string. No policy has influenced it. Then two things are computed from the whole string:
//!
//! - Pages read are those of [MIN](min) in `memory.frames` frames. They are a bound: on this string no policy reads fewer,
//!   whatever it prefetches. A policy that changes the order of processes, or evicts the lines of a page from the cache together
//!   with the page, has another string, and might read fewer. Pages written are those that MIN's choice of pages writes. They are
//!   not a bound.
//! - The time is the sum of two parts. The first part is the time of the first run, which no policy beats on this string. The
//!   second part is the waiting time if pages are read as in Cao, Felten, Karlin and Li's aggressive algorithm ("A Study of
//!   Integrated Prefetching and Caching Strategies", SIGMETRICS 1995). As soon as the drive takes a command, the algorithm reads
//!   the missing page that is needed first. It replaces the page that is needed last, unless that one is needed before the
//!   missing one. The authors prove for a drive that reads one page at a time that the time is at most (1 + F / K) times the
//!   least, for K frames and reads that take as long as F uses. Here the drive serves several commands at once and has a link. A
//!   page that changed is written before its frame is free, and writes have their own drive of the same kind. So perfect
//!   prefetching can reach this time, and it is close to the least, but not proven to be the least. This part may need more reads
//!   than MIN.

pub mod min;
mod string;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::iter::Peekable;
use std::rc::Rc;

use min::{Held, Min, Next, Outcome};
use string::{Recorder, Use};
use trapless_memory::{ClockHz, Cycle};
use trapless_timing::{SsdOp, SsdTiming};

use crate::Error;
use crate::core::Core;
use crate::input::Source;
use crate::latency::Waits;
use crate::settings::{Settings, TICKS, Time};
use crate::sim::Sim;

const PAGE_BYTES: u64 = 4096;
/// Number of commands given to the drive at a time, for each command that it serves at once. Four are enough to keep it busy.
const DEPTH: usize = 4;

/// Computes the optimum and returns it as a simulation with the statistics of the optimum. Statistics that the optimum does not
/// have are zero. The arguments are those of [`Sim::new`] and [`Sim::run`].
///
/// # Errors
/// The configuration has several CPUs or drives or a tier, a source fails, or the string of pages cannot be written to its
/// temporary file.
pub fn run(
    settings: &Settings,
    sources: Vec<Box<dyn Source>>,
    mapped: &[Vec<(u64, u64)>],
    progress: &mut dyn FnMut(u64),
) -> Result<Sim, Error> {
    if settings.cpu.count > 1 || settings.device.drives > 1 || settings.tier.is_some() {
        let what =
            "policy optimum: needs one CPU, one drive and no tier; set cpu.count and device.drives to 1, remove [tier]";
        return Err(Error::Settings(what.into()));
    }
    let place = std::env::temp_dir();
    let wrong = Error::io(&place);
    let mut sim = Sim::new(settings, sources, mapped)?;
    let recorder = Rc::new(RefCell::new(Recorder::new().map_err(&wrong)?));
    let watching = Rc::clone(&recorder);
    sim.core.keep_everything();
    sim.core.watch = Some(Box::new(move |id, page, now| watching.borrow_mut().access(id, &mut page.dirty, now)));
    sim.run(progress)?;
    sim.core.watch = None;
    if let Some(recorder) = Rc::into_inner(recorder) {
        let pages = &sim.core.pages;
        let string = recorder.into_inner().finish(&|page| pages[page].dirty).map_err(&wrong)?;
        let warm = sim.warm_up.as_ref().map(|_| sim.core.stats.since);
        let mut replay = Replay::new(&mut sim.core, string.uses(), warm)?;
        for next in string.uses() {
            next.and_then(|next| replay.step(next)).map_err(&wrong)?;
        }
        replay.finish();
    }
    Ok(sim)
}

/// Commands of one kind, in the order of their requests.
struct Drive {
    timing: SsdTiming,
    last: Time,
}

impl Drive {
    fn new(settings: &Settings, number: u64) -> Result<Drive, Error> {
        Ok(Drive { timing: SsdTiming::new(&settings.device.params()?, ClockHz(TICKS), number), last: 0 })
    }

    /// Starts a command at the time `from` or later. Returns the time at which it is done.
    fn command(&mut self, from: Time, op: SsdOp) -> Time {
        self.last = self.last.max(from);
        self.timing.start(Cycle(self.last) + self.timing.fetch_delay(), op).0
    }
}

/// The replay's state of a page.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Time at which the page arrives.
    there: Time,
    /// Whether it changed since it was read.
    dirty: bool,
    /// Whether it changed since MIN read it.
    dirty_in_min: bool,
}

/// The state of the replay, which goes through the string.
struct Replay<'a, S: Iterator<Item = io::Result<Use>>> {
    core: &'a mut Core,
    min: Min,
    held: Held,
    known: Vec<Known>,
    /// The uses that are searched for pages to read, and the number of the next one.
    ahead: Peekable<S>,
    at: u64,
    /// The page in use.
    current: u32,
    /// Reads up to this time have been chosen.
    decided: Time,
    /// Times at which the reads under way arrive.
    underway: VecDeque<Time>,
    depth: usize,
    reads: Drive,
    writes: Drive,
    /// Sum of all waits.
    waited: Time,
    /// The time at which each process ended in the first run, with the process. The latest is first.
    ends: Vec<(Time, usize)>,
    /// End of the first run's warm-up, if there was one.
    warm: Option<Time>,
    /// Whether the warm-up is still running.
    warming: bool,
    /// Whether a process has ended after the warm-up.
    first_ended: bool,
}

impl<'a, S: Iterator<Item = io::Result<Use>>> Replay<'a, S> {
    fn new(core: &'a mut Core, ahead: S, warm: Option<Time>) -> Result<Self, Error> {
        let mut ends = vec![];
        for (pid, process) in core.stats.processes.iter_mut().enumerate() {
            ends.push((process.finished.unwrap_or(core.now), pid));
            process.longest_wait = 0;
        }
        ends.sort_unstable_by(|a, b| b.cmp(a));
        core.stats.cpu.iter_mut().for_each(|series| series.counts.clear());
        let frames = core.settings.memory.frames as usize;
        Ok(Replay {
            min: Min::new(frames),
            held: Held::new(frames),
            known: vec![Known::default(); core.pages.iter().count()],
            ahead: ahead.peekable(),
            at: 1,
            current: u32::MAX,
            decided: 0,
            underway: VecDeque::new(),
            depth: DEPTH * core.drive().channels as usize,
            reads: Drive::new(&core.settings, 0)?,
            writes: Drive::new(&core.settings, 1)?,
            waited: 0,
            ends,
            warm,
            warming: warm.is_some(),
            first_ended: false,
            core,
        })
    }

    fn step(&mut self, Use { page, written, time, next }: Use) -> io::Result<()> {
        self.pass(time);
        let (id, now) = (page.0, time + self.waited);
        self.read_ahead(now)?;
        self.current = id;
        if !self.held.contains(id) {
            self.read(Time::MAX)?;
        }
        let begins = self.known[page.index()].there.max(now);
        self.read_ahead(begins)?;
        let wait = begins - now;
        self.waited += wait;
        self.held.set(id, next);
        self.known[page.index()].dirty |= written;
        let stats = &mut self.core.stats;
        match self.min.access(id, next) {
            Outcome::Hit => {}
            Outcome::Read => stats.reads += 1,
            Outcome::Replaced(victim) => {
                stats.reads += 1;
                stats.writes += u64::from(std::mem::take(&mut self.known[victim as usize].dirty_in_min));
            }
        }
        self.known[page.index()].dirty_in_min |= written;
        let owner = self.core.pages[page].owner;
        if wait > 0 {
            stats.waits[owner].add(wait, wait);
        }
        let process = &mut stats.processes[owner];
        process.late += u64::from(wait > 0);
        process.waited += wait;
        process.cpu += wait;
        Ok(())
    }

    /// Chooses and starts all reads that can be chosen up to this time. Later choices depend on uses that are still to come.
    fn read_ahead(&mut self, until: Time) -> io::Result<()> {
        while self.read(until)? {}
        self.decided = self.decided.max(until);
        Ok(())
    }

    /// Reads the missing page that is needed first, if the choice can be made up to this time. Returns whether it did.
    fn read(&mut self, until: Time) -> io::Result<bool> {
        let needed = loop {
            match self.ahead.peek() {
                Some(Ok(needed)) if self.held.contains(needed.page.0) => {
                    self.ahead.next();
                    self.at += 1;
                }
                Some(Ok(needed)) => break needed.page,
                _ => return self.ahead.next().transpose().map(|_| false),
            }
        };
        let slot = if self.underway.len() < self.depth { 0 } else { self.underway[0] };
        let now = self.decided.max(slot);
        if now > until {
            return Ok(false);
        }
        let mut free = now;
        if self.held.is_full() {
            match self.held.furthest() {
                Some((victim, next)) if victim != self.current && next > Next(self.at) => {
                    self.held.remove(victim);
                    if std::mem::take(&mut self.known[victim as usize].dirty) {
                        free = self.writes.command(now, SsdOp::Write(PAGE_BYTES));
                    }
                }
                _ => return Ok(false),
            }
        }
        let at = u64::from(needed.0) * PAGE_BYTES;
        let there = self.reads.command(free, SsdOp::Read { at, bytes: PAGE_BYTES });
        self.held.set(needed.0, Next(self.at));
        self.known[needed.index()].there = there;
        self.decided = now;
        if self.underway.len() == self.depth {
            self.underway.pop_front();
        }
        self.underway.push_back(there);
        Ok(true)
    }

    /// Handles the events of the first run, other than uses of pages, up to this time.
    fn pass(&mut self, time: Time) {
        if let Some(end) = self.warm.filter(|end| self.warming && *end <= time) {
            self.warming = false;
            self.end_until(end);
            // The first run has begun its counts anew here. So the counts that the replay added until now must go.
            let stats = &mut self.core.stats;
            (stats.reads, stats.writes) = (0, 0);
            stats.since += self.waited;
            for process in &mut stats.processes {
                process.cpu -= std::mem::take(&mut process.waited);
                process.late = 0;
            }
            stats.waits.iter_mut().for_each(|waits| *waits = Waits::default());
        }
        self.end_until(time);
    }

    /// Ends the processes whose traces ended in the first run by this time.
    fn end_until(&mut self, time: Time) {
        while let Some((end, pid)) = self.ends.pop_if(|end| end.0 <= time) {
            let stats = &mut self.core.stats;
            stats.processes[pid].finished = Some(end + self.waited);
            // The first process has ended. The first run stored all processor times of this moment; the replay's waits are added.
            if self.warm.is_none_or(|warm| end > warm) && !std::mem::replace(&mut self.first_ended, true) {
                let cpu = stats.cpu_at_first_end.iter_mut().flatten();
                cpu.zip(&stats.processes).for_each(|(cpu, process)| *cpu += process.waited);
            }
        }
    }

    fn finish(mut self) {
        self.pass(Time::MAX);
        self.core.now += self.waited;
    }
}
