// SPDX-License-Identifier: Apache-2.0
//! The counters of misses: who may read them, and what they count. REQ: ISA-7

mod common;
use common::*;
use trapless_memory::Cycle;
use trapless_riscv::{Exit, Hart, HartConfig, Interrupt, Privilege, WalkAnswer, cause, csr_number as n, pte};

const OK: u64 = pte::V | pte::L | pte::R | pte::U | pte::A;
const BOTH: [u16; 2] = [n::SHWDPSERVED, n::SHWDPWAIT];

/// A user program that loads from VA, which is armed.
fn user_load() -> Rig {
    let mut rig = Rig::paged(&[ld(6, 5, 0), STOP], Privilege::User);
    rig.hart.set_x(5, VA);
    rig.map(0, armed(1));
    rig
}

fn counts(rig: &Rig) -> (u64, u64) {
    let count = |csr| rig.hart.csr(csr).expect("the counter exists");
    (count(n::SHWDPSERVED), count(n::SHWDPWAIT))
}

/// Runs until the access waits, then answers it `wait` cycles later.
fn miss(rig: &mut Rig, wait: u64, answer: WalkAnswer) {
    let exit = rig.run(1000);
    assert!(matches!(exit, Exit::SmuWait(_)), "{exit:?}");
    rig.hart.advance_to(rig.hart.now() + Cycle(wait));
    rig.answer(answer);
}

/// REQ: ISA-7
#[test]
fn supervisor_and_machine_read_them_and_nobody_writes() {
    use Privilege::{Machine, Supervisor, User};
    for csr in BOTH {
        assert_eq!(Rig::new(&[]).hart.csr(csr), Some(0), "reset");
        for mode in [Machine, Supervisor, User] {
            let mut rig = Rig::new(&[csrrs(6, csr, 0)]);
            rig.hart.set_x(6, 5);
            rig.enter(mode);
            rig.step();
            if mode == User {
                assert_eq!(rig.only_trap().0, cause::ILLEGAL, "{csr:#x} in {mode:?}");
            } else {
                assert_eq!((rig.log.traps.len(), rig.hart.x(6)), (0, 0), "{csr:#x} in {mode:?}");
            }
            for write in [csrrw(0, csr, 6), csrrs(0, csr, 6)] {
                let mut rig = Rig::new(&[write]);
                rig.hart.set_x(6, 5);
                rig.enter(mode);
                rig.step();
                assert_eq!(rig.only_trap().0, cause::ILLEGAL, "{csr:#x} written in {mode:?}");
                assert_eq!(counts(&rig), (0, 0));
            }
            let mut rig = Rig::with(HartConfig::new(0), &[csrrs(6, csr, 0)]);
            rig.enter(mode);
            rig.step();
            assert_eq!(rig.only_trap().0, cause::ILLEGAL, "{csr:#x} in {mode:?} without the extension");
        }
        assert!(!Rig::new(&[]).hart.set_csr(csr, 1));
    }
}

/// REQ: ISA-7: the time of every wait is counted, but only `done` counts as served. Neither the walk nor the cycles that the
/// hart lost before its request count as waiting.
#[test]
fn every_answer_ends_a_wait_and_done_alone_is_served() {
    let answers = [
        (WalkAnswer::Done, 1),
        (WalkAnswer::Changed(entry(DATA, OK)), 0),
        (WalkAnswer::Changed(armed(2)), 0),
        (WalkAnswer::Failed, 0),
        (WalkAnswer::BusError, 0),
        (WalkAnswer::Interrupted, 0),
    ];
    for (answer, served) in answers {
        let mut rig = user_load();
        rig.run(1000);
        rig.hart.delay(Cycle(50));
        rig.hart.advance_to(rig.hart.now() + Cycle(700));
        assert_eq!(counts(&rig), (0, 0), "{answer:?}");
        rig.answer(answer);
        assert_eq!(counts(&rig), (served, 700), "{answer:?}");
        // No access waits any more, so this answer has no effect.
        rig.answer(answer);
        assert_eq!(counts(&rig), (served, 700), "{answer:?}");
    }
}

/// REQ: ISA-7: an access whose request is repeated waits each time, and is served once.
#[test]
fn changed_answers_add_their_waits() {
    let mut rig = user_load();
    miss(&mut rig, 10, WalkAnswer::Changed(armed(2)));
    miss(&mut rig, 20, WalkAnswer::Changed(armed(3)));
    rig.put64(LEAF, entry(DATA, OK));
    miss(&mut rig, 400, WalkAnswer::Done);
    rig.finish();
    assert_eq!(counts(&rig), (1, 430));
    // The page is present: further accesses do not count.
    rig.hart.set_pc(TEXT);
    rig.finish();
    assert_eq!(counts(&rig), (1, 430));
}

/// Makes a load wait for 30 cycles until a timer interrupt ends the wait. The handler returns at once.
fn interrupted() -> Rig {
    let mut rig = user_load();
    rig.program(TEXT + 0x100, &[MRET]);
    rig.hart.set_csr(n::MTVEC, TEXT + 0x100);
    rig.hart.set_csr(n::MIE, 0x80);
    rig.run(1000);
    rig.hart.advance_to(rig.hart.now() + Cycle(30));
    rig.hart.set_line(Interrupt::MachineTimer, true);
    rig.answer(WalkAnswer::Interrupted);
    rig.step();
    rig.hart.set_line(Interrupt::MachineTimer, false);
    rig
}

/// REQ: ISA-7: the waits of an abandoned miss add up, without the handler's time. It is served if the access gets `done` at last.
#[test]
fn an_abandoned_miss_is_served_when_its_access_waits_again() {
    let mut rig = interrupted();
    rig.hart.advance_to(rig.hart.now() + Cycle(1000));
    rig.run(1000);
    rig.put64(LEAF, entry(DATA, OK));
    rig.hart.advance_to(rig.hart.now() + Cycle(600));
    rig.answer(WalkAnswer::Done);
    rig.finish();
    assert_eq!((counts(&rig), rig.log.traps.len()), ((1, 630), 1));

    // The page is installed while the handler runs: the access does not wait for it again, and gets no answer.
    let mut rig = interrupted();
    rig.put64(LEAF, entry(DATA, OK));
    rig.finish();
    assert_eq!((counts(&rig), rig.log.traps.len()), ((0, 30), 1));
}

/// REQ: ISA-7
#[test]
fn a_load_over_two_armed_pages_is_served_twice() {
    let mut rig = user_load();
    rig.hart.set_x(5, VA + 0xffc);
    rig.map(1, armed(2));
    for page in 0..2 {
        rig.put64(LEAF + 8 * page, armed(1));
        rig.run(1000);
        rig.put64(LEAF + 8 * page, entry(DATA, OK));
        rig.hart.advance_to(rig.hart.now() + Cycle(500));
        rig.answer(WalkAnswer::Done);
    }
    rig.finish();
    assert_eq!(counts(&rig), (2, 1000));
}

/// REQ: ISA-7: accesses that do not ask the SMU do not count.
#[test]
fn ordinary_faults_count_nothing() {
    for (entry, shwdp) in [(0, 1), (armed(1), 0), (armed(1) & !pte::R | pte::X, 1)] {
        let mut rig = user_load();
        rig.map(0, entry);
        rig.hart.set_csr(n::SHWDP, shwdp);
        rig.step();
        assert_eq!((rig.only_trap().0, counts(&rig)), (cause::LOAD_PAGE, (0, 0)), "{entry:#x}");
    }
}

/// REQ: ISA-7: the counters wrap, and only a reset stops or clears them.
#[test]
fn they_wrap_and_go_on() {
    let mut rig = user_load();
    rig.hart.set_csr(n::MCOUNTINHIBIT, u64::MAX);
    rig.hart.set_csr(n::MCYCLE, 0);
    let mut state = rig.hart.state();
    (state.csr.shwdpserved, state.csr.shwdpwait) = (u64::MAX, u64::MAX - 9);
    rig.hart.restore(&state);
    miss(&mut rig, 15, WalkAnswer::Done);
    assert_eq!(counts(&rig), (0, 5));
    // This is what hart_start of SBI does.
    miss_again(&mut rig);
    rig.hart.enter_supervisor(TEXT, 0);
    assert_eq!(counts(&rig), (1, 12));
}

fn miss_again(rig: &mut Rig) {
    rig.map(0, armed(1));
    miss(rig, 7, WalkAnswer::Done);
}

/// REQ: ISA-7: a wait that a checkpoint interrupts is counted completely.
#[test]
fn counters_and_waits_are_kept_in_checkpoints() {
    let mut rig = user_load();
    miss(&mut rig, 40, WalkAnswer::Done);
    rig.run(1000);
    rig.hart.advance_to(rig.hart.now() + Cycle(100));
    let saved = rig.hart.suspend();
    let mut hart = Hart::new(rig.hart.config().clone(), 0);
    hart.resume(&saved);
    rig.hart = hart;
    assert_eq!(counts(&rig), (1, 40));
    rig.hart.advance_to(rig.hart.now() + Cycle(200));
    rig.answer(WalkAnswer::Failed);
    assert_eq!(counts(&rig), (1, 340));
}
