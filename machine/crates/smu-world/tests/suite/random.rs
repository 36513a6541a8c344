// SPDX-License-Identifier: Apache-2.0
//! Random games against the world that watches every access.

use trapless_smu_world::{games, sim};

use super::{CASES, unit};

/// REQ: SMU-1, SMU-2, SMU-3, SMU-4, SMU-5, SMU-6, SMU-7, SMU-8, SMU-9, SMU-10, SMU-11
#[test]
fn no_rule_is_broken_without_bus_errors() {
    games::hunt(CASES, false, |hints| unit(sim::config(hints))).unwrap();
}

/// REQ: SMU-6, SMU-7, SMU-10
#[test]
fn no_rule_is_broken_with_bus_errors_everywhere() {
    games::hunt(CASES, true, |hints| unit(sim::config(hints))).unwrap();
}

/// A long hunt: `cargo test -p trapless-smu --release -- --ignored`.
#[test]
#[ignore = "minutes long"]
fn long_hunt() {
    games::hunt(100_000, false, |hints| unit(sim::config(hints))).unwrap();
    games::hunt(100_000, true, |hints| unit(sim::config(hints))).unwrap();
}
