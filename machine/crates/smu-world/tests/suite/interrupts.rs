// SPDX-License-Identifier: Apache-2.0
//! The interrupt output is high while a cause is present and enabled. REQ: SMU-17

use trapless_smu_regs as regs;
use trapless_smu_world::sim::{Sim, config};

use super::rules::{LONG, finish};
use super::unit;

const CAUSES: [u64; 4] = [
    regs::INT_CAUSE_ERROR.mask(),
    regs::INT_CAUSE_FRAMES_LOW.mask(),
    regs::INT_CAUSE_RETURNED.mask(),
    regs::INT_CAUSE_TIMEOUT.mask(),
];

/// Checks that exactly these causes are present, and that the output is high only when one of them is enabled.
#[track_caller]
fn causes(sim: &mut Sim, there: u64) {
    assert_eq!(sim.read(regs::INT_CAUSE), there);
    for cause in CAUSES {
        for (enabled, high) in [(cause, there & cause != 0), (0xf & !cause, there & !cause != 0)] {
            sim.write(regs::INT_ENABLE, enabled);
            sim.run(10);
            assert_eq!(sim.smu.interrupt(), high, "causes {there:#x}, enabled {enabled:#x}");
        }
    }
    sim.write(regs::INT_ENABLE, 0);
    sim.run(10);
    assert!(!sim.smu.interrupt());
}

#[test]
fn each_cause_lasts_as_long_as_it_should() {
    let mut sim = Sim::new(unit(config(false)), 0);
    sim.refill(4);
    sim.run(LONG);
    causes(&mut sim, 0);
    // FRAMES_LOW is set when the ring has fewer entries than FREE_LOW, not when it has as many.
    let left = |sim: &mut Sim| sim.read(regs::FREE_TAIL).wrapping_sub(sim.read(regs::FREE_HEAD)) & 0xffff_ffff;
    let entries = left(&mut sim);
    sim.write(regs::FREE_LOW, entries);
    causes(&mut sim, 0);
    sim.write(regs::FREE_LOW, entries + 1);
    causes(&mut sim, CAUSES[1]);
    sim.write(regs::FREE_LOW, 0);
    // TIMEOUT stays set until software writes 1 to its bit, with a write that covers the lower half.
    sim.write(regs::TIMEOUT, 200);
    sim.ask(0, 0);
    sim.run(LONG);
    causes(&mut sim, CAUSES[3]);
    let (now, world) = (sim.now, &mut sim.world);
    sim.smu.mmio_write(regs::INT_CAUSE + 4, 4, 0xffff_ffff, now, world);
    sim.write(regs::INT_CAUSE, 0xf & !CAUSES[3]);
    causes(&mut sim, CAUSES[3]);
    sim.write(regs::INT_CAUSE, CAUSES[3]);
    causes(&mut sim, 0);
    // RETURNED stays set until RET_HEAD equals RET_TAIL.
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    causes(&mut sim, CAUSES[2]);
    sim.take_returned();
    causes(&mut sim, 0);
    // ERROR follows STATUS.ERROR. A disabled unit does not report FRAMES_LOW.
    sim.write(regs::RET_SIZE, 1);
    causes(&mut sim, CAUSES[0]);
    sim.write(regs::FREE_LOW, entries + 100);
    sim.write(regs::CTRL, 0);
    while sim.status(regs::STATUS_NO_FRAMES) == 0 {
        sim.run(LONG);
        sim.take_returned();
    }
    causes(&mut sim, 0);
    sim.write(regs::CTRL, 1);
    finish(sim);
}
