// SPDX-License-Identifier: Apache-2.0
//! Earliest eligible virtual deadline first (Linux 6.12, kernel/sched/fair.c; Stoica and Abdel-Wahab 1995).

use super::{Entity, Schedule, Virtual};
use crate::pages::Pid;
use crate::settings::Time;

/// Runs the process whose slice should end first, among those that have had less than their share of time.
#[derive(Debug)]
pub struct Eevdf {
    slice: Time,
    entities: Vec<Entity>,
    queue: Vec<Pid>,
    /// Virtual run time of the process that ran last.
    last: Virtual,
}

impl Eevdf {
    /// Makes a scheduler with this base slice.
    pub fn new(slice: Time) -> Eevdf {
        Eevdf { slice, entities: vec![], queue: vec![], last: 0 }
    }

    /// Average virtual run time of the queue and the running process, by weight and rounded down.
    fn average(&self, running: Option<Pid>) -> Virtual {
        let (mut sum, mut weights) = (0_i128, 0_i128);
        for pid in self.queue.iter().copied().chain(running) {
            let entity = &self.entities[pid];
            sum += i128::from(entity.vruntime) * i128::from(entity.weight);
            weights += i128::from(entity.weight);
        }
        sum.div_euclid(weights.max(1)) as Virtual
    }

    fn request(&mut self, pid: Pid) {
        let entity = &mut self.entities[pid];
        entity.deadline = entity.vruntime + entity.virtual_time(self.slice);
    }

    fn best(&self, running: Option<Pid>) -> Option<Pid> {
        let average = self.average(running);
        let all = self.queue.iter().copied().chain(running);
        all.filter(|pid| self.entities[*pid].vruntime <= average)
            .min_by_key(|pid| (self.entities[*pid].deadline, self.entities[*pid].vruntime, *pid))
    }
}

impl Schedule for Eevdf {
    fn add(&mut self, entity: Entity) {
        self.entities.push(entity);
        self.request(self.entities.len() - 1);
    }

    fn entity(&self, pid: Pid) -> &Entity {
        &self.entities[pid]
    }

    fn entity_mut(&mut self, pid: Pid) -> &mut Entity {
        &mut self.entities[pid]
    }

    fn put_back(&mut self, pid: Pid) {
        if self.entities[pid].vruntime >= self.entities[pid].deadline {
            self.request(pid);
        }
        self.queue.push(pid);
    }

    /// A process is still owed what it was owed before it slept (PLACE_LAG). Its return moves the average of the others; the lag
    /// is corrected for this.
    fn wake(&mut self, pid: Pid) {
        let load: u64 = self.queue.iter().map(|other| self.entities[*other].weight).sum();
        let (average, entity) = (self.average(None), self.entities[pid]);
        let lag = if load == 0 {
            0
        } else {
            (i128::from(entity.lag) * i128::from(load + entity.weight) / i128::from(load)) as Virtual
        };
        if load > 0 {
            self.entities[pid].vruntime = average - lag;
        }
        self.request(pid);
        self.queue.push(pid);
    }

    fn sleep(&mut self, pid: Pid) {
        let limit = self.entities[pid].virtual_time(2 * self.slice);
        let lag = self.average(Some(pid)) - self.entities[pid].vruntime;
        self.entities[pid].lag = lag.clamp(-limit, limit);
    }

    fn ran(&mut self, pid: Pid, time: Time) {
        let entity = &mut self.entities[pid];
        entity.vruntime += entity.virtual_time(time);
        self.last = entity.vruntime;
    }

    fn next(&self) -> Option<Pid> {
        self.best(None)
    }

    fn take_next(&mut self) -> Option<Pid> {
        let pid = self.best(None)?;
        self.take(pid);
        Some(pid)
    }

    fn take(&mut self, pid: Pid) {
        self.queue.retain(|other| *other != pid);
    }

    fn goes_on(&mut self, running: Pid) -> bool {
        if self.entities[running].vruntime >= self.entities[running].deadline {
            self.request(running);
        }
        self.best(Some(running)) == Some(running)
    }

    /// A process keeps the processor until its slice is over (RUN_TO_PARITY).
    fn preempts(&self, _running: Pid, _woken: Pid) -> bool {
        false
    }

    fn slice_beside(&self, running: Pid, _others: &[Pid]) -> Time {
        let entity = &self.entities[running];
        let left = (entity.deadline - entity.vruntime).max(1) as u128;
        (left * u128::from(entity.weight)).div_ceil(u128::from(super::NICE_0)) as Time
    }

    fn ready(&self) -> Vec<Pid> {
        let mut ready = self.queue.clone();
        ready.sort_by_key(|pid| (self.entities[*pid].vruntime, *pid));
        ready
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The process keeps what it is owed. The lag of a sleeping process was recorded when it went to sleep.
    fn leave(&mut self, pid: Pid) -> Entity {
        if self.queue.contains(&pid) {
            self.take(pid);
            self.sleep(pid);
        }
        self.entities[pid]
    }

    fn join(&mut self, pid: Pid, entity: Entity) {
        let average = if self.queue.is_empty() { self.last } else { self.average(None) };
        self.entities[pid] = Entity { vruntime: average - entity.lag, ..entity };
        self.request(pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ms;

    /// Slices of 1 ms, by hand. Processes of equal weight take turns. After each has run once, the average has moved so that all
    /// are owed time.
    #[test]
    fn equal_processes_take_turns() {
        let mut eevdf = Eevdf::new(ms(1.0));
        for pid in 0..3 {
            eevdf.add(Entity::new(0));
            eevdf.put_back(pid);
        }
        let turns: Vec<_> = (0..7)
            .map(|_| {
                let pid = eevdf.take_next().unwrap();
                let slice = eevdf.slice(pid);
                assert_eq!(slice, ms(1.0));
                eevdf.ran(pid, slice);
                eevdf.put_back(pid);
                pid
            })
            .collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0]);
    }

    /// Process 0 has run 1 ms more than process 1. So it is not eligible, although its deadline comes first.
    #[test]
    fn only_who_is_owed_time_runs() {
        let mut eevdf = Eevdf::new(ms(3.0));
        for pid in 0..2 {
            eevdf.add(Entity::new(0));
            eevdf.put_back(pid);
        }
        assert_eq!(eevdf.take_next(), Some(0));
        eevdf.ran(0, ms(1.0));
        eevdf.put_back(0);
        assert_eq!(eevdf.next(), Some(1));
    }

    /// A process that is owed 0.5 ms on one CPU is owed 0.5 ms on the other CPU, whose average is 7 ms.
    #[test]
    fn who_moves_while_owed_time_is_owed_it_there() {
        let [mut here, mut there] = [(), ()].map(|()| {
            let mut eevdf = Eevdf::new(ms(1.0));
            (0..3).for_each(|_| eevdf.add(Entity::new(0)));
            eevdf
        });
        (0..2).for_each(|pid| here.put_back(pid));
        here.take(0);
        here.ran(0, ms(1.0));
        here.put_back(0);
        there.ran(2, ms(7.0));
        there.put_back(2);
        let entity = here.leave(1);
        there.join(1, entity);
        there.put_back(1);
        assert_eq!((here.ready(), there.ready(), there.queued()), (vec![0], vec![1, 2], 2));
        assert_eq!(there.entity(1).vruntime, ms(6.5) as Virtual);
    }

    #[test]
    fn who_sleeps_while_owed_time_is_owed_it_after() {
        let mut eevdf = Eevdf::new(ms(1.0));
        for pid in 0..2 {
            eevdf.add(Entity::new(0));
            eevdf.put_back(pid);
        }
        eevdf.take(0);
        eevdf.ran(0, ms(1.0));
        eevdf.put_back(0);
        // The average is 0.5 ms, so process 1 is owed 0.5 ms.
        eevdf.take(1);
        eevdf.sleep(1);
        assert_eq!(eevdf.entity(1).lag, ms(0.5) as Virtual);
        eevdf.take(0);
        eevdf.ran(0, ms(4.0));
        eevdf.put_back(0);
        eevdf.wake(1);
        // Process 1 returns with a lag of 1 ms against 0 alone. This is 0.5 ms against the average of both.
        assert_eq!(eevdf.entity(1).vruntime, ms(4.0) as Virtual);
        assert_eq!(eevdf.average(None) - eevdf.entity(1).vruntime, ms(0.5) as Virtual);
    }
}
