// SPDX-License-Identifier: Apache-2.0
//! Traps, returns, delegation, interrupts, PMP, and instructions that depend on `mstatus`.

use crate::asm::Asm;
use crate::insn::{Form, WIDE};
use crate::layout::*;
use crate::program::{Block, Expected, Mode, Program};
use crate::runtime::{SELF_LOOP, csr, csr::*, reg::*};
use crate::tables::DATA_OFFSET;

const MPP: u64 = 3 << 11;
const SPP: u64 = 1 << 8;
const MIE_BIT: u64 = 1 << 3;
const SIE_BIT: u64 = 1 << 1;
const MPIE: u64 = 1 << 7;
const SPIE: u64 = 1 << 5;
const MPRV: u64 = 1 << 17;
const TVM: u64 = 1 << 20;
const TW: u64 = 1 << 21;
const TSR: u64 = 1 << 22;
const ILLEGAL: u64 = 0;

/// Goes on in `mode`, with `status` bits set; from M-mode. Changes T0 and T1.
pub fn enter(a: &mut Asm, mode: Mode, status: u64) {
    let there = a.label();
    a.li(T0, MPP);
    a.csr("csrrc", 0, MSTATUS, T0);
    a.li(T0, (mode as u64) << 11 | status);
    a.csr("csrrs", 0, MSTATUS, T0);
    a.la(T1, there);
    a.csr("csrrw", 0, MEPC, T1);
    a.plain("mret");
    a.bind(there);
}

/// All tests of this file.
pub fn all(program: &mut Program) {
    returns(program);
    guarded_instructions(program);
    floating_point_off(program);
    exceptions(program);
    delegation(program);
    interrupts(program);
    external_interrupt(program);
    physical_memory_protection(program);
    self_modifying(program);
}

/// `mret` and `sret` to every mode, with all previous states of the interrupt enables.
fn returns(program: &mut Program) {
    for bits in 0..4u64 {
        let mut block = Block::new(format!("mret and sret, previous enables {bits:02b}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        // QEMU 7.2 keeps MPRV when it should clear it; `machine_only` looks at it.
        block.relax.mprv = true;
        let mut a = program.asm();
        for mode in [Mode::User, Mode::Supervisor, Mode::Machine] {
            let status = if bits & 1 == 1 { MPIE } else { 0 } | if bits & 2 == 2 { SPIE } else { 0 } | MPRV;
            a.li(T0, MPIE | SPIE | MPRV | MIE_BIT | SIE_BIT);
            a.csr("csrrc", 0, MSTATUS, T0);
            enter(&mut a, mode, status);
            block.ran("mret");
            // The record of the ecall shows the status.
            a.plain("ecall");
            block.ran("ecall");
        }
        for (from, to) in [(Mode::Machine, 0), (Mode::Machine, SPP), (Mode::Supervisor, 0), (Mode::Supervisor, SPP)] {
            a.li(T0, MPIE | SPIE | MPRV | MIE_BIT | SIE_BIT | SPP);
            a.csr("csrrc", 0, MSTATUS, T0);
            let status = to | if bits & 2 == 2 { SPIE } else { 0 } | if bits & 1 == 1 { MPRV | SIE_BIT } else { 0 };
            enter(&mut a, from, status);
            let there = a.label();
            a.la(T1, there);
            a.csr("csrrw", 0, SEPC, T1);
            a.plain("sret");
            block.ran("sret");
            a.bind(there);
            a.plain("ecall");
        }
        a.li(T0, MPRV);
        a.csr("csrrc", 0, MSTATUS, T0);
        block.traps = 20;
        program.add(a, block);
    }
}

/// Instructions that a mode or a bit of `mstatus` makes illegal.
fn guarded_instructions(program: &mut Program) {
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        for bits in 0..8u64 {
            let status = if bits & 1 == 1 { TVM } else { 0 }
                | if bits & 2 == 2 { TW } else { 0 }
                | if bits & 4 == 4 { TSR } else { 0 };
            let mut block =
                Block::new(format!("guarded instructions in {mode:?}, TSR TW TVM = {bits:03b}"), Mode::Machine);
            block.flags = flag::ECALL_TO_M;
            let mut a = program.asm();
            // Something is pending and enabled, so that wfi, where it may run, goes on at once. U-mode would take the
            // interrupt instead.
            if mode != Mode::User {
                a.li(T0, 2);
                a.csr("csrrw", 0, MIE, T0);
                a.csr("csrrw", 0, MIDELEG, T0);
                a.csr("csrrw", 0, MIP, T0);
            }
            enter(&mut a, mode, status);
            if mode != Mode::User {
                a.plain("wfi");
                block.ran("wfi");
            }
            a.csr("csrrs", T2, SATP, 0);
            a.csr("csrrw", 0, SATP, 0);
            a.plain("sfence.vma");
            a.r("sfence.vma", 0, T1, 0);
            a.r("sfence.vma", 0, 0, T1);
            block.ran("sfence.vma");
            a.csr("csrrs", T2, SSTATUS, 0);
            // With a return address, in case it is legal.
            let there = a.label();
            a.la(T1, there);
            a.csr("csrrw", 0, SEPC, T1);
            if mode != Mode::Machine {
                a.plain("sret");
            }
            a.bind(there);
            // The sret may have led to U-mode, where this is illegal too.
            if mode == Mode::User {
                a.plain("mret");
                a.plain("sret");
                a.plain("wfi");
            }
            a.plain("ecall");
            a.li(T2, 0);
            a.li(T1, 0);
            a.li(T0, TVM | TW | TSR);
            a.csr("csrrc", 0, MSTATUS, T0);
            block.traps = 20;
            program.add(a, block);
        }
    }
}

/// With FS off every floating-point instruction is illegal; with FS initial, the first write makes it dirty.
fn floating_point_off(program: &mut Program) {
    let is_float = |f: Form| {
        matches!(
            f,
            Form::LoadFp
                | Form::StoreFp
                | Form::F2
                | Form::F2Round
                | Form::F1Round
                | Form::F3Round
                | Form::FCompare
                | Form::FToInt
                | Form::FToIntRound
                | Form::IntToF
                | Form::IntToFRound
        )
    };
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        let mut block = Block::new(format!("floating point off in {mode:?}"), mode);
        block.mstatus = 0;
        block.x[10] = DATA + program.window(|| 0x3ff0_0000_0000_0000);
        let mut a = program.asm();
        for row in WIDE.iter().filter(|r| is_float(r.form)) {
            a.op(row.name, 10, 10, 10, 0);
        }
        // c.fld, c.fsd, c.fldsp, c.fsdsp.
        for half in [0x2108, 0xa108, 0x2502, 0xa02a] {
            a.half(half);
        }
        for n in 1..4 {
            a.csr("csrrs", T0, n, 0);
        }
        block.traps = 80;
        program.add(a, block);
    }
    for fs in [1u64, 2] {
        for row in WIDE.iter().filter(|r| is_float(r.form) && !matches!(r.form, Form::StoreFp)) {
            // Whether an instruction that writes neither register nor flags makes FS dirty is up to the machine.
            let writes = matches!(
                row.form,
                Form::LoadFp
                    | Form::F2
                    | Form::F2Round
                    | Form::F1Round
                    | Form::F3Round
                    | Form::IntToF
                    | Form::IntToFRound
            );
            let mut block = Block::new(format!("FS from {fs} after {}", row.name), Mode::Machine);
            block.mstatus = fs << 13;
            block.relax.fs = !writes;
            block.x[10] = DATA;
            let mut a = program.asm();
            a.op(row.name, 10, 10, 10, 0);
            block.ran(row.name);
            program.add(a, block);
        }
        for (name, number) in [("fflags", 1), ("frm", 2), ("fcsr", 3)] {
            let mut block = Block::new(format!("FS from {fs} after a write to {name}"), Mode::Machine);
            block.mstatus = fs << 13;
            let mut a = program.asm();
            a.csr("csrrwi", 0, number, 1);
            block.ran("csrrwi");
            program.add(a, block);
        }
    }
}

/// Emits one of each exception that needs no page table. Where they go is the caller's business.
/// QEMU 7.2 reports an AMO outside memory as a load, so there is none where addresses are not `translated`.
fn raise_all(a: &mut Asm, program: &Program, translated: bool) -> u64 {
    a.word(ILLEGAL as u32);
    a.word(0xffff_f07b);
    a.half(0x0000);
    a.li(T1, NOWHERE);
    for name in ["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu", "flw", "fld"] {
        a.i(name, T2, T1, 8);
    }
    for name in ["sb", "sh", "sw", "sd", "fsw", "fsd"] {
        a.s(name, T2, T1, 16);
    }
    a.r("lr.d", T2, T1, 0);
    a.i("jalr", RA, T1, 0);
    a.i("jalr", RA, T1, 2);
    // Misaligned atomics.
    a.li(T1, DATA + 2);
    a.r("lr.w", T2, T1, 0);
    a.r("lr.d", T2, T1, 0);
    a.r("amoswap.w", T2, T1, T2);
    a.r("amomaxu.d", T2, T1, T2);
    a.plain("ecall");
    // Page faults where there are tables, access faults or nothing elsewhere.
    let case = |name: &str| program.spaces.cases.iter().find(|c| c.name == name).map_or(0, |c| c.va);
    let va = case("2 MiB entry invalid") + DATA_OFFSET;
    a.li(T1, va);
    a.i("ld", T2, T1, 0);
    a.s("sd", T2, T1, 0);
    if translated {
        a.r("amoor.d", T2, T1, T2);
    }
    a.i("jalr", RA, T1, 0);
    a.li(T1, 0xffff_ffff_ffff_f000);
    a.i("ld", T2, T1, 0);
    a.s("sd", T2, T1, 0);
    a.i("jalr", RA, T1, 0);
    a.li(T2, 0);
    48
}

/// Every synchronous exception, in every mode, bare and with Sv39, taken by M-mode.
fn exceptions(program: &mut Program) {
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        for paging in [false, true] {
            let mut block =
                Block::new(format!("exceptions in {mode:?}{}", if paging { " with Sv39" } else { "" }), mode);
            if paging {
                block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
            }
            let mut a = program.asm();
            block.traps = raise_all(&mut a, program, paging && mode != Mode::Machine);
            a.plain("ebreak");
            program.add(a, block);
        }
    }
}

/// The same, delegated: all, and each cause alone.
fn delegation(program: &mut Program) {
    const DELEGABLE: u64 = 0xb3ff;
    const BREAKPOINT: u64 = 1 << 3;
    let alone = (0..16).filter(|n| DELEGABLE >> n & 1 == 1).map(|n| 1u64 << n);
    for medeleg in alone.chain([DELEGABLE]) {
        // The block's end is an ebreak that must reach M-mode.
        if medeleg == BREAKPOINT {
            continue;
        }
        for (mode, paging) in
            [(Mode::Supervisor, true), (Mode::User, true), (Mode::Supervisor, false), (Mode::User, false)]
        {
            let name = format!("exceptions in {mode:?}, Sv39 {paging}, medeleg {medeleg:#x}");
            let mut block = Block::new(name, mode);
            if paging {
                block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
            }
            block.medeleg = medeleg & !BREAKPOINT;
            let mut a = program.asm();
            block.traps = raise_all(&mut a, program, paging);
            program.add(a, block);
        }
        // Never to a less privileged mode.
        let mut block = Block::new(format!("exceptions in Machine, medeleg {medeleg:#x}"), Mode::Machine);
        block.medeleg = medeleg;
        let mut a = program.asm();
        block.traps = raise_all(&mut a, program, false);
        program.add(a, block);
    }
    for mode in [Mode::Supervisor, Mode::User] {
        let mut block = Block::new(format!("delegated breakpoint in {mode:?}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        block.medeleg = BREAKPOINT;
        let mut a = program.asm();
        enter(&mut a, mode, SPIE);
        a.plain("ebreak");
        block.ran("ebreak");
        a.half(0x9002);
        block.ran("c.ebreak");
        a.plain("ecall");
        // The trap value of a breakpoint is zero or its address.
        a.csr("csrrw", 0, STVAL, 0);
        block.traps = 4;
        program.add(a, block);
    }
}

/// Makes the interrupt pending: T0 and T1 change.
fn raise(a: &mut Asm, code: u64) {
    match code {
        3 => {
            a.li(T0, MSIP);
            a.li(T1, 1);
            a.s("sw", T1, T0, 0);
        }
        7 => {
            a.li(T0, MTIMECMP);
            a.s("sd", 0, T0, 0);
        }
        _ => {
            a.li(T0, 1 << code);
            a.csr("csrrs", 0, MIP, T0);
        }
    }
}

/// Each interrupt alone: pending, then enabled; enabled, then pending; direct and vectored; delegated or not; in each
/// mode, with the enables of all modes on and off.
fn interrupts(program: &mut Program) {
    for code in [1u64, 3, 5, 7, 9] {
        for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
            for setting in 0..16u64 {
                let (delegated, vectored) = (setting & 1 == 1, setting & 2 == 2);
                let (mie, sie) = (setting & 4 == 4, setting & 8 == 8);
                if delegated && matches!(code, 3 | 7) {
                    continue;
                }
                let name = format!(
                    "interrupt {code} in {mode:?}, delegated {delegated}, vectored {vectored}, MIE {mie}, SIE {sie}"
                );
                let mut block = Block::new(name, Mode::Machine);
                block.flags = flag::ECALL_TO_M;
                block.mideleg = if delegated { 1 << code } else { 0 };
                block.covers.push(format!("interrupt {code}"));
                let mut a = program.asm();
                if vectored {
                    a.li(T0, program.runtime.m_vectors | 1);
                    a.csr("csrrw", 0, MTVEC, T0);
                    a.li(T0, program.runtime.s_vectors | 1);
                    a.csr("csrrw", 0, STVEC, T0);
                }
                raise(&mut a, code);
                a.csr("csrrs", 20, MIP, 0);
                a.csr("csrrs", 21, SIP, 0);
                a.li(T0, 1 << code);
                a.csr("csrrs", 0, csr::MIE, T0);
                a.csr("csrrs", 22, csr::SIE, 0);
                // Into the mode; what is to be taken is taken with the first instruction there. MIE and SIE come from
                // the return.
                enter(&mut a, mode, if mie { MPIE } else { 0 } | if sie { SIE_BIT } else { 0 });
                a.i("addi", 23, 23, 1);
                a.plain("ecall");
                a.csr("csrrs", 24, MIP, 0);
                // Quiet again.
                a.csr("csrrw", 0, csr::MIE, 0);
                a.csr("csrrw", 0, MIP, 0);
                block.traps = 6;
                program.add(a, block);
            }
        }
    }
    // A device's interrupt comes when it comes: the program waits where it is.
    for (code, waiting) in [(3u64, SELF_LOOP), (7, SELF_LOOP), (3, 0x1050_0073), (7, 0x1050_0073)] {
        let mut block = Block::new(
            format!("interrupt {code} while {}", if waiting == SELF_LOOP { "looping" } else { "in wfi" }),
            Mode::Machine,
        );
        let mut a = program.asm();
        a.li(T0, 1 << code);
        a.csr("csrrs", 0, csr::MIE, T0);
        if waiting == SELF_LOOP {
            a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
            raise(&mut a, code);
        } else {
            raise(&mut a, code);
            block.ran("wfi");
        }
        a.word(waiting);
        if waiting != SELF_LOOP {
            a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
        }
        block.traps = 2;
        // Where in the way to the loop it comes is not the same.
        if waiting == SELF_LOOP {
            a.i("addi", T0, 0, 0);
        }
        program.add(a, block);
    }
}

/// The UART's interrupt through the PLIC, to M-mode and to S-mode.
fn external_interrupt(program: &mut Program) {
    for (context, code) in [(0u64, 11u64), (1, 9)] {
        let mut block = Block::new(format!("UART interrupt to context {context}"), Mode::Machine);
        block.covers.push(format!("interrupt {code}"));
        block.flags = flag::ECALL_TO_M;
        let mut a = program.asm();
        let write = |a: &mut Asm, at: u64, value: u64, op: &str| {
            a.li(T0, at);
            a.li(T1, value);
            a.s(op, T1, T0, 0);
        };
        write(&mut a, PLIC + UART_SOURCE * 4, 1, "sw");
        write(&mut a, PLIC + 0x2000 + 0x80 * context, 1 << UART_SOURCE, "sw");
        write(&mut a, PLIC + 0x20_0000 + 0x1000 * context, 0, "sw");
        a.li(T0, 1 << code);
        a.csr("csrrw", 0, csr::MIE, T0);
        // Transmitter empty.
        write(&mut a, UART + 1, 2, "sb");
        a.plain("wfi");
        block.ran("wfi");
        a.csr("csrrs", 20, MIP, 0);
        a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
        a.i("addi", 0, 0, 0);
        a.csr("csrrci", 0, MSTATUS, MIE_BIT as u8);
        a.li(T0, PLIC + 0x20_0004 + 0x1000 * context);
        a.i("lw", 21, T0, 0);
        a.i("lw", 22, T0, 0);
        a.li(T1, UART);
        a.i("lbu", 23, T1, 2);
        // The upper bits say whether the FIFOs are on: at reset they may be.
        a.i("andi", 23, 23, 15);
        a.s("sb", 0, T1, 1);
        a.s("sw", 21, T0, 0);
        a.i("lw", 24, T0, 0);
        a.csr("csrrs", 25, MIP, 0);
        write(&mut a, PLIC + 0x2000 + 0x80 * context, 0, "sw");
        block.traps = 3;
        program.add(a, block);
    }
}

/// PMP entries of every kind around a few words, tried with loads and stores of every size by S-mode rules.
fn physical_memory_protection(program: &mut Program) {
    let window = DATA + program.window(|| 0x1122_3344_5566_7788).next_multiple_of(64) + 128;
    const NA4: u64 = 2 << 3;
    const NAPOT: u64 = 3 << 3;
    const TOR: u64 = 1 << 3;
    let napot = |size: u64| window >> 2 | (size / 8 - 1);
    // (name, pmpaddr0, pmpaddr1, kind, which of the two entries has the kind)
    let entries = [
        ("NA4", window >> 2, 0, NA4, 0),
        ("NAPOT 8", napot(8), 0, NAPOT, 0),
        ("NAPOT 64", napot(64), 0, NAPOT, 0),
        ("NAPOT 4096", (window & !0xfff) >> 2 | 0x1ff, 0, NAPOT, 0),
        ("TOR", window >> 2, (window + 12) >> 2, TOR, 1),
        ("TOR, empty", window >> 2, window >> 2, TOR, 1),
        ("off", window >> 2, 0, 0, 0),
    ];
    for (name, first, second, kind, which) in entries {
        for rights in [0u64, 1, 3, 4, 5, 7] {
            let mut block = Block::new(format!("PMP {name}, XWR {rights:03b}"), Mode::Machine);
            let mut a = program.asm();
            a.li(T0, first);
            a.csr("csrrw", 0, PMPADDR0, T0);
            a.li(T0, second);
            a.csr("csrrw", 0, PMPADDR0 + 1, T0);
            a.li(T0, u64::MAX >> 10);
            a.csr("csrrw", 0, PMPADDR0 + 2, T0);
            a.li(T0, (kind | rights) << (8 * which) | 0x1f << 16);
            a.csr("csrrw", 0, PMPCFG0, T0);
            a.plain("sfence.vma");
            for at in [window - 8, window - 4, window, window + 4, window + 8, window + 12, window + 64, window + 256] {
                for (name, store) in
                    [("lb", false), ("lw", false), ("ld", false), ("sb", true), ("sw", true), ("sd", true)]
                {
                    a.li(T1, at);
                    a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
                    a.csr("csrrs", 0, MSTATUS, T3);
                    if store {
                        a.s(name, T1, T1, 0);
                    } else {
                        a.i(name, T2, T1, 0);
                        a.r("xor", S0, S0, T2);
                    }
                    a.li(T3, MPRV);
                    a.csr("csrrc", 0, MSTATUS, T3);
                }
            }
            block.traps = 50;
            program.add(a, block);
        }
    }
    // Fetches: the playground's `ret` with and without X; page tables that the walker may not read.
    for rights in [0u64, 1, 3, 4, 5, 7] {
        let mut block = Block::new(format!("PMP fetch and walk, XWR {rights:03b}"), Mode::Machine);
        block.flags = flag::ECALL_TO_M;
        block.satp = program.spaces.s_satp;
        let mut a = program.asm();
        for region in [PLAYGROUND, program.spaces.s_satp << 12 & 0xffff_ffff] {
            a.li(T0, region >> 2 | 0x1ff);
            a.csr("csrrw", 0, PMPADDR0, T0);
            a.li(T0, u64::MAX >> 10);
            a.csr("csrrw", 0, PMPADDR0 + 1, T0);
            a.li(T0, NAPOT | rights | 0x1f00);
            a.csr("csrrw", 0, PMPCFG0, T0);
            a.plain("sfence.vma");
            if region == PLAYGROUND {
                enter(&mut a, Mode::Supervisor, 0);
                a.li(T1, PLAYGROUND);
                a.i("jalr", RA, T1, 0);
                a.i("ld", T2, T1, 64);
                a.s("sd", T2, T1, 64);
                a.plain("ecall");
            } else {
                a.li(T1, DATA);
                for (name, store) in [("ld", false), ("sd", true)] {
                    a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
                    a.csr("csrrs", 0, MSTATUS, T3);
                    if store {
                        a.s(name, T2, T1, 0);
                    } else {
                        a.i(name, T2, T1, 0);
                    }
                }
                a.li(T3, MPRV);
                a.csr("csrrc", 0, MSTATUS, T3);
            }
        }
        block.traps = 10;
        program.add(a, block);
    }
}

/// Code that writes its own next instructions, and `fence.i`.
fn self_modifying(program: &mut Program) {
    let modes = [
        (Mode::Machine, false),
        (Mode::Supervisor, false),
        (Mode::Supervisor, true),
        (Mode::User, false),
        (Mode::User, true),
    ];
    for ((mode, paging), style) in modes.into_iter().flat_map(|m| [(m, ""), (m, ", by halves"), (m, ", across pages")])
    {
        let mut block = Block::new(format!("self-modifying code in {mode:?}, Sv39 {paging}{style}"), mode);
        if paging {
            block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
        }
        block.repeat = 3;
        let mut a = program.asm();
        let place = a.label();
        let rounds = 12;
        a.la(T0, place);
        a.li(T2, rounds);
        let top = a.bound();
        // addi s0, s0, T2: a new immediate every round.
        a.i("slli", T1, T2, 20);
        a.li(T3, 0x0004_0413);
        a.r("or", T1, T1, T3);
        if style.is_empty() {
            a.s("sw", T1, T0, 0);
            *block.executed.entry("sw").or_default() += rounds;
        } else {
            // Only the second half in odd rounds.
            let (whole, done) = (a.label(), a.label());
            a.i("andi", T3, T2, 1);
            a.b("beq", T3, 0, whole);
            a.i("srli", T1, T1, 16);
            a.s("sh", T1, T0, 2);
            a.j(done);
            a.bind(whole);
            a.s("sw", T1, T0, 0);
            a.bind(done);
        }
        // Two halves: c.addi s1, 1 and c.slli s1, 2 in turn with c.slli s1, 1.
        a.i("andi", T3, T2, 1);
        a.i("slli", T3, T3, 2);
        a.li(T4, 0x0486);
        a.r("add", T4, T4, T3);
        a.s("sh", T4, T0, 6);
        a.plain("fence.i");
        while style == ", across pages" && a.here() % 4096 != 4094 {
            a.half(1);
        }
        a.bind(place);
        a.word(0);
        a.half(0x0485);
        a.half(0);
        a.i("addi", T2, T2, -1);
        let out = a.label();
        a.b("beq", T2, 0, out);
        a.j(top);
        a.bind(out);
        for name in ["slli", "sh", "fence.i", "addi", "c.addi", "c.slli"] {
            *block.executed.entry(name).or_default() += rounds;
        }
        // Put back what the next run expects to find: nothing that runs.
        a.s("sw", 0, T0, 0);
        block.traps = 2;
        program.add(a, block);
    }
}

/// What QEMU 7.2 does otherwise than the specification: interrupt priorities, misaligned SC, table reads outside
/// memory. Demanded of the machine alone.
pub fn machine_only(program: &mut Program) {
    let mut block = Block::new("interrupt priorities", Mode::Machine);
    let mut a = program.asm();
    for code in [1, 5, 9, 3, 7] {
        raise(&mut a, code);
    }
    a.li(T0, 0xaaa);
    a.csr("csrrw", 0, csr::MIE, T0);
    a.csr("csrrsi", 0, MSTATUS, MIE_BIT as u8);
    for _ in 0..6 {
        a.i("addi", 0, 0, 0);
    }
    block.traps = 6;
    let interrupt = |code: u64| Expected { what: format!("interrupt {code}"), cause: Some(1 << 63 | code), tval: 0 };
    block.expected = Some([3, 7, 9, 1, 5].map(interrupt).to_vec());
    program.add(a, block);

    // MPRV is cleared by a return to a mode below M, kept by one to M.
    for (mode, kept) in [(Mode::User, 0), (Mode::Supervisor, 0), (Mode::Machine, 1)] {
        for ret in ["mret", "sret"] {
            let mut block = Block::new(format!("MPRV after {ret} from {mode:?}"), Mode::Machine);
            block.flags = flag::ECALL_TO_M;
            block.expected_x = vec![(20, if ret == "mret" { kept } else { 0 })];
            let mut a = program.asm();
            if ret == "mret" {
                enter(&mut a, mode, MPRV);
            } else if mode == Mode::Machine {
                let there = a.label();
                a.la(T1, there);
                a.csr("csrrw", 0, SEPC, T1);
                a.li(T0, MPRV | SPP);
                a.csr("csrrs", 0, MSTATUS, T0);
                a.plain("sret");
                a.bind(there);
            }
            a.plain("ecall");
            a.csr("csrrs", 20, MSTATUS, 0);
            a.i("srli", 20, 20, 17);
            a.i("andi", 20, 20, 1);
            block.traps = 2;
            program.add(a, block);
        }
    }

    // AMOs and SC where nothing is are store faults; QEMU 7.2 reports a load.
    let mut block = Block::new("AMO outside memory", Mode::Machine);
    let mut a = program.asm();
    a.li(T1, NOWHERE);
    a.r("amoadd.w", T2, T1, T2);
    a.r("amomax.d", T2, T1, T2);
    block.traps = 2;
    let outside = || Expected { what: "AMO".into(), cause: Some(7), tval: NOWHERE };
    block.expected = Some(vec![outside(), outside()]);
    program.add(a, block);

    let mut block = Block::new("misaligned SC", Mode::Machine);
    let mut a = program.asm();
    a.li(T1, DATA + 2);
    a.r("sc.w", T2, T1, 0);
    a.i("addi", T1, T1, 2);
    a.r("sc.d", T2, T1, 0);
    block.traps = 2;
    let misaligned = |at: u64| Expected { what: "SC".into(), cause: Some(6), tval: at };
    block.expected = Some(vec![misaligned(DATA + 2), misaligned(DATA + 4)]);
    program.add(a, block);

    // From M-mode by MPRV, so that the code itself stays reachable.
    let mut block = Block::new("page table outside memory", Mode::Machine);
    let mut a = program.asm();
    a.li(T0, 8 << 60 | NOWHERE >> 12);
    a.li(T1, DATA);
    a.csr("csrrw", 0, SATP, T0);
    a.plain("sfence.vma");
    for name in ["ld", "sd", "amoadd.d"] {
        a.li(T3, MPRV | (Mode::Supervisor as u64) << 11);
        a.csr("csrrs", 0, MSTATUS, T3);
        match name {
            "ld" => a.i(name, T2, T1, 0),
            "sd" => a.s(name, T2, T1, 0),
            _ => a.r(name, T2, T1, T2),
        }
    }
    a.li(T3, MPRV);
    a.csr("csrrc", 0, MSTATUS, T3);
    block.traps = 3;
    let fault = |cause: u64| Expected { what: "walk".into(), cause: Some(cause), tval: DATA };
    block.expected = Some(vec![fault(5), fault(7), fault(7)]);
    program.add(a, block);
}
