// SPDX-License-Identifier: Apache-2.0
//! The states of several CPUs. One CPU is simulated at a time. Its state is in the fields of [`Core`]; the states of the other
//! CPUs are parked here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Serialize, Serializer};

use crate::core::{Core, Event, Queued};
use crate::pages::Pid;
use crate::sched::{self, Entity, Schedule};
use crate::settings::{Settings, Time};

/// What one CPU did. Serialized times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuStats {
    /// Time in which a process had the CPU, including its waits for pages.
    #[serde(rename = "busy_ns", serialize_with = "in_ns")]
    pub busy: Time,
    /// Time without a ready process.
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

/// All CPUs. One of them is being simulated.
pub(crate) struct Cpus {
    /// The CPU that is being simulated.
    here: usize,
    /// The states of the other CPUs. The entry of the simulated CPU has no meaning.
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
    /// The CPUs of a configuration. Processes are assigned to them in turn.
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

    /// The CPU that is being simulated. `running`, `sched` and `now` belong to it.
    pub fn cpu(&self) -> usize {
        self.cpus.here
    }

    /// The CPU on which a process runs. If it does not run: the CPU on which it last ran, or waits to run.
    pub fn cpu_of(&self, pid: Pid) -> usize {
        self.cpus.home[pid]
    }

    /// Whether a process runs on some CPU.
    pub fn runs(&self, pid: Pid) -> bool {
        self.running == Some(pid) || self.others().any(|(_, cpu)| cpu.running == Some(pid))
    }

    /// Counts of the CPU that is being simulated.
    pub(crate) fn cpu_stats(&mut self) -> &mut CpuStats {
        &mut self.stats.cpus[self.cpus.here]
    }

    /// Counts the time of a process on this CPU. The part before `stats.since` belongs to the warm-up and is not counted.
    pub(crate) fn ran(&mut self, pid: Pid, from: Time, to: Time) {
        let from = from.max(self.stats.since);
        if from < to {
            self.stats.ran(pid, from, to);
            self.cpu_stats().busy += to - from;
        }
    }

    /// Counts time in which this CPU did nothing.
    pub(crate) fn idled(&mut self, from: Time, to: Time) {
        let idle = to.saturating_sub(from.max(self.stats.since));
        self.stats.idle += idle;
        self.cpu_stats().idle += idle;
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Parked)> {
        self.cpus.parked.iter().enumerate().filter(|(cpu, _)| *cpu != self.cpus.here)
    }

    /// Continues with another CPU.
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

    /// The time from which a CPU has something to do.
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

    /// Finds another CPU that runs no process, has none in its queue, and has no event up to this CPU's time or its own time,
    /// whichever is later.
    pub(crate) fn idle_cpu(&self) -> Option<usize> {
        let idle = |cpu: &Parked| {
            let next = cpu.events.peek().map_or(Time::MAX, |event| event.0.0);
            cpu.running.is_none() && cpu.sched.queued() == 0 && next > self.now.max(cpu.now)
        };
        self.others().find(|(_, cpu)| idle(cpu)).map(|(cpu, _)| cpu)
    }

    /// Finds the CPU with the most processes (running or ready) among the other CPUs on which a process waits to run. Returns the
    /// number of these processes, and the process that would run next there.
    pub(crate) fn busiest_cpu(&self) -> Option<(usize, Pid)> {
        // A CPU that is behind in time and runs no process will run the first process of its queue itself.
        let waiting = self.others().filter(|(_, cpu)| cpu.sched.queued() > usize::from(cpu.running.is_none()));
        let load = |cpu: &Parked| cpu.sched.queued() + usize::from(cpu.running.is_some());
        let (_, cpu) = waiting.max_by_key(|(at, cpu)| (load(cpu), Reverse(*at)))?;
        Some((load(cpu), cpu.sched.next()?))
    }

    /// Takes a ready process from another CPU's queue into this one's.
    pub(crate) fn fetch(&mut self, pid: Pid) {
        let entity = self.cpus.parked[self.cpus.home[pid]].sched.leave(pid);
        self.sched.join(pid, entity);
        self.sched.put_back(pid);
        self.cpus.home[pid] = self.cpus.here;
        self.stats.cpus[self.cpus.here].taken += 1;
    }

    /// Lets a process that would wake here wake on another CPU, which is idle. Returns the time at which it wakes.
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

    /// Checks that each process is in at most one place: running on one CPU, in one queue, or asleep on one CPU.
    ///
    /// # Errors
    /// Says what is wrong.
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
