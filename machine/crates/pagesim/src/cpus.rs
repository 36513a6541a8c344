// SPDX-License-Identifier: Apache-2.0
//! Several CPUs: what each has for itself. One of them is simulated at a time; its state is in [`Core`]'s own fields.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Serialize, Serializer};

use crate::core::{Core, Event, Queued};
use crate::pages::Pid;
use crate::sched::{self, Entity, Schedule};
use crate::settings::{Settings, Time};

/// What one CPU did. Times are written as ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuStats {
    /// Time of processes, waiting for pages included.
    #[serde(rename = "busy_ns", serialize_with = "in_ns")]
    pub busy: Time,
    /// Time without a process that is ready.
    #[serde(rename = "idle_ns", serialize_with = "in_ns")]
    pub idle: Time,
    /// Context switches.
    pub switches: u64,
    /// Processes that it took from other CPUs.
    pub taken: u64,
    /// Work of the compressed tier while no process ran.
    #[serde(rename = "tier_between_turns_ns", serialize_with = "in_ns")]
    pub between_turns: Time,
}

fn in_ns<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time / 1000)
}

/// The state of a CPU that is not being simulated.
pub(crate) struct Parked {
    now: Time,
    running: Option<Pid>,
    spinning: Option<Time>,
    asleep: usize,
    sched: Box<dyn Schedule>,
    events: BinaryHeap<Queued>,
}

/// All CPUs, of which one is being simulated.
pub(crate) struct Cpus {
    /// Which one is.
    here: usize,
    /// The states of the others; what is in its own place means nothing.
    parked: Vec<Parked>,
    /// The CPU of each process.
    home: Vec<usize>,
}

/// A run queue that knows all processes.
pub(crate) fn queue(settings: &Settings) -> Box<dyn Schedule> {
    let mut sched = sched::from_settings(&settings.scheduler);
    settings.processes.iter().for_each(|process| sched.add(Entity::new(process.nice)));
    sched
}

impl Cpus {
    /// The CPUs of a configuration, whose processes are dealt out in turn.
    pub(crate) fn new(settings: &Settings) -> Cpus {
        let count = settings.cpu.count as usize;
        let parked = |_| Parked {
            now: 0,
            running: None,
            spinning: None,
            asleep: 0,
            sched: queue(settings),
            events: BinaryHeap::new(),
        };
        Cpus {
            here: 0,
            parked: (0..count).map(parked).collect(),
            home: (0..settings.processes.len()).map(|pid| pid % count).collect(),
        }
    }
}

impl Core {
    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus.parked.len()
    }

    /// The CPU that a policy is asked for: the one of `running` and `sched`, whose time `now` is.
    pub fn cpu(&self) -> usize {
        self.cpus.here
    }

    /// The CPU on which a process runs, or ran last and waits to run again.
    pub fn cpu_of(&self, pid: Pid) -> usize {
        self.cpus.home[pid]
    }

    /// Whether a process has a processor.
    pub fn runs(&self, pid: Pid) -> bool {
        self.running == Some(pid) || self.others().any(|(_, cpu)| cpu.running == Some(pid))
    }

    /// What the CPU at hand did.
    pub(crate) fn cpu_stats(&mut self) -> &mut CpuStats {
        &mut self.stats.cpus[self.cpus.here]
    }

    /// Accounts for the time of a process on the CPU at hand; what lies before is in the statistics of the warm-up.
    pub(crate) fn ran(&mut self, pid: Pid, from: Time, to: Time) {
        let from = from.max(self.stats.since);
        if from < to {
            self.stats.ran(pid, from, to);
            self.cpu_stats().busy += to - from;
        }
    }

    /// Accounts for time in which the CPU at hand did nothing.
    pub(crate) fn idled(&mut self, from: Time, to: Time) {
        let idle = to.saturating_sub(from.max(self.stats.since));
        self.stats.idle += idle;
        self.cpu_stats().idle += idle;
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Parked)> {
        self.cpus.parked.iter().enumerate().filter(|(cpu, _)| *cpu != self.cpus.here)
    }

    /// Goes on with another CPU.
    pub(crate) fn switch_to(&mut self, cpu: usize) {
        if cpu != self.cpus.here {
            self.exchange(self.cpus.here);
            self.cpus.here = cpu;
            self.exchange(cpu);
        }
    }

    fn exchange(&mut self, cpu: usize) {
        let Parked { now, running, spinning, asleep, sched, events } = &mut self.cpus.parked[cpu];
        std::mem::swap(&mut self.now, now);
        std::mem::swap(&mut self.running, running);
        std::mem::swap(&mut self.spinning, spinning);
        std::mem::swap(&mut self.asleep, asleep);
        std::mem::swap(&mut self.sched, sched);
        std::mem::swap(&mut self.events, events);
    }

    /// When a CPU has something to do.
    pub(crate) fn busy_from(&self, cpu: usize) -> Time {
        let parked = &self.cpus.parked[cpu];
        let (now, running, spinning, sched, events) = if cpu == self.cpus.here {
            (self.now, self.running, self.spinning, &self.sched, &self.events)
        } else {
            (parked.now, parked.running, parked.spinning, &parked.sched, &parked.events)
        };
        let event = events.peek().map_or(Time::MAX, |event| event.0.0);
        match (running, spinning) {
            (Some(_), Some(until)) => until.min(event).max(now),
            (Some(_), None) => now,
            (None, _) if sched.queued() > 0 => now,
            (None, _) => event.max(now),
        }
    }

    /// The time of the CPU that is furthest ahead.
    pub(crate) fn last_time(&self) -> Time {
        self.others().map(|(_, cpu)| cpu.now).fold(self.now, Time::max)
    }

    /// Another CPU that has nothing to do, now and at its own time.
    pub(crate) fn idle_cpu(&self) -> Option<usize> {
        let idle = |cpu: &Parked| {
            let next = cpu.events.peek().map_or(Time::MAX, |event| event.0.0);
            cpu.running.is_none() && cpu.sched.queued() == 0 && next > self.now.max(cpu.now)
        };
        self.others().find(|(_, cpu)| idle(cpu)).map(|(cpu, _)| cpu)
    }

    /// The CPU with most processes that run or are ready, if some of them wait for it: how many, and who is its next.
    pub(crate) fn busiest_cpu(&self) -> Option<(usize, Pid)> {
        // A CPU that is behind, and runs nobody yet, will run the first of its queue itself.
        let waiting = self.others().filter(|(_, cpu)| cpu.sched.queued() > usize::from(cpu.running.is_none()));
        let load = |cpu: &Parked| cpu.sched.queued() + usize::from(cpu.running.is_some());
        let (_, cpu) = waiting.max_by_key(|(at, cpu)| (load(cpu), Reverse(*at)))?;
        Some((load(cpu), cpu.sched.next()?))
    }

    /// Takes a ready process from another CPU's queue to this one's.
    pub(crate) fn fetch(&mut self, pid: Pid) {
        let entity = self.cpus.parked[self.cpus.home[pid]].sched.leave(pid);
        self.sched.join(pid, entity);
        self.sched.put_back(pid);
        self.cpus.home[pid] = self.cpus.here;
        self.stats.cpus[self.cpus.here].taken += 1;
    }

    /// Has a process that wakes here wake on another CPU, which is idle; when it does.
    pub(crate) fn send(&mut self, pid: Pid, cpu: usize) -> Time {
        let entity = self.sched.leave(pid);
        let parked = &mut self.cpus.parked[cpu];
        parked.sched.join(pid, entity);
        parked.asleep += 1;
        self.number += 1;
        let at = self.now.max(parked.now);
        parked.events.push(Reverse((at, self.number, Event::Wake(pid))));
        self.cpus.home[pid] = cpu;
        self.stats.cpus[cpu].taken += 1;
        at
    }

    /// Whether every process is in one place at most: on one CPU, in one queue, or asleep on one.
    ///
    /// # Errors
    /// What is not so.
    pub(crate) fn check_cpus(&self) -> Result<(), String> {
        let mut places = vec![0; self.cpus.home.len()];
        let mut add = |running: Option<Pid>, sched: &dyn Schedule, events: &BinaryHeap<Queued>| {
            let wakes = events.iter().filter_map(|event| match event.0.2 {
                Event::Wake(pid) => Some(pid),
                _ => None,
            });
            sched.ready().into_iter().chain(running).chain(wakes).for_each(|pid| places[pid] += 1);
        };
        add(self.running, &*self.sched, &self.events);
        self.others().for_each(|(_, cpu)| add(cpu.running, &*cpu.sched, &cpu.events));
        match places.iter().position(|count| *count > 1) {
            Some(pid) => Err(format!("process {pid}: in {} places", places[pid])),
            None => Ok(()),
        }
    }
}
