// SPDX-License-Identifier: Apache-2.0
//! Online memory-demand predictor: a process that faults more often than the average is memory-intensive (ASPF III-C, algorithm
//! 4).

use std::collections::VecDeque;

use super::settings::{Aspf, FaultRate};
use crate::pages::Pid;
use crate::settings::{Time, ms};

/// The times of each process's faults in a window.
#[derive(Debug)]
pub struct Predictor {
    rate: FaultRate,
    period: Time,
    faults: Vec<VecDeque<Time>>,
    /// Time at which each process's last turn began.
    turns: Vec<Time>,
    /// Fault rate of each process when it was last asked for: faults in the window, or faults per picosecond of the turn.
    averages: Vec<f64>,
    longest: usize,
}

impl Predictor {
    /// Makes a predictor without faults.
    pub fn new(processes: usize, settings: &Aspf) -> Predictor {
        Predictor {
            rate: settings.fault_rate,
            period: ms(settings.window_ms),
            faults: vec![VecDeque::new(); processes],
            turns: vec![0; processes],
            averages: vec![0.0; processes],
            longest: 0,
        }
    }

    /// Notes that a turn of a process begins.
    pub fn enter(&mut self, pid: Pid, now: Time) {
        self.turns[pid] = now;
    }

    /// Notes a fault of a process (steps 1 to 3).
    pub fn fault(&mut self, pid: Pid, now: Time) {
        self.faults[pid].push_back(now);
        self.longest = self.longest.max(self.faults.iter().map(VecDeque::len).sum());
    }

    /// Compares the fault rate of a process at the end of a turn with the average over all processes, each at the end of its last
    /// turn (steps 4 to 7). Returns whether the process's rate is higher. Rates in a window are not divided by the window's
    /// length, because this would not change the result.
    pub fn is_intense(&mut self, pid: Pid, now: Time) -> bool {
        let faults = &mut self.faults[pid];
        let from = match self.rate {
            FaultRate::Window => now.saturating_sub(self.period),
            FaultRate::Turn => self.turns[pid],
        };
        while faults.front().is_some_and(|first| *first < from) {
            faults.pop_front();
        }
        self.averages[pid] = match self.rate {
            FaultRate::Window => faults.len() as f64,
            FaultRate::Turn => faults.len() as f64 / (now - from).max(1) as f64,
        };
        self.averages[pid] * self.averages.len() as f64 > self.averages.iter().sum()
    }

    /// Bytes of the queues when they were longest. Each fault has a timestamp of eight bytes.
    pub fn bytes(&self) -> u64 {
        8 * self.longest as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Algorithm 4 by hand with a window of 10 ms and a dozen faults: P0 at 1, 2, 7, 8, 9 ms, P1 at 6 ms, P2 at 3, 4, 5, 9, 9, 10
    /// ms.
    ///
    /// | asked for | faults in its window | known rates (P0, P1, P2) | average | intense |
    /// | --- | --- | --- | --- | --- |
    /// | P0 at 9 | 5 | 5, 0, 0 | 1.67 | yes |
    /// | P1 at 9.5 | 1 | 5, 1, 0 | 2 | no |
    /// | P2 at 10 | 6 | 5, 1, 6 | 4 | yes |
    /// | P0 at 14.5 | 7, 8, 9: 3 | 3, 1, 6 | 3.33 | no |
    /// | P2 at 15 | 5 (at 5 exactly), 9, 9, 10: 4 | 3, 1, 4 | 2.67 | yes |
    /// | P1 at 16 | 6 exactly: 1 | 3, 1, 4 | 2.67 | no |
    /// | P2 at 19.5 | 10: 1 | 3, 1, 1 | 1.67 | no |
    /// | P0 at 30 | none | 0, 1, 1 | 0.67 | no |
    /// | P1 at 30 | none | 0, 0, 1 | 0.33 | no |
    #[test]
    fn algorithm_4_by_hand() {
        let mut predictor = Predictor::new(3, &Aspf { window_ms: 10.0, ..Aspf::default() });
        let mut faults =
            [(0, 1), (0, 2), (2, 3), (2, 4), (2, 5), (1, 6), (0, 7), (0, 8), (0, 9), (2, 9), (2, 9), (2, 10)]
                .map(|(pid, at)| (pid, ms(f64::from(at))))
                .into_iter()
                .peekable();
        let asked = [
            (0, 9.0, true),
            (1, 9.5, false),
            (2, 10.0, true),
            (0, 14.5, false),
            (2, 15.0, true),
            (1, 16.0, false),
            (2, 19.5, false),
            (0, 30.0, false),
            (1, 30.0, false),
        ];
        for (pid, at, intense) in asked {
            while let Some((who, when)) = faults.next_if(|fault| fault.1 <= ms(at)) {
                predictor.fault(who, when);
            }
            assert_eq!(predictor.is_intense(pid, ms(at)), intense, "P{pid} at {at}");
        }
    }
}
