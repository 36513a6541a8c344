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

/// Games of each kind that the random tests play.
const CASES: u32 = 300;

/// The simulated unit of TRAPLESS_SMU_RTL: python3 -m rtl.smu.sim.build pmshr=4 prefetch=2.
fn unit(config: SmuConfig) -> Box<dyn SmuUnit> {
    let path = std::env::var_os("TRAPLESS_SMU_RTL").expect("TRAPLESS_SMU_RTL names the simulated SMU");
    let trace = std::env::var_os("TRAPLESS_SMU_TRACE").map(PathBuf::from);
    Box::new(RtlSmu::load(&PathBuf::from(path), config, Memory::default(), trace.as_deref()).unwrap())
}
