// SPDX-License-Identifier: Apache-2.0
//! Writes that meet a bus error. The error does not say whether the write took effect. REQ: SMU-13

use trapless_smu::{FailReason, Outcome};
use trapless_smu_regs as regs;
use trapless_smu_world::sim::Sim;
use trapless_smu_world::world::{self, Area};

use super::rules::{LONG, failed, finish, outcomes, warm};

/// Starts a miss and runs until its exchange has met a bus error.
fn write_of_pte_fails(takes_effect: bool) -> Sim {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(50);
    sim.world.write_faults.insert(Area::Pte);
    sim.world.takes_effect = takes_effect;
    assert!(sim.complete(0, 0, 0));
    for _ in 0..LONG {
        if sim.world.errors.is_empty() {
            sim.run(1);
        }
    }
    assert!(!sim.world.errors.is_empty());
    sim
}

/// REQ: SMU-13. An exchange that met a bus error and took effect is an install.
#[test]
fn an_exchange_with_an_error_that_took_effect_is_an_install() {
    let mut sim = write_of_pte_fails(true);
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Done(sim.world.pte(0))]);
    assert_eq!((sim.take_returned(), sim.status(regs::STATUS_ERROR)), (vec![], 1));
    finish(sim);
}

/// REQ: SMU-13. If the exchange took no effect, the SMU returns the frame.
#[test]
fn an_exchange_with_an_error_that_took_no_effect_gives_the_frame_back() {
    let mut sim = write_of_pte_fails(false);
    sim.run(LONG);
    assert!(failed(&sim, FailReason::Bus));
    assert_eq!((sim.take_returned(), sim.status(regs::STATUS_ERROR)), (vec![regs::REASON_BUS], 1));
    assert_eq!((sim.world.pte(0), sim.world.marks(0)), (world::armed(0, 0), [0; 2]));
    finish(sim);
}

/// REQ: SMU-13. If the SMU cannot know whether it took effect, it sets the marks and returns the frame as maybe mapped.
#[test]
fn a_frame_that_may_be_mapped_comes_back_as_such() {
    for (takes_effect, taken_away) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut sim = write_of_pte_fails(takes_effect);
        if taken_away {
            sim.withdraw(0);
        } else {
            sim.world.faults.insert(Area::Pte);
        }
        sim.run(LONG);
        assert!(failed(&sim, FailReason::Bus));
        assert_eq!(sim.take_returned(), [regs::REASON_BUS | regs::RETURNED_MAPPED.mask()]);
        assert_eq!((sim.world.marks(0), sim.status(regs::STATUS_ERROR)), ([regs::PTE_L.mask(); 2], 1));
        finish(sim);
    }
}

/// REQ: SMU-13. If a mark meets a bus error, the page stays installed with its frame.
#[test]
fn a_mark_with_an_error_keeps_the_page() {
    for (area, takes_effect) in [(Area::Pmd, false), (Area::Pmd, true), (Area::Pud, false), (Area::Pud, true)] {
        let mut sim = warm();
        sim.ask(0, 0);
        sim.run(50);
        sim.world.write_faults.insert(area);
        sim.world.takes_effect = takes_effect;
        sim.complete(0, 0, 0);
        sim.run(LONG);
        assert!(failed(&sim, FailReason::Bus));
        assert!(sim.take_returned().is_empty() && regs::PTE_V.is_set(sim.world.pte(0)));
        finish(sim);
    }
}
