// SPDX-License-Identifier: Apache-2.0
//! Traps, interrupts, CSRs, PMP.

mod common;
use common::*;
use trapless_memory::Paging;
use trapless_riscv::{Exit, Hart, HartConfig, Interrupt, Privilege, cause, csr_number as n};

const MIE_BIT: u64 = 1 << 3;
const SIE_BIT: u64 = 1 << 1;

fn status(rig: &Rig) -> u64 {
    rig.hart.csr(n::MSTATUS).unwrap()
}

#[test]
fn a_trap_saves_the_mode_and_mret_restores_it() {
    let mut rig = Rig::new(&[ECALL]);
    rig.program(HANDLER, &[MRET]);
    rig.hart.set_csr(n::MSTATUS, MIE_BIT | 1 << 17);
    rig.enter(Privilege::User);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::ECALL_U, 0));
    assert_eq!((rig.hart.privilege(), rig.hart.pc()), (Privilege::Machine, HANDLER));
    assert_eq!(status(&rig) & (MIE_BIT | 1 << 7 | 3 << 11), 1 << 7, "MPIE set, MPP = U");
    rig.hart.set_csr(n::MEPC, TEXT + 8);
    rig.step();
    assert_eq!((rig.hart.privilege(), rig.hart.pc()), (Privilege::User, TEXT + 8));
    assert_eq!(status(&rig) & (MIE_BIT | 1 << 7 | 1 << 17), MIE_BIT | 1 << 7, "MPRV cleared");
}

#[test]
fn delegated_exceptions_go_to_s_mode_but_never_from_m_mode() {
    for (from, to) in [
        (Privilege::User, Privilege::Supervisor),
        (Privilege::Supervisor, Privilege::Supervisor),
        (Privilege::Machine, Privilege::Machine),
    ] {
        let mut rig = Rig::new(&[EBREAK]);
        rig.hart.set_csr(n::MEDELEG, u64::MAX);
        rig.hart.set_csr(n::MSTATUS, SIE_BIT);
        rig.enter(from);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::BREAKPOINT, TEXT));
        assert_eq!(rig.hart.privilege(), to);
        if to == Privilege::Supervisor {
            assert_eq!(rig.hart.csr(n::SEPC), Some(TEXT));
            assert_eq!(rig.hart.csr(n::SCAUSE), Some(cause::BREAKPOINT));
            let spp = u64::from(from == Privilege::Supervisor) << 8;
            assert_eq!(status(&rig) & (SIE_BIT | 1 << 5 | 1 << 8), 1 << 5 | spp);
        }
    }
}

#[test]
fn interrupts_follow_priority_delegation_and_enables() {
    // (mode, mstatus, mideleg, lines, taken cause)
    use Interrupt::*;
    type Case = (Privilege, u64, u64, &'static [Interrupt], Option<u64>);
    let table: [Case; 9] = [
        (Privilege::Machine, 0, 0, &[MachineTimer], None),
        (Privilege::Machine, MIE_BIT, 0, &[MachineTimer, MachineSoft], Some(3)),
        (Privilege::Machine, MIE_BIT, 0, &[MachineTimer, MachineSoft, MachineExternal], Some(11)),
        (Privilege::Machine, MIE_BIT, 0x222, &[SupervisorTimer], None),
        (Privilege::Supervisor, 0, 0x222, &[SupervisorTimer], None),
        (Privilege::Supervisor, 0, 0x222, &[MachineTimer], Some(7)),
        (Privilege::Supervisor, SIE_BIT, 0x222, &[SupervisorTimer, SupervisorSoft], Some(1)),
        (Privilege::User, 0, 0x222, &[SupervisorTimer, SupervisorExternal], Some(9)),
        (Privilege::User, 0, 0, &[SupervisorTimer], Some(5)),
    ];
    for (mode, mstatus, mideleg, lines, want) in table {
        let mut rig = Rig::new(&[NOP, NOP]);
        rig.hart.set_csr(n::MSTATUS, mstatus);
        rig.hart.set_csr(n::MIDELEG, mideleg);
        rig.hart.set_csr(n::MIE, 0xaaa);
        rig.enter(mode);
        for &line in lines {
            rig.hart.set_line(line, true);
        }
        assert_eq!(rig.hart.interrupt_pending_enabled(), want.is_some(), "{mode:?} {lines:?}");
        rig.step();
        match want {
            Some(code) => assert_eq!(rig.only_trap(), (cause::INTERRUPT | code, 0)),
            None => assert!(rig.log.traps.is_empty()),
        }
    }
}

#[test]
fn vectored_handlers_are_for_interrupts_only() {
    let mut rig = Rig::new(&[ECALL]);
    rig.hart.set_csr(n::MTVEC, HANDLER | 1);
    rig.hart.set_csr(n::MSTATUS, MIE_BIT);
    rig.hart.set_csr(n::MIE, 0x80);
    rig.hart.set_line(Interrupt::MachineTimer, true);
    rig.step();
    assert_eq!(rig.hart.pc(), HANDLER + 4 * 7);
    rig.hart.set_line(Interrupt::MachineTimer, false);
    rig.hart.set_pc(TEXT);
    rig.step();
    assert_eq!(rig.hart.pc(), HANDLER);
}

#[test]
fn an_interrupt_unmasked_by_a_csr_write_or_a_return_is_taken_at_once() {
    let mut rig = Rig::new(&[csrrs(0, n::MSTATUS, 5), addi(6, 6, 1)]);
    rig.hart.set_x(5, MIE_BIT);
    rig.hart.set_csr(n::MIE, 0x80);
    rig.hart.set_line(Interrupt::MachineTimer, true);
    rig.step();
    assert_eq!(rig.hart.csr(n::MEPC), Some(TEXT + 4));
    assert_eq!(rig.hart.x(6), 0);

    let mut rig = Rig::new(&[MRET]);
    rig.hart.set_csr(n::MSTATUS, 1 << 7 | 3 << 11);
    rig.hart.set_csr(n::MIE, 0x80);
    rig.hart.set_csr(n::MEPC, TEXT + 0x100);
    rig.hart.set_line(Interrupt::MachineTimer, true);
    rig.step();
    assert_eq!(rig.hart.csr(n::MEPC), Some(TEXT + 0x100));
    assert_eq!(rig.only_trap().0, cause::INTERRUPT | 7);
}

#[test]
fn wfi_exits_until_something_is_pending_even_with_interrupts_masked() {
    let mut rig = Rig::new(&[WFI, WFI, STOP]);
    rig.hart.set_csr(n::MIE, 0x80);
    assert_eq!(rig.run(100), Exit::Wfi);
    assert_eq!(rig.hart.pc(), TEXT + 4);
    assert!(!rig.hart.wakes());
    rig.hart.set_line(Interrupt::MachineTimer, true);
    assert!(rig.hart.wakes());
    assert_eq!(rig.run(100), Exit::QuantumEnd);
    assert!(rig.log.traps.is_empty());
}

#[test]
fn tsr_tw_and_tvm_trap_in_s_mode() {
    let sfence = 0x1200_0073;
    for (bit, instruction) in
        [(22, SRET), (21, WFI), (20, sfence), (20, csrrs(5, n::SATP, 0)), (20, csrrw(0, n::SATP, 0))]
    {
        let mut rig = Rig::new(&[instruction]);
        rig.hart.set_csr(n::MSTATUS, 1 << bit);
        rig.enter(Privilege::Supervisor);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::ILLEGAL, u64::from(instruction)));
        let mut rig = Rig::new(&[instruction]);
        rig.enter(Privilege::Supervisor);
        rig.step();
        assert!(rig.log.traps.is_empty(), "{instruction:#x} traps without the bit");
    }
    for instruction in [MRET, SRET, WFI, sfence, csrrs(5, n::SSTATUS, 0)] {
        let mut rig = Rig::new(&[instruction]);
        rig.enter(Privilege::User);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::ILLEGAL, u64::from(instruction)), "from U-mode");
    }
}

#[test]
fn read_only_and_absent_csrs_are_illegal() {
    for instruction in [
        csrrw(0, n::MHARTID, 5),
        csrrs(5, n::MHARTID, 6),
        csrrw(0, n::CYCLE, 0),
        csrrs(5, 0x7ff, 0),
        csrrs(5, 0x5c2, 0),
        csrrs(5, 0x3a1, 0),
    ] {
        let mut rig = Rig::new(&[instruction]);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::ILLEGAL, u64::from(instruction)));
    }
    // Reading by setting no bits is allowed.
    let mut rig = Rig::new(&[csrrs(5, n::MHARTID, 0), csrrs(6, n::MISA, 0)]);
    rig.step();
    rig.step();
    assert_eq!((rig.hart.x(5), rig.hart.x(6)), (3, 2 << 62 | 0x14_112d));
}

#[test]
fn counters_open_level_by_level() {
    for (m, s, mode, ok) in [
        (0, 7, Privilege::Supervisor, false),
        (7, 0, Privilege::Supervisor, true),
        (7, 0, Privilege::User, false),
        (7, 7, Privilege::User, true),
        (0, 7, Privilege::User, false),
    ] {
        for csr in [n::CYCLE, n::TIME, n::INSTRET] {
            let mut rig = Rig::new(&[csrrs(5, csr, 0)]);
            rig.hart.set_csr(n::MCOUNTEREN, m);
            rig.hart.set_csr(n::SCOUNTEREN, s);
            rig.enter(mode);
            rig.step();
            assert_eq!(rig.log.traps.is_empty(), ok, "{csr:#x} {mode:?}");
        }
    }
}

#[test]
fn fields_keep_to_their_legal_values() {
    let all = u64::MAX;
    let ones = [
        (n::MSTATUS, 0x8000_000a_007e_79aa),
        (n::SSTATUS, 0x8000_0002_000c_6122),
        (n::MEDELEG, 0xb3ff),
        (n::MIDELEG, 0x222),
        (n::MIE, 0xaaa),
        (n::MEPC, all - 1),
        (n::SEPC, all - 1),
        (n::MCOUNTEREN, 0xffff_ffff),
        (n::FCSR, 0xff),
        (n::SHWDP, 1),
        (n::MISA, 2 << 62 | 0x14_112d),
        (0x3b1, (1 << 54) - 1),
        // Mode 15 does not exist: the write has no effect.
        (n::SATP, 0),
        // Neither do vector modes 2 and 3.
        (n::MTVEC, HANDLER),
    ];
    for (csr, want) in ones {
        let mut rig = Rig::new(&[]);
        assert!(rig.hart.set_csr(csr, all));
        assert_eq!(rig.hart.csr(csr), Some(want), "{csr:#x}");
    }
    let mut rig = Rig::new(&[]);
    rig.hart.set_csr(n::MSTATUS, 1 << 11);
    rig.hart.set_csr(n::MSTATUS, 2 << 11);
    assert_eq!(status(&rig) >> 11 & 3, 1, "MPP keeps S");
    rig.hart.set_csr(n::SATP, 8 << 60 | 0xffff << 44 | 5);
    assert_eq!(rig.hart.csr(n::SATP), Some(8 << 60 | 5), "no ASIDs");
}

#[test]
fn satp_takes_the_deepest_mode_and_those_below() {
    for deepest in Paging::ALL {
        for mode in 0..16 {
            let mut rig = Rig::with(HartConfig { paging: deepest, ..HartConfig::new(0) }, &[]);
            let before = Paging::Sv39.satp() | 5;
            rig.hart.set_csr(n::SATP, before);
            rig.hart.set_csr(n::SATP, mode << 60 | 6);
            let legal = mode == 0 || (8..8 + u64::from(deepest.levels()) - 2).contains(&mode);
            let after = if legal { mode << 60 | 6 } else { before };
            assert_eq!(rig.hart.csr(n::SATP), Some(after), "mode {mode} where {deepest} is the deepest");
        }
    }
}

#[test]
fn sie_and_sip_show_what_is_delegated() {
    let mut rig = Rig::new(&[]);
    rig.hart.set_csr(n::MIE, 0xaaa);
    rig.hart.set_line(Interrupt::SupervisorTimer, true);
    rig.hart.set_pending(Interrupt::SupervisorSoft, true);
    assert_eq!((rig.hart.csr(n::SIE), rig.hart.csr(n::SIP)), (Some(0), Some(0)));
    rig.hart.set_csr(n::MIDELEG, 0x222);
    assert_eq!((rig.hart.csr(n::SIE), rig.hart.csr(n::SIP)), (Some(0x222), Some(0x22)));
    rig.hart.set_csr(n::SIP, 0);
    assert_eq!(rig.hart.csr(n::SIP), Some(0x20), "software clears only SSIP");
}

#[test]
fn setting_a_bit_of_mip_does_not_latch_the_wires() {
    let mut rig = Rig::new(&[csrrs(0, n::MIP, 5), STOP]);
    rig.hart.set_x(5, 2);
    rig.hart.set_line(Interrupt::SupervisorExternal, true);
    rig.step();
    rig.hart.set_line(Interrupt::SupervisorExternal, false);
    assert_eq!(rig.hart.csr(n::MIP), Some(2));
}

#[test]
fn pmp_forbids_by_the_first_match_and_by_default_outside_m_mode() {
    const AT: u64 = DATA + 0x800;
    // Entry 0: NA4 at AT without rights. Entry 1: all memory, all rights.
    let setup = |mode| {
        let mut rig = Rig::new(&[lw(6, 5, 0), lw(7, 8, 0), ld(9, 5, -4), STOP]);
        rig.hart.set_csr(0x3b0, AT >> 2);
        rig.hart.set_csr(0x3b1, u64::MAX);
        rig.hart.set_csr(0x3a0, 0x1f10);
        rig.hart.set_x(5, AT);
        rig.hart.set_x(8, AT + 4);
        rig.enter(mode);
        rig
    };
    let mut rig = setup(Privilege::Supervisor);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, AT));
    let mut rig = setup(Privilege::Supervisor);
    rig.hart.set_pc(TEXT + 4);
    rig.step();
    assert!(rig.log.traps.is_empty(), "the neighbour is open");
    rig.hart.set_pc(TEXT);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, AT), "and the access beside it has not opened the entry's page");
    let mut rig = setup(Privilege::Supervisor);
    rig.hart.set_pc(TEXT + 8);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, AT - 4), "an access half inside fails");
    let mut rig = setup(Privilege::Supervisor);
    rig.hart.set_csr(0x3a0, 0x1f11);
    rig.hart.set_pc(TEXT + 8);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, AT - 4), "also where both entries would allow it");
    let mut rig = setup(Privilege::Machine);
    rig.step();
    assert!(rig.log.traps.is_empty(), "M-mode ignores entries that are not locked");
    let mut rig = setup(Privilege::Machine);
    rig.hart.set_csr(0x3a0, 0x1f90);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, AT), "but not locked ones");
    rig.hart.set_csr(0x3a0, 0);
    assert_eq!(rig.hart.csr(0x3a0), Some(0x90), "locked entries stay until reset");

    let mut rig = Rig::new(&[NOP]);
    rig.hart.set_csr(0x3a0, 0);
    rig.enter(Privilege::User);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::FETCH_ACCESS, TEXT), "no entry matches");
}

#[test]
fn a_pmp_write_takes_effect_on_pages_already_in_use() {
    // M-mode with MPRV and MPP = S loads, takes all rights from the entry, and loads again.
    let mut rig = Rig::new(&[lw(6, 5, 0), csrrw(0, 0x3a0, 0), lw(6, 5, 0)]);
    rig.hart.set_x(5, DATA);
    rig.hart.set_csr(n::MSTATUS, 1 << 17 | 1 << 11);
    rig.step();
    rig.step();
    assert!(rig.log.traps.is_empty());
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, DATA));
}

#[test]
fn code_in_a_page_that_pmp_splits_is_checked_instruction_by_instruction() {
    let mut rig = Rig::new(&[addi(6, 6, 1), addi(6, 6, 1), addi(6, 6, 1), STOP]);
    // TOR: open below TEXT + 8, closed from there on.
    rig.hart.set_csr(0x3b0, (TEXT + 8) >> 2);
    rig.hart.set_csr(0x3a0, 0x0f);
    rig.enter(Privilege::Supervisor);
    rig.run(50);
    assert_eq!(rig.hart.x(6), 2);
    assert_eq!(rig.log.traps[0].cause, cause::FETCH_ACCESS);
    assert_eq!(rig.log.traps[0].tval, TEXT + 8);
}

#[test]
fn a_supervisor_started_without_firmware_finds_what_sbi_promises() {
    let config = HartConfig { sbi_exits: true, ..HartConfig::new(2) };
    let mut rig = Rig::with(config, &[ECALL, csrrs(5, n::TIME, 0), ld(6, 0, 8), STOP]);
    rig.hart.enter_supervisor(TEXT, 0x8200_0000);
    rig.hart.set_csr(n::STVEC, HANDLER);
    assert_eq!((rig.hart.x(10), rig.hart.x(11)), (2, 0x8200_0000));
    assert_eq!(rig.hart.privilege(), Privilege::Supervisor);
    assert_eq!(rig.run(100), Exit::SbiCall);
    assert_eq!(rig.hart.pc(), TEXT + 4);
    rig.step();
    assert!(rig.log.traps.is_empty());
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, 8));
    assert_eq!((rig.hart.privilege(), rig.hart.pc()), (Privilege::Supervisor, HANDLER));
}

#[test]
fn a_trap_vector_that_faults_does_not_stop_time() {
    let mut rig = Rig::new(&[ECALL]);
    rig.hart.set_csr(n::MTVEC, 0);
    assert_eq!(rig.run(10_000), Exit::QuantumEnd);
    assert!(rig.hart.now().0 >= 10_000);
}

#[test]
fn words_of_every_kind_never_panic() {
    let mut word = 0x1234_5678u32;
    let mut rig = Rig::new(&[]);
    for _ in 0..200_000 {
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        rig.program(TEXT, &[word]);
        rig.hart.set_pc(TEXT);
        rig.hart.set_x((word & 31) as u8, DATA + u64::from(word >> 20));
        rig.step();
        rig.log.traps.clear();
        rig.log.fills.clear();
        if word.is_multiple_of(64) {
            rig = Rig::new(&[]);
        }
    }
    let _ = Hart::new(HartConfig::new(0), 0);
}
