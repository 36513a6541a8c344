// SPDX-License-Identifier: Apache-2.0
//! Seeded bugs of the translator and the page walker. Tests must find them. They exist only with the feature `seeded-bugs`.

/// A bug in translated code or in the page walker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// `mulhsu` takes both operands as unsigned.
    MulhsuUnsigned,
    /// `sraw` shifts zeros in.
    SrawLogical,
    /// `rem` and `remw` by minus one return the dividend.
    RemainderOfMinusOne,
    /// `flw` does not NaN-box its value.
    FlwUnboxed,
    /// An SC succeeds although there is no reservation.
    ScAlways,
    /// Translated code stays valid after a write to its page.
    CodeStays,
    /// A leaf above 1 GiB may be misaligned.
    LargeMisaligned,
    /// The SMU serves misses of accesses in every mode.
    ServesKernel,
}

#[cfg(feature = "seeded-bugs")]
mod seeded {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static SEEDED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Seeds a bug in everything that this thread translates or walks from now on; `None` seeds no bug.
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
