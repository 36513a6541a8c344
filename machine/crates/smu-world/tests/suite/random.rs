// SPDX-License-Identifier: Apache-2.0
//! Random games in the world, which checks every access. `smu-soak` can play any number of games.

use trapless_smu_world::{games, sim};

use super::{CASES, random_unit};

/// REQ: SMU-1, SMU-2, SMU-3, SMU-4, SMU-5, SMU-6, SMU-7, SMU-8, SMU-9, SMU-10, SMU-11
#[test]
fn no_rule_is_broken_without_bus_errors() {
    games::hunt(CASES, false, |hints, seed| random_unit(sim::config(hints), seed)).unwrap();
}

/// REQ: SMU-6, SMU-7, SMU-10, SMU-13
#[test]
fn no_rule_is_broken_with_bus_errors_everywhere() {
    games::hunt(CASES, true, |hints, seed| random_unit(sim::config(hints), seed)).unwrap();
}
