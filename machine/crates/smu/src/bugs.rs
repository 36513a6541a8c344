// SPDX-License-Identifier: Apache-2.0
//! Seeded bugs. The checks of trapless-smu-world must catch each of them; without the feature `bugs` they do not exist.

use crate::Smu;

/// One way to get the SMU wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Bug {
    /// SMU-1: a request that joins a miss is forgotten.
    ForgetJoiners,
    /// SMU-2: the PTE is not read again before I/O.
    NoSecondLook,
    /// SMU-3: the PTE is overwritten whatever it holds.
    OverwritePte,
    /// SMU-3: PMD and PUD are marked before the PTE is there.
    UpperMarksFirst,
    /// SMU-3: the frame of a failed exchange is lost.
    LoseFrame,
    /// SMU-5: prefetched frames stay when the SMU is disabled.
    KeepPrefetched,
    /// SMU-6: an answer is sent twice.
    AnswerTwice,
    /// SMU-7: a timed-out command gives up its frame at once.
    NoQuarantine,
    /// SMU-8: a fence overlooks what is at the device.
    FenceOverlooksDevice,
    /// SMU-8: a drain overlooks quarantined commands.
    DrainOverlooksQuarantine,
    /// SMU-8: a fence waits for misses at other devices, too.
    FenceOfTheUnit,
    /// SMU-10: a completion with an impossible command identifier ends some command.
    WrapCommandId,
    /// SMU-11: a port's answer never comes to its registers.
    ForgetPorts,
    /// SMU-13: a bus error on the exchange is taken to say that it was not done.
    TrustWriteError,
    /// SMU-15: only the PTE of a request is held to the windows.
    OverlookUpperEntries,
}

impl Smu {
    /// The same with a bug.
    #[cfg(feature = "bugs")]
    pub fn seed(&mut self, bug: Option<Bug>) {
        self.seeded = bug;
    }

    /// Whether this bug is seeded.
    #[cfg(feature = "bugs")]
    pub(crate) fn bug(&self, bug: Bug) -> bool {
        self.seeded == Some(bug)
    }

    /// Whether this bug is seeded.
    #[cfg(not(feature = "bugs"))]
    #[inline]
    pub(crate) const fn bug(&self, _bug: Bug) -> bool {
        false
    }
}
