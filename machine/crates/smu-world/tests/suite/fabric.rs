// SPDX-License-Identifier: Apache-2.0
//! The SMU can be enabled only with a return ring and on a fabric that supports an exclusive pair. REQ: SMU-16

use trapless_smu::{FailReason, Outcome};
use trapless_smu_regs as regs;
use trapless_smu_world::sim::{Sim, config};
use trapless_smu_world::world::{Area, RET_RING};

use super::rules::{LONG, finish, outcomes};
use super::unit;

const WORD: u64 = 0x0123_4567_89ab_cdef;

/// Creates a disabled and idle unit. The first word of the return ring is not zero.
fn disabled() -> Sim {
    let mut sim = Sim::new(unit(config(false)), 0);
    sim.run(LONG);
    sim.write(regs::CTRL, 0);
    while sim.status(regs::STATUS_NO_FRAMES) == 0 {
        sim.run(LONG);
        sim.take_returned();
    }
    sim.world.mem.insert(RET_RING, WORD);
    sim.world.log.clear();
    sim
}

/// Checks that the unit does not let ENABLE be set, sets STATUS.ERROR, and refuses requests.
fn refuses(sim: &mut Sim) {
    sim.write(regs::CTRL, 1);
    assert_eq!((sim.read(regs::CTRL), sim.status(regs::STATUS_ERROR)), (0, 1));
    let before = outcomes(sim).len();
    sim.ask(0, 0);
    sim.run(LONG);
    assert_eq!(outcomes(sim)[before..], [Outcome::Failed(FailReason::Disabled)]);
    assert_eq!(sim.world.word(RET_RING), WORD);
    sim.write(regs::CTRL, 0);
    assert_eq!(sim.status(regs::STATUS_ERROR), 0);
}

fn serves(mut sim: Sim) {
    sim.world.mend();
    sim.write(regs::CTRL, 1);
    assert_eq!((sim.read(regs::CTRL), sim.status(regs::STATUS_ERROR)), (1, 0));
    assert_eq!(sim.world.word(RET_RING), WORD);
    sim.refill(4);
    sim.ask(0, 0);
    sim.run(LONG);
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert_eq!(outcomes(&sim).last(), Some(&Outcome::Done(sim.world.pte(0))));
    finish(sim);
}

/// REQ: SMU-16. The error occurs on the read, or on the write, with or without effect.
#[test]
fn a_bus_error_refuses() {
    let mut sim = disabled();
    sim.world.faults.insert(Area::RetRing);
    refuses(&mut sim);
    sim.world.faults.clear();
    sim.world.write_faults.insert(Area::RetRing);
    for effect in [false, true] {
        sim.world.takes_effect = effect;
        refuses(&mut sim);
    }
    serves(sim);
}

/// REQ: SMU-16, SMU-5. Without a return ring no frame could come back. The SMU makes no memory access.
#[test]
fn without_a_return_ring_it_is_not_enabled() {
    let mut sim = disabled();
    let size = sim.read(regs::RET_SIZE);
    sim.write(regs::RET_SIZE, 0);
    refuses(&mut sim);
    assert!(sim.world.log.is_empty());
    sim.write(regs::RET_SIZE, size);
    serves(sim);
}
