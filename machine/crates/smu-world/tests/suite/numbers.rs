// SPDX-License-Identifier: Apache-2.0
//! Numbers over their whole range: bits of entries, addresses, timeouts, sizes of queues, identifiers.

use trapless_smu::{FailReason, Outcome, SmuUnit};
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_rtl::Dice;
use trapless_smu_world::disguise::Disguise;
use trapless_smu_world::sim::{HARTS, PMSHR, Sim, config};
use trapless_smu_world::world::{self, PTES};

use super::rules::{finish, warm};
use super::{disguised, unit};

/// REQ: SMU-1. With one of the three low bits set in any address, the SMU refuses the request and reads no memory.
#[test]
fn walkers_ask_with_aligned_addresses() {
    let mut sim = warm();
    sim.world.log.clear();
    for (hart, level, bit) in (0..HARTS * 9).map(|n| (n % HARTS, n / HARTS % 3, n / HARTS / 3)) {
        let mut beside = [0; 3];
        beside[level] = 1 << bit;
        sim.look(hart, 0);
        sim.send_beside(hart, beside);
        sim.run(50);
        assert_eq!(sim.answers.pop().map(|a| a.outcome), Some(Outcome::Failed(FailReason::Descriptor)));
    }
    assert!(sim.world.log.is_empty());
    finish(sim);
}

/// REQ: SMU-11. The same for ports, and for bits above the 56 bits of an address.
#[test]
fn ports_ask_for_what_can_be_an_entry() {
    let mut sim = warm();
    sim.world.log.clear();
    for (port, level, bit) in (0..HARTS * 33).map(|n| (n % HARTS, n / HARTS % 3, n / HARTS / 3)) {
        let (bit, reason) = if bit < 3 { (bit, regs::REASON_DESCRIPTOR) } else { (bit + 53, regs::REASON_BUS) };
        let fields = [regs::PORT_PTE_ADDR, regs::PORT_PMD_ADDR, regs::PORT_PUD_ADDR];
        for (i, (field, base)) in fields.into_iter().zip([world::PT, world::PMD, world::PUD]).enumerate() {
            sim.write(Sim::port(port, field), base + if i == level { 1 << bit } else { 0 });
        }
        sim.write(Sim::port(port, regs::PORT_ENTRY), world::armed(0, 0));
        sim.run(50);
        assert_eq!(sim.port_answer(port), Some((regs::OUTCOME_FAILED, reason, 0)), "bit {bit}");
    }
    assert!(sim.world.log.is_empty());
    finish(sim);
}

/// REQ: ISA-1, ISA-6, SMU-11. The SMU serves an entry if it has the armed form and names this unit and a valid descriptor.
#[test]
fn only_the_armed_form_is_served() {
    let mut dice = Dice::new(3);
    let mut served = 0;
    for round in 0..40 {
        let mut sim = Sim::new(disguised(config(false), round), 4);
        for page in 0..PTES {
            let others = regs::PTE_HIGH.mask() | regs::PTE_SOCKET.mask() | regs::PTE_SOFT.mask() | 0x3ff;
            // An entry has zero, one or two wrong bits.
            let wrong = (0..dice.below(3)).fold(0, |bits, _| bits | 1 << dice.below(64)) & others;
            let entry = world::armed(page, 0) ^ wrong;
            sim.world.mem.insert(world::PT + 8 * page as u64, entry);
            sim.world.accepted[page] = u64::MAX;
            let port = page % HARTS;
            let fields = [regs::PORT_PTE_ADDR, regs::PORT_PMD_ADDR, regs::PORT_PUD_ADDR];
            for (field, base) in fields.into_iter().zip([world::PT, world::PMD, world::PUD]) {
                sim.write(Sim::port(port, field), base + 8 * page as u64);
            }
            sim.write(Sim::port(port, regs::PORT_ENTRY), entry);
            assert_eq!(sim.read(Sim::port(port, regs::PORT_ENTRY)), entry);
            sim.run(60);
            if regs::pte_names_block(entry) && regs::PTE_SOCKET.get(entry) == 0 {
                served += 1;
                assert!(sim.complete(page % world::DESCRIPTORS, 0, 0), "{entry:#x} is armed");
                sim.run(200);
                let installed = sim.world.pte(page);
                assert_eq!(sim.port_answer(port), Some((regs::OUTCOME_DONE, 0, installed)));
                assert_eq!(installed, regs::pte_installed(entry, regs::PTE_PFN.get(installed)));
            } else {
                let refused = (regs::OUTCOME_FAILED, regs::REASON_DESCRIPTOR, 0);
                assert_eq!(sim.port_answer(port), Some(refused), "{entry:#x} is not armed");
                sim.world.mem.insert(world::PT + 8 * page as u64, 0);
            }
            sim.withdraw(page);
            sim.refill(1);
        }
        finish(sim);
    }
    assert!((50..450).contains(&served), "{served} served");
}

/// REQ: SMU-7. The timeout runs from the doorbell write. Each command has the TIMEOUT that was set when it was submitted.
#[test]
fn timeouts_of_any_length() {
    let mut dice = Dice::new(4);
    for round in 0..12 {
        let mut sim = Sim::new(unit(config(true)), 4);
        sim.run(100);
        let mut ends = Vec::new();
        for hart in 0..HARTS {
            let timeout = 4000 + (dice.roll() >> (18 + dice.below(34)));
            sim.write(regs::TIMEOUT, timeout);
            sim.ask(hart, hart);
            sim.run(100);
            ends.push((timeout, hart as u32));
        }
        let begun = sim.now.0;
        ends.sort_unstable();
        for (end, hart) in ends {
            sim.run((begun + end - 600).saturating_sub(sim.now.0));
            assert!(!sim.answers.iter().any(|a| a.hart == hart), "round {round}: too early for {end}");
            sim.run((begun + end + 200).saturating_sub(sim.now.0));
            let answer = sim.answers.iter().find(|a| a.hart == hart).map(|a| a.outcome);
            assert_eq!(answer, Some(Outcome::Failed(FailReason::Timeout)), "round {round}: {end}");
        }
        finish(sim);
    }
}

/// REQ: SMU-9. Queues of any length wrap.
#[test]
fn queues_of_any_length_wrap() {
    // Short queues at all descriptors: the first of the world's two descriptors is this one of the unit.
    let least = u64::from(PMSHR) + 1;
    let short = (0..regs::DESC_COUNT as u64).map(|first| (least + first % 4, Disguise::at(unit(config(true)), first)));
    let long: [(u64, Box<dyn SmuUnit>); 2] = [33, 1024].map(|depth| (depth, unit(config(true))));
    for (depth, unit) in short.map(|(depth, unit)| (depth, Box::new(unit) as Box<dyn SmuUnit>)).chain(long) {
        let mut sim = Sim::new(unit, 8);
        sim.write(regs::CTRL, 0);
        sim.world.depth = depth;
        for d in 0..world::DESCRIPTORS {
            sim.invalidate(d);
            sim.set_up_descriptor(d);
        }
        sim.write(regs::CTRL, 1);
        let rounds = (depth + 10).div_ceil(HARTS as u64 / world::DESCRIPTORS as u64);
        for _ in 0..rounds {
            for hart in 0..HARTS {
                sim.ask(hart, hart);
            }
            sim.run(60);
            (0..world::DESCRIPTORS).for_each(|d| while sim.complete(d, 0, 0) {});
            sim.run(160);
            (0..HARTS).for_each(|page| sim.withdraw(page));
            sim.run(10);
            (0..HARTS).for_each(|page| sim.arm(page, true));
            sim.refill(HARTS);
        }
        let all = rounds * HARTS as u64;
        assert_eq!(sim.count(Counter::Installed), all, "queues of {depth}");
        for d in 0..world::DESCRIPTORS {
            let [tail, head] = [regs::DESC_SQ_TAIL, regs::DESC_CQ_HEAD].map(|at| sim.read(Sim::desc(d, at)));
            let given = all / world::DESCRIPTORS as u64;
            assert_eq!((tail, regs::DESC_CQ_HEAD_INDEX.get(head)), (given % depth, given % depth));
            assert_eq!(regs::DESC_CQ_HEAD_PHASE.get(head), u64::from((given / depth).is_multiple_of(2)));
        }
        finish(sim);
    }
}
