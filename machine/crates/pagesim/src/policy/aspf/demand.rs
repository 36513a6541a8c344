// SPDX-License-Identifier: Apache-2.0
//! Online memory-demand predictor: who faults more often than the average is memory-intensive (ASPF III-C, algorithm 4).

use std::collections::VecDeque;

use crate::pages::Pid;
use crate::settings::{Time, ms};

/// Times of the faults of each process in a window.
#[derive(Debug)]
pub struct Predictor {
    period: Time,
    faults: Vec<VecDeque<Time>>,
    /// Faults in the window of each process, as last asked for.
    averages: Vec<usize>,
    longest: usize,
}

impl Predictor {
    /// With a window of so many ms.
    pub fn new(processes: usize, window_ms: f64) -> Predictor {
        let faults = vec![VecDeque::new(); processes];
        Predictor { period: ms(window_ms), faults, averages: vec![0; processes], longest: 0 }
    }

    /// A process has faulted (steps 1 to 3).
    pub fn fault(&mut self, pid: Pid, now: Time) {
        self.faults[pid].push_back(now);
        self.longest = self.longest.max(self.faults.iter().map(VecDeque::len).sum());
    }

    /// Whether a process, at the end of a turn, has more faults in the window than the average of all (steps 4 to 7). The period,
    /// by which all are divided, does not matter to that.
    pub fn is_intense(&mut self, pid: Pid, now: Time) -> bool {
        for (faults, average) in self.faults.iter_mut().zip(&mut self.averages) {
            while faults.front().is_some_and(|first| first + self.period < now) {
                faults.pop_front();
            }
            *average = faults.len();
        }
        self.averages[pid] * self.averages.len() > self.averages.iter().sum()
    }

    /// Of the queues at their longest: a timestamp of eight bytes for each fault.
    pub fn bytes(&self) -> u64 {
        8 * self.longest as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Algorithm 4 by hand, a window of 10 ms, a dozen faults of P0 (five), P1 (one) and P2 (six): on average four.
    #[test]
    fn algorithm_4_by_hand() {
        let mut predictor = Predictor::new(3, 10.0);
        for (pid, at) in
            [(0, 1), (0, 2), (2, 3), (2, 4), (2, 5), (1, 6), (0, 7), (0, 8), (0, 9), (2, 9), (2, 9), (2, 10)]
        {
            predictor.fault(pid, ms(f64::from(at)));
        }
        let labels = |predictor: &mut Predictor, at: f64| [0, 1, 2].map(|pid| predictor.is_intense(pid, ms(at)));
        assert_eq!(labels(&mut predictor, 10.0), [true, false, true]);
        // At 14.5 ms those up to 4 are over: three, one and four are left, 2.67 on average.
        assert_eq!(labels(&mut predictor, 14.5), [true, false, true]);
        // At 17.5: two (8, 9), none, three (9, 9, 10): 1.67.
        assert_eq!(labels(&mut predictor, 17.5), [true, false, true]);
        // At 19.0 exactly the one at 9 counts still: one, none, three: 1.33.
        assert_eq!(labels(&mut predictor, 19.0), [false, false, true]);
        // All over: nobody is above an average of none.
        assert_eq!(labels(&mut predictor, 30.0), [false, false, false]);
    }
}
