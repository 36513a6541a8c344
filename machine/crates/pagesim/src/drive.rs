// SPDX-License-Identifier: Apache-2.0
//! The drive, as faults, pages read ahead and writes share it.

use trapless_memory::{ClockHz, Cycle};
use trapless_timing::{SsdOp, SsdParams, SsdTiming};

use crate::settings::{Ahead, TICKS, Time};

/// A drive at work.
#[derive(Debug)]
pub(crate) struct Drive {
    ahead: Ahead,
    /// All commands.
    all: SsdTiming,
    /// Those that a process waits for, as if there were no others.
    demand: SsdTiming,
    /// A drive at rest.
    idle: SsdTiming,
}

impl Drive {
    pub(crate) fn new(params: &SsdParams, ahead: Ahead) -> Drive {
        let idle = SsdTiming::new(params, ClockHz(TICKS), 0);
        Drive { ahead, all: idle.clone(), demand: idle.clone(), idle }
    }

    pub(crate) fn params(&self) -> &SsdParams {
        self.all.params()
    }

    /// Begins a command; when it is over. `awaited`: a process waits for it.
    pub(crate) fn start(&mut self, now: Time, op: SsdOp, awaited: bool) -> Time {
        let fetched = Cycle(now) + self.all.fetch_delay();
        match (self.ahead, awaited) {
            (Ahead::Queued, _) | (Ahead::Free, true) | (Ahead::BehindDemand, false) => self.all.start(fetched, op).0,
            (Ahead::Free, false) => self.idle.clone().start(fetched, op).0,
            (Ahead::BehindDemand, true) => {
                self.all.start(fetched, op);
                self.demand.start(fetched, op).0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Device;

    /// When a read that is awaited is over, us, behind a hundred that are not.
    fn behind_a_hundred(ahead: Ahead) -> f64 {
        let params = Device { channels: Some(1), ..Device::default() }.params().unwrap();
        let mut drive = Drive::new(&params, ahead);
        for at in 0..100 {
            drive.start(0, SsdOp::Read { at: at * 4096, bytes: 4096 }, false);
        }
        drive.start(0, SsdOp::Read { at: 0, bytes: 4096 }, true) as f64 / 1e6
    }

    #[test]
    fn what_is_read_ahead_is_in_the_way_or_not() {
        let alone = behind_a_hundred(Ahead::Free);
        assert!((behind_a_hundred(Ahead::BehindDemand) - alone).abs() < 1e-9);
        assert!(behind_a_hundred(Ahead::Queued) > 50.0 * alone);
    }

    #[test]
    fn awaited_reads_wait_for_each_other_and_hold_up_the_rest() {
        let params = Device { channels: Some(1), ..Device::default() }.params().unwrap();
        for ahead in [Ahead::Queued, Ahead::BehindDemand, Ahead::Free] {
            let mut drive = Drive::new(&params, ahead);
            let read = SsdOp::Read { at: 0, bytes: 4096 };
            let first = drive.start(0, read, true);
            assert!(drive.start(0, read, true) > first);
            assert_eq!(drive.start(0, read, false) > first, ahead != Ahead::Free);
        }
    }
}
