// SPDX-License-Identifier: Apache-2.0
//! Control and status registers: which exist, which modes may access them, and which values they keep.

use fastrand::Rng;

use crate::operands;
use crate::program::{Block, Mode, Program};
use crate::runtime::{csr, reg::*};

/// A register, and the bits that must agree on both machines.
struct Probe {
    number: u16,
    name: &'static str,
    mask: u64,
    /// Bits that are never written because they must not change.
    keep: u64,
}

const fn probe(number: u16, name: &'static str, mask: u64) -> Probe {
    Probe { number, name, mask, keep: 0 }
}

const NONE: u64 = 0;
const ALL: u64 = u64::MAX;
/// Fields of `mstatus` that both machines have. MPP is probed separately, because QEMU 7.2 stores the reserved mode 2, which
/// by the specification must not be read back. VS, MPV and GVA belong to extensions; QEMU 7.2 accepts writes to them.
const MSTATUS: u64 = 0xf_007e_61aa;
/// SD is left out: in QEMU it depends on VS as well. The end of every block compares SD.
const SSTATUS: u64 = 0x3_000c_6122;
/// Interrupts of M and S mode. QEMU 7.2 also keeps bits of the hypervisor extension.
const INTERRUPTS: u64 = 0xaaa;
/// Fields of each entry: L (never set here, because it could not be undone), A, X, W and R.
const PMPCFG: u64 = 0x1f1f_1f1f_1f1f_1f1f;

/// Counters that both machines have: QEMU 10.0 does not keep the bits of others.
const COUNTERS: u64 = 0x7_ffff;

/// Every CSR of the machine. `NONE` only compares whether the access works.
const PROBES: &[Probe] = &[
    probe(0x001, "fflags", ALL),
    probe(0x002, "frm", ALL),
    probe(0x003, "fcsr", ALL),
    Probe { number: 0x100, name: "sstatus", mask: SSTATUS, keep: 3 << 32 },
    probe(0x104, "sie", INTERRUPTS),
    probe(0x105, "stvec", ALL),
    probe(0x106, "scounteren", COUNTERS),
    // Only the field FIOM: QEMU 7.2 also keeps fields of cache block operations.
    probe(0x10a, "senvcfg", 1),
    probe(0x140, "sscratch", ALL),
    // QEMU 7.2 keeps bit 0 of xepc.
    probe(0x141, "sepc", !1),
    probe(0x142, "scause", ALL),
    probe(0x143, "stval", ALL),
    probe(0x144, "sip", 0x222),
    // There are no ASIDs on the machine.
    probe(0x180, "satp", 0xf000_0fff_ffff_ffff),
    // UXL and SXL stay at 64 bits.
    Probe { number: 0x300, name: "mstatus", mask: MSTATUS, keep: 0xf << 32 },
    probe(0x301, "misa", ALL),
    // Only causes that both machines can delegate.
    probe(0x302, "medeleg", 0xb3ff),
    probe(0x303, "mideleg", 0x222),
    probe(0x304, "mie", INTERRUPTS),
    probe(0x305, "mtvec", ALL),
    probe(0x306, "mcounteren", COUNTERS),
    probe(0x30a, "menvcfg", 1),
    // QEMU counts events and can stop counters; the machine's event counters always read zero.
    probe(0x320, "mcountinhibit", NONE),
    probe(0x323, "mhpmevent3", NONE),
    probe(0x332, "mhpmevent18", NONE),
    probe(0x340, "mscratch", ALL),
    probe(0x341, "mepc", !1),
    probe(0x342, "mcause", ALL),
    probe(0x343, "mtval", ALL),
    probe(0x344, "mip", 0x222),
    Probe { number: 0x3a0, name: "pmpcfg0", mask: PMPCFG, keep: !PMPCFG },
    Probe { number: 0x3a2, name: "pmpcfg2", mask: PMPCFG, keep: !PMPCFG },
    probe(0x3b0, "pmpaddr0", u64::MAX >> 10),
    probe(0x3b1, "pmpaddr1", u64::MAX >> 10),
    probe(0x3b2, "pmpaddr2", u64::MAX >> 10),
    probe(0x3b3, "pmpaddr3", u64::MAX >> 10),
    probe(0x3b4, "pmpaddr4", u64::MAX >> 10),
    probe(0x3b5, "pmpaddr5", u64::MAX >> 10),
    probe(0x3b6, "pmpaddr6", u64::MAX >> 10),
    probe(0x3b7, "pmpaddr7", u64::MAX >> 10),
    probe(0x3b8, "pmpaddr8", u64::MAX >> 10),
    probe(0x3b9, "pmpaddr9", u64::MAX >> 10),
    probe(0x3ba, "pmpaddr10", u64::MAX >> 10),
    probe(0x3bb, "pmpaddr11", u64::MAX >> 10),
    probe(0x3bc, "pmpaddr12", u64::MAX >> 10),
    probe(0x3bd, "pmpaddr13", u64::MAX >> 10),
    probe(0x3be, "pmpaddr14", u64::MAX >> 10),
    probe(0x3bf, "pmpaddr15", u64::MAX >> 10),
    probe(0xb00, "mcycle", NONE),
    probe(0xb02, "minstret", NONE),
    probe(0xb03, "mhpmcounter3", NONE),
    probe(0xb12, "mhpmcounter18", NONE),
    probe(0xc00, "cycle", NONE),
    probe(0xc01, "time", NONE),
    probe(0xc02, "instret", NONE),
    probe(0xc03, "hpmcounter3", NONE),
    // The machines identify themselves differently.
    probe(0xf11, "mvendorid", NONE),
    probe(0xf12, "marchid", NONE),
    probe(0xf13, "mimpid", NONE),
    probe(0xf14, "mhartid", ALL),
];

/// Names of all CSRs that are tested.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|p| p.name)
}

/// Writes each CSR with all six instructions, and reads it back.
pub fn probes(program: &mut Program, rng: &mut Rng) {
    for p in PROBES {
        let mut block = Block::new(format!("CSR {}", p.name), Mode::Machine);
        block.covers.push(format!("CSR {}", p.name));
        let mut a = program.asm();
        let read_only = p.number >> 10 == 3;
        let whole = match p.number {
            csr::SSTATUS => Some((csr::MSTATUS, MSTATUS)),
            csr::SIE => Some((csr::MIE, INTERRUPTS)),
            csr::SIP => Some((csr::MIP, 0x222)),
            _ => None,
        };
        if whole.is_some() {
            // Otherwise sie and sip would be all zero.
            block.mideleg = 0x222;
        }
        if p.number == csr::MTVAL {
            // The end of the last block has left its address here, or zero.
            a.csr("csrrw", 0, p.number, 0);
        }
        a.csr("csrrs", T6, p.number, 0);
        block.ran("csrrs");
        a.li(T5, p.mask);
        // Results are folded into S0..S3; x5..x7 are scratch.
        let values: Vec<u64> = [0, u64::MAX, 0x5555_5555_5555_5555, 1, 3, 8 << 60, 0x1888]
            .into_iter()
            .chain((0..17).map(|_| operands::integer(rng)))
            .map(|v| v & !p.keep)
            .collect();
        for (n, value) in values.into_iter().enumerate() {
            // A reserved form of PMP entries, W without R, may be read back as any legal form.
            let value = if p.number & 0xfff0 == 0x3a0 { value | value >> 1 & 0x0101_0101_0101_0101 } else { value };
            // MPP = 2 is reserved.
            let value = if p.number == csr::MSTATUS && value >> 11 & 3 == 2 { value | 1 << 11 } else { value };
            // QEMU lets csrrs and csrrc access a read-only register if the bits in rs1 are all zero.
            a.li(T0, if read_only { value | 1 } else { value });
            let set_clear = !matches!(p.name, "pmpcfg0" | "pmpcfg2" | "satp" | "mstatus" | "sstatus");
            let name = match n % 4 {
                1 if set_clear => "csrrs",
                3 if set_clear => "csrrc",
                _ => "csrrw",
            };
            let old = [T1, 0][n % 2];
            a.csr(name, old, p.number, T0);
            block.ran(name);
            if set_clear && n % 3 == 0 {
                let (name, imm) = ([("csrrwi", 9), ("csrrsi", 6), ("csrrci", 11)])[n / 3 % 3];
                a.csr(name, T2, p.number, imm);
                block.ran(name);
                a.r("and", T2, T2, T5);
                a.r("add", S2, S2, T2);
            }
            a.csr("csrrs", T2, p.number, 0);
            a.r("and", T1, T1, T5);
            a.r("and", T2, T2, T5);
            for (sum, value) in [(S0, T1), (S1, T2)] {
                a.i("slli", T3, sum, 7);
                a.r("sub", sum, T3, sum);
                a.r("xor", sum, sum, value);
            }
            // Also compare the M-mode register that contains this S-mode register.
            if let Some((whole, mask)) = whole {
                a.csr("csrrs", T3, whole, 0);
                a.li(T4, mask);
                a.r("and", T3, T3, T4);
                a.i("slli", T4, S3, 5);
                a.r("xor", S3, T4, T3);
            }
            // Keep the first few values in registers, so that a difference shows them.
            if n < 6 {
                a.i("addi", 20 + n as u8, T2, 0);
            }
        }
        if !read_only {
            a.csr("csrrw", 0, p.number, T6);
        }
        a.li(T6, 0);
        // What the last value has left in `mstatus` is compared only in part.
        block.traps = 80;
        block.relax.fs = true;
        program.add(a, block);
    }
}

/// Numbers that one machine has and the other may lack.
fn excluded(n: u16) -> bool {
    matches!(n,
        // The paging extension.
        0x5c0 | 0xdc0 | 0xdc1
        // QEMU 7.2 has 16 event counters. The machine has all 29, but they count nothing.
        | 0x333..=0x33f | 0xb13..=0xb1f | 0xc13..=0xc1f
        // PMP entries from 16 on do not exist in QEMU and read zero here.
        | 0x3a4..=0x3af | 0x3c0..=0x3ef
        // QEMU has triggers and the register of Smepmp; the machine has mconfigptr, which reads zero.
        | 0x7a0..=0x7af | 0x747 | 0xf15
    )
}

/// Reads every CSR number in every mode, and writes those whose number makes them read-only. An access must either work on
/// both machines or be illegal on both.
pub fn sweep(program: &mut Program) {
    for mode in [Mode::Machine, Mode::Supervisor, Mode::User] {
        let numbers: Vec<u16> = (0..4096).filter(|&n| !excluded(n)).collect();
        for (index, chunk) in numbers.chunks(600).enumerate() {
            let mut block = Block::new(format!("CSR numbers {:03x}.. read in {mode:?}", chunk[0]), mode);
            let mut a = program.asm();
            for &n in chunk {
                // T0 counts the accesses that worked.
                a.i("addi", T1, T1, 1);
                a.csr("csrrs", T2, n, 0);
                block.traps += 1;
            }
            a.li(T2, 0);
            if index == 0 {
                for n in (0xc00..0x1000).step_by(13).filter(|&n| !excluded(n)) {
                    a.csr("csrrw", T2, n, T0);
                    a.csr("csrrsi", T2, n, 1);
                    block.traps += 2;
                }
            }
            a.li(T2, 0);
            program.add(a, block);
        }
    }
    // Access the counters with all settings of the two enable registers.
    for enables in 0..4u64 {
        for mode in [Mode::Supervisor, Mode::User] {
            let mut block = Block::new(format!("counters in {mode:?}, enables {enables:02b}"), Mode::Machine);
            let mut a = program.asm();
            let bits = |on: u64| if on & 1 == 1 { 0x3_ffff } else { 0 };
            a.li(T0, bits(enables));
            a.csr("csrrw", 0, csr::MCOUNTEREN, T0);
            a.li(T0, bits(enables >> 1));
            a.csr("csrrw", 0, csr::SCOUNTEREN, T0);
            crate::privileged::enter(&mut a, mode, 0);
            for n in 0xc00..0xc10 {
                a.csr("csrrs", T2, n, 0);
            }
            a.li(T2, 0);
            block.traps = 20;
            program.add(a, block);
        }
    }
    // The counters must go forward.
    let mut block = Block::new("counters go forward", Mode::Machine);
    let mut a = program.asm();
    for (n, counter) in [0xb00, 0xb02, 0xc00, 0xc02].into_iter().enumerate() {
        a.csr("csrrs", T0, counter, 0);
        a.csr("csrrs", T1, counter, 0);
        a.r("sltu", 20 + n as u8, T0, T1);
    }
    a.li(T0, 0);
    a.li(T1, 0);
    block.ran("sltu");
    program.add(a, block);
}
