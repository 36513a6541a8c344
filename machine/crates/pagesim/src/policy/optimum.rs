// SPDX-License-Identifier: Apache-2.0
//! The name of the offline optimum, which is no policy but a computation ([`crate::optimum`]).

use super::Registration;
use super::plain::Sync;

/// What configurations call it.
pub const NAME: &str = "optimum";

/// It is computed from a run in which no page is missing.
pub const POLICIES: &[Registration] = &[Registration {
    name: NAME,
    about: "not a policy, but a bound that no policy can beat: Belady's replacement and perfect prefetch ([rivals](../explanation/pagesim-rivals.md))",
    make: |_| Box::new(Sync),
}];
