// SPDX-License-Identifier: Apache-2.0
//! The tests of the suite with the simulated RTL.

#[path = "suite/entries.rs"]
mod entries;
#[path = "suite/errors.rs"]
mod errors;
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

use std::path::PathBuf;

use trapless_smu::{SmuConfig, SmuUnit};
use trapless_smu_regs as regs;
use trapless_smu_rtl::{Dice, Memory, RtlSmu};
use trapless_smu_world::disguise::Disguise;
use trapless_smu_world::{games, lockstep, sim, steps, world};

/// Number of games of each kind that the random tests play.
const CASES: u32 = 60;

/// Limit of clock cycles; every test needs fewer.
const LIMIT: u64 = 3_000_000;

/// Loads the simulated unit in TRAPLESS_SMU_RTL, which python3 -m rtl.smu.sim.build pmshr=4 prefetch=2 has built.
fn unit(config: SmuConfig) -> Box<dyn SmuUnit> {
    on(config, Memory::default())
}

/// A unit that sees other numbers than the world.
fn disguised(config: SmuConfig, seed: u64) -> Box<dyn SmuUnit> {
    Box::new(Disguise::new(unit(config), seed))
}

/// The unit for the random tests, with random memory except the slowest kind.
fn random_unit(config: SmuConfig, seed: u64) -> Box<dyn SmuUnit> {
    let memory = Memory::by_chance(seed);
    Box::new(Disguise::new(on(config, Memory { jitter: memory.jitter.min(30), ..memory }), seed))
}

fn on(config: SmuConfig, memory: Memory) -> Box<dyn SmuUnit> {
    Box::new(load(config, memory))
}

fn load(config: SmuConfig, memory: Memory) -> RtlSmu {
    let path = std::env::var_os("TRAPLESS_SMU_RTL").expect("TRAPLESS_SMU_RTL must be the path of the simulated SMU");
    let trace = std::env::var_os("TRAPLESS_SMU_TRACE").map(PathBuf::from);
    let mut smu = RtlSmu::load(&PathBuf::from(path), config, memory, trace.as_deref()).unwrap();
    smu.set_limit(LIMIT);
    smu
}

/// The RTL has the times of `SmuTiming::rtl()`.
#[test]
fn the_models_logic_is_the_rtls() {
    let steps = steps::measure(unit(sim::config(true))).unwrap();
    assert_eq!(steps.timing(sim::timing()), sim::timing().rtl(), "{steps:?}");
}

/// RTL and model have the same visible state whenever both are idle.
#[test]
fn rtl_and_model_are_in_lockstep() {
    for number in 0..20 {
        let game = games::game(number, number % 2 == 1, 60);
        let unit = disguised(sim::config(number % 4 < 2), number);
        lockstep::play(unit, &game).unwrap_or_else(|e| panic!("game {number}: {e}"));
    }
}

/// The register bus serves several accesses at the same time, on channels that pause at random.
#[test]
fn registers_are_served_in_any_rhythm() {
    let mut dice = Dice::new(5);
    let (mut smu, mut memory) = (load(sim::config(true), Memory::default()), world::World::new());
    let at = |d: usize, field| sim::Sim::desc(d, field);
    let mut held = [[0; 8]; 2];
    for round in 0..200 {
        // One of the two doorbell registers is written while the other is read.
        let (writes, reads) = (round % 2, 1 - round % 2);
        let field = |half| [regs::DESC_SQ_DB, regs::DESC_CQ_DB][half];
        let values: Vec<u64> = (0..8).map(|_| dice.roll()).collect();
        let mut accesses = Vec::new();
        for (d, value) in values.iter().enumerate() {
            accesses.extend([(at(d, field(writes)), Some(*value)), (at(d, field(reads)), None)]);
        }
        let found = smu.access_together(&accesses, &mut dice, &mut memory);
        assert_eq!(found, held[reads], "round {round}");
        held[writes].copy_from_slice(&values);
    }
}
