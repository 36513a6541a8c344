// SPDX-License-Identifier: Apache-2.0
//! Chooses which of several CPUs is simulated next and for how long. Moves processes between CPUs.
//!
//! Each CPU has its own time. The CPU that is furthest behind is simulated until it is one quantum ahead of another.

use super::Sim;
use crate::pages::Pid;
use crate::settings::Time;

impl Sim {
    /// Continues with the CPU that is furthest behind. A CPU without a process idles until its next event.
    pub(super) fn choose(&mut self) {
        let (mut first, mut second) = ((Time::MAX, 0), Time::MAX);
        for cpu in 0..self.core.cpus() {
            let from = self.core.busy_from(cpu);
            if from < first.0 {
                (first, second) = ((from, cpu), first.0);
            } else {
                second = second.min(from);
            }
        }
        assert!(first.0 != Time::MAX, "processes wait for nothing");
        self.switch_to(first.1);
        if self.core.running.is_none() {
            self.idle_until(first.0);
        }
        self.limit = second.saturating_add(self.quantum);
    }

    pub(super) fn switch_to(&mut self, cpu: usize) {
        let here = self.core.cpu();
        if cpu != here {
            self.turns[here] = self.turn;
            self.turn = self.turns[cpu];
            self.core.switch_to(cpu);
        }
    }

    /// Lets this CPU idle until a time.
    pub(super) fn idle_until(&mut self, time: Time) {
        let time = time.max(self.core.now);
        self.core.idled(self.core.now, time);
        self.core.now = time;
    }

    /// Counts the time of the other CPUs up to the end of a warm-up without changing what they do. If a CPU is ahead (by at most
    /// a quantum), the time beyond the warm-up is counted already.
    pub(super) fn count_others(&mut self, end: Time) {
        let here = self.core.cpu();
        for cpu in (0..self.core.cpus()).filter(|cpu| *cpu != here) {
            self.switch_to(cpu);
            let from = self.core.now;
            match self.core.running {
                Some(pid) if !self.turn.entering => self.core.ran(pid, self.turn.counted, end),
                Some(_) => {}
                None => self.core.idled(from, end.min(self.core.busy_from(cpu))),
            }
        }
        self.switch_to(here);
    }

    /// Takes a ready process from the CPU with the most processes, if this CPU has none, or has at least two fewer. If this CPU
    /// has none, it also takes a process that became ready on a CPU that is ahead in time, and idles until that moment.
    pub(super) fn balance(&mut self) {
        let own = self.core.sched.queued() + usize::from(self.core.running.is_some());
        let Some((load, pid)) = self.core.busiest_cpu() else { return };
        let ready = self.programs[pid].ready;
        if own == 0 {
            self.idle_until(ready);
        } else if load < own + 2 || ready > self.core.now {
            return;
        }
        self.core.fetch(pid);
    }

    /// If this CPU has other work, lets a process that wakes here wake on an idle CPU instead. Returns whether it does.
    pub(super) fn wakes_elsewhere(&mut self, woken: Pid) -> bool {
        if self.core.running.is_none() && self.core.sched.queued() == 0 {
            return false;
        }
        let Some(cpu) = self.core.idle_cpu() else { return false };
        let at = self.core.send(woken, cpu);
        self.limit = self.limit.min(at + self.quantum);
        true
    }

    /// Counts the time of all running processes.
    pub(super) fn count_all(&mut self) {
        let here = self.core.cpu();
        for cpu in 0..self.core.cpus() {
            self.switch_to(cpu);
            if let Some(pid) = self.core.running.filter(|_| !self.turn.entering) {
                self.count(pid);
            }
        }
        self.switch_to(here);
    }

    /// Ends the simulation: every CPU is idle until the last one has finished.
    pub(super) fn finish(&mut self) {
        let end = self.core.last_time();
        for cpu in 0..self.core.cpus() {
            self.switch_to(cpu);
            self.idle_until(end);
        }
    }
}
