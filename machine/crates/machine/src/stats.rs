// SPDX-License-Identifier: Apache-2.0
//! What a run measured: regions of interest, watched mappings, the life of each miss. Becomes stats.json.

use hdrhistogram::Histogram;
use serde::Serialize;
use trapless_memory::{ClockHz, Cycle, PAGE_SHIFT};

/// First-touch bookkeeping of one page of a watched mapping.
const TOUCHED: u8 = 1;
const REQUESTED: u8 = 2;

/// A watched mapping (marker 0x7a3): every user access of one address space to `[va, va + len)`.
pub struct Watch {
    number: u64,
    root: u64,
    first: u64,
    pages: Vec<u8>,
    active: bool,
    counts: WatchCounts,
}

/// Counts of a watched mapping. First touches: `hw_misses + os_faults + resident == pages_touched`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WatchCounts {
    /// Number given by the marker.
    pub number: u64,
    /// Virtual address.
    pub va: u64,
    /// Length in bytes.
    pub len: u64,
    /// Distinct pages accessed by user code.
    pub pages_touched: u64,
    /// First touches served by the SMU.
    pub hw_misses: u64,
    /// First touches that raised a page fault.
    pub os_faults: u64,
    /// First touches that found the page present.
    pub resident: u64,
    /// Requests to the SMU, first touches or not.
    pub hw_misses_total: u64,
    /// Page faults, first touches or not.
    pub os_faults_total: u64,
}

impl Watch {
    fn page(&mut self, root: u64, va: u64) -> Option<usize> {
        if !self.active || root != self.root {
            return None;
        }
        let index = (va >> PAGE_SHIFT).checked_sub(self.first)? as usize;
        (index < self.pages.len()).then_some(index)
    }

    fn first_touch(&mut self, page: usize) -> bool {
        let first = self.pages[page] & TOUCHED == 0;
        self.pages[page] |= TOUCHED;
        self.counts.pages_touched += u64::from(first);
        first
    }
}

/// Most milestones, regions and watched mappings of a run: the guest's marks must not fill the host's memory.
pub const MOST_MARKS: usize = 1000;

/// What can be watched at a time: 1 TiB of address space, a byte a page.
const MAX_WATCHED_PAGES: u64 = 1 << 28;

/// All watched mappings of a run.
#[derive(Default)]
pub struct Watches(Vec<Watch>);

impl Watches {
    /// Watches `[va, va + len)` of the address space whose root table is page `root`. False for an absurd size or number.
    pub fn add(&mut self, number: u64, root: u64, va: u64, len: u64) -> bool {
        let first = va >> PAGE_SHIFT;
        let Some(last) = len.checked_sub(1).and_then(|l| va.checked_add(l)).map(|end| end >> PAGE_SHIFT) else {
            return false;
        };
        let count = last - first + 1;
        let watched: u64 = self.0.iter().map(|w| w.pages.len() as u64).sum();
        if watched + count > MAX_WATCHED_PAGES || self.0.len() == MOST_MARKS {
            return false;
        }
        self.0.push(Watch {
            number,
            root,
            first,
            pages: vec![0; count as usize],
            active: true,
            counts: WatchCounts { number, va, len, ..WatchCounts::default() },
        });
        true
    }

    /// Stops watching the mapping at `va`; its counts stay.
    pub fn remove(&mut self, root: u64, va: u64) {
        for w in &mut self.0 {
            if w.root == root && w.first == va >> PAGE_SHIFT {
                w.active = false;
                w.pages = Vec::new();
            }
        }
    }

    /// A user access found a translation.
    pub fn touched(&mut self, root: u64, va: u64) {
        for w in &mut self.0 {
            if let Some(page) = w.page(root, va)
                && w.first_touch(page)
            {
                if w.pages[page] & REQUESTED != 0 {
                    w.counts.hw_misses += 1;
                } else {
                    w.counts.resident += 1;
                }
            }
        }
    }

    /// A user access made the walker ask the SMU.
    pub fn requested(&mut self, root: u64, va: u64) {
        for w in &mut self.0 {
            if let Some(page) = w.page(root, va) {
                w.pages[page] |= REQUESTED;
                w.counts.hw_misses_total += 1;
            }
        }
    }

    /// A user access raised a page fault.
    pub fn faulted(&mut self, root: u64, va: u64) {
        for w in &mut self.0 {
            if let Some(page) = w.page(root, va) {
                w.counts.os_faults_total += 1;
                if w.first_touch(page) {
                    w.counts.os_faults += 1;
                }
            }
        }
    }

    /// Page faults of user accesses to any mapping watched so far, first touches or not.
    pub fn faults(&self) -> u64 {
        self.0.iter().map(|w| w.counts.os_faults_total).sum()
    }

    /// Counts of every mapping watched so far.
    pub fn counts(&self) -> Vec<WatchCounts> {
        self.0.iter().map(|w| WatchCounts { number: w.number, ..w.counts.clone() }).collect()
    }
}

/// Longer latencies, in cycles, count as this long.
const MAX_LATENCY: u64 = 1 << 40;

/// A span of latencies in cycles, to three significant digits.
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Latency(Histogram::new_with_bounds(1, MAX_LATENCY, 3).expect("bounds and digits are constants in range"))
    }
}

/// A latency in microseconds of simulated time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// Samples.
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

    /// Summary at clock `hz`.
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

/// When each step of a miss that the SMU served was reached, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct MissTimes {
    /// The walk that found the armed entry began.
    pub walk: Cycle,
    /// The walker's request left the hart.
    pub request: Cycle,
    /// The request was in the PMSHR and the entry read again.
    pub allocated: Cycle,
    /// A free frame was there.
    pub frame: Cycle,
    /// The doorbell was rung.
    pub doorbell: Cycle,
    /// The device wrote its completion entry.
    pub device_done: Cycle,
    /// The SMU saw the completion entry.
    pub seen: Cycle,
    /// The entry and the upper marks were written.
    pub installed: Cycle,
    /// The hart went on.
    pub resumed: Cycle,
}

/// Mean microseconds of each step of a miss; they add up to the mean of the whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepMeans {
    /// Page walk until the request leaves the hart.
    pub walk: f64,
    /// Request, PMSHR look-up, second read of the entry.
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
    /// Answer, and the walk that goes on.
    pub resume: f64,
}

/// Misses served by the SMU for the hart that asked first.
#[derive(Default)]
pub struct Misses {
    whole: Latency,
    device: u64,
    sums: [u64; 8],
    count: u64,
}

/// Summary of [`Misses`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct MissSummary {
    /// From the start of the walk until the hart goes on.
    #[serde(flatten)]
    pub whole: LatencySummary,
    /// Mean of each step, us.
    pub steps: StepMeans,
    /// Mean time at the device, us.
    pub device_mean_us: f64,
    /// Mean time elsewhere, us.
    pub nondevice_mean_us: f64,
}

impl MissTimes {
    /// All steps, in order.
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

impl Misses {
    /// Adds a miss that ended with the page installed.
    pub fn add(&mut self, t: &MissTimes) {
        let marks = t.marks();
        for (sum, pair) in self.sums.iter_mut().zip(marks.windows(2)) {
            *sum += pair[1].since(pair[0]).0;
        }
        self.device += t.device_done.since(t.doorbell).0;
        self.whole.add(t.resumed.since(t.walk));
        self.count += 1;
    }

    /// Summary at clock `hz`.
    pub fn summary(&self, hz: ClockHz) -> MissSummary {
        let mean = |sum: u64| if self.count == 0 { 0.0 } else { hz.micros(Cycle(sum)) / self.count as f64 };
        let [walk, request, frame, command, device, completion, install, resume] = self.sums.map(mean);
        let whole: u64 = self.sums.iter().sum();
        MissSummary {
            whole: self.whole.summary(hz),
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
    fn every_first_touch_has_one_cause() {
        let mut w = Watches::default();
        w.add(7, 1, 0x1000, 4 * 4096);
        w.requested(1, 0x1008); // served by the SMU
        w.touched(1, 0x1008);
        w.faulted(1, 0x2000); // the OS
        w.touched(1, 0x2000);
        w.touched(1, 0x3fff); // was there
        w.touched(1, 0x3000);
        w.touched(2, 0x4000); // another address space
        w.requested(1, 0x4000); // asked, then failed
        w.faulted(1, 0x4000);
        w.touched(1, 0x5000); // past the end
        let c = &w.counts()[0];
        assert_eq!((c.pages_touched, c.hw_misses, c.os_faults, c.resident), (4, 1, 2, 1));
        assert_eq!((c.hw_misses_total, c.os_faults_total), (2, 2));
        assert_eq!(w.faults(), 2);
    }

    #[test]
    fn steps_add_up_to_the_whole() {
        let mut m = Misses::default();
        let at = |n: u64| Cycle(1000 + n);
        m.add(&MissTimes {
            walk: at(0),
            request: at(20),
            allocated: at(27),
            frame: at(27),
            doorbell: at(36),
            device_done: at(2852),
            seen: at(2854),
            installed: at(2951),
            resumed: at(2960),
        });
        let s = m.summary(ClockHz(100_000_000));
        assert!((s.device_mean_us - 28.16).abs() < 1e-9);
        assert!((s.nondevice_mean_us - 1.44).abs() < 1e-9);
        let t = &s.steps;
        let sum = t.walk + t.request + t.frame + t.command + t.device + t.completion + t.install + t.resume;
        assert!((sum - 29.6).abs() < 1e-9);
    }

    #[test]
    fn absurd_watches_are_ignored() {
        let mut w = Watches::default();
        w.add(1, 1, u64::MAX - 10, 100);
        w.add(1, 1, 0, u64::MAX);
        w.add(1, 1, 0, 0);
        assert!(w.counts().is_empty());
        assert!((0..MOST_MARKS as u64).all(|n| w.add(n, 1, n << 12, 1)));
        assert!(!w.add(1, 1, 0, 1));
    }
}
