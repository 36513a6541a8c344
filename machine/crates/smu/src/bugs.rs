// SPDX-License-Identifier: Apache-2.0
//! Seeded bugs. The checks of trapless-smu-world must catch each bug. The bugs are compiled in only with the feature `bugs`.

use crate::Smu;

/// A bug that can be seeded. Each breaks the rule in front of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Bug {
    /// SMU-1: a request that joins a miss is never answered.
    ForgetJoiners,
    /// SMU-2: the value read from the PTE before I/O is not compared with the value seen.
    NoSecondLook,
    /// SMU-3: the PTE is overwritten, even if its value has changed.
    OverwritePte,
    /// SMU-3: PMD and PUD are marked before the PTE is installed.
    UpperMarksFirst,
    /// SMU-3: after a failed exchange, the frame is lost.
    LoseFrame,
    /// SMU-5: prefetched frames are not returned when the SMU is disabled.
    KeepPrefetched,
    /// SMU-6: an answer is sent twice.
    AnswerTwice,
    /// SMU-7: the frame of a timed-out command is returned at once, without quarantine.
    NoQuarantine,
    /// SMU-8: a fence does not wait for misses that the device works on.
    FenceOverlooksDevice,
    /// SMU-8: a drain does not wait for commands in quarantine.
    DrainOverlooksQuarantine,
    /// SMU-8: a fence also waits for misses of other descriptors.
    FenceOfTheUnit,
    /// SMU-10: a completion with an unknown command identifier ends some other command.
    WrapCommandId,
    /// SMU-11: the answer to a port's request never reaches the port's registers.
    ForgetPorts,
    /// SMU-13: after a bus error on the exchange, the SMU assumes that the PTE was not written.
    TrustWriteError,
    /// SMU-15: only the PTE's address is checked against the windows, not those of PMD and PUD.
    OverlookUpperEntries,
}

impl Smu {
    /// Seeds a bug, or none.
    #[cfg(feature = "bugs")]
    pub fn seed(&mut self, bug: Option<Bug>) {
        self.seeded = bug;
    }

    /// Tells whether this bug is seeded.
    #[cfg(feature = "bugs")]
    pub(crate) fn bug(&self, bug: Bug) -> bool {
        self.seeded == Some(bug)
    }

    /// Tells whether this bug is seeded.
    #[cfg(not(feature = "bugs"))]
    #[inline]
    pub(crate) const fn bug(&self, _bug: Bug) -> bool {
        false
    }
}
