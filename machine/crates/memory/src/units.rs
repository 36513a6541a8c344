// SPDX-License-Identifier: Apache-2.0
//! Types for units, so that a nanosecond is never taken for a cycle.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in simulated time, or a span of it, in cycles of the core clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cycle(pub u64);

impl Cycle {
    /// A time later than all events.
    pub const NEVER: Cycle = Cycle(u64::MAX);

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Cycle) -> Cycle {
        Cycle(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Cycle {
    type Output = Cycle;
    fn add(self, rhs: Cycle) -> Cycle {
        Cycle(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Cycle {
    fn add_assign(&mut self, rhs: Cycle) {
        *self = *self + rhs;
    }
}

impl Sub for Cycle {
    type Output = Cycle;
    fn sub(self, rhs: Cycle) -> Cycle {
        self.since(rhs)
    }
}

/// A span of time in picoseconds, which can express 77.16 ns as well as 200 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Picos(pub u64);

impl Picos {
    /// Converts nanoseconds; negative values and NaN become zero.
    pub fn from_nanos(ns: f64) -> Picos {
        Picos((ns * 1e3).round() as u64)
    }

    /// Converts microseconds; negative values and NaN become zero.
    pub fn from_micros(us: f64) -> Picos {
        Picos::from_nanos(us * 1e3)
    }
}

/// The core clock in hertz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockHz(pub u64);

impl ClockHz {
    const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

    /// Cycles of `span`, rounded up: hardware cannot finish in a part of a cycle.
    pub fn cycles(self, span: Picos) -> Cycle {
        let c = (u128::from(span.0) * u128::from(self.0)).div_ceil(Self::PICOS_PER_SECOND);
        Cycle(u64::try_from(c).unwrap_or(u64::MAX))
    }

    /// Duration of `span` in microseconds.
    pub fn micros(self, span: Cycle) -> f64 {
        span.0 as f64 * 1e6 / self.0 as f64
    }

    /// Ticks of a counter of `hz` at cycle `at`, rounded down.
    pub fn ticks(self, at: Cycle, hz: u64) -> u64 {
        (u128::from(at.0) * u128::from(hz) / u128::from(self.0)) as u64
    }

    /// First cycle at which a counter of `hz` has reached `ticks`.
    pub fn cycle_of_tick(self, ticks: u64, hz: u64) -> Cycle {
        let c = (u128::from(ticks) * u128::from(self.0)).div_ceil(u128::from(hz));
        Cycle(u64::try_from(c).unwrap_or(u64::MAX))
    }
}

/// A guest physical address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PhysAddr(pub u64);

impl PhysAddr {
    /// `self + bytes`, or `None` past the end of the address space.
    pub fn checked_add(self, bytes: u64) -> Option<PhysAddr> {
        self.0.checked_add(bytes).map(PhysAddr)
    }
}

impl std::fmt::Debug for PhysAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_round_up_to_whole_cycles() {
        let clk = ClockHz(100_000_000);
        assert_eq!(clk.cycles(Picos::from_nanos(77.16)), Cycle(8));
        assert_eq!(clk.cycles(Picos::from_micros(28.16)), Cycle(2816));
        assert_eq!(clk.cycles(Picos(0)), Cycle(0));
    }

    #[test]
    fn tick_and_cycle_agree_at_odd_ratios() {
        let clk = ClockHz(2_800_000_000);
        for tick in [0, 1, 2, 9_999_999, 123_456_789_012] {
            let at = clk.cycle_of_tick(tick, 10_000_000);
            assert_eq!(clk.ticks(at, 10_000_000), tick);
            if at.0 > 0 {
                assert!(clk.ticks(Cycle(at.0 - 1), 10_000_000) < tick);
            }
        }
    }
}
