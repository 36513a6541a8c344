// SPDX-License-Identifier: Apache-2.0
//! The page walker's rules for armed entries: when an access waits, what each answer does, and what ends a wait.

mod common;
use common::*;
use trapless_memory::{Cycle, PhysAddr};
use trapless_riscv::{
    Access, Env, Exit, Hart, HartConfig, Interrupt, PageFault, Privilege, Timing, WalkAnswer, cause, csr_number, pte,
};

/// REQ: ISA-1
#[test]
fn an_armed_entry_waits_and_nothing_else_does() {
    let mut rig = user_load();
    rig.map(0, armed(0x123));
    let before = rig.hart.retired();
    let request = wait(rig.run(1000));
    assert_eq!(request.pte_pa.0, LEAF);
    assert_eq!(request.pmd_pa.0, MID);
    assert_eq!(request.pud_pa.0, ROOT + 8);
    assert_eq!((request.seen, request.va, request.access), (armed(0x123), VA, Access::Load));
    assert_eq!((rig.hart.pc(), rig.hart.retired()), (TEXT, before));
    assert!(rig.log.traps.is_empty());

    let a = armed(0x123);
    let not_armed = [
        ("G, as in PROT_NONE mappings", a | pte::G),
        ("no U", a & !pte::U),
        ("dirty", a | pte::D),
        ("no L", a & !pte::L),
        ("neither R nor X", a & !pte::R),
        ("W without R", a & !pte::R | pte::X | pte::W),
        ("bit 57", a | 1 << 57),
        ("bit 63", a | 1 << 63),
        ("PROT_NONE", pte::R | pte::L | pte::G),
    ];
    for (name, e) in not_armed {
        let mut rig = user_load();
        rig.map(0, e);
        assert_eq!(rig.step(), Exit::Step, "{name}");
        assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA), "{name}");
    }
}

/// REQ: ISA-1
#[test]
fn without_the_enable_bit_or_the_extension_it_is_an_ordinary_invalid_entry() {
    let mut rig = user_load();
    rig.map(0, armed(1));
    rig.hart.set_csr(csr_number::SHWDP, 0);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));
    assert_eq!(Hart::new(rig.hart.config().clone(), 0).csr(csr_number::SHWDP), Some(0), "resets to off");

    let mut rig = Rig::with(HartConfig::new(0), &[ld(6, 5, 0), STOP]);
    rig.page(Privilege::User);
    rig.hart.set_x(5, VA);
    rig.map(0, armed(1));
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));
    assert_eq!(rig.hart.csr(csr_number::SHWDP), None);
}

/// REQ: ISA-1: only the last level can be armed.
#[test]
fn an_armed_pattern_in_an_upper_level_faults() {
    for at in [MID, ROOT + 8] {
        let mut rig = user_load();
        rig.put64(at, armed(1));
        rig.step();
        assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));
    }
}

/// REQ: ISA-2
#[test]
fn forbidden_accesses_to_armed_entries_trap_at_once() {
    let mut rig = rig_at(sd(6, 5, 0), VA);
    rig.map(0, armed(1));
    assert_eq!(rig.step(), Exit::Step);
    assert_eq!(rig.only_trap(), (cause::STORE_PAGE, VA));

    let mut rig = rig_at(jalr(0, 5, 0), VA);
    rig.map(0, armed(1));
    rig.step();
    rig.step();
    assert_eq!(rig.only_trap(), (cause::FETCH_PAGE, VA));

    let mut rig = Rig::paged(&[ld(6, 5, 0), STOP], Privilege::Supervisor);
    rig.hart.set_x(5, VA);
    rig.map(0, armed(1));
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA), "no SUM");
}

/// REQ: ISA-3
#[test]
fn loads_stores_amos_and_fetches_of_user_mode_start_misses() {
    let rw = armed(1) | pte::W;
    for (instruction, e, access) in [
        (ld(6, 5, 0), armed(1), Access::Load),
        (amo(2, true, 6, 5, 0), armed(1), Access::Load),
        (sd(6, 5, 0), rw, Access::Store),
        (amo(0, true, 7, 5, 6), rw, Access::Store),
    ] {
        let mut rig = rig_at(instruction, VA);
        rig.map(0, e);
        assert_eq!(wait(rig.run(100)).access, access);
    }
    let mut rig = rig_at(jalr(0, 5, 0), VA);
    rig.map(0, armed(1) | pte::X);
    assert_eq!(wait(rig.run(100)).access, Access::Fetch);
    assert_eq!(rig.hart.pc(), VA);
}

/// REQ: ISA-3: kernel code never waits for a device; its access takes the ordinary page fault at once.
#[test]
fn accesses_of_the_kernel_and_under_mprv_fault_on_armed_entries_at_once() {
    const SUM: u64 = 1 << 18;
    const MXR: u64 = 1 << 19;
    const MPRV: u64 = 1 << 17;
    const MPP_S: u64 = 1 << 11;
    let modes = [
        ("S with SUM", Privilege::Supervisor, SUM),
        ("S with SUM and MXR", Privilege::Supervisor, SUM | MXR),
        ("M, MPRV to U", Privilege::Machine, MPRV),
        ("M, MPRV to S with SUM", Privilege::Machine, MPRV | MPP_S | SUM),
    ];
    let all = armed(1) | pte::W | pte::X;
    let accesses = [
        ("load", ld(7, 5, 0), cause::LOAD_PAGE),
        ("LR", amo(2, true, 7, 5, 0), cause::LOAD_PAGE),
        ("store", sd(6, 5, 0), cause::STORE_PAGE),
        ("AMO", amo(0, true, 7, 5, 6), cause::STORE_PAGE),
    ];
    for (mode, p, status) in modes {
        for (access, instruction, code) in accesses {
            let mut rig = rig_at(instruction, VA + 8);
            if p == Privilege::Supervisor {
                rig.page(p);
            }
            rig.map(0, all);
            rig.enter(p);
            rig.hart.set_csr(csr_number::MSTATUS, status);
            assert_eq!(rig.step(), Exit::Step, "{mode}, {access}");
            assert_eq!(rig.only_trap(), (code, VA + 8), "{mode}, {access}");
            let trap = &rig.log.traps[0];
            assert_eq!(
                (trap.pc, trap.page_fault.map(|(_, why)| why)),
                (TEXT, Some(PageFault::Armed)),
                "{mode}, {access}"
            );
            assert_eq!(rig.get64(LEAF), all, "{mode}, {access}");
        }
    }
}

/// REQ: ISA-3: armed entries are not cached.
#[test]
fn after_the_install_the_access_needs_no_fence() {
    let mut rig = user_load();
    rig.put64(DATA, 99);
    rig.map(0, armed(1));
    wait(rig.run(100));
    rig.put64(LEAF, entry(DATA, pte::V | pte::L | pte::R | pte::U | pte::A));
    rig.answer(WalkAnswer::Done);
    rig.finish();
    assert_eq!(rig.hart.x(6), 99);
    assert!(rig.log.traps.is_empty());
    let touched = rig.log.fills.iter().filter(|f| f.va == VA).count();
    assert_eq!(touched, 1);
}

/// REQ: ISA-4
#[test]
fn an_enabled_interrupt_abandons_the_wait_and_the_instruction_runs_again() {
    let mut rig = user_load();
    rig.map(0, armed(1));
    rig.hart.set_csr(csr_number::MIDELEG, 0x222);
    rig.hart.set_csr(csr_number::MIE, 0x222);
    wait(rig.run(100));
    assert!(!rig.hart.interrupt_pending_enabled());
    rig.hart.set_line(Interrupt::SupervisorTimer, true);
    assert!(rig.hart.interrupt_pending_enabled());
    rig.answer(WalkAnswer::Interrupted);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::INTERRUPT | 5, 0));
    assert_eq!(rig.hart.csr(csr_number::SEPC), Some(TEXT), "the load runs again");
    assert_eq!(rig.hart.x(6), 0x1234);
}

/// REQ: ISA-4
#[test]
fn every_interrupt_that_is_enabled_ends_a_wait_whatever_the_modes_above_mask() {
    let lines = [
        (Interrupt::SupervisorSoft, 1),
        (Interrupt::MachineSoft, 3),
        (Interrupt::SupervisorTimer, 5),
        (Interrupt::MachineTimer, 7),
        (Interrupt::SupervisorExternal, 9),
        (Interrupt::MachineExternal, 11),
    ];
    for delegated in [0, 0x222] {
        for (line, bit) in lines {
            let mut rig = user_load();
            rig.map(0, armed(1));
            rig.hart.set_csr(csr_number::MIDELEG, delegated);
            // Neither SIE nor MIE of mstatus is set. First, only the other interrupts are enabled.
            rig.hart.set_csr(csr_number::MIE, 0xaaa & !(1 << bit));
            wait(rig.run(100));
            rig.hart.set_line(line, true);
            assert!(!rig.hart.interrupt_pending_enabled(), "{line:?} is not enabled, so it must not end a wait");
            rig.hart.set_csr(csr_number::MIE, 1 << bit);
            assert!(rig.hart.interrupt_pending_enabled(), "{line:?}");
            rig.answer(WalkAnswer::Interrupted);
            rig.step();
            assert_eq!(rig.only_trap(), (cause::INTERRUPT | bit, 0), "{line:?}");
            let supervisor = delegated >> bit & 1 != 0;
            let epc = if supervisor { csr_number::SEPC } else { csr_number::MEPC };
            assert_eq!(rig.hart.csr(epc), Some(TEXT), "{line:?}: the load runs again");
        }
    }
}

/// REQ: ISA-5
#[test]
fn a_page_installed_with_a_set_does_not_trap_on_its_first_read_and_traps_on_a_store() {
    let mut rig = rig_at(ld(6, 5, 0), VA);
    rig.program(TEXT, &[ld(6, 5, 0), sd(6, 5, 0), STOP]);
    rig.map(0, armed(1) | pte::W);
    wait(rig.run(100));
    rig.put64(LEAF, entry(DATA, pte::V | pte::L | pte::R | pte::W | pte::U | pte::A));
    rig.answer(WalkAnswer::Done);
    rig.step();
    assert!(rig.log.traps.is_empty());
    rig.step();
    assert_eq!(rig.only_trap(), (cause::STORE_PAGE, VA), "software handles D=0");
}

/// REQ: ISA-6
#[test]
fn failures_are_the_ordinary_faults_of_the_access() {
    for (answer, code) in [(WalkAnswer::Failed, cause::LOAD_PAGE), (WalkAnswer::BusError, cause::LOAD_ACCESS)] {
        let mut rig = user_load();
        rig.map(0, armed(1));
        wait(rig.run(100));
        rig.answer(answer);
        assert_eq!(rig.only_trap(), (code, VA));
        assert_eq!(rig.hart.csr(csr_number::MEPC), Some(TEXT));
        assert_eq!(rig.hart.csr(csr_number::MTVAL), Some(VA));
    }
    let mut rig = rig_at(jalr(0, 5, 0), VA);
    rig.map(0, armed(1) | pte::X);
    wait(rig.run(100));
    rig.answer(WalkAnswer::Failed);
    assert_eq!(rig.only_trap(), (cause::FETCH_PAGE, VA));
}

/// REQ: ISA-6: the page gets the rights that the armed entry carried.
#[test]
fn the_installed_page_has_the_rights_that_the_entry_carried() {
    let mut rig = rig_at(ld(6, 5, 0), VA);
    rig.program(TEXT, &[ld(6, 5, 0), jalr(0, 5, 0)]);
    rig.map(0, armed(1));
    wait(rig.run(100));
    rig.put64(LEAF, entry(DATA, pte::V | pte::L | pte::R | pte::U | pte::A));
    rig.answer(WalkAnswer::Done);
    for _ in 0..3 {
        rig.step();
    }
    assert_eq!(rig.only_trap(), (cause::FETCH_PAGE, VA));
}

/// REQ: SMU-3: the walker uses the value in a changed answer. The fifth such answer in a row is a page fault (spec/isa.md, "What
/// the walker does with an answer").
#[test]
fn changed_answers_are_used_and_counted() {
    let mut rig = user_load();
    rig.put64(DATA, 5);
    rig.map(0, armed(1));
    wait(rig.run(100));
    // The entry in memory is still armed; the SMU saw a present one.
    rig.answer(WalkAnswer::Changed(entry(DATA, pte::V | pte::R | pte::U | pte::A)));
    rig.step();
    assert_eq!(rig.hart.x(6), 5);

    let mut rig = user_load();
    rig.map(0, armed(1));
    for _ in 0..5 {
        wait(rig.run(100));
        assert!(rig.log.traps.is_empty());
        rig.answer(WalkAnswer::Changed(armed(2)));
    }
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));
}

/// REQ: SMU-3: a value from an answer does not outlive an interrupt.
#[test]
fn a_changed_value_is_dropped_when_the_handler_runs_first() {
    let mut rig = user_load();
    rig.map(0, armed(1));
    rig.hart.set_csr(csr_number::MIE, 1 << 7);
    wait(rig.run(100));
    rig.hart.set_line(Interrupt::MachineTimer, true);
    rig.answer(WalkAnswer::Changed(entry(DATA, pte::V | pte::R | pte::U | pte::A)));
    rig.step();
    assert_eq!(rig.log.traps.len(), 1);
    rig.hart.set_line(Interrupt::MachineTimer, false);
    rig.program(HANDLER, &[MRET]);
    rig.step();
    assert_eq!(rig.hart.pc(), TEXT);
    assert_eq!(wait(rig.run(100)).seen, armed(1));
}

/// Counts the entries that page walks read.
struct Reads(u32);

impl Timing for Reads {
    fn pte_read(&mut self, _at: PhysAddr, _level: u32, _now: Cycle) -> u64 {
        self.0 += 1;
        0
    }
}

/// Returns how many entries are read by the retry of an access that the SMU has served, with or without an interrupt before it.
fn reads_of_the_retry(interrupted: bool) -> u32 {
    const MRET: u32 = 0x3020_0073;
    let mut rig = user_load();
    rig.map(0, armed(1));
    wait(rig.run(100));
    rig.put64(LEAF, entry(DATA, OK));
    rig.answer(WalkAnswer::Done);
    if interrupted {
        rig.program(TEXT + 0x100, &[MRET]);
        rig.hart.set_csr(csr_number::MTVEC, TEXT + 0x100);
        rig.hart.set_csr(csr_number::MIE, 0x80);
        rig.hart.set_line(Interrupt::MachineTimer, true);
        rig.step();
        rig.hart.set_line(Interrupt::MachineTimer, false);
        rig.step();
        assert_eq!(rig.hart.pc(), TEXT);
    }
    let mut reads = Reads(0);
    let mut env = Env { bus: &mut rig.board, code: &mut rig.code, observer: &mut rig.log, timing: &mut reads };
    rig.hart.step(&mut env);
    assert_eq!(rig.hart.pc(), TEXT + 4);
    reads.0
}

#[test]
fn a_walk_that_an_interrupt_ends_is_no_longer_answered() {
    // The one entry beside those three is that of the code's large page.
    assert_eq!((reads_of_the_retry(false), reads_of_the_retry(true)), (1, 3 + 1));
}

/// REQ: ISA-3: an access that spans two pages waits for each, and then happens completely.
#[test]
fn a_load_over_two_armed_pages_waits_twice() {
    let mut rig = rig_at(ld(6, 5, 0), VA + 0xffc);
    rig.put64(DATA + 0xff8, 0x1111_1111 << 32);
    rig.put64(DATA + 0x1000, 0x2222_2222);
    rig.map(0, armed(1));
    rig.map(1, armed(2));
    assert_eq!(wait(rig.run(100)).pte_pa.0, LEAF);
    rig.put64(LEAF, entry(DATA, OK));
    rig.answer(WalkAnswer::Done);
    let second = wait(rig.run(100));
    assert_eq!((second.pte_pa.0, second.va), (LEAF + 8, VA + 0x1000));
    rig.put64(LEAF + 8, entry(DATA + 0x1000, OK));
    rig.answer(WalkAnswer::Done);
    rig.finish();
    assert_eq!(rig.hart.x(6), 0x2222_2222_1111_1111);
}
