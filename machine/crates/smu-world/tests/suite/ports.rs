// SPDX-License-Identifier: Apache-2.0
//! Examples of software request ports.

use trapless_smu::Outcome;
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_world::sim::{HARTS, Sim};
use trapless_smu_world::world;

use super::rules::{LONG, finish, outcomes, warm};

/// Returns the registers for the addresses of a page's three entries, with the addresses.
fn entries(page: u64) -> [(u64, u64); 3] {
    [(regs::PORT_PTE_ADDR, world::PT), (regs::PORT_PMD_ADDR, world::PMD), (regs::PORT_PUD_ADDR, world::PUD)]
        .map(|(register, base)| (register, base + 8 * page))
}

/// REQ: SMU-11. A port sends requests as a walker does, also for an entry with SOFT set, for which walkers do not ask.
#[test]
fn software_asks_through_a_port() {
    let mut sim = warm();
    assert_eq!(regs::CAP_PORTS.get(sim.read(regs::CAP)), HARTS as u64);
    sim.withdraw(3);
    sim.run(10);
    sim.arm_soft(3);
    sim.look(0, 3);
    assert_eq!(sim.send(0), None, "REQ: ISA-1: an ordinary invalid entry for walkers");
    assert_eq!(sim.port_answer(1), Some((0, 0, 0)));
    sim.ask_port(1, 3);
    assert_eq!(sim.port_answer(1), None);
    sim.run(40);
    assert!(sim.complete(1, 0, 0));
    sim.run(LONG);
    let installed = sim.world.pte(3);
    assert_eq!(sim.port_answer(1), Some((regs::OUTCOME_DONE, 0, installed)));
    assert!(regs::PTE_V.is_set(installed) && !regs::PTE_SOFT.is_set(installed) && sim.world.is_marked(3));
    assert!(sim.answers.is_empty(), "no walker gets an answer");
    assert_eq!((sim.count(Counter::Requests), sim.count(Counter::PortRequests)), (1, 1));
    finish(sim);
}

/// REQ: SMU-1, SMU-11. Walkers and ports join each other's misses.
#[test]
fn ports_and_walkers_join() {
    let mut sim = warm();
    sim.ask_port(2, 5);
    sim.run(20);
    sim.ask(0, 5);
    sim.ask_port(0, 5);
    sim.run(20);
    assert!(sim.complete(1, 0, 0));
    sim.run(LONG);
    let done = Some((regs::OUTCOME_DONE, 0, sim.world.pte(5)));
    assert_eq!((sim.port_answer(2), sim.port_answer(0)), (done, done));
    assert_eq!(outcomes(&sim), [Outcome::Done(sim.world.pte(5))]);
    assert_eq!(
        (sim.count(Counter::Commands), sim.count(Counter::Coalesced), sim.count(Counter::PortRequests)),
        (1, 2, 2)
    );
    finish(sim);
}

/// REQ: SMU-2, SMU-11. The SMU compares the whole entry, including SOFT.
#[test]
fn a_port_hears_that_the_entry_changed() {
    let mut sim = warm();
    let armed = sim.world.pte(4);
    for (register, at) in entries(4) {
        sim.write(Sim::port(0, register), at);
    }
    sim.write(Sim::port(0, regs::PORT_ENTRY), armed | regs::PTE_SOFT.mask());
    sim.run(LONG);
    assert_eq!(sim.port_answer(0), Some((regs::OUTCOME_CHANGED, 0, armed)));
    assert_eq!(sim.count(Counter::Commands), 0);
    finish(sim);
}

/// REQ: SMU-11. A port fails requests with unaligned addresses, with addresses above 56 bits, or with an entry that is not
/// armed. A disabled SMU fails all requests.
#[test]
fn a_port_refuses_what_no_walker_would_ask() {
    for bad in [regs::PORT_PTE_ADDR, regs::PORT_PMD_ADDR, regs::PORT_PUD_ADDR] {
        for (offset, reason) in [(1, regs::REASON_DESCRIPTOR), (1 << 56, regs::REASON_BUS)] {
            let mut sim = warm();
            for (register, at) in entries(0) {
                sim.write(Sim::port(0, register), at + if register == bad { offset } else { 0 });
            }
            sim.world.log.clear();
            sim.write(Sim::port(0, regs::PORT_ENTRY), sim.world.pte(0));
            sim.run(LONG);
            assert_eq!(sim.port_answer(0), Some((regs::OUTCOME_FAILED, reason, 0)));
            assert!(sim.world.log.is_empty(), "memory is left alone");
            finish(sim);
        }
    }
    let mut sim = warm();
    let armed = sim.world.pte(0);
    sim.world.mem.insert(world::PT, armed | regs::PTE_D.mask());
    sim.write(Sim::port(0, regs::PORT_PTE_ADDR), world::PT);
    sim.write(Sim::port(0, regs::PORT_ENTRY), armed | regs::PTE_D.mask());
    sim.run(LONG);
    assert_eq!(sim.port_answer(0), Some((regs::OUTCOME_FAILED, regs::REASON_DESCRIPTOR, 0)));
    sim.write(regs::CTRL, 0);
    sim.ask_port(1, 1);
    sim.run(LONG);
    assert_eq!(sim.port_answer(1), Some((regs::OUTCOME_FAILED, regs::REASON_DISABLED, 0)));
    finish(sim);
}

/// REQ: SMU-11. A busy port takes no writes. Of two half writes to ENTRY, the upper one starts the request. Ports beyond
/// CAP.PORTS do not exist.
#[test]
fn a_port_holds_one_request() {
    let mut sim = warm();
    sim.ask_port(0, 2);
    sim.write(Sim::port(0, regs::PORT_PTE_ADDR), 8);
    sim.write(Sim::port(0, regs::PORT_ENTRY), 0);
    assert_eq!(sim.read(Sim::port(0, regs::PORT_PTE_ADDR)), world::PT + 16);
    assert_eq!(sim.status(regs::STATUS_ERROR), 1);
    let entry = sim.world.pte(3);
    sim.world.accepted[3] = u64::MAX; // requested below with single register writes
    for (register, at) in entries(3) {
        sim.write(Sim::port(1, register), at);
    }
    sim.smu.mmio_write(Sim::port(1, regs::PORT_ENTRY), 4, entry & 0xffff_ffff, sim.now, &mut sim.world);
    assert_eq!(sim.port_answer(1), Some((0, 0, 0)));
    sim.smu.mmio_write(Sim::port(1, regs::PORT_ENTRY) + 4, 4, entry >> 32, sim.now, &mut sim.world);
    assert_eq!(sim.port_answer(1), None);
    sim.run(10);
    sim.write(Sim::port(HARTS, regs::PORT_PTE_ADDR), 8);
    sim.write(Sim::port(HARTS, regs::PORT_ENTRY), entry);
    assert_eq!(sim.read(Sim::port(HARTS, regs::PORT_PTE_ADDR)), 0);
    assert_eq!(sim.status(regs::STATUS_LIVE), 2);
    sim.run(40);
    assert!(sim.complete(0, 0, 0) && sim.complete(1, 0, 0));
    sim.run(LONG);
    assert_eq!(sim.port_answer(1), Some((regs::OUTCOME_DONE, 0, sim.world.pte(3))));
    finish(sim);
}
