// SPDX-License-Identifier: Apache-2.0
//! The completely fair scheduler (Linux 5.7, kernel/sched/fair.c): runs the process with the least virtual run time.

use std::collections::BTreeSet;

use super::{Entity, Schedule, Virtual};
use crate::pages::Pid;
use crate::settings::Time;

/// Processes sorted by virtual run time. Among equal ones, the lower number comes first.
#[derive(Debug)]
pub struct Cfs {
    latency: Time,
    min_granularity: Time,
    wakeup_granularity: Time,
    entities: Vec<Entity>,
    tree: BTreeSet<(Virtual, Pid)>,
    /// Least virtual run time of the running and the ready processes, except that it never falls. Processes that slept return
    /// near it.
    min_vruntime: Virtual,
}

impl Cfs {
    /// Makes a scheduler with `sched_latency`, `sched_min_granularity` and `sched_wakeup_granularity`.
    pub fn new(latency: Time, min_granularity: Time, wakeup_granularity: Time) -> Cfs {
        Cfs { latency, min_granularity, wakeup_granularity, entities: vec![], tree: BTreeSet::new(), min_vruntime: 0 }
    }

    fn insert(&mut self, pid: Pid) {
        self.tree.insert((self.entities[pid].vruntime, pid));
    }

    fn follow(&mut self, running: Option<Pid>) {
        let running = running.map(|pid| self.entities[pid].vruntime);
        let leftmost = self.tree.first().map(|entry| entry.0);
        if let Some(least) = [running, leftmost].into_iter().flatten().min() {
            self.min_vruntime = self.min_vruntime.max(least);
        }
    }
}

impl Schedule for Cfs {
    fn add(&mut self, entity: Entity) {
        self.entities.push(entity);
    }

    fn entity(&self, pid: Pid) -> &Entity {
        &self.entities[pid]
    }

    fn entity_mut(&mut self, pid: Pid) -> &mut Entity {
        &mut self.entities[pid]
    }

    fn put_back(&mut self, pid: Pid) {
        self.insert(pid);
        self.follow(None);
    }

    /// A process that slept returns at most half a latency before the others (GENTLE_FAIR_SLEEPERS).
    fn wake(&mut self, pid: Pid) {
        let floor = self.min_vruntime - (self.latency / 2) as Virtual;
        let entity = &mut self.entities[pid];
        entity.vruntime = entity.vruntime.max(floor);
        self.insert(pid);
    }

    fn sleep(&mut self, _pid: Pid) {
        self.follow(None);
    }

    fn ran(&mut self, pid: Pid, time: Time) {
        let entity = &mut self.entities[pid];
        entity.vruntime += entity.virtual_time(time);
        self.follow(Some(pid));
    }

    fn next(&self) -> Option<Pid> {
        self.tree.first().map(|entry| entry.1)
    }

    fn take_next(&mut self) -> Option<Pid> {
        self.tree.pop_first().map(|entry| entry.1)
    }

    fn take(&mut self, pid: Pid) {
        self.tree.remove(&(self.entities[pid].vruntime, pid));
    }

    fn goes_on(&mut self, running: Pid) -> bool {
        self.tree.first().is_none_or(|first| (self.entities[running].vruntime, running) < *first)
    }

    fn preempts(&self, running: Pid, woken: Pid) -> bool {
        let lead = self.entities[running].vruntime - self.entities[woken].vruntime;
        lead > self.entities[woken].virtual_time(self.wakeup_granularity)
    }

    /// The share, by weight, of a period in which each ready process runs once (sched_slice).
    fn slice_beside(&self, running: Pid, others: &[Pid]) -> Time {
        let ready = self.tree.len() + others.len() + 1;
        let period = self.latency.max(ready as u64 * self.min_granularity);
        let weight = self.entities[running].weight;
        let queued = self.tree.iter().map(|entry| &entry.1).chain(others);
        let all = weight + queued.map(|pid| self.entities[*pid].weight).sum::<u64>();
        (u128::from(period) * u128::from(weight) / u128::from(all)) as Time
    }

    fn ready(&self) -> Vec<Pid> {
        self.tree.iter().map(|entry| entry.1).collect()
    }

    fn queued(&self) -> usize {
        self.tree.len()
    }

    /// Makes the virtual run time a distance from `min_vruntime`. The process gets the same distance on the other CPU
    /// (migrate_task_rq_fair).
    fn leave(&mut self, pid: Pid) -> Entity {
        self.take(pid);
        let entity = self.entities[pid];
        Entity { vruntime: entity.vruntime - self.min_vruntime, ..entity }
    }

    fn join(&mut self, pid: Pid, entity: Entity) {
        self.entities[pid] = Entity { vruntime: entity.vruntime + self.min_vruntime, ..entity };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ms;

    fn cfs(nice: &[i8]) -> Cfs {
        let mut cfs = Cfs::new(ms(6.0), ms(0.75), ms(1.0));
        for (pid, nice) in nice.iter().enumerate() {
            cfs.add(Entity::new(*nice));
            cfs.put_back(pid);
        }
        cfs
    }

    #[test]
    fn slices_share_a_period_by_weight() {
        let slice = |nice: &[i8]| {
            let mut cfs = cfs(nice);
            let first = cfs.take_next().unwrap();
            cfs.slice(first) / 1_000_000
        };
        assert_eq!(slice(&[0, 0, 0]), 2000);
        // Ten times 0.75 ms is more than 6 ms.
        assert_eq!(slice(&[0; 10]), 750);
        // The share is 1024 of 1024 + 335.
        assert_eq!(slice(&[0, 5]), 4520);
    }

    /// Turns of three processes, by hand. A process of nice 5 counts its time 1024 / 335 times.
    #[test]
    fn the_least_virtual_run_time_runs() {
        let mut cfs = cfs(&[0, 5, 0]);
        let mut turns = vec![];
        for _ in 0..7 {
            let pid = cfs.take_next().unwrap();
            cfs.ran(pid, ms(1.0));
            turns.push((pid, cfs.entity(pid).vruntime / 1_000_000));
            cfs.put_back(pid);
        }
        assert_eq!(turns, [(0, 1000), (1, 3056), (2, 1000), (0, 2000), (2, 2000), (0, 3000), (2, 3000)]);
    }

    /// The processes of one CPU have run 10 ms longer than those of the other. A process that has run 2 ms longer than the others
    /// on its CPU moves. It then has run 2 ms longer than the others there.
    #[test]
    fn a_process_moves_with_its_lead() {
        let (mut here, mut there) = (cfs(&[0, 0, 0]), cfs(&[0, 0, 0]));
        for (sched, time) in [(&mut here, 10.0), (&mut there, 20.0)] {
            sched.take(2);
            for pid in [0, 1] {
                sched.take(pid);
                sched.ran(pid, ms(time));
                sched.put_back(pid);
            }
        }
        here.take(0);
        here.ran(0, ms(2.0));
        here.put_back(0);
        let entity = here.leave(0);
        there.join(2, entity);
        there.put_back(2);
        assert_eq!((here.ready(), there.ready()), (vec![1], vec![0, 1, 2]));
        assert_eq!((there.entity(2).vruntime, there.queued()), (ms(22.0) as Virtual, 3));
    }

    #[test]
    fn a_sleeper_comes_back_half_a_latency_behind() {
        let mut cfs = cfs(&[0, 0]);
        let sleeper = cfs.take_next().unwrap();
        cfs.sleep(sleeper);
        let other = cfs.take_next().unwrap();
        cfs.ran(other, ms(20.0));
        assert_eq!(cfs.slice(other), ms(6.0));
        cfs.wake(sleeper);
        assert_eq!(cfs.entity(sleeper).vruntime, ms(17.0) as Virtual);
        assert!(cfs.preempts(other, sleeper));
        assert!(!cfs.goes_on(other));
    }
}
