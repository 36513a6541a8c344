// SPDX-License-Identifier: Apache-2.0
//! The warm-up, which is the time before statistics begin. It does not change what is simulated.

use crate::Error;
use crate::settings::{Settings, Time, ms};
use crate::stats::Stats;

/// A warm-up that has ended.
#[derive(Clone, Debug)]
pub struct WarmUp {
    /// The statistics of the warm-up.
    pub stats: Stats,
    /// Number of accesses.
    pub accesses: u64,
    /// Number of changes that the policy made to its lists and sets.
    pub operations: u64,
}

/// When the warm-up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// It has ended, or there is none.
    Over,
    /// After this many more accesses. If the number is 0, before the next access.
    Accesses(u64),
    /// At this time.
    Time(Time),
}

impl Until {
    /// The end of the warm-up as the settings give it.
    pub(crate) fn of(settings: &Settings) -> Until {
        let record = &settings.record;
        match record.warm_up_accesses {
            0 if record.warm_up_ms > 0.0 => Until::Time(ms(record.warm_up_ms)),
            0 => Until::Over,
            accesses => Until::Accesses(accesses),
        }
    }

    /// Counts accesses.
    #[inline]
    pub(crate) fn made(&mut self, accesses: u64) {
        if let Until::Accesses(left) = self {
            *left = left.saturating_sub(accesses);
        }
    }
}

/// Makes the error for a run that ended before the warm-up did, or with it. The run had this number of accesses.
pub(crate) fn too_long(settings: &Settings, accesses: u64, end: Option<Time>) -> Error {
    let record = &settings.record;
    Error::Settings(match end {
        Some(end) if record.warm_up_accesses == 0 => {
            let run = end as f64 / 1e9;
            format!("record.warm_up_ms: {} leaves nothing to count: the run takes {run} ms", record.warm_up_ms)
        }
        _ => {
            let wanted = record.warm_up_accesses;
            format!("record.warm_up_accesses: {wanted} leaves nothing to count: the run has {accesses} accesses")
        }
    })
}
