// SPDX-License-Identifier: Apache-2.0
//! How long accesses wait for their pages: percentiles, in memory that does not grow with the number of accesses.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::settings::Time;

/// Significant decimal digits of a percentile. A result is never less than the exact percentile, and at most 1 % more.
const DIGITS: u8 = 2;

/// A distribution of times. It takes at most 60 KiB, however many times are added.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Nanoseconds.
    histogram: Histogram<u64>,
    /// Picoseconds.
    sum: u128,
    longest: Time,
}

impl Default for Latency {
    fn default() -> Latency {
        let histogram = Histogram::new(DIGITS).expect("the number of digits is a constant in range");
        Latency { histogram, sum: 0, longest: 0 }
    }
}

/// The numbers of a distribution. All except `count` are null if the distribution is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of times.
    pub count: u64,
    /// Exact mean.
    pub mean_ns: Option<f64>,
    /// Half of the times are at most this long.
    pub p50_ns: Option<u64>,
    /// 90 % of the times are at most this long.
    pub p90_ns: Option<u64>,
    /// 99 % of the times are at most this long.
    pub p99_ns: Option<u64>,
    /// 99.9 % of the times are at most this long.
    pub p999_ns: Option<u64>,
    /// The longest time, exact.
    pub max_ns: Option<u64>,
}

impl Latency {
    /// Adds a time.
    pub fn add(&mut self, time: Time) {
        self.histogram.record(time / 1000).expect("the histogram grows to hold any time");
        self.sum += u128::from(time);
        self.longest = self.longest.max(time);
    }

    /// Adds the times of another distribution.
    pub fn merge(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("the histogram grows to hold any time");
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// Number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the numbers of the distribution.
    pub fn summary(&self) -> Summary {
        let (count, longest) = (self.count(), self.longest / 1000);
        let some = |value| (count > 0).then_some(value);
        // The histogram returns the end of the percentile's bucket, which may lie beyond the longest time.
        let at = |quantile| some(self.histogram.value_at_quantile(quantile).min(longest));
        Summary {
            count,
            mean_ns: (count > 0).then(|| self.sum as f64 / 1000.0 / count as f64),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: some(longest),
        }
    }
}

/// Waiting times of accesses to pages that are not in DRAM.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Times until the page arrives.
    pub page: Latency,
    /// Times until the process continues. They are longer if another process runs when the page arrives.
    pub process: Latency,
}

/// The numbers of [`Waits`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitsSummary {
    /// Times until the page arrives.
    pub until_page: Summary,
    /// Times until the process continues.
    pub until_run: Summary,
}

impl Waits {
    /// Adds the waiting times of one access.
    pub fn add(&mut self, page: Time, process: Time) {
        self.page.add(page);
        self.process.add(process);
    }

    /// Merges several distributions.
    pub fn of_all<'a>(all: impl IntoIterator<Item = &'a Waits>) -> Waits {
        let mut sum = Waits::default();
        for one in all {
            sum.page.merge(&one.page);
            sum.process.merge(&one.process);
        }
        sum
    }

    /// Returns the numbers of both distributions.
    pub fn summary(&self) -> WaitsSummary {
        WaitsSummary { until_page: self.page.summary(), until_run: self.process.summary() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_percentiles() {
        let summary = Latency::default().summary();
        assert_eq!((summary.count, summary.mean_ns, summary.p50_ns, summary.max_ns), (0, None, None, None));
    }

    /// A hundred times: 1 to 100 us.
    #[test]
    fn by_hand() {
        let mut latency = Latency::default();
        (1..=100).rev().for_each(|us| latency.add(us * 1_000_000));
        let summary = latency.summary();
        assert_eq!((summary.count, summary.mean_ns, summary.max_ns), (100, Some(50_500.0), Some(100_000)));
        let near = |found: Option<u64>, exact: u64| (exact..=exact * 101 / 100).contains(&found.unwrap());
        assert!(near(summary.p50_ns, 50_000) && near(summary.p90_ns, 90_000), "{summary:?}");
        assert!(near(summary.p99_ns, 99_000) && summary.p999_ns == Some(100_000), "{summary:?}");
    }

    #[test]
    fn any_time_has_a_place() {
        let mut latency = Latency::default();
        [0, 999, Time::MAX].into_iter().for_each(|time| latency.add(time));
        assert_eq!((latency.summary().p50_ns, latency.summary().max_ns), (Some(0), Some(Time::MAX / 1000)));
    }

    proptest! {
        /// Percentiles match those of the sorted times and exceed them by at most 1 %. Merging two parts gives the same result.
        #[test]
        fn percentiles_are_close(times in prop::collection::vec(0..40u32, 1..300), cut in 0..300usize) {
            // From 1 ns to 18 minutes, evenly by magnitude.
            let times: Vec<Time> = times.iter().map(|bits| 1000 * (1u64 << bits) + u64::from(*bits)).collect();
            let (mut whole, mut first, mut second) = (Latency::default(), Latency::default(), Latency::default());
            for (number, time) in times.iter().enumerate() {
                whole.add(*time);
                if number < cut { first.add(*time) } else { second.add(*time) }
            }
            let summary = whole.summary();
            first.merge(&second);
            prop_assert_eq!(first.summary(), summary);
            let mut sorted = times.clone();
            sorted.sort_unstable();
            for (found, percent) in [(summary.p50_ns, 50.0), (summary.p90_ns, 90.0), (summary.p99_ns, 99.0)] {
                let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
                let exact = sorted[rank.max(1) - 1] / 1000;
                let found = found.unwrap();
                prop_assert!(found >= exact && found <= exact + exact / 100, "{found} for {exact}");
            }
            prop_assert_eq!(summary.max_ns, Some(sorted[sorted.len() - 1] / 1000));
        }
    }
}
