// SPDX-License-Identifier: Apache-2.0
//! The tests of the suite with the reference model.

#[path = "suite/entries.rs"]
mod entries;
#[path = "suite/errors.rs"]
mod errors;
#[path = "suite/exact.rs"]
mod exact;
#[path = "suite/fabric.rs"]
mod fabric;
#[path = "suite/interrupts.rs"]
mod interrupts;
#[path = "suite/numbers.rs"]
mod numbers;
#[path = "suite/ports.rs"]
mod ports;
#[path = "suite/queues.rs"]
mod queues;
#[path = "suite/random.rs"]
mod random;
#[path = "suite/registers.rs"]
mod registers;
#[path = "suite/rules.rs"]
mod rules;
#[path = "suite/windows.rs"]
mod windows;

use trapless_smu::{Bug, Smu, SmuConfig, SmuUnit};
use trapless_smu_world::disguise::Disguise;

/// Number of games of each kind that the random tests play.
const CASES: u32 = 3000;

fn unit(config: SmuConfig) -> Box<dyn SmuUnit> {
    seeded(config, None)
}

/// A unit that sees other numbers than the world.
fn disguised(config: SmuConfig, seed: u64) -> Box<dyn SmuUnit> {
    Box::new(Disguise::new(unit(config), seed))
}

/// The unit for the random tests.
fn random_unit(config: SmuConfig, seed: u64) -> Box<dyn SmuUnit> {
    disguised(config, seed)
}

fn seeded(config: SmuConfig, bug: Option<Bug>) -> Box<dyn SmuUnit> {
    let mut smu = Smu::new(config).unwrap();
    smu.seed(bug);
    Box::new(smu)
}
