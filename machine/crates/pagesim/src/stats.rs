// SPDX-License-Identifier: Apache-2.0
//! The statistics of a simulation. Their memory does not grow with simulated time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::CpuStats;
use crate::latency::Waits;
use crate::pages::{Origin, Pid};
use crate::settings::{Settings, Time, ms};
use crate::tier::TierStats;

/// Counts in windows of time. If there would be more than 4096 windows, pairs of windows are merged.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Length of a window. It is serialized in ns.
    #[serde(rename = "window_ns", serialize_with = "in_ns")]
    pub window: Time,
    /// A count for each window.
    pub counts: Vec<u64>,
}

fn in_ns<S: serde::Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time / 1000)
}

impl Series {
    /// Largest number of windows.
    const MOST: usize = 4096;

    fn new(window: Time) -> Series {
        Series { window, counts: vec![] }
    }

    /// Adds a count at a time.
    pub fn add(&mut self, at: Time, count: u64) {
        while at / self.window >= Self::MOST as u64 {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.window *= 2;
        }
        let window = (at / self.window) as usize;
        if self.counts.len() <= window {
            self.counts.resize(window + 1, 0);
        }
        self.counts[window] += count;
    }

    /// Adds a span of time to the windows that it touches.
    pub fn add_span(&mut self, mut from: Time, to: Time) {
        if from < to {
            self.add(to - 1, 0);
        }
        while from < to {
            let end = to.min((from / self.window + 1) * self.window);
            self.add(from, end - from);
            from = end;
        }
    }

    /// The sum up to a time. The window that contains the time counts in proportion.
    pub fn until(&self, at: Time) -> u64 {
        let (whole, part) = ((at / self.window) as usize, at % self.window);
        let next = self.counts.get(whole).copied().unwrap_or(0);
        self.counts.iter().take(whole).sum::<u64>()
            + (u128::from(next) * u128::from(part) / u128::from(self.window)) as u64
    }
}

/// Counts of prefetched pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prefetched {
    /// Pages that were prefetched.
    pub issued: u64,
    /// Prefetched pages that were accessed before they were evicted.
    pub useful: u64,
    /// Prefetched pages that were evicted without an access.
    pub useless: u64,
}

/// Counts of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessStats {
    /// Number of accesses in its trace.
    pub accesses: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of accesses that the cache did not serve.
    pub cache_misses: u64,
    /// Number of faults on pages that were out of DRAM.
    pub faults: u64,
    /// Number of accesses to pages whose prefetch was still under way.
    pub late: u64,
    /// Processor time, including waits for pages.
    pub cpu: Time,
    /// The part of this time in which it waited for pages.
    pub waited: Time,
    /// Number of faults in each third of a slice.
    pub parts: [u64; 3],
    /// Time at which it ended.
    pub finished: Option<Time>,
    /// The longest time from becoming ready to running.
    pub longest_wait: Time,
}

/// All statistics.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The time at which these statistics begin: the end of the warm-up. Series count from this time. Other points in time count
    /// from the start.
    pub since: Time,
    /// Counts of each process.
    pub processes: Vec<ProcessStats>,
    /// How long accesses waited for their pages, for each process.
    pub waits: Vec<Waits>,
    /// Faults over time, for each process.
    pub faults: Vec<Series>,
    /// Processor time over time, for each process.
    pub cpu: Vec<Series>,
    /// Number of pages read.
    pub reads: u64,
    /// Number of pages written.
    pub writes: u64,
    /// Number of pages that were needed again while they were being written.
    pub rescued: u64,
    /// Number of context switches.
    pub switches: u64,
    /// Time in which a CPU had no ready process, summed over all CPUs.
    pub idle: Time,
    /// Time in which faults waited for a free frame.
    pub stalled: Time,
    /// Prefetched pages by origin.
    pub prefetches: BTreeMap<Origin, Prefetched>,
    /// Counts of each CPU.
    pub cpus: Vec<CpuStats>,
    /// Counts of the compressed tier.
    pub tier: TierStats,
    /// Processor time of each process when the first one ended.
    pub cpu_at_first_end: Option<Vec<Time>>,
}

impl Stats {
    pub(crate) fn new(settings: &Settings) -> Stats {
        let count = settings.processes.len();
        // Processor time has windows of a 64th of this length, which are fine enough for shares of short runs.
        let window = ms(settings.record.window_ms);
        Stats {
            since: 0,
            processes: vec![ProcessStats::default(); count],
            waits: vec![Waits::default(); count],
            faults: vec![Series::new(window); count],
            cpu: vec![Series::new((window / 64).max(1)); count],
            reads: 0,
            writes: 0,
            rescued: 0,
            switches: 0,
            idle: 0,
            stalled: 0,
            prefetches: BTreeMap::new(),
            cpus: vec![CpuStats::default(); settings.cpu.count as usize],
            tier: TierStats::default(),
            cpu_at_first_end: None,
        }
    }

    /// Makes the statistics that follow these from the time `since` on. Processes that have ended stay ended.
    pub(crate) fn following(&self, settings: &Settings, since: Time) -> Stats {
        let mut next = Stats { since, ..Stats::new(settings) };
        for (process, before) in next.processes.iter_mut().zip(&self.processes) {
            process.finished = before.finished;
        }
        next
    }

    /// Whether the end of a process at this time counts. An end at the very end of the warm-up belongs to the warm-up.
    pub(crate) fn has_begun_by(&self, at: Time) -> bool {
        at > self.since || self.since == 0
    }

    /// Number of pages that came back to DRAM: read, kept although they were being written, or decompressed.
    pub(crate) fn came(&self) -> u64 {
        self.reads + self.rescued + self.tier.loaded
    }

    pub(crate) fn prefetched(&mut self, origin: Origin) {
        self.prefetches.entry(origin).or_default().issued += 1;
    }

    pub(crate) fn used(&mut self, origin: Origin) {
        self.prefetches.entry(origin).or_default().useful += 1;
    }

    pub(crate) fn evicted(&mut self, origin: Origin, accessed: bool) {
        if origin != Origin::Demand && !accessed {
            self.prefetches.entry(origin).or_default().useless += 1;
        }
    }

    /// Counts a fault at a time. `into` is the time since the beginning of the slice, whose length is `slice`.
    pub(crate) fn fault(&mut self, pid: Pid, at: Time, into: Time, slice: Time) {
        let process = &mut self.processes[pid];
        process.faults += 1;
        process.parts[(3 * into / slice.max(1)).min(2) as usize] += 1;
        self.faults[pid].add(at.saturating_sub(self.since), 1);
    }

    pub(crate) fn ran(&mut self, pid: Pid, from: Time, to: Time) {
        self.processes[pid].cpu += to - from;
        self.cpu[pid].add_span(from - self.since, to - self.since);
    }

    pub(crate) fn ended(&mut self, pid: Pid, at: Time) {
        self.processes[pid].finished = Some(at);
        if self.cpu_at_first_end.is_none() && self.has_begun_by(at) {
            self.cpu_at_first_end = Some(self.processes.iter().map(|process| process.cpu).collect());
        }
    }
}

/// Returns Jain's index of fairness: 1 if all shares are equal, 1/n if one of n processes has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_become_too_many_are_joined() {
        let mut series = Series::new(10);
        series.add(5, 1);
        series.add(15, 2);
        assert_eq!(series.counts, [1, 2]);
        series.add(10 * 4096 + 3, 4);
        assert_eq!((series.window, series.counts[0], series.counts[2048]), (20, 3, 4));
        assert_eq!(series.counts.iter().sum::<u64>(), 7);
    }

    #[test]
    fn a_span_counts_where_it_lies() {
        let mut series = Series::new(10);
        series.add_span(7, 31);
        assert_eq!(series.counts, [3, 10, 10, 1]);
        assert_eq!((series.until(10), series.until(15), series.until(100)), (3, 8, 24));
    }

    #[test]
    fn jain_by_hand() {
        assert!((jain(&[1.0, 1.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 2)^2 / (2 * (1 + 4))
        assert!((jain(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
    }
}
