// SPDX-License-Identifier: Apache-2.0
//! Seeded bugs of translator and page walker, for tests that must find them. Without the feature `seeded-bugs` they do not exist.

/// One way to get translated code, or a walk, wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// `mulhsu` takes both operands for unsigned.
    MulhsuUnsigned,
    /// `sraw` shifts zeros in.
    SrawLogical,
    /// `rem` and `remw` by minus one have the dividend as result.
    RemainderOfMinusOne,
    /// `flw` does not box its value.
    FlwUnboxed,
    /// An SC without a reservation succeeds.
    ScAlways,
    /// Translated code stays when its page is written to.
    CodeStays,
    /// A leaf above 1 GiB may be misaligned.
    LargeMisaligned,
    /// Misses of every mode's accesses are served.
    ServesKernel,
}

#[cfg(feature = "seeded-bugs")]
mod seeded {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static SEEDED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Seeds a bug in all that this thread translates or walks from now on, or none.
    pub fn seed(bug: Option<Bug>) {
        SEEDED.set(bug);
    }

    /// Whether this bug is seeded.
    pub fn has(bug: Bug) -> bool {
        SEEDED.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use seeded::{has, seed};

/// Whether this bug is seeded.
#[cfg(not(feature = "seeded-bugs"))]
#[cfg_attr(not(all(feature = "translator", target_arch = "x86_64", target_os = "linux")), allow(dead_code))]
#[inline(always)]
pub(crate) const fn has(_bug: Bug) -> bool {
    false
}
