// SPDX-License-Identifier: Apache-2.0
//! Tests of every PMSHR entry with all walkers and ports: joins, turns, answers, and misses that software ends.

use trapless_memory::Cycle;
use trapless_smu::{FailReason, Outcome, SmuTiming, Source};
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_rtl::Dice;
use trapless_smu_world::disguise::Disguise;
use trapless_smu_world::sim::{HARTS, PMSHR, Sim, config, timing};
use trapless_smu_world::world::{self, PTES};

use super::rules::{LONG, finish, outcomes, warm};
use super::{disguised, unit};

/// Creates a unit in which misses of pages 0 and up keep this number of entries. They are at the devices and have no waiters.
fn with_taken(entries: usize) -> Sim {
    let mut sim = Sim::new(unit(config(false)), 8);
    sim.run(100);
    take(&mut sim, entries);
    sim
}

fn take(sim: &mut Sim, entries: usize) {
    for page in 0..entries {
        sim.ask(0, page);
        sim.run(50);
        sim.abandon(0);
    }
}

/// REQ: SMU-1, SMU-6. All walkers and ports can join a miss in each entry.
#[test]
fn everybody_can_join_every_miss() {
    for taken in 0..usize::from(PMSHR) {
        let mut sim = with_taken(taken);
        for n in 0..HARTS {
            sim.ask_port(n, taken);
            sim.run(10);
            sim.ask(n, taken);
            sim.run(10);
        }
        assert_eq!(
            (sim.count(Counter::Coalesced), sim.status(regs::STATUS_LIVE)),
            (2 * HARTS as u64 - 1, taken as u64 + 1)
        );
        for device in 0..world::DESCRIPTORS {
            while sim.complete(device, 0, 0) {}
        }
        sim.run(LONG);
        let installed = sim.world.pte(taken);
        assert_eq!(outcomes(&sim), [Outcome::Done(installed); HARTS]);
        for port in 0..HARTS {
            assert_eq!(sim.port_answer(port), Some((regs::OUTCOME_DONE, 0, installed)));
        }
        finish(sim);
    }
}

/// REQ: SMU-2, SMU-3, SMU-6. If the entry changes, before or after the command, the answer has its new value.
#[test]
fn changed_tells_what_was_found() {
    let mut dice = Dice::new(6);
    for taken in (0..usize::from(PMSHR)).cycle().take(40) {
        let mut sim = with_taken(taken);
        let (page, other) = (taken, dice.roll() & !regs::PTE_V.mask());
        let at = world::PT + 8 * page as u64;
        let early = dice.one_in(2);
        sim.look(1, page);
        if !early {
            sim.send(1);
            sim.ask_port(2, page);
            sim.run(50);
        }
        sim.world.mem.insert(at, other);
        if early {
            sim.send(1);
        } else {
            assert!(sim.complete(page % world::DESCRIPTORS, taken / world::DESCRIPTORS, 0));
            sim.run(200);
            assert_eq!(sim.port_answer(2), Some((regs::OUTCOME_CHANGED, 0, other)));
        }
        sim.run(200);
        assert_eq!(outcomes(&sim), [Outcome::Changed(other)]);
        sim.world.mem.insert(at, 0);
        finish(sim);
    }
}

/// REQ: SMU-6, SMU-11. While all entries are taken, walkers and ports wait. They are counted once and served in turn.
#[test]
fn all_who_wait_have_their_turn() {
    let mut sim = with_taken(usize::from(PMSHR));
    for n in [2, 1, 3, 0] {
        sim.ask_port(n, 4 + n);
        sim.ask(n, 8 + n);
        sim.run(30);
    }
    assert_eq!((sim.count(Counter::Requests), sim.count(Counter::PmshrFull)), (u64::from(PMSHR), 2 * HARTS as u64));
    let everybody: Vec<Source> =
        (0..HARTS as u32).map(Source::Walker).chain((0..HARTS as u32).map(Source::Port)).collect();
    let mut order = Vec::new();
    for _ in 0..everybody.len() {
        let device = sim.world.devices.iter().position(|d| !d.pending.is_empty());
        assert!(sim.complete(device.unwrap(), 0, 0));
        sim.run(300);
        let accepted = everybody.iter().position(|who| !sim.smu.is_held(*who) && !order.contains(who));
        order.push(everybody[accepted.unwrap()]);
        for page in 0..PTES {
            if regs::PTE_V.is_set(sim.world.pte(page)) {
                sim.withdraw(page);
            }
        }
        sim.refill(1);
    }
    let begin = everybody.iter().position(|who| *who == order[0]).unwrap();
    let turns: Vec<Source> = everybody.iter().cycle().skip(begin).take(order.len()).copied().collect();
    assert_eq!(order, turns);
    finish(sim);
}

/// REQ: SMU-6, SMU-11. The SMU remembers the turn, also while no request waits.
#[test]
fn the_turn_is_remembered() {
    let mut dice = Dice::new(7);
    let mut sim = with_taken(0);
    let mut last = None;
    for round in 0..24 {
        take(&mut sim, PMSHR.into());
        let all = 2 * HARTS as u64;
        let first = dice.below(all);
        let two = [first, (first + 1 + dice.below(all - 1)) % all];
        let held = |sim: &Sim, who: u64| {
            let n = who as u32 % HARTS as u32;
            sim.smu.is_held(if who < HARTS as u64 { Source::Walker(n) } else { Source::Port(n) })
        };
        for (who, page) in two.into_iter().zip(PMSHR.into()..) {
            let n = who as usize % HARTS;
            if who < HARTS as u64 {
                sim.ask(n, page);
            } else {
                sim.ask_port(n, page);
            }
        }
        sim.run(40 + dice.below(9));
        assert_eq!(two.map(|who| held(&sim, who)), [true; 2]);
        assert!(sim.complete(0, 0, 0));
        sim.run(LONG);
        let served: Vec<u64> = two.into_iter().filter(|who| !held(&sim, *who)).collect();
        let expected = last.and_then(|last| two.into_iter().min_by_key(|who| (who + all - last - 1) % all));
        assert!(served.len() == 1 && expected.is_none_or(|who| who == served[0]), "{round}: {served:?} after {last:?}");
        // The other source has the next turn.
        last = Some(two[0] + two[1] - served[0]);
        for _ in 0..2 {
            (0..world::DESCRIPTORS).for_each(|d| while sim.complete(d, 0, 0) {});
            sim.run(LONG);
        }
        (0..6).for_each(|page| sim.withdraw(page));
        sim.run(50);
        (0..6).for_each(|page| sim.arm(page, true));
        sim.refill(6);
    }
    finish(sim);
}

/// REQ: SMU-3, SMU-6. All commands complete at once, in any order. Installs wait for each other, and each request gets the
/// answer of its own page.
#[test]
fn installs_wait_for_each_other() {
    let mut dice = Dice::new(8);
    let mut sim = with_taken(0);
    sim.smu.set_timing(SmuTiming { ring_read: Cycle(20), ..timing() });
    for round in 0..24 {
        for n in 0..HARTS {
            sim.ask(n, n);
            sim.run(20);
        }
        sim.run(400);
        for left in (1..=HARTS as u64).rev() {
            // Complete a random one of the commands that are left.
            let which = dice.below(left) as usize;
            let first = sim.world.devices[0].pending.len();
            let (d, which) = if which < first { (0, which) } else { (1, which - first) };
            assert!(sim.complete(d, which, 0));
        }
        sim.run(LONG);
        let mut answers: Vec<_> = sim.answers.drain(..).map(|a| (a.hart, a.outcome)).collect();
        answers.sort_unstable_by_key(|(hart, _)| *hart);
        let installed = (0..HARTS).map(|page| (page as u32, Outcome::Done(sim.world.pte(page)))).collect::<Vec<_>>();
        assert_eq!(answers, installed, "round {round}");
        // Clear the marks, so that the next install must write them again.
        (0..HARTS).for_each(|page| sim.adopt(page));
        (0..HARTS).for_each(|page| sim.withdraw(page));
        sim.run(100);
        (0..HARTS).for_each(|page| sim.arm(page, true));
        sim.refill(HARTS);
    }
    finish(sim);
}

/// REQ: SMU-2, SMU-3. A request whose entry has changed before the command does not affect other misses.
#[test]
fn a_second_look_changes_nobody_else() {
    for round in 0..24 {
        let mut sim = Sim::new(disguised(config(false), round as u64), 8);
        sim.run(100);
        take(&mut sim, PMSHR.into());
        let gone = round % usize::from(PMSHR);
        assert!(sim.complete(gone % world::DESCRIPTORS, gone / world::DESCRIPTORS, 0));
        sim.run(LONG);
        sim.look(1, 5);
        sim.withdraw(5);
        sim.send(1);
        sim.run(100);
        assert_eq!(outcomes(&sim), [Outcome::Changed(0)]);
        (0..world::DESCRIPTORS).for_each(|d| while sim.complete(d, 0, 0) {});
        sim.run(LONG);
        assert_eq!(sim.count(Counter::Installed), u64::from(PMSHR), "round {round}");
        finish(sim);
    }
}

/// REQ: SMU-7. The release of a descriptor ends only the misses of this descriptor.
#[test]
fn a_release_ends_only_what_is_its_own() {
    for first in 0..regs::DESC_COUNT as u64 {
        let mut sim = Sim::new(Box::new(Disguise::at(unit(config(false)), first)), 8);
        sim.run(100);
        for hart in 0..HARTS {
            sim.ask(hart, hart);
        }
        sim.run(200);
        sim.invalidate(1);
        sim.release(1);
        sim.run(100);
        let mut failed: Vec<_> = sim.answers.iter().map(|a| (a.hart, a.outcome)).collect();
        failed.sort_unstable_by_key(|(hart, _)| *hart);
        assert_eq!(failed, [1, 3].map(|hart| (hart, Outcome::Failed(FailReason::Descriptor))));
        assert_eq!((sim.status(regs::STATUS_LIVE), sim.take_returned().len()), (2, 2));
        finish(sim);
    }
}

/// REQ: SMU-11. A port refuses writes while it is busy; other ports still take them.
#[test]
fn every_busy_port_refuses_writes() {
    let mut sim = warm();
    for port in 0..HARTS {
        sim.ask_port(port, port);
        sim.run(60);
        sim.write(Sim::port((port + 1) % HARTS, regs::PORT_PMD_ADDR), world::PMD);
        assert_eq!(sim.status(regs::STATUS_ERROR), 0);
        sim.write(Sim::port(port, regs::PORT_PMD_ADDR), 8);
        assert_eq!(sim.read(Sim::port(port, regs::PORT_PMD_ADDR)), world::PMD + 8 * port as u64);
        assert_eq!(sim.status(regs::STATUS_ERROR), 1);
        while sim.complete(port % world::DESCRIPTORS, 0, 0) {}
        sim.run(LONG);
        sim.write(regs::CTRL, 0);
        sim.write(regs::CTRL, 1);
        sim.run(100);
        sim.take_returned();
        sim.refill(4);
    }
    finish(sim);
}
