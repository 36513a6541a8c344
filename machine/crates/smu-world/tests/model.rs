// SPDX-License-Identifier: Apache-2.0
//! The reference model in its world.

#[path = "suite/exact.rs"]
mod exact;
#[path = "suite/ports.rs"]
mod ports;
#[path = "suite/random.rs"]
mod random;
#[path = "suite/rules.rs"]
mod rules;

use trapless_smu::{Bug, Smu, SmuConfig, SmuUnit};

/// Games of each kind that the random tests play.
const CASES: u32 = 3000;

fn unit(config: SmuConfig) -> Box<dyn SmuUnit> {
    seeded(config, None)
}

fn seeded(config: SmuConfig, bug: Option<Bug>) -> Box<dyn SmuUnit> {
    let mut smu = Smu::new(config).unwrap();
    smu.seed(bug);
    Box::new(smu)
}
