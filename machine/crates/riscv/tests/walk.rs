// SPDX-License-Identifier: Apache-2.0
//! The page walker: fault causes, and the rules for armed entries.

mod common;
use common::*;
use trapless_memory::{Cycle, PAGE_SHIFT, Paging, PhysAddr};
use trapless_riscv::{
    Access, Env, Exit, Hart, HartConfig, Interrupt, PageFault, Privilege, Timing, WalkAnswer, WalkRequest, cause,
    csr_number, pte,
};

const OK: u64 = pte::V | pte::R | pte::W | pte::U | pte::A | pte::D;

/// A user program that loads from (x5) into x6, or stores x6 there.
fn user_load() -> Rig {
    rig_at(ld(6, 5, 0), VA)
}

fn rig_at(instruction: u32, va: u64) -> Rig {
    let mut rig = Rig::paged(&[instruction, STOP], Privilege::User);
    rig.hart.set_x(5, va);
    rig.hart.set_x(6, 0x1234);
    rig
}

fn wait(exit: Exit) -> WalkRequest {
    match exit {
        Exit::SmuWait(request) => request,
        other => panic!("no wait but {other:?}"),
    }
}

#[test]
fn every_defect_of_an_entry_is_the_page_fault_of_the_access() {
    let good = entry(DATA, OK);
    // (entry, load faults, store faults)
    let table = [
        (good, false, false),
        (good & !pte::V, true, true),
        (good & !pte::R, true, true),
        (good & !pte::W, false, true),
        (good & !pte::U, true, true),
        (good & !pte::A, true, true),
        (good & !pte::D, false, true),
        (good & !(pte::R | pte::W), true, true),
        (good & !(pte::R | pte::W) | pte::X, true, true),
        (good | 1 << 54, true, true),
        (good | 1 << 63, true, true),
        (good | pte::L | 1 << 8 | pte::G, false, false),
    ];
    for (e, load, store) in table {
        for (instruction, faults, code) in
            [(ld(7, 5, 0), load, cause::LOAD_PAGE), (sd(6, 5, 0), store, cause::STORE_PAGE)]
        {
            let mut rig = rig_at(instruction, VA + 8);
            rig.map(0, e);
            assert_eq!(rig.step(), Exit::Step);
            if faults {
                assert_eq!(rig.only_trap(), (code, VA + 8), "entry {e:#x}");
                assert_eq!(rig.hart.csr(csr_number::MEPC), Some(TEXT));
            } else {
                assert!(rig.log.traps.is_empty(), "entry {e:#x} {:x?}", rig.log.traps);
            }
        }
    }
}

#[test]
fn upper_levels_are_checked_too() {
    let cases: [(&str, u64, u64); 6] = [
        ("large page out of place", MID, entry(DATA + 0x1000, OK)),
        ("pointer with U", MID, entry(LEAF, pte::V | pte::U)),
        ("pointer with A", MID, entry(LEAF, pte::V | pte::A)),
        ("W alone", MID, entry(LEAF, pte::V | pte::W)),
        ("invalid", ROOT + 8, 0),
        ("pointer at the last level", LEAF, entry(DATA, pte::V)),
    ];
    for (name, at, e) in cases {
        let mut rig = user_load();
        rig.map(0, entry(DATA, OK));
        rig.put64(at, e);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA), "{name}");
    }
    // Tables where nothing is: an access fault.
    let mut rig = user_load();
    rig.put64(MID, entry(0x1_0000_0000, pte::V));
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, VA));
}

#[test]
fn addresses_that_are_not_canonical_fault() {
    // All of these would find VA's entry by their lower 39 bits.
    for va in [VA | 1 << 39, VA | 1 << 63, VA | 0xffff << 48] {
        let mut rig = rig_at(ld(6, 5, 0), va);
        rig.map(0, entry(DATA, OK));
        rig.step();
        assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, va), "{va:#x}");
    }
}

/// What a user's load from `va` finds, made from M-mode with MPRV, where a leaf `e` of `level` maps `va`: its value, or the
/// trap.
fn deep_load(paging: Paging, level: u32, e: u64, va: u64) -> Result<u64, (u64, u64)> {
    const MPRV: u64 = 1 << 17;
    let mut rig = Rig::with(HartConfig { paging, ..HartConfig::new(0) }, &[ld(6, 5, 0), STOP]);
    let mut table = ROOT;
    for l in (level..paging.levels()).rev() {
        let next = table + 0x1000;
        rig.put64(table + 8 * (va >> Paging::shift(l) & 511), if l == level { e } else { entry(next, pte::V) });
        table = next;
    }
    rig.put64(DATA + 8, 0x5a5a);
    rig.hart.set_csr(csr_number::SATP, paging.satp() | ROOT >> 12);
    rig.hart.set_csr(csr_number::MSTATUS, MPRV);
    rig.hart.set_x(5, va);
    rig.step();
    if rig.log.traps.is_empty() { Ok(rig.hart.x(6)) } else { Err(rig.only_trap()) }
}

#[test]
fn leaves_of_every_size_translate_in_every_mode() {
    for paging in Paging::ALL {
        for level in 0..paging.levels() {
            let span = 1 << Paging::shift(level);
            // The last entry of every table of the lower half, and of the upper one.
            let offset = (DATA + 8) & (span - 1);
            let low = (1 << (Paging::shift(paging.levels()) - 1)) - span + offset;
            let leaf = entry(DATA & !(span - 1), OK);
            for va in [low, 0u64.wrapping_sub(span) + offset] {
                assert_eq!(deep_load(paging, level, leaf, va), Ok(0x5a5a), "{paging}, level {level}, {va:#x}");
                let fault = Err((cause::LOAD_PAGE, va));
                for bit in 0..9 * level {
                    let misplaced = leaf ^ 1 << (pte::PPN_SHIFT + bit);
                    assert_eq!(
                        deep_load(paging, level, misplaced, va),
                        fault,
                        "{paging}, level {level}, PPN bit {bit}"
                    );
                }
                for bit in Paging::shift(paging.levels())..u64::BITS {
                    let wrong = va ^ 1 << bit;
                    assert_eq!(
                        deep_load(paging, level, leaf, wrong),
                        Err((cause::LOAD_PAGE, wrong)),
                        "{paging}, {wrong:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_walk_in_every_mode_names_the_three_lowest_entries() {
    for paging in Paging::ALL {
        let mut rig = Rig::with(HartConfig { paging, smu: true, ..HartConfig::new(0) }, &[ld(6, 5, 0), STOP]);
        let va = (1 << (Paging::shift(paging.levels()) - 1)) - (3 << PAGE_SHIFT);
        // Code on an identity map; the data in the tables of `va`, the root first.
        let code = entry(BASE, pte::V | pte::R | pte::X | pte::U | pte::A);
        let mut at = Vec::new();
        let mut identity = BASE + 0x18_0000;
        for level in (0..paging.levels()).rev() {
            let table = ROOT + 0x1000 * at.len() as u64;
            at.push(table + 8 * (va >> Paging::shift(level) & 511));
            rig.put64(at[at.len() - 1], if level == 0 { armed(77) } else { entry(table + 0x1000, pte::V) });
            if level >= 2 {
                let here = if at.len() == 1 { ROOT } else { identity - 0x1000 };
                let value = if level == 2 { code } else { entry(identity, pte::V) };
                rig.put64(here + 8 * (BASE >> Paging::shift(level) & 511), value);
                identity += 0x1000;
            }
        }
        rig.hart.set_csr(csr_number::SATP, paging.satp() | ROOT >> 12);
        rig.hart.set_csr(csr_number::SHWDP, 1);
        rig.enter(Privilege::User);
        rig.hart.set_x(5, va);
        let request = wait(rig.step());
        at.reverse();
        assert_eq!([request.pte_pa.0, request.pmd_pa.0, request.pud_pa.0], at[..3], "{paging}");
        assert_eq!((request.va, request.root_ppn), (va, ROOT >> 12), "{paging}");
    }
}

#[test]
fn supervisor_reaches_user_pages_only_with_sum_and_never_fetches_them() {
    let mut rig = Rig::paged(&[ld(6, 5, 0), STOP], Privilege::Supervisor);
    rig.hart.set_x(5, VA);
    rig.map(0, entry(DATA, OK));
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));

    let mut rig = Rig::paged(&[ld(6, 5, 0), jalr(0, 5, 0)], Privilege::Supervisor);
    rig.hart.set_x(5, VA);
    rig.put64(DATA, 77);
    rig.map(0, entry(DATA, OK | pte::X));
    rig.hart.set_csr(csr_number::MSTATUS, 1 << 18);
    rig.step();
    assert_eq!(rig.hart.x(6), 77);
    rig.step();
    rig.step();
    assert_eq!(rig.only_trap(), (cause::FETCH_PAGE, VA));
}

#[test]
fn mxr_makes_executable_pages_readable_and_its_removal_is_seen() {
    let mut rig =
        Rig::paged(&[ld(6, 5, 0), csrrw(0, csr_number::SSTATUS, 0), ld(6, 5, 0), STOP], Privilege::Supervisor);
    rig.hart.set_x(5, VA);
    rig.map(0, entry(DATA, pte::V | pte::X | pte::A));
    rig.hart.set_csr(csr_number::MSTATUS, 1 << 19);
    rig.step();
    assert!(rig.log.traps.is_empty());
    rig.step();
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA));
}

#[test]
fn fence_of_one_address_drops_large_pages_whole_and_leaves_others() {
    let fence = 0x1200_0073 | 7 << 15;
    let mut rig = Rig::paged(&[ld(6, 5, 0), ld(6, 8, 0), fence, ld(6, 8, 0), ld(6, 5, 0), STOP], Privilege::Supervisor);
    let all = pte::V | pte::R | pte::A;
    rig.put64(MID, entry(BASE, all));
    rig.put64(MID + 8, entry(BASE, all));
    rig.hart.set_x(5, VA + 0x5000);
    rig.hart.set_x(8, VA + 0x20_0000);
    // Another address of the first large page.
    rig.hart.set_x(7, VA + 0x9000);
    for _ in 0..2 {
        rig.step();
    }
    rig.put64(MID, 0);
    rig.put64(MID + 8, 0);
    rig.step();
    rig.step();
    assert!(rig.log.traps.is_empty(), "the other page went too");
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, VA + 0x5000));
}

#[test]
fn user_fills_are_observed_with_their_access() {
    let mut rig = rig_at(sd(6, 5, 0), VA);
    rig.map(0, entry(DATA, OK));
    rig.step();
    let fill = rig.log.fills.iter().find(|f| f.va == VA).unwrap();
    assert_eq!((fill.access, fill.privilege, fill.root_ppn), (Access::Store, Privilege::User, ROOT >> 12));
    assert!(rig.log.fills.iter().any(|f| f.access == Access::Fetch && f.va == TEXT));
}

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
        ("G, as PROT_NONE has it", a | pte::G),
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
    assert_eq!(rig.hart.csr(csr_number::SEPC), Some(TEXT), "the load comes again");
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
            // Neither SIE nor MIE of mstatus is set. All that is enabled is the others.
            rig.hart.set_csr(csr_number::MIE, 0xaaa & !(1 << bit));
            wait(rig.run(100));
            rig.hart.set_line(line, true);
            assert!(!rig.hart.interrupt_pending_enabled(), "{line:?} is not enabled");
            rig.hart.set_csr(csr_number::MIE, 1 << bit);
            assert!(rig.hart.interrupt_pending_enabled(), "{line:?}");
            rig.answer(WalkAnswer::Interrupted);
            rig.step();
            assert_eq!(rig.only_trap(), (cause::INTERRUPT | bit, 0), "{line:?}");
            let supervisor = delegated >> bit & 1 != 0;
            let epc = if supervisor { csr_number::SEPC } else { csr_number::MEPC };
            assert_eq!(rig.hart.csr(epc), Some(TEXT), "{line:?}: the load comes again");
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
    assert_eq!(rig.only_trap(), (cause::STORE_PAGE, VA), "D=0 is software's");
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

/// REQ: ISA-6: rights as carried.
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

/// REQ: SMU-3: the walker uses the value in the answer and faults after four retries.
#[test]
fn changed_answers_are_used_and_counted() {
    let mut rig = user_load();
    rig.put64(DATA, 5);
    rig.map(0, armed(1));
    wait(rig.run(100));
    // Memory still says armed; the SMU saw a present entry.
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

/// Counts the entries that walks read.
struct Reads(u32);

impl Timing for Reads {
    fn pte_read(&mut self, _at: PhysAddr, _level: u32, _now: Cycle) -> u64 {
        self.0 += 1;
        0
    }
}

/// Entries read by the retry of an access that the SMU has served, with an interrupt before it or not.
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
    // With the one entry of the code's large page.
    assert_eq!((reads_of_the_retry(false), reads_of_the_retry(true)), (1, 3 + 1));
}

/// REQ: ISA-3: an access over two pages waits for each, and happens whole.
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
