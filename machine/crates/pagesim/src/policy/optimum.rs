// SPDX-License-Identifier: Apache-2.0
//! The name of the offline optimum. It is not a policy but a computation ([`crate::optimum`]).

use super::Registration;
use super::plain::Sync;

/// Its name in configurations.
pub const NAME: &str = "optimum";

/// The computation starts from a run in which no page is missing.
pub const POLICIES: &[Registration] = &[Registration {
    name: NAME,
    about: "not a policy, but a bound that no policy can beat: Belady's replacement and perfect prefetch ([rivals](../explanation/pagesim-rivals.md))",
    make: |_| Box::new(Sync),
}];
