// SPDX-License-Identifier: Apache-2.0
//! The page walker: causes of faults, page sizes, rights, fences.

mod common;
use common::*;
use trapless_memory::{PAGE_SHIFT, Paging};
use trapless_riscv::{Access, Exit, HartConfig, Privilege, cause, csr_number, pte};

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
    // The table is at an address where there is no memory: an access fault.
    let mut rig = user_load();
    rig.put64(MID, entry(0x1_0000_0000, pte::V));
    rig.step();
    assert_eq!(rig.only_trap(), (cause::LOAD_ACCESS, VA));
}

#[test]
fn addresses_that_are_not_canonical_fault() {
    // The lower 39 bits of all of these addresses select VA's entry.
    for va in [VA | 1 << 39, VA | 1 << 63, VA | 0xffff << 48] {
        let mut rig = rig_at(ld(6, 5, 0), va);
        rig.map(0, entry(DATA, OK));
        rig.step();
        assert_eq!(rig.only_trap(), (cause::LOAD_PAGE, va), "{va:#x}");
    }
}

/// Makes a user's load from `va`, from M-mode with MPRV, where a leaf `e` of `level` maps `va`. Returns the value, or the
/// trap's cause and tval.
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
            // Uses the last entry of each table, in the lower half and in the upper half.
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
        // Code is in an identity mapping; the data is mapped by the tables of `va`, the root first.
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
    assert!(rig.log.traps.is_empty(), "the fence also dropped the other page");
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
