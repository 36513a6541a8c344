// SPDX-License-Identifier: Apache-2.0
//! The offline optimum: Belady's replacement and perfect prefetch.
//!
//! First the programs run with all pages in DRAM. The pages that they use beyond the cache, each with its time, are a string
//! that no policy has influenced. Then, with the whole string known:
//!
//! - Replacement is [MIN](min) in `memory.frames` frames. Its reads are a bound: on this string no policy reads fewer pages,
//!   whatever it reads ahead. On other strings one might: a policy that changes who runs when, or takes a page's lines out of
//!   the cache with the page, has another string. Writes are counted for the same choice of pages, and are no bound.
//! - Prefetch reads pages in the order in which they are needed, each as soon as its frame is free (Cao, Felten, Karlin and Li,
//!   "A Study of Integrated Prefetching and Caching Strategies", SIGMETRICS 1995): another page is used than the one that has to
//!   go, and that one is written if it changed. Reads take their time of the drive, with its commands in service and its link;
//!   writes of another drive like it. The processor waits for a page that is needed and not there, and does nothing else then.
//!   The time is that of the first run and of these waits. It is what perfect knowledge of the future would make of that string,
//!   for all that is known the least; it is not proven least: other pages to go might be written sooner or wait less. The time
//!   of the first run alone is a bound that no policy beats on that string.

pub mod min;
mod string;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use min::{Min, Outcome};
use string::{Recorder, Use};
use trapless_memory::{ClockHz, Cycle};
use trapless_timing::{SsdOp, SsdTiming};

use crate::Error;
use crate::core::Core;
use crate::input::Source;
use crate::settings::{Settings, TICKS, Time};
use crate::sim::Sim;

const PAGE_BYTES: u64 = 4096;
/// Commands that the drive has at a time, for each one that it serves: enough for it never to rest.
const DEPTH: usize = 8;

/// Computes the optimum, as a simulation whose statistics are those of the optimum as far as it has any; others are zero. Takes
/// what [`Sim::new`] and [`Sim::run`] take.
///
/// # Errors
/// As theirs; or the string, which goes to a temporary file, cannot be written.
pub fn run(
    settings: &Settings,
    sources: Vec<Box<dyn Source>>,
    mapped: &[Vec<(u64, u64)>],
    progress: &mut dyn FnMut(u64),
) -> Result<Sim, Error> {
    let place = std::env::temp_dir();
    let wrong = Error::io(&place);
    let mut sim = Sim::new(settings, sources, mapped)?;
    let recorder = Rc::new(RefCell::new(Recorder::new().map_err(&wrong)?));
    let watching = Rc::clone(&recorder);
    sim.core.keep_everything();
    sim.core.watch = Some(Box::new(move |id, page, now| watching.borrow_mut().access(id, &mut page.dirty, now)));
    sim.run(progress)?;
    sim.core.watch = None;
    if let Ok(recorder) = Rc::try_unwrap(recorder) {
        let pages = &sim.core.pages;
        let uses = recorder.into_inner().finish(&|page| pages[page].dirty).map_err(&wrong)?;
        let mut replay = Replay::new(&mut sim.core)?;
        for next in uses {
            replay.step(next.map_err(&wrong)?);
        }
        replay.finish();
    }
    Ok(sim)
}

/// Commands of one kind, in the order in which they are asked for.
struct Drive {
    timing: SsdTiming,
    last: Time,
    underway: VecDeque<Time>,
    depth: usize,
}

impl Drive {
    fn new(settings: &Settings, number: u64) -> Result<Drive, Error> {
        let params = settings.device.params()?;
        let depth = DEPTH * params.channels as usize;
        let timing = SsdTiming::new(&params, ClockHz(TICKS), number);
        Ok(Drive { timing, last: 0, underway: VecDeque::new(), depth })
    }

    /// When a command is done that may begin at a time.
    fn command(&mut self, from: Time, op: SsdOp) -> Time {
        self.last = self.last.max(from);
        if self.underway.len() == self.depth {
            self.last = self.last.max(self.underway.pop_front().unwrap_or(0));
        }
        let done = self.timing.start(Cycle(self.last) + self.timing.fetch_delay(), op).0;
        self.underway.push_back(done);
        done
    }
}

/// The page as the replay knows it.
#[derive(Clone, Copy, Default)]
struct Known {
    /// When its last use was over.
    released: Time,
    /// It changed since it was read.
    dirty: bool,
}

/// Goes through the string.
struct Replay<'a> {
    core: &'a mut Core,
    min: Min,
    known: Vec<Known>,
    /// The page of the use before.
    last: Option<usize>,
    reads: Drive,
    writes: Drive,
    /// The sum of all waits.
    waited: Time,
    /// When processes ended, the last one first, and which.
    ends: Vec<(Time, usize)>,
}

impl<'a> Replay<'a> {
    fn new(core: &'a mut Core) -> Result<Replay<'a>, Error> {
        let (mut ends, mut known) = (vec![], vec![]);
        for (pid, process) in core.stats.processes.iter_mut().enumerate() {
            ends.push((process.finished.unwrap_or(core.now), pid));
            process.longest_wait = 0;
        }
        ends.sort_unstable_by(|a, b| b.cmp(a));
        known.resize(core.pages.iter().count(), Known::default());
        core.stats.cpu.iter_mut().for_each(|series| series.counts.clear());
        Ok(Replay {
            min: Min::new(core.settings.memory.frames as usize),
            known,
            last: None,
            reads: Drive::new(&core.settings, 0)?,
            writes: Drive::new(&core.settings, 1)?,
            waited: 0,
            ends,
            core,
        })
    }

    fn step(&mut self, Use { page, written, time, next }: Use) {
        self.end_until(time);
        let now = time + self.waited;
        if let Some(last) = self.last.replace(page.index()) {
            self.known[last].released = now;
        }
        let free = match self.min.access(page.0, next) {
            Outcome::Hit => None,
            Outcome::Read => Some(0),
            Outcome::Replaced(victim) => {
                let Known { released, dirty } = std::mem::take(&mut self.known[victim as usize]);
                self.core.stats.writes += u64::from(dirty);
                Some(if dirty { self.writes.command(released, SsdOp::Write(PAGE_BYTES)) } else { released })
            }
        };
        self.known[page.index()].dirty |= written;
        let Some(free) = free else { return };
        let at = u64::from(page.0) * PAGE_BYTES;
        let there = self.reads.command(free, SsdOp::Read { at, bytes: PAGE_BYTES });
        self.core.stats.reads += 1;
        let wait = there.saturating_sub(now);
        let process = &mut self.core.stats.processes[self.core.pages[page].owner];
        process.late += u64::from(wait > 0);
        process.waited += wait;
        process.cpu += wait;
        self.waited += wait;
    }

    /// Processes whose traces were over by a time of the first run.
    fn end_until(&mut self, time: Time) {
        while let Some((end, pid)) = self.ends.pop_if(|end| end.0 <= time) {
            let stats = &mut self.core.stats;
            stats.processes[pid].finished = Some(end + self.waited);
            // The first one: others have waited, too.
            if self.ends.len() + 1 == stats.processes.len() {
                let cpu = stats.cpu_at_first_end.iter_mut().flatten();
                cpu.zip(&stats.processes).for_each(|(cpu, process)| *cpu += process.waited);
            }
        }
    }

    fn finish(mut self) {
        self.end_until(Time::MAX);
        self.core.now += self.waited;
    }
}
