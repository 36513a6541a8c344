// SPDX-License-Identifier: Apache-2.0
//! The RTL in the world of the reference model.

#[path = "suite/ports.rs"]
mod ports;
#[path = "suite/random.rs"]
mod random;
#[path = "suite/rules.rs"]
mod rules;

use std::path::PathBuf;

use trapless_smu::{SmuConfig, SmuUnit};
use trapless_smu_rtl::{Memory, RtlSmu};
use trapless_smu_world::{games, lockstep, sim, steps};

/// Games of each kind that the random tests play.
const CASES: u32 = 300;

/// The simulated unit of TRAPLESS_SMU_RTL: python3 -m rtl.smu.sim.build pmshr=4 prefetch=2.
fn unit(config: SmuConfig) -> Box<dyn SmuUnit> {
    let path = std::env::var_os("TRAPLESS_SMU_RTL").expect("TRAPLESS_SMU_RTL names the simulated SMU");
    let trace = std::env::var_os("TRAPLESS_SMU_TRACE").map(PathBuf::from);
    Box::new(RtlSmu::load(&PathBuf::from(path), config, Memory::default(), trace.as_deref()).unwrap())
}

/// SmuTiming::rtl() is what the RTL needs.
#[test]
fn the_models_logic_is_the_rtls() {
    let steps = steps::measure(unit(sim::config(true))).unwrap();
    assert_eq!(steps.timing(sim::timing()), sim::timing().rtl(), "{steps:?}");
}

/// Whenever both are at rest, RTL and model show the same.
#[test]
fn rtl_and_model_are_in_lockstep() {
    for number in 0..40 {
        let game = games::game(number, number % 2 == 1, 60);
        lockstep::play(unit(sim::config(number % 4 < 2)), &game).unwrap_or_else(|e| panic!("game {number}: {e}"));
    }
}
