// SPDX-License-Identifier: Apache-2.0
//! Memory-demand-aware CFS: keeps memory-intensive processes from running one after the other (ASPF III-B2, algorithm 2).

use std::collections::VecDeque;

use crate::pages::Pid;
use crate::policy::Bookkeeping;
use crate::sched::{Schedule, Virtual};

/// Sizes in bytes that the paper states (IV-C2).
const PROCESS: u64 = 25;
const POINTER: u64 = 4;

/// The postpone queue, and the delays of its processes.
#[derive(Debug)]
pub struct Postpone {
    queue: VecDeque<Pid>,
    /// `delay_time` of each process.
    delay: Vec<Virtual>,
    longest: usize,
    operations: u64,
}

impl Postpone {
    /// Makes an empty queue for this number of `processes`.
    pub fn new(processes: usize) -> Postpone {
        Postpone { queue: VecDeque::new(), delay: vec![0; processes], longest: 0, operations: 0 }
    }

    /// The postponed processes in the queue's order.
    pub fn queue(&self) -> impl Iterator<Item = Pid> + '_ {
        self.queue.iter().copied()
    }

    /// Puts back a process whose slice is over (algorithm 2). It goes to the tree. But if it and the rightmost process in the
    /// tree are both memory-intensive, it goes to the queue. A process that is not memory-intensive may move the first process of
    /// the queue into the tree.
    pub fn put_back(&mut self, sched: &mut dyn Schedule, pid: Pid, intense: &[bool]) {
        if intense[pid] {
            self.fill_empty_tree(sched);
        }
        let rightmost = sched.ready().last().copied();
        if intense[pid] {
            match rightmost {
                Some(last) if intense[last] => {
                    self.queue.push_back(pid);
                    self.longest = self.longest.max(self.queue.len());
                    self.operations += 1;
                }
                _ => sched.put_back(pid),
            }
            return;
        }
        // Steps 1 to 6.
        let vruntime = sched.entity(pid).vruntime;
        let is_rightmost = rightmost.is_none_or(|last| vruntime >= sched.entity(last).vruntime);
        sched.put_back(pid);
        if !is_rightmost {
            return;
        }
        // Steps 8 to 14.
        if let Some(first) = self.queue.pop_front() {
            self.operations += 1;
            let entity = sched.entity_mut(first);
            let old = std::mem::replace(&mut entity.vruntime, vruntime + 1);
            self.delay[first] = entity.vruntime - old;
            sched.put_back(first);
        }
    }

    /// Whether a process continues at the end of its slice. It does not if processes are postponed and the tree is empty.
    pub fn goes_on(&self, sched: &mut dyn Schedule, pid: Pid) -> bool {
        (self.queue.is_empty() || sched.next().is_some()) && sched.goes_on(pid)
    }

    /// If the tree is empty, moves the first process of the queue there without a change.
    fn fill_empty_tree(&mut self, sched: &mut dyn Schedule) {
        if sched.next().is_none()
            && let Some(first) = self.queue.pop_front()
        {
            self.operations += 1;
            sched.put_back(first);
        }
    }

    /// Takes the leftmost process. It gets back the time by which it was delayed (equation 1).
    pub fn take_next(&mut self, sched: &mut dyn Schedule) -> Option<Pid> {
        self.fill_empty_tree(sched);
        let pid = sched.take_next()?;
        sched.entity_mut(pid).vruntime -= std::mem::take(&mut self.delay[pid]);
        Some(pid)
    }

    /// Bytes and operations, counted as in IV-C.
    pub fn cost(&self) -> Bookkeeping {
        let bytes = self.delay.len() as u64 * PROCESS + self.longest as u64 * POINTER;
        Bookkeeping { bytes, operations: self.operations }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sched::{Cfs, Entity};
    use crate::settings::ms;

    struct Game {
        cfs: Cfs,
        postpone: Postpone,
        intense: Vec<bool>,
    }

    impl Game {
        fn new(intense: &[bool]) -> Game {
            let mut cfs = Cfs::new(ms(6.0), ms(0.75), ms(1.0));
            for pid in 0..intense.len() {
                cfs.add(Entity::new(0));
                cfs.put_back(pid);
            }
            Game { cfs, postpone: Postpone::new(intense.len()), intense: intense.to_vec() }
        }

        /// Simulates a turn of some time. Returns the process that ran, then the tree with virtual run times and the queue.
        fn turn(&mut self, time: u64) -> (Pid, Vec<(Pid, Virtual)>, Vec<Pid>) {
            let pid = self.postpone.take_next(&mut self.cfs).unwrap();
            self.cfs.ran(pid, time);
            self.postpone.put_back(&mut self.cfs, pid, &self.intense);
            let tree = self.cfs.ready().into_iter().map(|pid| (pid, self.cfs.entity(pid).vruntime)).collect();
            (pid, tree, self.postpone.queue().collect())
        }
    }

    /// Algorithm 2 and equation 1 by hand over a dozen turns. P0 and P1 are memory-intensive, P2 is not; each turn takes 10.
    ///
    /// | turn | runs | put back | tree (process, virtual run time) | queue |
    /// | --- | --- | --- | --- | --- |
    /// | 1 | P0 | rightmost is P2: inserted | P1 0, P2 0, P0 10 | |
    /// | 2 | P1 | rightmost is P0: postponed | P2 0, P0 10 | P1 (10) |
    /// | 3 | P2 | 10 is the largest: rightmost; P1 to 11, delay 1 | P0 10, P2 10, P1 11 | |
    /// | 4 | P0 | rightmost is P1: postponed | P2 10, P1 11 | P0 (20) |
    /// | 5 | P2 | rightmost; P0 to 21, delay 1 | P1 11, P2 20, P0 21 | |
    /// | 6 | P1, 11 - 1 = 10 | rightmost is P0: postponed | P2 20, P0 21 | P1 (20) |
    /// | 7 | P2 | rightmost; P1 to 31, delay 11 | P0 21, P2 30, P1 31 | |
    /// | 8 | P0, 21 - 1 = 20 | rightmost is P1: postponed | P2 30, P1 31 | P0 (30) |
    /// | 9 | P2 | rightmost; P0 to 41, delay 11 | P1 31, P2 40, P0 41 | |
    /// | 10 | P1, 31 - 11 = 20 | postponed | P2 40, P0 41 | P1 (30) |
    /// | 11 | P2 | rightmost; P1 to 51, delay 21 | P0 41, P2 50, P1 51 | |
    /// | 12 | P0, 41 - 11 = 30 | postponed | P2 50, P1 51 | P0 (40) |
    #[test]
    fn algorithm_2_by_hand() {
        let mut game = Game::new(&[true, true, false]);
        let turns: Vec<_> = (0..12).map(|_| game.turn(10)).collect();
        assert_eq!(
            turns,
            [
                (0, vec![(1, 0), (2, 0), (0, 10)], vec![]),
                (1, vec![(2, 0), (0, 10)], vec![1]),
                (2, vec![(0, 10), (2, 10), (1, 11)], vec![]),
                (0, vec![(2, 10), (1, 11)], vec![0]),
                (2, vec![(1, 11), (2, 20), (0, 21)], vec![]),
                (1, vec![(2, 20), (0, 21)], vec![1]),
                (2, vec![(0, 21), (2, 30), (1, 31)], vec![]),
                (0, vec![(2, 30), (1, 31)], vec![0]),
                (2, vec![(1, 31), (2, 40), (0, 41)], vec![]),
                (1, vec![(2, 40), (0, 41)], vec![1]),
                (2, vec![(0, 41), (2, 50), (1, 51)], vec![]),
                (0, vec![(2, 50), (1, 51)], vec![0]),
            ]
        );
    }

    #[test]
    fn postponed_processes_run_when_nobody_else_is_ready() {
        let mut game = Game::new(&[true, true, true]);
        let runs: Vec<_> = (0..6).map(|_| game.turn(10).0).collect();
        assert_eq!(runs, [0, 1, 2, 0, 1, 2]);
    }

    proptest! {
        /// A postponed process is repaid exactly: when it runs, its virtual run time is the time that it has run.
        #[test]
        fn delays_are_repaid_exactly(
            intense in prop::collection::vec(any::<bool>(), 1..8),
            turns in prop::collection::vec((0..8usize, 1..100_000u64), 1..200),
        ) {
            let mut game = Game::new(&intense);
            let mut ran = vec![0; intense.len()];
            for (flips, time) in turns {
                let flipped = flips % intense.len();
                game.intense[flipped] ^= flips > 5;
                let pid = game.postpone.take_next(&mut game.cfs).unwrap();
                prop_assert_eq!(game.cfs.entity(pid).vruntime, ran[pid]);
                ran[pid] += time as Virtual;
                game.cfs.ran(pid, time);
                game.postpone.put_back(&mut game.cfs, pid, &game.intense);
                // Each process is in exactly one place.
                let mut all: Vec<_> = game.cfs.ready().into_iter().chain(game.postpone.queue()).collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..intense.len()).collect::<Vec<_>>());
            }
        }
    }
}
