// SPDX-License-Identifier: Apache-2.0
//! Queue pairs that software invalidates, releases or changes while the unit uses them, at every descriptor.

use trapless_memory::Cycle;
use trapless_smu::{FailReason, Outcome, SmuTiming};
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_world::disguise::Disguise;
use trapless_smu_world::sim::{Sim, config, timing};
use trapless_smu_world::world::Area;

use super::rules::{LONG, finish, outcomes, warm};
use super::unit;

/// Checks that the first descriptor serves a miss of page 0.
fn serves(sim: &mut Sim) {
    let before = sim.count(Counter::Installed);
    sim.ask(0, 0);
    sim.run(200);
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert_eq!(sim.count(Counter::Installed), before + 1);
}

/// REQ: SMU-7, SMU-9. After a bus error a queue serves no requests, and software cannot make it valid again before RELEASE.
#[test]
fn a_lost_queue_stays_lost_until_its_release() {
    for first in 0..regs::DESC_COUNT as u64 {
        let mut sim = Sim::new(Box::new(Disguise::at(unit(config(false)), first)), 8);
        sim.run(100);
        sim.ask(1, 2);
        sim.run(50);
        sim.world.faults.insert(Area::Cq);
        sim.run(100);
        sim.world.faults.clear();
        sim.run(100);
        sim.ask(0, 0);
        sim.run(200);
        assert_eq!(outcomes(&sim), [FailReason::Bus, FailReason::Descriptor].map(Outcome::Failed), "{first}");
        sim.invalidate(0);
        sim.write(Sim::desc(0, regs::DESC_CTRL), 1);
        assert_eq!(sim.read(Sim::desc(0, regs::DESC_CTRL)), 0);
        sim.release(0);
        sim.set_up_descriptor(0);
        serves(&mut sim);
        finish(sim);
    }
}

/// REQ: SMU-9. Writes to the bases, the depth and RELEASE reset the queues. Other writes do not.
#[test]
fn some_settings_put_the_queues_back_to_their_beginning() {
    let resets = [regs::DESC_SQ_BASE, regs::DESC_CQ_BASE, regs::DESC_DEPTH];
    for at in resets.into_iter().chain([regs::DESC_SQ_DB, regs::DESC_CQ_DB, regs::DESC_NSID, regs::DESC_BLOCKS]) {
        let mut sim = warm();
        serves(&mut sim);
        let indices = [regs::DESC_SQ_TAIL, regs::DESC_CQ_HEAD].map(|at| Sim::desc(0, at));
        let before = indices.map(|at| sim.read(at));
        assert_eq!(before, [1, regs::DESC_CQ_HEAD_RESET + 1]);
        sim.invalidate(0);
        let value = sim.read(Sim::desc(0, at));
        sim.write(Sim::desc(0, at), value);
        let expected = if resets.contains(&at) { [0, regs::DESC_CQ_HEAD_RESET] } else { before };
        assert_eq!(indices.map(|at| sim.read(at)), expected, "{at:#x}");
        sim.release(0);
        assert_eq!(indices.map(|at| sim.read(at)), [0, regs::DESC_CQ_HEAD_RESET]);
        finish(sim);
    }
}

/// REQ: SMU-7, SMU-9. A completion that the unit reads during a release still belongs to the old queue.
#[test]
fn a_release_waits_for_who_looks_at_the_queue() {
    for delay in 0..40 {
        let mut sim = warm();
        sim.smu.set_timing(SmuTiming { ring_read: Cycle(30), ..timing() });
        sim.ask(0, 2);
        sim.run(300 + delay);
        assert!(sim.complete(0, 0, 0));
        sim.invalidate(0);
        sim.release(0);
        sim.run(LONG);
        assert_eq!((sim.answers.len(), sim.count(Counter::StrayCqe)), (1, 0), "after {delay}");
        assert_eq!(sim.read(Sim::desc(0, regs::DESC_CQ_HEAD)), regs::DESC_CQ_HEAD_RESET, "after {delay}");
        sim.set_up_descriptor(0);
        serves(&mut sim);
        finish(sim);
    }
}
