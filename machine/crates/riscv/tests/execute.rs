// SPDX-License-Identifier: Apache-2.0
//! Instructions: arithmetic at its limits, all forms of memory access, self-modifying code, reservations, counting.

mod common;
use common::*;
use trapless_memory::{Cycle, Dma, MmioEffect, PhysAddr};
use trapless_riscv::{CostTable, Exit, Hart, HartConfig, Privilege, cause, csr_number, pte};

const MIN: u64 = 1 << 63;
const MAX: u64 = MIN - 1;
const NEG: u64 = u64::MAX;

/// Computes x7 = x5 op x6.
fn binary(instruction: u32, a: u64, b: u64) -> u64 {
    let mut rig = Rig::new(&[instruction, STOP]);
    rig.hart.set_x(5, a);
    rig.hart.set_x(6, b);
    assert_eq!(rig.step(), Exit::Step);
    assert!(rig.log.traps.is_empty(), "{instruction:#x}");
    assert_eq!(rig.hart.pc(), TEXT + 4);
    rig.hart.x(7)
}

fn op(funct7: u32, funct3: u32) -> u32 {
    r(0x33, funct3, funct7, 7, 5, 6)
}

fn op32(funct7: u32, funct3: u32) -> u32 {
    r(0x3b, funct3, funct7, 7, 5, 6)
}

#[test]
fn division_by_zero_and_overflow_give_the_values_of_the_isa() {
    for (instruction, a, b, want) in [
        (op(1, 4), 7, 0, NEG),
        (op(1, 4), MIN, NEG, MIN),
        (op(1, 5), 7, 0, NEG),
        (op(1, 6), 7, 0, 7),
        (op(1, 6), MIN, NEG, 0),
        (op(1, 6), (-7i64) as u64, 2, NEG),
        (op(1, 7), 7, 0, 7),
        (op32(1, 4), 7, 0, NEG),
        (op32(1, 4), 0x8000_0000, NEG, 0xffff_ffff_8000_0000),
        (op32(1, 5), 0xffff_fffe, 1, 0xffff_ffff_ffff_fffe),
        (op32(1, 5), 7, 1 << 32, NEG),
        (op32(1, 6), 0x8000_0000, NEG, 0),
        (op32(1, 6), 0x8000_0001, 1 << 32, 0xffff_ffff_8000_0001),
        (op32(1, 7), 0x8000_0001, 1 << 32, 0xffff_ffff_8000_0001),
    ] {
        assert_eq!(binary(instruction, a, b), want, "{instruction:#x} {a:#x} {b:#x}");
    }
}

#[test]
fn high_halves_of_products_respect_signs() {
    for (instruction, a, b, want) in [
        (op(1, 1), MIN, MIN, 1 << 62),
        (op(1, 1), NEG, NEG, 0),
        (op(1, 2), NEG, NEG, NEG),
        (op(1, 2), MIN, NEG, MIN),
        (op(1, 3), NEG, NEG, NEG - 1),
        (op(1, 3), MAX, 2, 0),
        (op32(1, 0), 0x1_0000_8000, 0x1_0000, 0xffff_ffff_8000_0000),
    ] {
        assert_eq!(binary(instruction, a, b), want, "{instruction:#x} {a:#x} {b:#x}");
    }
}

#[test]
fn shifts_use_the_low_bits_and_words_are_sign_extended() {
    for (instruction, a, b, want) in [
        (op(0, 1), 1, 65, 2),
        (op(0, 5), MIN, 127, 1),
        (op(0x20, 5), MIN, 63, NEG),
        (op32(0, 1), 1, 63, 0xffff_ffff_8000_0000),
        (op32(0, 5), 0xffff_ffff_8000_0000, 32, 0xffff_ffff_8000_0000),
        (op32(0, 5), 0xffff_ffff_8000_0000, 31, 1),
        (op32(0x20, 5), 0x8000_0000, 31, NEG),
        (op32(0, 0), 0x7fff_ffff, 1, 0xffff_ffff_8000_0000),
        (op32(0x20, 0), 0, 1, NEG),
        (op(0, 2), NEG, 0, 1),
        (op(0, 3), NEG, 0, 0),
        (op(0, 0), NEG, 1, 0),
        (i(0x13, 3, 7, 5, -1), 5, 0, 1),
        (i(0x1b, 0, 7, 5, 0), 0x8000_0000, 0, 0xffff_ffff_8000_0000),
        (i(0x13, 5, 7, 5, 0x400 | 4), MIN, 0, 0xf800_0000_0000_0000),
    ] {
        assert_eq!(binary(instruction, a, b), want, "{instruction:#x} {a:#x} {b:#x}");
    }
}

#[test]
fn x0_stays_zero_whoever_writes_it() {
    let mut rig =
        Rig::new(&[addi(0, 0, 5), ld(0, 5, 0), jalr(0, 6, 0), STOP, amo(0, true, 0, 5, 5), addi(7, 0, 0), STOP]);
    rig.hart.set_x(5, DATA);
    rig.hart.set_x(6, TEXT + 16);
    rig.hart.set_x(7, 1);
    rig.put64(DATA, 99);
    rig.finish();
    assert_eq!((rig.hart.x(0), rig.hart.x(7)), (0, 0));
}

#[test]
fn misaligned_accesses_work_within_and_across_pages() {
    for offset in [1u64, 4, 0xff9, 0xffd, 0xfff] {
        let mut rig = Rig::paged(&[sd(6, 5, 0), ld(7, 5, 0), lw(8, 5, 1), lb(9, 5, 7), STOP], Privilege::User);
        let ok = pte::V | pte::R | pte::W | pte::U | pte::A | pte::D;
        // The two pages are neighbours in virtual memory; in physical memory they are apart and in reverse order.
        rig.map(0, entry(DATA + 0x5000, ok));
        rig.map(1, entry(DATA, ok));
        rig.hart.set_x(5, VA + offset);
        rig.hart.set_x(6, 0x8877_6655_4433_2211);
        rig.finish();
        assert_eq!(rig.hart.x(7), 0x8877_6655_4433_2211, "{offset:#x}");
        assert_eq!(rig.hart.x(8), 0x5544_3322);
        assert_eq!(rig.hart.x(9), 0x88u8 as i8 as u64);
        assert!(rig.log.traps.is_empty());
    }
}

#[test]
fn a_store_across_pages_is_all_or_nothing() {
    let mut rig = Rig::paged(&[sd(6, 5, 0), STOP], Privilege::User);
    rig.map(0, entry(DATA, pte::V | pte::R | pte::W | pte::U | pte::A | pte::D));
    rig.map(1, entry(DATA + 0x1000, pte::V | pte::R | pte::U | pte::A));
    rig.hart.set_x(5, VA + 0xffc);
    rig.hart.set_x(6, NEG);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::STORE_PAGE, VA + 0x1000));
    assert_eq!(rig.get64(DATA + 0xff8), 0);
}

#[test]
fn code_across_a_page_boundary_runs_and_faults_on_its_second_half() {
    let mut rig = Rig::paged(&[jalr(0, 5, 0)], Privilege::User);
    let x = pte::V | pte::X | pte::U | pte::A;
    let code = addi(7, 7, 1);
    rig.put64(DATA + 0xff8, u64::from(code & 0xffff) << 48);
    rig.put64(DATA + 0x3000, u64::from(code >> 16) | u64::from(STOP) << 16);
    rig.map(0, entry(DATA, x));
    rig.hart.set_x(5, VA + 0xffe);
    rig.step();
    rig.step();
    assert_eq!(rig.only_trap(), (cause::FETCH_PAGE, VA + 0x1000));
    assert_eq!(rig.hart.csr(csr_number::MEPC), Some(VA + 0xffe));

    rig.map(1, entry(DATA + 0x3000, x));
    rig.enter(Privilege::User);
    rig.hart.set_pc(VA + 0xffe);
    rig.run(50);
    assert_eq!(rig.hart.x(7), 1);
    assert_eq!(rig.hart.pc(), VA + 0x1002);
    assert_eq!(rig.log.traps.len(), 1);
}

#[test]
fn code_that_overwrites_itself_is_decoded_again() {
    // Overwrites the instruction at +16 twice: before it has run, and afterwards.
    let mut rig =
        Rig::new(&[sw(6, 5, 16), addi(8, 8, 1), sw(7, 5, 16), FENCE_I, addi(9, 9, 100), jalr(0, 10, 0), STOP]);
    rig.hart.set_x(5, TEXT);
    rig.hart.set_x(6, u64::from(addi(9, 9, 1)));
    rig.hart.set_x(7, u64::from(addi(9, 9, 10)));
    rig.hart.set_x(10, TEXT + 24);
    rig.finish();
    assert_eq!(rig.hart.x(9), 10);
    // Run it again from the start: now everything is predecoded.
    rig.hart.set_x(10, TEXT + 24);
    rig.hart.set_x(7, u64::from(addi(9, 9, 1000)));
    rig.hart.set_pc(TEXT);
    rig.finish();
    assert_eq!(rig.hart.x(9), 1010);
}

#[test]
fn a_store_to_the_second_half_of_an_instruction_is_seen() {
    let mut rig = Rig::new(&[s(0x23, 1, 5, 6, 6), addi(9, 9, 1), STOP]);
    rig.hart.set_x(5, TEXT);
    rig.hart.set_x(6, u64::from(addi(9, 9, 1) >> 16));
    rig.finish();
    rig.hart.set_x(6, u64::from(addi(9, 9, 100) >> 16));
    rig.hart.set_pc(TEXT);
    rig.finish();
    assert_eq!(rig.hart.x(9), 101);
}

#[test]
fn stores_to_a_page_that_became_code_after_its_translation_was_cached_are_seen() {
    // The page at DATA is first written (its write translation is cached), then executed, then written again.
    let mut rig = Rig::new(&[sw(6, 5, 0), jalr(1, 5, 0), sw(7, 5, 0), jalr(1, 5, 0), STOP]);
    rig.put64(DATA, u64::from(jalr(0, 1, 0)) << 32);
    rig.hart.set_x(5, DATA);
    rig.hart.set_x(6, u64::from(addi(9, 9, 1)));
    rig.hart.set_x(7, u64::from(addi(9, 9, 10)));
    rig.finish();
    assert_eq!(rig.hart.x(9), 11);
}

#[test]
fn another_hart_sees_its_write_translation_revoked_when_a_page_becomes_code() {
    let mut rig = Rig::new(&[sw(6, 5, 0), sw(7, 5, 0), STOP]);
    rig.put64(DATA, u64::from(STOP) << 32);
    let mut other = Hart::new(HartConfig::new(1), DATA);
    rig.hart.set_x(5, DATA);
    rig.hart.set_x(6, u64::from(addi(9, 9, 1)));
    rig.hart.set_x(7, u64::from(addi(9, 9, 10)));
    rig.step();
    std::mem::swap(&mut rig.hart, &mut other);
    rig.run(20);
    assert_eq!(rig.hart.x(9), 1);
    std::mem::swap(&mut rig.hart, &mut other);
    rig.step();
    std::mem::swap(&mut rig.hart, &mut other);
    rig.hart.set_pc(DATA);
    rig.run(20);
    assert_eq!(rig.hart.x(9), 11);
}

#[test]
fn dma_into_code_is_seen_by_the_next_run_and_after_a_device_write() {
    let mut rig = Rig::new(&[addi(9, 9, 1), STOP]);
    rig.finish();
    rig.board.ram.write(PhysAddr(TEXT), &addi(9, 9, 10).to_le_bytes()).unwrap();
    rig.hart.set_pc(TEXT);
    rig.finish();
    assert_eq!(rig.hart.x(9), 11);

    let mut rig = Rig::new(&[sw(6, 5, 0), addi(9, 9, 1), STOP]);
    rig.hart.set_x(5, DEVICE);
    rig.board.dma = Some((TEXT + 4, addi(9, 9, 10)));
    rig.finish();
    assert_eq!(rig.hart.x(9), 10);
}

#[test]
fn sc_succeeds_once_after_lr_and_fails_elsewhere() {
    let mut rig = Rig::new(&[
        amo(2, true, 7, 5, 0),
        amo(3, true, 8, 5, 6),
        amo(3, true, 9, 5, 6),
        amo(2, false, 7, 5, 0),
        amo(3, false, 10, 11, 6),
        STOP,
    ]);
    rig.put64(DATA, 41);
    rig.hart.set_x(5, DATA);
    rig.hart.set_x(11, DATA + 8);
    rig.hart.set_x(6, 42);
    rig.finish();
    assert_eq!((rig.hart.x(7), rig.hart.x(8), rig.hart.x(9), rig.hart.x(10)), (42, 0, 1, 1));
    assert_eq!((rig.get64(DATA), rig.get64(DATA + 8)), (42, 0));
}

#[test]
fn a_reservation_does_not_outlive_the_run() {
    let mut rig = Rig::new(&[amo(2, true, 7, 5, 0), amo(3, true, 8, 5, 6), STOP]);
    rig.hart.set_x(5, DATA);
    rig.hart.set_x(6, 1);
    rig.step();
    // Another hart could write here.
    rig.put64(DATA, 2);
    rig.step();
    assert_eq!((rig.hart.x(8), rig.get64(DATA)), (1, 2));
}

#[test]
fn every_amo_computes_on_its_width() {
    let neg32 = 0xffff_ffff_ffff_fff0u64;
    for (funct5, double, old, b, want) in [
        (0x01, true, 1, 2, 2),
        (0x00, true, NEG, 2, 1),
        (0x04, true, 6, 3, 5),
        (0x0c, true, 6, 3, 2),
        (0x08, true, 6, 3, 7),
        (0x10, true, MIN, 1, MIN),
        (0x14, true, MIN, 1, 1),
        (0x18, true, MIN, 1, 1),
        (0x1c, true, MIN, 1, MIN),
        (0x00, false, 0x5_ffff_ffff, 1, 0x5_0000_0000),
        (0x10, false, 0x5_ffff_fff0, 1, 0x5_ffff_fff0),
        (0x14, false, 0x5_ffff_fff0, 1, 0x5_0000_0001),
        (0x14, false, 0x5_0000_0001, 0xffff_fff0, 0x5_0000_0001),
        (0x1c, false, 0x5_0000_0001, 0xffff_fff0, 0x5_ffff_fff0),
        (0x18, false, 0x5_ffff_fff0, neg32 + 1, 0x5_ffff_fff0),
        (0x1c, false, 0x5_ffff_fff0, neg32 + 1, 0x5_ffff_fff1),
    ] {
        let mut rig = Rig::new(&[amo(funct5, double, 7, 5, 6), STOP]);
        rig.put64(DATA, old);
        rig.hart.set_x(5, DATA);
        rig.hart.set_x(6, b);
        rig.step();
        assert_eq!(rig.get64(DATA), want, "funct5 {funct5:#x} {double}");
        assert_eq!(rig.hart.x(7), if double { old } else { old as i32 as u64 });
    }
}

#[test]
fn misaligned_atomics_trap() {
    for (instruction, code) in [
        (amo(2, true, 7, 5, 0), cause::LOAD_MISALIGNED),
        (amo(3, true, 7, 5, 6), cause::STORE_MISALIGNED),
        (amo(0, false, 7, 5, 6), cause::STORE_MISALIGNED),
    ] {
        let mut rig = Rig::new(&[instruction]);
        rig.hart.set_x(5, DATA + 2);
        rig.step();
        assert_eq!(rig.only_trap(), (code, DATA + 2));
    }
}

#[test]
fn devices_get_address_size_value_and_the_exact_cycle() {
    let mut rig = Rig::new(&[addi(6, 0, -1), NOP, sw(6, 5, 0), lw(7, 5, 4), STOP]);
    rig.hart.set_x(5, DEVICE);
    rig.finish();
    assert_eq!(rig.board.log, [(DEVICE, 4, 0xffff_ffff, Cycle(3))]);
    assert_eq!(rig.hart.x(7), 0xffff_ffff_8877_6655);

    let mut rig = Rig::new(&[lw(6, 5, 0)]);
    rig.hart.set_x(5, DEVICE + 0x100);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, DEVICE + 0x100));
    let mut rig = Rig::new(&[amo(0, false, 7, 5, 6)]);
    rig.hart.set_x(5, DEVICE);
    rig.step();
    assert_eq!(rig.only_trap(), (cause::STORE_ACCESS, DEVICE));
}

#[test]
fn a_device_can_end_the_run_right_after_its_access() {
    let mut rig = Rig::new(&[sw(6, 5, 0), NOP, NOP, STOP]);
    rig.hart.set_x(5, DEVICE);
    rig.board.effect = MmioEffect::Resync;
    assert_eq!(rig.run(1000), Exit::QuantumEnd);
    let price = u64::from(CostTable::default().mmio);
    assert_eq!((rig.hart.pc(), rig.hart.now()), (TEXT + 4, Cycle(1 + price)));
    rig.board.effect = MmioEffect::None;
    assert_eq!(rig.run(1000), Exit::QuantumEnd);
    assert!(rig.hart.now().0 >= 1001);
}

#[test]
fn runs_end_at_their_cycle_and_split_runs_equal_one() {
    let program = [addi(7, 7, 1), op(1, 4), jal(0, -8)];
    let mut whole = Rig::new(&program);
    whole.run(10_000);
    let mut split = Rig::new(&program);
    while split.hart.now() < whole.hart.now() {
        let left = whole.hart.now() - split.hart.now();
        split.run(left.0.min(37));
    }
    assert_eq!(whole.hart.state(), split.hart.state());
    assert!(whole.hart.now().0 - 10_000 < 100);
}

#[test]
fn stepping_and_running_agree() {
    // The loop counts x7 down from 20.
    let program = [addi(7, 0, 20), addi(8, 8, 3), addi(7, 7, -1), NOP, bne(7, 0, -12), STOP];
    let mut a = Rig::new(&program);
    a.finish();
    let mut b = Rig::new(&program);
    for _ in 0..10_000 {
        if b.hart.pc() == TEXT + 20 {
            break;
        }
        assert_eq!(b.step(), Exit::Step);
    }
    assert_eq!((a.hart.x(8), b.hart.x(8)), (60, 60));
    assert_eq!(b.hart.retired()[3], 1 + 20 * 4);
}

#[test]
fn retired_instructions_and_minstret_count_exactly() {
    let minstret = csr_number::MINSTRET;
    let mut rig = Rig::new(&[NOP, csrrs(7, minstret, 0), csrrw(0, minstret, 8), csrrs(9, minstret, 0), ECALL]);
    rig.hart.set_x(8, 1000);
    for _ in 0..5 {
        rig.step();
    }
    assert_eq!((rig.hart.x(7), rig.hart.x(9)), (1, 1000));
    assert_eq!(rig.hart.retired()[3], 4, "ecall does not retire");
    assert_eq!(rig.only_trap().0, cause::ECALL_M);
}

#[test]
fn markers_exit_and_their_neighbours_are_hints() {
    let marker = |imm| i(0x13, 2, 0, 0, imm);
    let mut rig =
        Rig::new(&[marker(0x7a0), marker(0x7a1), marker(0x7a8), marker(0x7a9), i(0x13, 2, 7, 0, 0x7a1), STOP]);
    assert_eq!(rig.run(100), Exit::Marker { imm: 0x7a1 });
    assert_eq!(rig.hart.pc(), TEXT + 8);
    assert_eq!(rig.run(100), Exit::Marker { imm: 0x7a8 });
    assert_eq!(rig.run(100), Exit::QuantumEnd);
    assert_eq!(rig.hart.x(7), 1);
}

#[test]
fn single_precision_values_are_boxed_and_the_state_becomes_dirty() {
    let flw = i(0x07, 2, 1, 5, 0);
    let fadd_s = r(0x53, 7, 0, 3, 1, 2);
    let fmv_x_d = r(0x53, 0, 0x71, 7, 3, 0);
    let mut rig = Rig::new(&[flw, fadd_s, fmv_x_d, STOP]);
    rig.put64(DATA, u64::from(1.5f32.to_bits()));
    rig.hart.set_x(5, DATA);
    // The value is not NaN-boxed, so it is taken for the default NaN.
    rig.hart.set_f(2, u64::from(1.0f32.to_bits()));
    rig.step();
    assert_eq!(rig.hart.csr(csr_number::MSTATUS).unwrap() >> 13 & 3, 3);
    rig.finish();
    assert_eq!(rig.hart.f(1), 0xffff_ffff_3fc0_0000);
    assert_eq!(rig.hart.x(7), 0xffff_ffff_7fc0_0000);
    assert_eq!(rig.hart.csr(csr_number::FFLAGS), Some(0), "the default NaN is quiet");
}

#[test]
fn floating_point_is_illegal_when_off_or_with_a_reserved_rounding_mode() {
    let fadd = r(0x53, 7, 1, 3, 1, 2);
    for (fs, frm, instruction) in [
        (0, 0, fadd),
        (0, 0, i(0x07, 3, 1, 5, 0)),
        (0, 0, s(0x27, 3, 5, 1, 0)),
        (3, 5, fadd),
        (3, 0, r(0x53, 5, 1, 3, 1, 2)),
        (0, 0, csrrs(7, csr_number::FCSR, 0)),
    ] {
        let mut rig = Rig::new(&[instruction]);
        rig.hart.set_x(5, DATA);
        rig.hart.set_csr(csr_number::FRM, frm);
        rig.hart.set_csr(csr_number::MSTATUS, fs << 13);
        rig.step();
        assert_eq!(rig.only_trap(), (cause::ILLEGAL, u64::from(instruction)));
    }
}

#[test]
fn a_restored_state_runs_the_same() {
    let program = [addi(7, 7, 3), sd(7, 5, 0), op(1, 0), jal(0, -12)];
    let mut a = Rig::new(&program);
    a.hart.set_x(5, DATA);
    a.run(500);
    let state = a.hart.state();
    let mut b = Rig::new(&program);
    b.hart.restore(&state);
    a.run(500);
    b.run(500);
    assert_eq!(a.hart.state(), b.hart.state());
}
