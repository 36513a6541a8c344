// SPDX-License-Identifier: Apache-2.0
//! Random latencies: quantile tables and the random number generator.

use trapless_memory::{ClockHz, Cycle, Picos};

/// Mixes the bits of a number (the finalizer of SplitMix64), so that close numbers have unrelated results.
pub fn scatter(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Returns the next number of SplitMix64, from 0 up to but not including 1. A state gives the same number on every host.
pub(crate) fn draw(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (scatter(*state) >> 11) as f64 / (1u64 << 53) as f64
}

/// A latency: constant, or drawn from a table of quantiles.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Fractions of the commands, rising from 0 to 1, each with the cycles that this fraction does not exceed. One point if the
    /// latency is constant.
    points: Vec<(f64, Cycle)>,
}

impl Shape {
    /// Creates the latency `us`, or `us` times the factors of `table` if it is not empty. Subtracts `other`, the part of the
    /// latency that is modelled elsewhere.
    pub fn new(us: f64, table: &[(f64, f64)], other: Cycle, clock: ClockHz) -> Shape {
        let cycles = |us: f64| clock.cycles(Picos::from_micros(us)) - other;
        match table {
            [] => Shape { points: vec![(0.0, cycles(us))] },
            table => Shape { points: table.iter().map(|&(q, factor)| (q, cycles(us * factor))).collect() },
        }
    }

    /// Returns one latency. Uses the generator only if the latency varies.
    pub fn sample(&self, random: &mut u64) -> Cycle {
        if let [(_, only)] = self.points[..] {
            return only;
        }
        let q = draw(random);
        let after = self.points.partition_point(|p| p.0 <= q).clamp(1, self.points.len() - 1);
        let ((q0, low), (q1, high)) = (self.points[after - 1], self.points[after]);
        low + Cycle(((high - low).0 as f64 * ((q - q0) / (q1 - q0))) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ClockHz = ClockHz(1_000_000_000);

    #[test]
    fn samples_have_the_quantiles_of_the_table() {
        let table = [(0.0, 0.5), (0.5, 1.0), (0.99, 2.0), (1.0, 10.0)];
        let shape = Shape::new(10.0, &table, Cycle(100), CLOCK);
        let mut random = 1;
        let all: Vec<u64> = (0..100_000).map(|_| shape.sample(&mut random).0 + 100).collect();
        for (q, factor) in table {
            let below = all.iter().filter(|c| **c as f64 <= factor * 10_000.0).count() as f64 / 1e5;
            assert!((below - q).abs() < 0.005, "{q}: {below}");
        }
    }

    #[test]
    fn a_constant_asks_for_no_number() {
        let mut random = 5;
        assert_eq!(Shape::new(2.0, &[], Cycle(500), CLOCK).sample(&mut random), Cycle(1500));
        assert_eq!(random, 5);
    }
}
