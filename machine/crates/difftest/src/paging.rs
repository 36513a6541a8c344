// SPDX-License-Identifier: Apache-2.0
//! Sv39, Sv48 and Sv57: every reason for a page fault, with every kind of access, in every mode. This module computes the
//! result from the privileged specification (section "Virtual Address Translation Process"); both machines must show it.

use fastrand::Rng;

use crate::asm::Asm;
use crate::layout::PLAYGROUND;
use crate::program::{Block, Expected, Mode, Program};
use crate::runtime::{csr, reg::*};
use crate::tables::{Case, DATA_OFFSET, PLAYGROUND_PAGES, SCRATCH, entry, pte};

/// Exception codes.
mod cause {
    pub const INSTRUCTION_PAGE_FAULT: u64 = 12;
    pub const LOAD_PAGE_FAULT: u64 = 13;
    pub const STORE_PAGE_FAULT: u64 = 15;
}

/// Status bits.
const MPRV: u64 = 1 << 17;
const SUM: u64 = 1 << 18;
const MXR: u64 = 1 << 19;

/// Kind of access to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Load,
    LoadFp,
    LoadReserved,
    Store,
    StoreFp,
    Amo,
    Fetch,
}
use Access::*;

impl Access {
    const ALL: [Access; 7] = [Load, LoadFp, LoadReserved, Store, StoreFp, Amo, Fetch];

    /// Emits an access to the address in T1.
    fn emit(self, a: &mut Asm, block: &mut Block) {
        match self {
            Load => a.i("ld", T2, T1, 0),
            LoadFp => a.i("fld", 1, T1, 0),
            LoadReserved => a.r("lr.w", T2, T1, 0),
            Store => a.s("sd", S1, T1, 0),
            StoreFp => a.s("fsd", 2, T1, 0),
            Amo => a.r("amoadd.w", T2, T1, S1),
            Fetch => a.i("jalr", RA, T1, 0),
        }
        block.ran(match self {
            Load => "ld",
            LoadFp => "fld",
            LoadReserved => "lr.w",
            Store => "sd",
            StoreFp => "fsd",
            Amo => "amoadd.w",
            Fetch => "jalr",
        });
    }

    fn page_fault(self) -> u64 {
        match self {
            Load | LoadFp | LoadReserved => cause::LOAD_PAGE_FAULT,
            Store | StoreFp | Amo => cause::STORE_PAGE_FAULT,
            Fetch => cause::INSTRUCTION_PAGE_FAULT,
        }
    }
}

/// The mode in which an access is made, and how.
struct Setting {
    name: &'static str,
    /// Mode whose rules apply.
    effective: Mode,
    /// Whether M-mode makes the access, with MPRV.
    mprv: bool,
    sum: bool,
    mxr: bool,
}

const fn setting(name: &'static str, effective: Mode, mprv: bool, sum: bool, mxr: bool) -> Setting {
    Setting { name, effective, mprv, sum, mxr }
}

const SETTINGS: [Setting; 10] = [
    setting("U", Mode::User, false, false, false),
    setting("U, MXR", Mode::User, false, false, true),
    setting("S", Mode::Supervisor, false, false, false),
    setting("S, SUM", Mode::Supervisor, false, true, false),
    setting("S, MXR", Mode::Supervisor, false, false, true),
    setting("S, SUM, MXR", Mode::Supervisor, false, true, true),
    setting("M, MPRV to U", Mode::User, true, false, false),
    setting("M, MPRV to U, MXR", Mode::User, true, false, true),
    setting("M, MPRV to S", Mode::Supervisor, true, false, false),
    setting("M, MPRV to S, SUM, MXR", Mode::Supervisor, true, true, true),
];

/// Whether the leaf allows the access.
fn allowed(leaf: Option<u64>, access: Access, s: &Setting) -> bool {
    let Some(leaf) = leaf else { return false };
    let has = |bits| leaf & bits == bits;
    if !has(pte::V) || (has(pte::W) && !has(pte::R)) || leaf & pte::RWX == 0 {
        return false;
    }
    let mode = match (s.effective, has(pte::U)) {
        (Mode::User, u) => u,
        (_, true) => s.sum && access != Fetch,
        _ => true,
    };
    let right = match access {
        Load | LoadFp | LoadReserved => has(pte::R) || (s.mxr && has(pte::X)),
        Store | StoreFp | Amo => has(pte::W),
        Fetch => has(pte::X),
    };
    let dirty = !matches!(access, Store | StoreFp | Amo) || has(pte::D);
    mode && right && has(pte::A) && dirty
}

fn block(program: &mut Program, s: &Setting, access: Access, cases: &[Case]) {
    let mode = if s.mprv { Mode::Machine } else { s.effective };
    let mut block = Block::new(format!("{}: {access:?} from {}", program.spaces.paging, s.name), mode);
    block.satp = if s.effective == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
    block.mstatus |= if s.sum { SUM } else { 0 } | if s.mxr { MXR } else { 0 };
    let previous = MPRV | (s.effective as u64) << 11;
    let mut a = program.asm();
    let mut expected = Vec::new();
    // S0 collects the results of all accesses.
    a.li(S1, 0x1234_5678);
    for case in cases {
        // The page begins with code; data follows.
        let va = case.va + if access == Fetch { 0 } else { DATA_OFFSET };
        a.li(T1, va);
        a.li(T2, 0);
        if s.mprv {
            a.li(T3, previous);
            a.csr("csrrs", 0, csr::MSTATUS, T3);
        }
        access.emit(&mut a, &mut block);
        a.i("slli", T3, S0, 3);
        a.r("xor", S0, S0, T3);
        a.r("add", S0, S0, T2);
        let cause = (!allowed(case.leaf, access, s)).then(|| access.page_fault());
        expected.push(Expected { what: case.name.clone(), cause, tval: va });
    }
    if s.mprv {
        a.li(T3, MPRV);
        a.csr("csrrc", 0, csr::MSTATUS, T3);
    }
    block.traps = cases.len() as u64;
    let reasons =
        expected.iter().filter_map(|e| e.cause.map(|c| format!("{} cause {c}: {}", program.spaces.paging, e.what)));
    block.covers.extend(reasons);
    block.expected = Some(expected);
    program.add(a, block);
}

/// Adds all cases except those that QEMU 7.2 treats differently.
pub fn common(program: &mut Program) {
    let cases: Vec<Case> = program.spaces.cases.iter().filter(|c| !c.lacks_ad()).cloned().collect();
    for s in &SETTINGS {
        for access in Access::ALL.into_iter().filter(|&a| !(s.mprv && a == Fetch)) {
            block(program, s, access, &cases);
        }
    }
    straddling_fetch(program);
}

/// Adds what only the machine runs: leaves without A or D, which fault (Svade) but whose bits QEMU 7.2 sets; and misaligned
/// accesses across pages, for which the machine reports the part that faults, but QEMU 7.2 other addresses.
pub fn machine_only(program: &mut Program) {
    let cases: Vec<Case> = program.spaces.cases.iter().filter(|c| c.lacks_ad()).cloned().collect();
    for s in &SETTINGS {
        for access in Access::ALL.into_iter().filter(|&a| !(s.mprv && a == Fetch)) {
            block(program, s, access, &cases);
        }
    }
    crossing(program);
}

/// Pairs of neighbouring 4 KiB pages of the playground.
fn neighbours(program: &Program) -> Vec<(Case, Case)> {
    let cases: Vec<Case> = program.spaces.cases.iter().filter(|c| !c.lacks_ad()).cloned().collect();
    cases.windows(2).filter(|p| p[0].va + 4096 == p[1].va).map(|p| (p[0].clone(), p[1].clone())).collect()
}

/// Adds fetches of an instruction that lies half in one page and half in the next.
fn straddling_fetch(program: &mut Program) {
    for s in &SETTINGS[..6] {
        let mut block =
            Block::new(format!("{}: fetch across pages from {}", program.spaces.paging, s.name), s.effective);
        block.satp = if s.effective == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
        block.mstatus |= if s.sum { SUM } else { 0 } | if s.mxr { MXR } else { 0 };
        let mut a = program.asm();
        let mut expected = Vec::new();
        for (first, second) in neighbours(program) {
            a.li(T1, first.va + 4094);
            a.i("jalr", RA, T1, 0);
            block.ran("jalr");
            let (one, two) = (allowed(first.leaf, Fetch, s), allowed(second.leaf, Fetch, s));
            let (cause, tval) = match (one, two) {
                (true, true) => (None, 0),
                (false, _) => (Some(cause::INSTRUCTION_PAGE_FAULT), first.va + 4094),
                (true, false) => (Some(cause::INSTRUCTION_PAGE_FAULT), second.va),
            };
            let what = format!("{} before {}", first.name, second.name);
            expected.push(Expected { what, cause, tval });
        }
        block.traps = expected.len() as u64;
        block.expected = Some(expected);
        program.add(a, block);
    }
}

/// Adds loads and stores whose bytes lie in two pages.
fn crossing(program: &mut Program) {
    for s in &SETTINGS {
        for (access, name) in [(Load, "ld"), (Store, "sd"), (LoadFp, "fld"), (StoreFp, "fsd")] {
            let mode = if s.mprv { Mode::Machine } else { s.effective };
            let mut block = Block::new(format!("{}: {name} across pages from {}", program.spaces.paging, s.name), mode);
            block.satp = if s.effective == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
            block.mstatus |= if s.sum { SUM } else { 0 } | if s.mxr { MXR } else { 0 };
            let mut a = program.asm();
            let mut expected = Vec::new();
            for (first, second) in neighbours(program) {
                let va = first.va + 4093;
                a.li(T1, va);
                if s.mprv {
                    a.li(T3, MPRV | (s.effective as u64) << 11);
                    a.csr("csrrs", 0, csr::MSTATUS, T3);
                }
                access.emit(&mut a, &mut block);
                let (cause, tval) = match (allowed(first.leaf, access, s), allowed(second.leaf, access, s)) {
                    (true, true) => (None, 0),
                    (false, _) => (Some(access.page_fault()), va),
                    (true, false) => (Some(access.page_fault()), second.va),
                };
                let what = format!("{} before {}", first.name, second.name);
                expected.push(Expected { what, cause, tval });
            }
            if s.mprv {
                a.li(T3, MPRV);
                a.csr("csrrc", 0, csr::MSTATUS, T3);
            }
            block.traps = expected.len() as u64;
            block.expected = Some(expected);
            program.add(a, block);
        }
    }
}

/// Changes entries, SUM and MXR while translations are cached. Accesses must see a change after the fence that the
/// specification requires, or at once where it requires none.
pub fn changes(program: &mut Program, rng: &mut Rng) {
    for n in 0..24 {
        let mode = if n % 2 == 0 { Mode::Supervisor } else { Mode::Machine };
        let mut block = Block::new(format!("translations that change, {n}, {mode:?}"), mode);
        block.satp = program.spaces.s_satp;
        let (middle, table) = (program.spaces.scratch_middle, program.spaces.scratch_table);
        let mut a = program.asm();
        if mode == Mode::Machine {
            // Write the entries and make the accesses as S-mode would.
            a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
            a.csr("csrrs", 0, csr::MSTATUS, T3);
        }
        let status = if mode == Mode::Machine { csr::MSTATUS } else { csr::SSTATUS };
        // Whether the entries of the three pages, and of the large page above them, may be user pages. At first they are
        // what the previous block has left.
        let mut user = [true; 4];
        for _ in 0..150 {
            let page = rng.u64(..3);
            let va = SCRATCH + page * 4096;
            let target = PLAYGROUND + rng.u64(..PLAYGROUND_PAGES) * 4096;
            let bits = rng.u64(..32) | if rng.bool() { pte::V | pte::R } else { 0 } | pte::AD;
            match rng.u8(..10) {
                0..3 => {
                    user[page as usize] = bits & pte::U != 0;
                    a.li(T1, table + page * 8);
                    a.li(T2, entry(target, bits));
                    a.s("sd", T2, T1, 0);
                    a.li(T1, va + rng.u64(..4096));
                    if rng.bool() {
                        a.r("sfence.vma", 0, T1, 0);
                    } else {
                        a.plain("sfence.vma");
                    }
                    block.ran("sfence.vma");
                }
                3 if rng.bool() => {
                    // Write the entry above: a table, a large page, or an invalid entry.
                    let large = entry(PLAYGROUND & !0x1f_ffff, bits);
                    let value = [entry(table, pte::V), entry(table, pte::V), large, 0][rng.usize(..4)];
                    user[3] = bits & pte::U != 0;
                    a.li(T1, middle);
                    a.li(T2, value);
                    a.s("sd", T2, T1, 0);
                    a.plain("sfence.vma");
                    block.ran("sfence.vma");
                }
                4 => {
                    a.li(T1, *rng.choice(&[SUM, MXR, SUM | MXR]).expect("not empty"));
                    a.csr(if rng.bool() { "csrrs" } else { "csrrc" }, 0, status, T1);
                }
                _ => {
                    let access = *rng.choice(&Access::ALL).expect("not empty");
                    if access == Fetch && mode == Mode::Machine {
                        continue;
                    }
                    if access == Fetch && (user[page as usize] || user[3]) {
                        // QEMU 7.2 executes a user page in S-mode if a load with SUM has cached its translation.
                        a.plain("sfence.vma");
                        block.ran("sfence.vma");
                    }
                    let offset = if access == Fetch { 0 } else { 2048 + rng.u64(..240) * 8 };
                    a.li(T1, va + offset);
                    a.li(T2, 0);
                    access.emit(&mut a, &mut block);
                    a.i("slli", T3, S0, 3);
                    a.r("xor", S0, S0, T3);
                    a.r("add", S0, S0, T2);
                }
            }
            if mode == Mode::Machine {
                // A trap may have set MPP to U.
                a.li(T3, (Mode::Supervisor as u64) << 11);
                a.csr("csrrs", 0, csr::MSTATUS, T3);
            }
        }
        // Restore what the next block expects.
        if mode == Mode::Machine {
            a.li(T3, MPRV);
            a.csr("csrrc", 0, csr::MSTATUS, T3);
        }
        a.li(T1, middle);
        a.li(T2, entry(table, pte::V));
        a.s("sd", T2, T1, 0);
        block.traps = 150;
        program.add(a, block);
    }
}
