// SPDX-License-Identifier: Apache-2.0
//! Measured times of a run: latencies, and the steps of each miss. stats.json contains them.

use hdrhistogram::Histogram;
use serde::Serialize;
use trapless_memory::{ClockHz, Cycle};

/// Maximum number of milestones, and of single regions, that are recorded, so that the guest cannot fill the host's memory with
/// markers.
pub const MOST_MARKS: usize = 1000;

/// Longest latency that is recorded, in cycles. Longer ones are recorded as this long.
const MAX_LATENCY: u64 = 1 << 40;

/// Distribution of latencies in cycles, to three significant digits.
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Latency(Histogram::new_with_bounds(1, MAX_LATENCY, 3).expect("bounds and digits are constants in range"))
    }
}

/// Summary of a distribution of latencies, in microseconds of simulated time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// Number of samples.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest.
    pub max_us: f64,
}

impl Latency {
    /// Adds a sample.
    pub fn add(&mut self, span: Cycle) {
        self.0.saturating_record(span.0);
    }

    /// The summary at clock `hz`.
    pub fn summary(&self, hz: ClockHz) -> LatencySummary {
        let at = |q: f64| hz.micros(Cycle(self.0.value_at_quantile(q)));
        LatencySummary {
            count: self.0.len(),
            mean_us: self.0.mean() * 1e6 / hz.0 as f64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: hz.micros(Cycle(self.0.max())),
        }
    }
}

/// Time of each step of a miss that the SMU served, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct MissTimes {
    /// The walk that found the armed entry began.
    pub walk: Cycle,
    /// The walker's request left its hart.
    pub request: Cycle,
    /// The request was in the PMSHR and the SMU had read the entry again.
    pub allocated: Cycle,
    /// The SMU had a free frame for the miss.
    pub frame: Cycle,
    /// The doorbell was rung.
    pub doorbell: Cycle,
    /// The device wrote its completion entry.
    pub device_done: Cycle,
    /// The SMU saw the completion entry.
    pub seen: Cycle,
    /// The entry and the upper marks were written.
    pub installed: Cycle,
    /// The hart continued.
    pub resumed: Cycle,
}

/// A miss that ended with an installed page.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Whether a software request port asked for it. Otherwise a walker asked.
    pub port: bool,
    /// The hart that asked first, if it is known.
    pub hart: Option<usize>,
    /// Address of the access; zero for a port.
    pub va: u64,
    /// When its first walk began, or when software wrote to the port.
    pub begun: Cycle,
    /// When the first waiting hart continued; if none waited, when the entry was installed.
    pub ended: Cycle,
    /// Whether a wait for it was cut: by an interrupt, or because the wait had reached its limit.
    pub cut: bool,
    /// All steps, if they are known.
    pub times: Option<MissTimes>,
}

/// Mean duration of each step of a miss, in microseconds. They add up to the mean of the whole miss.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepMeans {
    /// Page walk until the request leaves the hart.
    pub walk: f64,
    /// Request, PMSHR look-up, and second read of the entry.
    pub request: f64,
    /// Getting a frame.
    pub frame: f64,
    /// Writing the command and ringing the doorbell.
    pub command: f64,
    /// The device, from doorbell to completion entry.
    pub device: f64,
    /// Seeing the completion entry.
    pub completion: f64,
    /// Writing the entry and the upper marks.
    pub install: f64,
    /// Answer, and the rest of the walk.
    pub resume: f64,
}

/// Misses that ended with the page installed.
#[derive(Default)]
pub struct MissTotals {
    whole: Latency,
    device: u64,
    sums: [u64; 8],
    with_steps: u64,
    cut: u64,
}

/// Summary of [`MissTotals`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct MissSummary {
    /// Time from the start of the first walk until the first waiting hart continues, or until the install if none waits.
    #[serde(flatten)]
    pub whole: LatencySummary,
    /// Number of misses for which a wait was cut: by an interrupt, or because it had reached its limit.
    pub cut: u64,
    /// Number of misses whose steps are all known. The means below are those of these misses.
    pub with_steps: u64,
    /// Mean of each step, us.
    pub steps: StepMeans,
    /// Mean time at the device, us.
    pub device_mean_us: f64,
    /// Mean time elsewhere, us.
    pub nondevice_mean_us: f64,
}

impl MissTimes {
    /// The times of all steps, in order.
    pub fn marks(&self) -> [Cycle; 9] {
        [
            self.walk,
            self.request,
            self.allocated,
            self.frame,
            self.doorbell,
            self.device_done,
            self.seen,
            self.installed,
            self.resumed,
        ]
    }
}

impl MissTotals {
    /// Adds a miss.
    pub fn add(&mut self, sample: &Sample) {
        self.whole.add(sample.ended.since(sample.begun));
        self.cut += u64::from(sample.cut);
        let Some(t) = &sample.times else { return };
        for (sum, pair) in self.sums.iter_mut().zip(t.marks().windows(2)) {
            *sum += pair[1].since(pair[0]).0;
        }
        self.device += t.device_done.since(t.doorbell).0;
        self.with_steps += 1;
    }

    /// The summary at clock `hz`.
    pub fn summary(&self, hz: ClockHz) -> MissSummary {
        let mean = |sum: u64| if self.with_steps == 0 { 0.0 } else { hz.micros(Cycle(sum)) / self.with_steps as f64 };
        let [walk, request, frame, command, device, completion, install, resume] = self.sums.map(mean);
        let whole: u64 = self.sums.iter().sum();
        MissSummary {
            whole: self.whole.summary(hz),
            cut: self.cut,
            with_steps: self.with_steps,
            steps: StepMeans { walk, request, frame, command, device, completion, install, resume },
            device_mean_us: mean(self.device),
            nondevice_mean_us: mean(whole.saturating_sub(self.device)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_whole() {
        let mut m = MissTotals::default();
        let at = |n: u64| Cycle(1000 + n);
        let times = MissTimes {
            walk: at(0),
            request: at(20),
            allocated: at(27),
            frame: at(27),
            doorbell: at(36),
            device_done: at(2852),
            seen: at(2854),
            installed: at(2951),
            resumed: at(2960),
        };
        let sample = |times: Option<MissTimes>| Sample {
            port: false,
            hart: None,
            va: 0,
            begun: at(0),
            ended: at(2960),
            cut: times.is_none(),
            times,
        };
        m.add(&sample(Some(times)));
        m.add(&sample(None));
        let s = m.summary(ClockHz(100_000_000));
        assert!((s.device_mean_us - 28.16).abs() < 1e-9);
        assert!((s.nondevice_mean_us - 1.44).abs() < 1e-9);
        assert_eq!((s.whole.count, s.cut, s.with_steps), (2, 1, 1));
        let t = &s.steps;
        let sum = t.walk + t.request + t.frame + t.command + t.device + t.completion + t.install + t.resume;
        assert!((sum - 29.6).abs() < 1e-9);
    }
}
