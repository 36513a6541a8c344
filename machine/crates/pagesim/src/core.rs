// SPDX-License-Identifier: Apache-2.0
//! The state of a simulated system, and what a policy may do with it.

mod tiering;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use trapless_timing::{Cache, Line, SsdParams};

use crate::Error;
use crate::cpus::{Cpus, queue};
use crate::drive::{DriveStats, Drives};
use crate::pages::{LINES, Origin, Page, PageId, Pages, Pid, Place};
use crate::replacement::{self, Forever, Groups, Replace, Room};
use crate::sched::Schedule;
use crate::settings::{CacheOf, Settings, Time};
use crate::stats::Stats;
use crate::tier::Tier;

const PAGE_BYTES: u64 = 4096;
const LINE_BITS: u32 = 48;

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The write of a page is over. The number counts the page's writes up to this one.
    Written(PageId, u64),
    /// The page that a sleeping process waits for has arrived.
    Wake(Pid),
    /// The time at which a policy asked to be called.
    Call,
    /// The warm-up is over.
    WarmedUp,
}

/// An event with its time and its number. Events of the same time come in the order in which they were added.
pub(crate) type Queued = Reverse<(Time, u64, Event)>;

/// A page that has left DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The page.
    pub page: PageId,
    /// Whether the page had changed. If so, the simulator has begun to write it to the drive, or has stored it in the tier.
    pub written: bool,
}

/// Frames of a group of processes.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    limit: u32,
    held: u32,
    /// How many of the held frames contain a page that is being written.
    writing: u32,
}

/// What happened to the frame of an evicted page.
enum Gone {
    /// The frame is free.
    Free,
    /// The frame becomes free when the page is written.
    Writing,
    /// The tier has stored the page. The frame is free, or the tier uses it.
    Stored,
}

/// A function that is called for an access. It gets the page as it was before the access, and the time of the access.
pub type Watch = Box<dyn FnMut(PageId, &mut Page, Time)>;

/// A simulated system. Times are picoseconds from the start. With several CPUs, the fields that belong to a CPU describe the CPU
/// that is being simulated ([`Core::cpu`]).
pub struct Core {
    /// The configuration of the system.
    pub settings: Settings,
    /// All pages.
    pub pages: Pages,
    /// The order of replacement: chooses the page to evict.
    pub replacement: Box<dyn Replace>,
    /// Scheduler of the CPU's processes.
    pub sched: Box<dyn Schedule>,
    /// Counts and times so far.
    pub stats: Stats,
    /// The process that runs on the CPU.
    pub running: Option<Pid>,
    /// The CPU's processes that sleep for a page.
    pub asleep: usize,
    /// The error of a policy that cannot continue.
    pub(crate) failure: Option<Error>,
    /// Called for each access that the cache does not serve, when the page is in DRAM. The offline optimum records the string of
    /// pages with it.
    pub watch: Option<Watch>,
    /// One cache for all processes, or one for each process.
    caches: Vec<Cache<bool, u64>>,
    private: bool,
    /// log2 of the number of a trace's lines (64 bytes) in a line of the cache.
    line_shift: u32,
    pub(crate) now: Time,
    pub(crate) evicted: VecDeque<Evicted>,
    device: Drives,
    tier: Option<Tier>,
    /// Turns that each process has had.
    pub(crate) turns: Vec<u32>,
    free: Vec<u32>,
    /// Number of writes of each page that have begun.
    writes: Vec<u64>,
    /// Number of pages that are being written. Each still holds a frame.
    writing: u32,
    /// Groups of processes. The first one contains the processes that name no group.
    groups: Vec<Frames>,
    /// The group of each process.
    group_of: Vec<usize>,
    /// Events of this CPU.
    pub(crate) events: BinaryHeap<Queued>,
    /// Events that any CPU may handle: ends of writes, and the end of the warm-up.
    shared: BinaryHeap<Queued>,
    pub(crate) number: u64,
    pub(crate) cpus: Cpus,
    /// The running process waits for its page until this time. Other CPUs continue meanwhile.
    pub(crate) spinning: Option<Time>,
    /// The latest time of any CPU.
    latest: Time,
}

impl Core {
    /// Makes a system at rest. `mapped` has the ranges of virtual pages (first, count) of each process. `usual` names the order
    /// of replacement if the settings name none.
    ///
    /// # Errors
    /// A setting is out of range, or no order of replacement has this name.
    pub fn new(settings: &Settings, mapped: &[Vec<(u64, u64)>], usual: &str) -> Result<Core, Error> {
        settings.check()?;
        let (cpu, mut pages) = (&settings.cpu, Pages::default());
        for (_, mapped) in settings.processes.iter().zip(mapped) {
            pages.add_process(mapped);
        }
        let sets = cpu.cache_kib * 1024 / cpu.line_bytes / cpu.cache_ways;
        let private = cpu.cache == CacheOf::Process;
        let caches = if private { settings.processes.len() } else { 1 };
        let order = replacement::find(settings.memory.replacement.as_deref().unwrap_or(usual))?;
        let frames = settings.memory.frames;
        let replacement = if settings.groups.is_empty() {
            (order.make)(Room { frames: frames as usize, processes: settings.processes.len() })
        } else {
            Box::new(Groups::new(order, settings))
        };
        let limits = std::iter::once(frames).chain(settings.groups.iter().map(|group| group.frames));
        Ok(Core {
            pages,
            replacement,
            sched: queue(settings),
            stats: Stats::new(settings),
            running: None,
            asleep: 0,
            failure: None,
            watch: None,
            caches: (0..caches).map(|_| Cache::new(sets as usize, cpu.cache_ways as usize)).collect(),
            private,
            line_shift: (cpu.line_bytes * LINES / PAGE_BYTES).trailing_zeros(),
            turns: vec![0; settings.processes.len()],
            now: 0,
            evicted: VecDeque::new(),
            device: Drives::new(&settings.device)?,
            tier: settings.tier.as_ref().map(Tier::new),
            free: (0..frames).rev().collect(),
            writes: vec![],
            writing: 0,
            groups: limits.map(|limit| Frames { limit, ..Frames::default() }).collect(),
            group_of: (0..settings.processes.len()).map(|pid| settings.group_of(pid)).collect(),
            events: BinaryHeap::new(),
            shared: BinaryHeap::new(),
            number: 0,
            cpus: Cpus::new(settings),
            spinning: None,
            latest: 0,
            settings: settings.clone(),
        })
    }

    /// Puts every page into DRAM from the beginning, and keeps it there. Nothing is read, and the number of frames does not
    /// matter.
    pub fn keep_everything(&mut self) {
        self.pages.keep_everything();
        self.replacement = Box::new(Forever);
    }

    /// Ends the simulation with an error, because a policy cannot continue.
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Returns the error of a policy that cannot continue, if there is one.
    pub(crate) fn failed(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The time of the CPU that is being simulated, in ps.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The name of a line in a cache that several processes may share.
    #[inline]
    pub(crate) fn line(&self, pid: Pid, line: u64) -> Line {
        Line(line >> self.line_shift | (pid as u64) << LINE_BITS)
    }

    /// The cache that serves a process.
    #[inline]
    pub(crate) fn cache(&mut self, pid: Pid) -> &mut Cache<bool, u64> {
        &mut self.caches[if self.private { pid } else { 0 }]
    }

    /// Marks the page of a line as changed, because the process wrote to the line in its cache.
    pub(crate) fn store(&mut self, pid: Pid, vpn: u64) {
        let page = self.pages.accessed(pid, vpn);
        // A private cache keeps lines of pages that have left DRAM.
        if !self.private || self.place(page) == Place::Resident {
            self.pages[page].dirty = true;
        }
    }

    /// Whether the process of a page accessed it in its current turn, or in its last turn if it does not run now.
    pub fn accessed_in_last_turn(&self, page: PageId) -> bool {
        let page = &self.pages[page];
        page.turn == self.turns[page.owner]
    }

    /// The parameters of the drives, which are all equal.
    pub fn drive(&self) -> &SsdParams {
        self.device.params()
    }

    /// Counts of each drive.
    pub fn drives(&self) -> Vec<DriveStats> {
        self.device.stats()
    }

    /// Arranges a call of the policy at this time.
    pub fn call_at(&mut self, time: Time) {
        self.at(time, Event::Call);
    }

    pub(crate) fn at(&mut self, time: Time, event: Event) {
        self.number += 1;
        let shared = matches!(event, Event::Written(..) | Event::WarmedUp);
        let events = if shared { &mut self.shared } else { &mut self.events };
        events.push(Reverse((time, self.number, event)));
    }

    /// The time for events that CPUs share: the latest time of any CPU so far.
    #[inline]
    pub(crate) fn stamp(&mut self) -> Time {
        self.latest = self.latest.max(self.now);
        self.latest
    }

    /// The time of the next event.
    #[inline]
    pub(crate) fn next_event(&self) -> Time {
        let time = |events: &BinaryHeap<Queued>| events.peek().map_or(Time::MAX, |event| event.0.0);
        time(&self.events).min(time(&self.shared))
    }

    /// Returns the next event that is due. If it is the end of a write, frees the page's frame first, unless the page was kept.
    pub(crate) fn due(&mut self) -> Option<Event> {
        let first = match (self.events.peek(), self.shared.peek()) {
            // The order is reversed: the event that compares larger comes first.
            (Some(event), Some(shared)) if event > shared => &mut self.events,
            (Some(_), None) => &mut self.events,
            _ => &mut self.shared,
        };
        let event = first.peek().filter(|event| event.0.0 <= self.now)?.0.2;
        first.pop();
        if let Event::Written(page, number) = event
            && self.pages[page].place == Place::Writing
            && self.writes[page.index()] == number
        {
            self.writing -= 1;
            let group = self.group(page);
            self.groups[group].writing -= 1;
            self.groups[group].held -= 1;
            self.pages[page].place = Place::Device;
            self.free.push(self.pages[page].frame);
        }
        Some(event)
    }

    /// Where a page is now.
    #[inline]
    pub fn place(&mut self, page: PageId) -> Place {
        let entry = &mut self.pages[page];
        if matches!(entry.place, Place::Reading(until) if until <= self.now) {
            entry.place = Place::Resident;
        }
        entry.place
    }

    /// Whether a page must be read or decompressed before use: it is only on the drive, or in the tier.
    pub fn is_out(&self, page: PageId) -> bool {
        self.pages[page].place == Place::Device
    }

    /// Begins to read a page that no process waits for yet. Does nothing unless the page is out of DRAM and a frame is available
    /// at once. Returns the time at which the page arrives.
    pub fn prefetch(&mut self, page: PageId, origin: Origin) -> Option<Time> {
        if !self.is_out(page) {
            return None;
        }
        self.replacement.miss(page);
        let group = self.group(page);
        if self.is_full(group) {
            self.evict(Some(group));
            if self.is_full(group) {
                return None;
            }
        }
        while self.free.is_empty() && matches!(self.evict(None), Some(Gone::Stored)) {}
        if !self.is_out(page) {
            // The page was in the tier, and the tier has sent it to the drive.
            return None;
        }
        let frame = self.free.pop()?;
        let until = self.read(page, frame, origin);
        self.stats.prefetched(origin);
        self.keep_reserve(group);
        Some(until)
    }

    /// Tells the order of replacement that a page will not be used soon. If the page is in DRAM, it is evicted before others.
    pub fn demote(&mut self, page: PageId) {
        if self.place(page) == Place::Resident {
            self.replacement.demote(page);
        }
    }

    /// Begins to read a missing page. Waits if no frame is free. Returns the time at which the page arrives.
    pub(crate) fn demand(&mut self, page: PageId) -> Time {
        self.replacement.miss(page);
        let group = self.group(page);
        let (from, stored) = (self.now, self.is_stored(page));
        let frame = loop {
            let full = self.is_full(group);
            if full && self.groups[group].writing > 0 {
                self.await_frame();
                continue;
            }
            if !full && let Some(frame) = self.free.pop() {
                break frame;
            }
            let gone = self.evict(full.then_some(group));
            if !matches!(gone, Some(Gone::Free | Gone::Stored)) || self.is_full(group) {
                self.await_frame();
            }
        };
        let until = self.read(page, frame, Origin::Demand);
        if stored {
            self.stats.tier.hits += 1;
            self.stats.tier.hit_time += self.now - from;
        }
        self.keep_reserve(group);
        until
    }

    /// Stalls until a write ends, or until a page arrives that may be evicted.
    fn await_frame(&mut self) {
        let is_write = |event: &&Queued| matches!(event.0.2, Event::Written(..));
        let writes = self.shared.iter().filter(is_write).map(|event| event.0.0);
        let reads = self.pages.iter().filter_map(|(_, page)| match page.place {
            Place::Reading(until) if until > self.now => Some(until),
            _ => None,
        });
        let until = writes.chain(reads).min().unwrap_or(self.now);
        self.stats.stalled += until.saturating_sub(self.now);
        self.now = self.now.max(until);
        let mut others = vec![];
        while let Some(event) = self.due() {
            if !matches!(event, Event::Written(..)) {
                others.push(event);
            }
        }
        others.into_iter().for_each(|event| self.at(self.now, event));
    }

    fn read(&mut self, page: PageId, frame: u32, origin: Origin) -> Time {
        let (until, dirty) = match self.unpack(page) {
            Some(dirty) => (self.now, dirty),
            None => {
                self.stats.reads += 1;
                (self.device.read(self.now, page, origin == Origin::Demand), false)
            }
        };
        let entry = &mut self.pages[page];
        (entry.place, entry.frame, entry.origin) = (Place::Reading(until), frame, origin);
        (entry.accessed, entry.dirty) = (false, dirty);
        self.replacement.insert(page, entry.owner);
        let group = self.group(page);
        self.groups[group].held += 1;
        until
    }

    /// The group that a page's process belongs to.
    fn group(&self, page: PageId) -> usize {
        self.group_of[self.pages[page].owner]
    }

    /// Whether a group holds as many frames as its limit allows.
    fn is_full(&self, group: usize) -> bool {
        group > 0 && self.groups[group].held >= self.groups[group].limit
    }

    /// Evicts one page of a group, or of all groups. Returns `None` if no page may be evicted.
    fn evict(&mut self, group: Option<usize>) -> Option<Gone> {
        let (pages, now) = (&self.pages, self.now);
        let may = |page| !pages[page].awaited && !matches!(pages[page].place, Place::Reading(at) if at > now);
        let page = match group {
            Some(group) => self.replacement.victim_of(group, &may),
            None => self.replacement.victim(&may),
        }?;
        let group = self.group(page);
        let entry = &self.pages[page];
        self.stats.evicted(entry.origin, entry.accessed);
        if !self.private {
            let (owner, first) = (entry.owner, entry.vpn * LINES);
            for line in (first..first + LINES).step_by(1 << self.line_shift) {
                let line = self.line(owner, line);
                self.caches[0].remove(line);
            }
        }
        let written = entry.dirty;
        let gone = if self.store_evicted(page) {
            self.groups[group].held -= 1;
            Gone::Stored
        } else if written {
            self.write(page);
            Gone::Writing
        } else {
            self.pages[page].place = Place::Device;
            self.free.push(self.pages[page].frame);
            self.groups[group].held -= 1;
            Gone::Free
        };
        self.evicted.push_back(Evicted { page, written });
        Some(gone)
    }

    /// Begins to write a page. Its frame becomes free when the write is over.
    fn write(&mut self, page: PageId) {
        self.pages[page].place = Place::Writing;
        let until = self.device.write(self.now, page);
        if self.writes.len() <= page.index() {
            self.writes.resize(page.index() + 1, 0);
        }
        self.writes[page.index()] += 1;
        self.at(until, Event::Written(page, self.writes[page.index()]));
        self.writing += 1;
        let group = self.group(page);
        self.groups[group].writing += 1;
        self.stats.writes += 1;
    }

    /// Evicts pages until the free frames, and those that will soon be free, reach the reserve. Does the same below a group's
    /// limit.
    fn keep_reserve(&mut self, group: usize) {
        let reserve = self.settings.memory.reserve;
        while (self.free.len() as u32 + self.writing) < reserve && self.evict(None).is_some() {}
        let short = |of: Frames| of.limit - of.held + of.writing < reserve;
        while group > 0 && short(self.groups[group]) && self.evict(Some(group)).is_some() {}
    }

    /// Keeps a page that is being written: it stays in its frame after the write. Does nothing for other pages.
    pub fn keep(&mut self, page: PageId) {
        if self.place(page) == Place::Writing {
            self.rescue(page);
        }
    }

    /// Keeps a page that is being written, because it is needed again: it stays in its frame after the write.
    pub(crate) fn rescue(&mut self, page: PageId) {
        self.writing -= 1;
        let group = self.group(page);
        self.groups[group].writing -= 1;
        self.pages[page].place = Place::Resident;
        self.pages[page].dirty = false;
        self.replacement.insert(page, self.pages[page].owner);
        self.stats.rescued += 1;
    }

    /// Checks that every frame is free, holds one page or belongs to the tier, that the order of replacement knows every page in
    /// DRAM, and that no group exceeds its limit.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let mut holders = vec![None; self.settings.memory.frames as usize];
        let (mut listed, mut writing) = (0, 0);
        let mut held = vec![0; self.groups.len()];
        let mut take = |frame: u32, who: String| match holders[frame as usize].replace(who.clone()) {
            Some(other) => Err(format!("frame {frame}: {other} and {who}")),
            None => Ok(()),
        };
        for frame in &self.free {
            take(*frame, "free".into())?;
        }
        if let Some(tier) = &self.tier {
            tier.check()?;
            for frame in &tier.frames {
                take(*frame, "tier".into())?;
            }
            if let Some(page) = tier.pages().find(|page| !self.is_out(*page)) {
                return Err(format!("page {}: in the tier and {:?}", page.0, self.pages[page].place));
            }
        }
        for (id, page) in self.pages.iter() {
            match page.place {
                Place::Device => continue,
                Place::Writing => writing += 1,
                Place::Reading(_) | Place::Resident => listed += 1,
            }
            held[self.group(id)] += 1;
            take(page.frame, format!("page {}", id.0))?;
        }
        if let Some(lost) = holders.iter().position(Option::is_none) {
            return Err(format!("frame {lost}: lost"));
        }
        for (group, (held, of)) in held.into_iter().zip(&self.groups).enumerate() {
            if held != of.held || held > of.limit {
                return Err(format!("group {group}: {held} frames, {} expected, {} at most", of.held, of.limit));
            }
        }
        self.check_cpus()?;
        if listed != self.replacement.len() || writing != self.writing {
            return Err(format!(
                "{listed} pages in DRAM and {writing} being written; {} and {} expected",
                self.replacement.len(),
                self.writing
            ));
        }
        Ok(())
    }
}
