// SPDX-License-Identifier: Apache-2.0
//! The code that every test program contains: entry, driver of the blocks, and the trap handlers that write the log.
//!
//! The driver loads all registers of a block and enters the block in its mode. The block's last instruction, an `ebreak`,
//! returns through the M handler. The handlers log all other traps and skip the instruction. If the instruction cannot be
//! read (fetches, addresses outside the code), execution continues at the address in ra.

use crate::asm::Asm;
use crate::layout::*;

/// Registers by their ABI names.
pub mod reg {
    #![allow(missing_docs)]
    pub const RA: u8 = 1;
    pub const SP: u8 = 2;
    pub const T0: u8 = 5;
    pub const T1: u8 = 6;
    pub const T2: u8 = 7;
    pub const S0: u8 = 8;
    pub const S1: u8 = 9;
    pub const A0: u8 = 10;
    pub const A1: u8 = 11;
    pub const A2: u8 = 12;
    pub const S2: u8 = 18;
    pub const S3: u8 = 19;
    pub const S4: u8 = 20;
    pub const T3: u8 = 28;
    pub const T4: u8 = 29;
    pub const T5: u8 = 30;
    pub const T6: u8 = 31;
}
use reg::*;

/// CSR numbers that the runtime and the tests use.
pub mod csr {
    #![allow(missing_docs)]
    pub const FCSR: u16 = 0x003;
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const STVEC: u16 = 0x105;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const SIP: u16 = 0x144;
    pub const SATP: u16 = 0x180;
    pub const MSTATUS: u16 = 0x300;
    pub const MEDELEG: u16 = 0x302;
    pub const MIDELEG: u16 = 0x303;
    pub const MIE: u16 = 0x304;
    pub const MTVEC: u16 = 0x305;
    pub const MCOUNTEREN: u16 = 0x306;
    pub const SCOUNTEREN: u16 = 0x106;
    pub const MSCRATCH: u16 = 0x340;
    pub const MEPC: u16 = 0x341;
    pub const MCAUSE: u16 = 0x342;
    pub const MTVAL: u16 = 0x343;
    pub const MIP: u16 = 0x344;
    pub const PMPCFG0: u16 = 0x3a0;
    pub const PMPCFG2: u16 = 0x3a2;
    pub const PMPADDR0: u16 = 0x3b0;
    pub const MHARTID: u16 = 0xf14;
}
use csr::*;

const FS_DIRTY: u64 = 3 << 13;
const MPP_M: u64 = 3 << 11;
const SUM: u64 = 1 << 18;
/// `jal x0, 0`: a block waits for an interrupt with this instruction; the handler continues after it.
pub const SELF_LOOP: u32 = 0x0000_006f;

/// The runtime's code, and addresses in it that blocks use.
pub struct Runtime {
    /// The code, for address [`RUNTIME`].
    pub code: Vec<u8>,
    /// Vector table of the M handler.
    pub m_vectors: u64,
    /// Vector table of the S handler.
    pub s_vectors: u64,
}

/// CSRs and instructions in which the two handlers differ.
struct Level {
    kind: u64,
    scratch: u16,
    cause: u16,
    epc: u16,
    tval: u16,
    status: u16,
    ie: u16,
    ip: u16,
    ret: &'static str,
    /// Offset of the shared variables from the save area.
    shared: i64,
}

const MACHINE: Level = Level {
    kind: record::TRAP_M,
    scratch: MSCRATCH,
    cause: MCAUSE,
    epc: MEPC,
    tval: MTVAL,
    status: MSTATUS,
    ie: MIE,
    ip: MIP,
    ret: "mret",
    shared: 0,
};
const SUPERVISOR: Level = Level {
    kind: record::TRAP_S,
    scratch: SSCRATCH,
    cause: SCAUSE,
    epc: SEPC,
    tval: STVAL,
    status: SSTATUS,
    ie: SIE,
    ip: SIP,
    ret: "sret",
    shared: -save::S_AREA,
};

fn csrr(a: &mut Asm, rd: u8, csr: u16) {
    a.csr("csrrs", rd, csr, 0);
}

fn csrw(a: &mut Asm, csr: u16, rs: u8) {
    a.csr("csrrw", 0, csr, rs);
}

fn save_integers(a: &mut Asm, level: &Level) {
    a.csr("csrrw", T6, level.scratch, T6);
    for x in 1..31 {
        a.s("sd", x, T6, i64::from(x) * 8);
    }
    csrr(a, T0, level.scratch);
    a.s("sd", T0, T6, 31 * 8);
    csrw(a, level.scratch, T6);
    csrr(a, S0, level.cause);
    csrr(a, S1, level.epc);
    csrr(a, S2, level.tval);
    csrr(a, S3, level.status);
}

/// Emits code that appends a record with the words S0..S3. In blocks that hash their traps it adds them to the hash instead.
fn log_trap(a: &mut Asm, level: &Level) {
    let (log, done) = (a.label(), a.label());
    a.i("ld", T0, T6, level.shared + save::FLAGS);
    a.i("andi", T0, T0, flag::HASH_TRAPS as i64);
    a.b("beq", T0, 0, log);
    hash_trap(a, level);
    a.j(done);
    a.bind(log);
    a.i("ld", T0, T6, level.shared + save::LOG_POINTER);
    a.i("ld", T1, T6, level.shared + save::HEADER);
    a.i("ld", T2, T6, save::VECTOR);
    a.i("slli", T2, T2, 48);
    a.r("or", T1, T1, T2);
    a.li(T2, level.kind << 56);
    a.r("or", T1, T1, T2);
    for (n, reg) in [T1, S0, S1, S2, S3].into_iter().enumerate() {
        a.s("sd", reg, T0, n as i64 * 8);
    }
    a.i("addi", T0, T0, record::TRAP_WORDS as i64 * 8);
    a.s("sd", T0, T6, level.shared + save::LOG_POINTER);
    a.bind(done);
    a.s("sd", 0, T6, save::VECTOR);
}

/// Emits code that adds S0..S3 and the vector to the hash, without what is not compared.
fn hash_trap(a: &mut Asm, level: &Level) {
    let not_breakpoint = a.label();
    // After a breakpoint the trap value may be zero or the address.
    a.i("addi", T0, S0, -3);
    a.b("bne", T0, 0, not_breakpoint);
    a.li(S2, 0);
    a.bind(not_breakpoint);
    a.li(T0, STATUS);
    a.r("and", S3, S3, T0);
    a.i("ld", T0, T6, level.shared + save::TRAP_HASH);
    a.li(T1, HASH_FACTOR);
    a.i("ld", T2, T6, save::VECTOR);
    for reg in [S0, S1, S2, S3, T2] {
        a.r("mul", T0, T0, T1);
        a.r("add", T0, T0, reg);
    }
    a.s("sd", T0, T6, level.shared + save::TRAP_HASH);
}

/// Emits code that clears an interrupt, chooses where to continue, restores registers and returns. S0: cause, S1: pc.
fn dispose(a: &mut Asm, level: &Level) {
    let (interrupt, use_ra, done, in_code) = (a.label(), a.label(), a.label(), a.label());
    a.b("blt", S0, 0, interrupt);
    a.b("beq", S0, 0, use_ra);
    for cause in [1, 12] {
        a.li(T1, cause);
        a.b("beq", S0, T1, use_ra);
    }
    for base in [CODE, USER_CODE] {
        // S4 is the physical address of the code.
        a.li(T1, base);
        a.r("sub", T2, S1, T1);
        a.li(S4, CODE);
        a.r("add", S4, S4, T2);
        a.li(T1, CODE_SIZE);
        a.b("bltu", T2, T1, in_code);
    }
    a.bind(use_ra);
    a.i("ld", S1, T6, 8);
    a.j(done);
    a.bind(in_code);
    read_code(a, level, "lhu");
    a.i("andi", T1, T1, 3);
    a.li(T2, 3);
    a.i("addi", S1, S1, 2);
    a.b("bne", T1, T2, done);
    a.i("addi", S1, S1, 2);
    a.j(done);

    a.bind(interrupt);
    a.li(T1, 1);
    a.r("sll", T1, T1, S0);
    a.csr("csrrc", 0, level.ie, T1);
    a.csr("csrrc", 0, level.ip, T1);
    if level.shared == 0 {
        let (not_soft, not_timer) = (a.label(), a.label());
        a.i("andi", T2, T1, 1 << 3);
        a.b("beq", T2, 0, not_soft);
        a.li(T2, MSIP);
        a.s("sw", 0, T2, 0);
        a.bind(not_soft);
        a.i("andi", T2, T1, 1 << 7);
        a.b("beq", T2, 0, not_timer);
        a.li(T2, MTIMECMP);
        a.li(T3, u64::MAX);
        a.s("sd", T3, T2, 0);
        a.bind(not_timer);
    }
    a.li(T1, CODE);
    a.r("sub", T2, S1, T1);
    a.li(T1, CODE_SIZE);
    a.b("bgeu", T2, T1, done);
    a.i("addi", S4, S1, 0);
    read_code(a, level, "lwu");
    a.li(T2, u64::from(SELF_LOOP));
    a.b("bne", T1, T2, done);
    a.i("addi", S1, S1, 4);

    a.bind(done);
    csrw(a, level.epc, S1);
    for x in 1..32 {
        a.i("ld", x, T6, i64::from(x) * 8);
    }
    a.plain(level.ret);
}

/// Emits code that loads T1 from the address in S4. In S-mode the page may be a user page.
fn read_code(a: &mut Asm, level: &Level, load: &str) {
    if level.shared == 0 {
        return a.i(load, T1, S4, 0);
    }
    a.li(T3, SUM);
    a.csr("csrrs", T4, SSTATUS, T3);
    a.i(load, T1, S4, 0);
    csrw(a, SSTATUS, T4);
}

/// Emits a table of 16 vectors and returns its address. Each vector except the first notes its number for the log.
fn vectors(a: &mut Asm, level: &Level, handler: crate::asm::Label) -> u64 {
    a.align(64);
    let at = a.here();
    let stubs: Vec<_> = (0..16).map(|_| a.label()).collect();
    for stub in &stubs {
        a.j(*stub);
    }
    for (n, stub) in stubs.into_iter().enumerate() {
        a.bind(stub);
        if n > 0 {
            a.csr("csrrw", T6, level.scratch, T6);
            a.s("sd", T5, T6, i64::from(T5) * 8);
            a.li(T5, n as u64);
            a.s("sd", T5, T6, save::VECTOR);
            a.i("ld", T5, T6, i64::from(T5) * 8);
            a.csr("csrrw", T6, level.scratch, T6);
        }
        a.j(handler);
    }
    at
}

/// Builds the runtime for `blocks` blocks.
pub fn build(blocks: usize) -> Runtime {
    let mut asm = Asm::new(RUNTIME);
    let a = &mut asm;
    let (m_handler, s_handler) = (a.label(), a.label());
    let (start_block, finish, park) = (a.label(), a.label(), a.label());

    // Entry. Only hart 0 has something to do.
    csrr(a, T0, MHARTID);
    a.b("bne", T0, 0, park);
    a.li(T6, CONTROL);
    csrw(a, MSCRATCH, T6);
    a.li(T0, LOG);
    a.s("sd", T0, T6, save::LOG_POINTER);
    a.li(T0, DESCRIPTORS);
    a.s("sd", T0, T6, save::CURRENT);
    a.i("ld", T1, T0, descriptor::REPEAT);
    a.s("sd", T1, T6, save::REPEAT);

    // Enter the block whose descriptor is CURRENT, with all state known.
    a.bind(start_block);
    a.la(T0, m_handler);
    csrw(a, MTVEC, T0);
    a.la(T0, s_handler);
    csrw(a, STVEC, T0);
    a.li(T0, CONTROL + save::S_AREA as u64);
    csrw(a, SSCRATCH, T0);
    for zeroed in [MIE, MIP, SEPC, SCAUSE, STVAL, PMPCFG0, PMPCFG2, MCOUNTEREN, SCOUNTEREN] {
        csrw(a, zeroed, 0);
    }
    a.li(T0, u64::MAX >> 10);
    csrw(a, PMPADDR0, T0);
    a.li(T0, 0x1f);
    csrw(a, PMPCFG0, T0);
    a.li(T0, MTIMECMP);
    a.li(T1, u64::MAX);
    a.s("sd", T1, T0, 0);
    a.li(T0, MSIP);
    a.s("sw", 0, T0, 0);
    a.li(T6, CONTROL);
    a.i("ld", S0, T6, save::CURRENT);
    for (from, to) in
        [(descriptor::END_PC, save::END_PC), (descriptor::FLAGS, save::FLAGS), (descriptor::HEADER, save::HEADER)]
    {
        a.i("ld", T0, S0, from);
        a.s("sd", T0, T6, to);
    }
    for (from, to) in [
        (descriptor::SATP, SATP),
        (descriptor::MEDELEG, MEDELEG),
        (descriptor::MIDELEG, MIDELEG),
        (descriptor::ENTRY, MEPC),
    ] {
        a.i("ld", T0, S0, from);
        csrw(a, to, T0);
    }
    a.plain("sfence.vma");
    a.plain("fence.i");
    a.li(T0, FS_DIRTY);
    a.csr("csrrs", 0, MSTATUS, T0);
    a.i("ld", T6, S0, descriptor::INITIAL);
    for f in 0..32 {
        a.i("fld", f, T6, save::F + i64::from(f) * 8);
    }
    a.i("ld", T0, T6, INITIAL_SIZE as i64 - 8);
    csrw(a, FCSR, T0);
    a.i("ld", T0, S0, descriptor::MSTATUS);
    csrw(a, MSTATUS, T0);
    for x in 1..32 {
        a.i("ld", x, T6, i64::from(x) * 8);
    }
    a.plain("mret");

    a.bind(park);
    a.plain("wfi");
    a.j(park);

    a.align(4);
    a.bind(m_handler);
    let log = a.label();
    save_integers(a, &MACHINE);
    a.i("ld", T0, T6, save::END_PC);
    a.b("bne", S1, T0, log);
    a.li(T0, 3);
    a.b("bne", S0, T0, log);

    // The end of the block.
    a.i("ld", S0, T6, save::LOG_POINTER);
    a.i("ld", T1, T6, save::HEADER);
    a.li(T2, record::END << 56);
    a.r("or", T1, T1, T2);
    a.s("sd", T1, S0, 0);
    for x in 1..32 {
        a.i("ld", T0, T6, x * 8);
        a.s("sd", T0, S0, x * 8);
    }
    a.li(T0, FS_DIRTY);
    a.csr("csrrs", 0, MSTATUS, T0);
    for f in 0..32 {
        a.s("fsd", f, S0, save::F + i64::from(f) * 8);
    }
    csrr(a, T0, FCSR);
    a.s("sd", T0, S0, 64 * 8);
    a.s("sd", S3, S0, 65 * 8);
    for (n, csr) in [SEPC, SCAUSE, STVAL].into_iter().enumerate() {
        csrr(a, T0, csr);
        a.s("sd", T0, S0, (66 + n as i64) * 8);
    }
    a.i("ld", T0, T6, save::TRAP_HASH);
    a.s("sd", T0, S0, 69 * 8);
    a.s("sd", 0, T6, save::TRAP_HASH);
    a.i("addi", S0, S0, record::END_WORDS as i64 * 8);
    a.s("sd", S0, T6, save::LOG_POINTER);
    a.s("sd", 0, T6, save::VECTOR);
    let again = a.label();
    a.i("ld", T1, T6, save::REPEAT);
    a.i("addi", T1, T1, -1);
    a.b("bne", T1, 0, again);
    a.i("ld", T0, T6, save::CURRENT);
    a.i("addi", T0, T0, DESCRIPTOR_SIZE as i64);
    a.li(T2, DESCRIPTORS + blocks as u64 * DESCRIPTOR_SIZE);
    a.b("beq", T0, T2, finish);
    a.s("sd", T0, T6, save::CURRENT);
    a.i("ld", T1, T0, descriptor::REPEAT);
    a.bind(again);
    a.s("sd", T1, T6, save::REPEAT);
    a.j(start_block);

    a.bind(log);
    log_trap(a, &MACHINE);
    let not_ecall = a.label();
    a.i("addi", T1, S0, -8);
    a.li(T2, 3);
    a.b("bltu", T2, T1, not_ecall);
    a.i("ld", T1, T6, save::FLAGS);
    a.i("andi", T1, T1, flag::ECALL_TO_M as i64);
    a.b("beq", T1, 0, not_ecall);
    a.li(T1, MPP_M);
    a.csr("csrrs", 0, MSTATUS, T1);
    a.bind(not_ecall);
    dispose(a, &MACHINE);

    a.bind(finish);
    a.li(T0, FINISHER);
    a.li(T1, POWER_OFF);
    a.s("sw", T1, T0, 0);
    a.j(park);

    a.align(4);
    a.bind(s_handler);
    save_integers(a, &SUPERVISOR);
    log_trap(a, &SUPERVISOR);
    dispose(a, &SUPERVISOR);

    let m_vectors = vectors(a, &MACHINE, m_handler);
    let s_vectors = vectors(a, &SUPERVISOR, s_handler);
    Runtime { code: asm.finish(), m_vectors, s_vectors }
}
