// SPDX-License-Identifier: Apache-2.0
//! Leap: prefetches along the stride of the majority of recent accesses (Al Maruf and Chowdhury, "Effectively Prefetching Remote
//! Memory with Leap", USENIX ATC 2020, algorithms 1 and 2). Differences from the paper: docs/explanation/pagesim-rivals.md.

use std::collections::VecDeque;

use super::{Policy, Registration};
use crate::core::Core;
use crate::pages::{Origin, PageId, Pid};

/// The policy of this file.
pub const POLICIES: &[Registration] = &[Registration {
    name: "leap",
    about: "Leap: follows the majority of the strides between faults ([rivals](../explanation/pagesim-rivals.md))",
    make: |settings| Box::new(Leap::new(settings.processes.len())),
}];

/// Number of accesses that are remembered (`Hsize`).
const HISTORY: usize = 32;
/// Number of parts of the history; the policy looks at the latest part first (`Nsplit`).
const SPLIT: usize = 4;
/// Largest number of pages to prefetch (`PWsize_max`).
const MOST: u32 = 8;

/// Differences between successive accesses. Only two kinds of accesses count: faults, and first accesses to prefetched pages.
#[derive(Clone, Debug)]
struct History {
    /// The latest difference comes first.
    deltas: VecDeque<i64>,
    size: usize,
    split: usize,
    last: Option<u64>,
}

impl History {
    fn new(size: usize, split: usize) -> History {
        History { deltas: VecDeque::with_capacity(size), size, split, last: None }
    }

    fn access(&mut self, vpn: u64) {
        if let Some(last) = self.last.replace(vpn) {
            self.deltas.truncate(self.size - 1);
            self.deltas.push_front(vpn.wrapping_sub(last) as i64);
        }
    }

    /// Algorithm 1: finds the difference that more than half of the latest accesses have. Starts with a part of the history and
    /// doubles the part until there is such a difference.
    fn trend(&self) -> Option<i64> {
        let parts = std::iter::successors(Some(self.size / self.split), |part| Some(part * 2));
        parts.take_while(|part| *part <= self.size).find_map(|part| self.majority(part))
    }

    /// Boyer and Moore's vote. If the history is shorter than the part, the accesses that it lacks vote for nothing.
    fn majority(&self, part: usize) -> Option<i64> {
        let latest = || self.deltas.iter().take(part).copied();
        let (chosen, _) = latest().fold((0, 0_usize), |(chosen, votes), delta| match votes {
            0 => (delta, 1),
            _ if delta == chosen => (chosen, votes + 1),
            _ => (chosen, votes - 1),
        });
        (latest().filter(|delta| *delta == chosen).count() > part / 2).then_some(chosen)
    }
}

#[derive(Clone, Debug)]
struct Process {
    history: History,
    /// The last trend that was found.
    trend: Option<i64>,
    /// Prefetched pages that were accessed since the last fault (`Chit`).
    hits: u32,
    /// Number of pages in the last window.
    last: u32,
}

impl Process {
    fn new() -> Process {
        Process { history: History::new(HISTORY, SPLIT), trend: None, hits: 0, last: 0 }
    }

    /// Algorithm 2: the distances from the missing page to the pages to prefetch.
    fn fault(&mut self, vpn: u64) -> Vec<i64> {
        self.history.access(vpn);
        let found = self.history.trend();
        self.trend = found.or(self.trend);
        let wanted = match std::mem::take(&mut self.hits) {
            0 => u32::from(found.is_some() && self.history.deltas.front().copied() == found),
            hits => (hits + 1).next_power_of_two(),
        };
        self.last = wanted.min(MOST).max(self.last / 2);
        let Some(stride) = self.trend else { return vec![] };
        let places = 1..=i64::from(self.last);
        match found {
            Some(_) => places.map(|n| n * stride).collect(),
            // Around the missing page: one stride after it, one before it, two after it, ...
            None => places.map(|n| if n % 2 == 1 { n / 2 + 1 } else { -n / 2 }).map(|n| n * stride).collect(),
        }
    }

    fn hit(&mut self, vpn: u64) {
        self.history.access(vpn);
        self.hits += 1;
    }
}

/// The policy's state. Each process has its own history and window.
#[derive(Debug)]
pub struct Leap {
    processes: Vec<Process>,
}

impl Leap {
    /// Starts with an empty history for each of the `processes`.
    pub fn new(processes: usize) -> Leap {
        Leap { processes: vec![Process::new(); processes] }
    }
}

impl Policy for Leap {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        for distance in self.processes[pid].fault(vpn) {
            let ahead = vpn.checked_add_signed(distance).and_then(|vpn| core.pages.mapped(pid, vpn));
            if let Some(page) = ahead {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }

    fn used(&mut self, core: &mut Core, page: PageId) {
        let entry = &core.pages[page];
        self.processes[entry.owner].hit(entry.vpn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::core;

    /// The paper's example of algorithm 1: a history of eight in two parts. The trend is -3 until the window t4 to t7, where
    /// neither four nor eight accesses agree. From t8 on it is +2.
    #[test]
    fn algorithm_1_by_hand() {
        let pages = [0x48, 0x45, 0x42, 0x3f, 0x3c, 2, 4, 6, 8, 0xa, 0xc, 0x10, 0x39, 0x12, 0x14, 0x16];
        let mut history = History::new(8, 2);
        let found = pages.map(|page| {
            history.access(page);
            history.trend()
        });
        // At t6, four of eight are not enough. At t12 to t14, five of eight are enough, although no four agree.
        let (none, back, on) = ([None; 3], [Some(-3); 3], [Some(2); 8]);
        assert_eq!(found.to_vec(), [&none[..], &back, &none[..2], &on].concat());
    }

    enum Step {
        Fault(u64),
        Hits(&'static [u64]),
    }
    use Step::{Fault, Hits};

    /// Algorithm 2 with a history of 32 in four parts and windows of at most eight. Five of the last eight differences make a
    /// trend.
    ///
    /// | step | hits | trend | window | pages read ahead |
    /// | --- | --- | --- | --- | --- |
    /// | faults 10, 12, 14, 16, 18 | none | none: four differences | 0 | |
    /// | fault 20 | none | +2, followed | 1 | 22 |
    /// | hit 22, fault 24 | 1 | +2 | 2 | 26, 28 |
    /// | hits 26, 28, fault 30 | 2 | +2 | 3, up to 4 | 32, 34, 36, 38 |
    /// | hits 32 to 38, fault 40 | 4 | +2 | 5, up to 8 | 42 to 56 |
    /// | hits 42 to 56, fault 58 | 8 | +2 | 9, up to 16, but at most 8 | 60 to 74 |
    /// | fault 90 | none | +2, not followed | 0, but 8 / 2 | 92 to 98 |
    /// | fault 80 | none | +2 of six, not followed | 0, 4 / 2 | 82, 84 |
    /// | fault 85 | none | +2 of five | 0, 2 / 2 | 87 |
    /// | hit 87, fault 91 | 1 | four of 2 2 2 32 -10 5 2 4, but 12 of 16: +2 | 2 | 93, 95 |
    /// | fault 94 | none | three of eight, eleven of 16: +2 | 0, 2 / 2 | 96 |
    #[test]
    fn algorithm_2_by_hand() {
        let steps: &[(Step, &[i64])] = &[
            (Fault(10), &[]),
            (Fault(12), &[]),
            (Fault(14), &[]),
            (Fault(16), &[]),
            (Fault(18), &[]),
            (Fault(20), &[2]),
            (Hits(&[22]), &[]),
            (Fault(24), &[2, 4]),
            (Hits(&[26, 28]), &[]),
            (Fault(30), &[2, 4, 6, 8]),
            (Hits(&[32, 34, 36, 38]), &[]),
            (Fault(40), &[2, 4, 6, 8, 10, 12, 14, 16]),
            (Hits(&[42, 44, 46, 48, 50, 52, 54, 56]), &[]),
            (Fault(58), &[2, 4, 6, 8, 10, 12, 14, 16]),
            (Fault(90), &[2, 4, 6, 8]),
            (Fault(80), &[2, 4]),
            (Fault(85), &[2]),
            (Hits(&[87]), &[]),
            (Fault(91), &[2, 4]),
            (Fault(94), &[2]),
        ];
        let mut process = Process::new();
        for (number, (step, expected)) in steps.iter().enumerate() {
            match step {
                Fault(vpn) => assert_eq!(process.fault(*vpn), *expected, "step {number}"),
                Hits(pages) => pages.iter().for_each(|vpn| process.hit(*vpn)),
            }
        }
    }

    /// There is no trend any more, but prefetched pages were used. So the pages around the missing one are read, at the last
    /// stride.
    #[test]
    fn without_a_trend_what_is_around_is_read() {
        let mut process = Process::new();
        (0..6).for_each(|n| drop(process.fault(100 + 3 * n)));
        // None of these differences is the majority of the last 8, 16 or 32.
        [1, 7, 2, 8, 4, 9, 3, 6, 5]
            .iter()
            .scan(200, |at, n| {
                *at += n;
                Some(*at)
            })
            .for_each(|vpn| process.hit(vpn));
        process.hits = 3;
        assert_eq!(process.fault(500), [3, -3, 6, -6]);
    }

    #[test]
    fn processes_do_not_disturb_each_other() {
        let mut core = core(32, &[(0, 64), (0, 64)]);
        let mut leap = Leap::new(2);
        for vpn in 0..6 {
            for pid in [0, 1] {
                let page = core.pages.accessed(pid, if pid == 0 { 10 + vpn } else { 60 - 2 * vpn });
                core.demand(page);
                leap.fault(&mut core, pid, page);
            }
        }
        // One page each, because the sixth fault follows the trend.
        let mut read = |pid, vpn| {
            let page = core.pages.accessed(pid, vpn);
            !core.is_out(page)
        };
        assert!(read(0, 16) && read(1, 48));
        assert!(!read(0, 17) && !read(1, 46));
    }
}
