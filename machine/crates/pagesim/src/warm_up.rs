// SPDX-License-Identifier: Apache-2.0
//! The warm-up: what happens before statistics begin. It changes nothing of what is simulated.

use crate::Error;
use crate::settings::{Settings, Time, ms};
use crate::stats::Stats;

/// A warm-up that is over.
#[derive(Clone, Debug)]
pub struct WarmUp {
    /// What happened in it.
    pub stats: Stats,
    /// Its accesses.
    pub accesses: u64,
    /// Changes that the policy had made of its lists and sets.
    pub operations: u64,
}

/// When a warm-up is over that is not over yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// There is none.
    Over,
    /// After so many more accesses: before the next one if these are none.
    Accesses(u64),
    /// At a time.
    Time(Time),
}

impl Until {
    /// As the settings have it.
    pub(crate) fn of(settings: &Settings) -> Until {
        let record = &settings.record;
        match record.warm_up_accesses {
            0 if record.warm_up_ms > 0.0 => Until::Time(ms(record.warm_up_ms)),
            0 => Until::Over,
            accesses => Until::Accesses(accesses),
        }
    }

    /// Some accesses were made.
    #[inline]
    pub(crate) fn made(&mut self, accesses: u64) {
        if let Until::Accesses(left) = self {
            *left = left.saturating_sub(accesses);
        }
    }
}

/// What to say of a run of so many accesses that ended at a time and had nothing behind its warm-up.
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
