// SPDX-License-Identifier: Apache-2.0
//! Observers that look at each instruction and each access.

mod common;
use common::*;
use trapless_memory::{Cycle, Ram};
use trapless_riscv::{Access, Env, Exit, Hart, Observer, Privilege, WalkAnswer, pte};

const OK: u64 = pte::V | pte::R | pte::W | pte::U | pte::A | pte::D;

/// An observer: what it was shown, and what it changes (at an address, a register's value).
#[derive(Default)]
struct Each {
    begun: Vec<u64>,
    accesses: Vec<(Access, u64, u64, u64)>,
    change: Option<(u64, u8, u64)>,
}

impl Observer for Each {
    const EACH: bool = true;

    fn instruction(&mut self, hart: &mut Hart, _: &mut Ram) -> bool {
        self.begun.push(hart.pc());
        let change = self.change.take_if(|(at, ..)| *at == hart.pc());
        if let Some((_, register, value)) = change {
            hart.set_x(register, value);
        }
        change.is_some()
    }

    fn access(&mut self, hart: &Hart, access: Access, va: u64, len: u64) {
        self.accesses.push((access, va, len, hart.instructions()));
    }
}

fn run(rig: &mut Rig, each: &mut Each, cycles: u64) -> Exit {
    let until = rig.hart.now() + Cycle(cycles);
    let mut env = Env { bus: &mut rig.board, code: &mut rig.code, observer: each, timing: &mut () };
    rig.hart.run(&mut env, until)
}

#[test]
fn an_instruction_that_waits_is_begun_once() {
    let mut rig = Rig::paged(&[sd(6, 5, 0), ld(7, 5, 4), STOP], Privilege::User);
    rig.map(0, armed(5) | pte::W);
    rig.hart.set_x(5, VA);
    let mut each = Each::default();
    assert!(matches!(run(&mut rig, &mut each, 100), Exit::SmuWait(_)));
    rig.map(0, entry(DATA, OK));
    rig.answer(WalkAnswer::Done);
    run(&mut rig, &mut each, 200);
    assert_eq!(each.begun[..2], [TEXT, TEXT + 4]);
    let seen = [
        (Access::Fetch, TEXT, 4, 0),
        (Access::Store, VA, 8, 1),
        (Access::Fetch, TEXT + 4, 4, 1),
        (Access::Load, VA + 4, 8, 2),
    ];
    assert_eq!(each.accesses[..4], seen);
}

#[test]
fn accesses_that_trap_are_none_and_changes_are_fetched_anew() {
    let mut rig = Rig::paged(&[ld(7, 5, 0), STOP], Privilege::User);
    rig.program(HANDLER, &[STOP]);
    rig.hart.set_x(5, VA);
    rig.map(1, entry(DATA, OK));
    rig.put64(DATA, 77);
    // x5 holds an address that is not mapped until the observer changes it.
    let mut each = Each { change: Some((TEXT, 5, VA + 0x1000)), ..Each::default() };
    run(&mut rig, &mut each, 200);
    assert_eq!((rig.hart.x(7), each.begun[0], rig.log.traps.len()), (77, TEXT, 0));
    assert!(each.accesses.contains(&(Access::Load, VA + 0x1000, 8, 1)));

    let mut rig = Rig::paged(&[ld(7, 5, 0), STOP], Privilege::User);
    rig.program(HANDLER, &[STOP]);
    rig.hart.set_x(5, VA);
    let mut each = Each::default();
    run(&mut rig, &mut each, 200);
    assert_eq!(each.begun[..2], [TEXT, HANDLER]);
    assert!(each.accesses.iter().all(|a| a.0 == Access::Fetch));
}

#[test]
fn whoever_looks_changes_no_time() {
    let program = [sd(6, 5, 0), ld(7, 5, 4), ld(8, 5, 8), STOP];
    let rig = || {
        let mut rig = Rig::paged(&program, Privilege::User);
        rig.map(0, entry(DATA, OK));
        rig.hart.set_x(5, VA);
        rig
    };
    let (mut a, mut b) = (rig(), rig());
    a.run(500);
    run(&mut b, &mut Each::default(), 500);
    assert_eq!(a.hart.state(), b.hart.state());
}
