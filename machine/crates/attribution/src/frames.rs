// SPDX-License-Identifier: Apache-2.0
//! History of where the frames for missing pages were, in bounded memory.

use trapless_memory::Cycle;

/// Maximum number of samples of a run. Only a short run has fewer than half of this number.
const MOST: usize = 2048;
/// Cycles between two samples of a short run.
const FIRST_EVERY: u64 = 1024;

/// Where the frames are at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Frames {
    /// Core cycle.
    pub cycle: u64,
    /// Frames in the free ring or prefetched from it; none if the ring is not in use.
    pub ring: Option<u64>,
    /// Requests that the SMU has not answered. Each has a frame or asks for one.
    pub requests: u64,
    /// Frames in pages that are mapped but not yet adopted by the operating system.
    pub unsynced: u64,
    /// Frames in pages that the operating system has adopted since the run began.
    pub adopted: u64,
}

/// Samples over time. When there are too many, every second one is dropped, and from then on the distance is doubled. So the
/// samples depend on simulated time only.
#[derive(Debug)]
pub struct Samples {
    every: u64,
    due: u64,
    kept: Vec<Frames>,
}

impl Samples {
    pub fn new() -> Samples {
        Samples { every: FIRST_EVERY, due: 0, kept: Vec::new() }
    }

    /// Makes a sample due at once.
    pub fn hurry(&mut self) {
        self.due = 0;
    }

    pub fn are_due(&self, now: Cycle) -> bool {
        now.0 >= self.due
    }

    pub fn push(&mut self, sample: Frames) {
        while self.kept.len() >= MOST {
            self.every *= 2;
            let every = self.every;
            self.kept.dedup_by_key(|s| s.cycle / every);
        }
        self.kept.push(sample);
        self.due = (sample.cycle / self.every + 1) * self.every;
    }

    /// The samples, in order of time.
    pub fn kept(&self) -> &[Frames] {
        &self.kept
    }

    /// Whether any frame was ever counted.
    pub fn any(&self) -> bool {
        self.kept.iter().any(|s| s.ring.is_some() || s.unsynced + s.adopted > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cycle: u64) -> Frames {
        Frames { cycle, ring: Some(cycle / 7), requests: 0, unsynced: 0, adopted: 0 }
    }

    /// Takes samples every `step` cycles if they are due.
    fn run(step: u64, end: u64) -> Samples {
        let mut samples = Samples::new();
        for now in (0..end).step_by(step as usize) {
            if samples.are_due(Cycle(now)) {
                samples.push(sample(now));
            }
        }
        samples
    }

    #[test]
    fn a_long_run_has_as_many_samples_as_a_short_one() {
        let short = run(100, 100_000);
        assert_eq!(short.kept().len() as u64, 100_000 / FIRST_EVERY + 1);
        let long = run(1000, 1_000_000_000);
        assert!((MOST / 2..=MOST).contains(&long.kept().len()), "{}", long.kept().len());
        let (first, last) = (long.kept()[0].cycle, long.kept()[long.kept().len() - 1].cycle);
        assert!(first == 0 && last > 1_000_000_000 - 2 * long.every);
        for pair in long.kept().windows(2) {
            let apart = pair[1].cycle - pair[0].cycle;
            assert!(apart > 0 && apart.abs_diff(long.every) <= 1000, "{pair:?}, every {}", long.every);
        }
        assert_eq!(long.kept()[1000], sample(long.kept()[1000].cycle), "samples must not change");
    }

    #[test]
    fn one_can_be_had_at_once() {
        let mut samples = run(100, 100_000);
        let now = Cycle(100_000);
        assert!(!samples.are_due(now));
        samples.hurry();
        assert!(samples.are_due(now));
        samples.push(sample(now.0));
        assert!(!samples.are_due(now));
    }
}
