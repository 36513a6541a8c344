// SPDX-License-Identifier: Apache-2.0
//! A board with RAM and one device register, and a few instruction encoders.
#![allow(dead_code, missing_docs)]

use trapless_memory::{BusError, Cycle, MmioEffect, PhysAddr, Ram};
use trapless_riscv::{
    Bus, CodeCache, Env, Exit, Fill, Hart, HartConfig, Observer, Privilege, TrapInfo, WalkRequest, csr_number, pte,
};

pub const BASE: u64 = 0x8000_0000;
/// Address of the program.
pub const TEXT: u64 = BASE;
/// Trap handlers start here; no test executes anything there.
pub const HANDLER: u64 = BASE + 0x1_0000;
/// Root page table, followed by the two tables below it.
pub const ROOT: u64 = BASE + 0x10_0000;
pub const MID: u64 = ROOT + 0x1000;
pub const LEAF: u64 = ROOT + 0x2000;
/// Data pages.
pub const DATA: u64 = BASE + 0x20_0000;
/// Virtual address whose 4 KiB entries are in `LEAF`.
pub const VA: u64 = 0x4000_0000;
/// The one device register.
pub const DEVICE: u64 = 0x1000_0000;

pub struct Board {
    pub ram: Ram,
    pub log: Vec<(u64, u8, u64, Cycle)>,
    pub effect: MmioEffect,
    /// What the next device write also writes to memory, like DMA: address and value.
    pub dma: Option<(u64, u32)>,
}

impl Bus for Board {
    fn ram(&mut self) -> &mut Ram {
        &mut self.ram
    }
    fn mmio_read(&mut self, at: PhysAddr, size: u8, _: Cycle) -> Result<(u64, MmioEffect), BusError> {
        if at.0 & !7 == DEVICE {
            Ok((0x8877_6655_4433_2211 >> (8 * (8 - u32::from(size))), self.effect))
        } else {
            Err(BusError(at))
        }
    }
    fn mmio_write(&mut self, at: PhysAddr, size: u8, value: u64, now: Cycle) -> Result<MmioEffect, BusError> {
        if at.0 & !7 != DEVICE {
            return Err(BusError(at));
        }
        self.log.push((at.0, size, value, now));
        if let Some((to, word)) = self.dma.take() {
            self.ram.store(PhysAddr(to), word.to_le_bytes());
        }
        Ok(self.effect)
    }
    fn time(&mut self, now: Cycle) -> u64 {
        now.0 / 10
    }
}

#[derive(Default)]
pub struct Log {
    pub traps: Vec<TrapInfo>,
    pub fills: Vec<Fill>,
}

impl Observer for Log {
    fn trap(&mut self, t: &TrapInfo) {
        self.traps.push(*t);
    }
    fn fill(&mut self, f: &Fill) {
        self.fills.push(*f);
    }
}

pub struct Rig {
    pub board: Board,
    pub code: CodeCache,
    pub hart: Hart,
    pub log: Log,
}

impl Rig {
    /// Creates a hart in M-mode at TEXT that runs `program`: open PMP, handlers at HANDLER, floating point on.
    pub fn new(program: &[u32]) -> Rig {
        Rig::with(HartConfig { smu: true, ..HartConfig::new(3) }, program)
    }

    pub fn with(config: HartConfig, program: &[u32]) -> Rig {
        let ram = Ram::new(PhysAddr(BASE), 8 << 20).unwrap();
        let board = Board { ram, log: Vec::new(), effect: MmioEffect::None, dma: None };
        let mut rig = Rig { board, code: CodeCache::default(), hart: Hart::new(config, TEXT), log: Log::default() };
        rig.program(TEXT, program);
        rig.hart.set_csr(csr_number::MTVEC, HANDLER);
        rig.hart.set_csr(csr_number::STVEC, HANDLER + 0x1000);
        rig.hart.set_csr(0x3b0, u64::MAX);
        rig.hart.set_csr(0x3a0, 0x1f);
        rig.hart.set_csr(csr_number::MSTATUS, 1 << 13);
        rig
    }

    /// Does the same with Sv39, in mode `p`. A large page maps TEXT and HANDLER one to one for S (or U) mode, LEAF maps VA and
    /// the pages after it, and the paging extension is enabled.
    pub fn paged(program: &[u32], p: Privilege) -> Rig {
        let mut rig = Rig::new(program);
        rig.page(p);
        rig
    }

    pub fn page(&mut self, p: Privilege) {
        let user = if p == Privilege::User { pte::U } else { 0 };
        let all = pte::V | pte::R | pte::W | pte::X | pte::A | pte::D | user;
        self.put64(ROOT + 8 * 2, entry(BASE, all));
        self.put64(ROOT + 8, entry(MID, pte::V));
        self.put64(MID, entry(LEAF, pte::V));
        self.hart.set_csr(csr_number::SATP, 8 << 60 | ROOT >> 12);
        self.hart.set_csr(csr_number::SHWDP, 1);
        self.enter(p);
    }

    /// Changes the mode by restoring a state.
    pub fn enter(&mut self, p: Privilege) {
        let mut state = self.hart.state();
        state.privilege = p;
        self.hart.restore(&state);
    }

    pub fn program(&mut self, at: u64, words: &[u32]) {
        for (i, w) in words.iter().enumerate() {
            self.board.ram.store(PhysAddr(at + 4 * i as u64), w.to_le_bytes()).unwrap();
        }
    }

    pub fn put64(&mut self, at: u64, v: u64) {
        self.board.ram.store(PhysAddr(at), v.to_le_bytes()).unwrap();
    }

    pub fn get64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.board.ram.load(PhysAddr(at)).unwrap())
    }

    /// Maps the 4 KiB page number `n`, counted from VA.
    pub fn map(&mut self, n: u64, e: u64) {
        self.put64(LEAF + 8 * n, e);
        self.hart.fence_vma(None);
    }

    pub fn step(&mut self) -> Exit {
        let mut env = Env { bus: &mut self.board, code: &mut self.code, observer: &mut self.log, timing: &mut () };
        self.hart.step(&mut env)
    }

    /// Runs for `cycles`.
    pub fn run(&mut self, cycles: u64) -> Exit {
        let until = self.hart.now() + Cycle(cycles);
        let mut env = Env { bus: &mut self.board, code: &mut self.code, observer: &mut self.log, timing: &mut () };
        self.hart.run(&mut env, until)
    }

    /// Runs until pc is at a `j .`, for at most 100000 cycles.
    pub fn finish(&mut self) {
        for _ in 0..100 {
            self.run(1000);
            if self.word(self.hart.pc()) == Some(STOP) {
                return;
            }
        }
        panic!("program did not end: pc {:#x}, traps {:x?}", self.hart.pc(), self.log.traps);
    }

    fn word(&self, at: u64) -> Option<u32> {
        let pa = self.hart.translate_debug(&self.board.ram, at)?;
        self.board.ram.load(pa).map(u32::from_le_bytes)
    }

    pub fn answer(&mut self, a: trapless_riscv::WalkAnswer) {
        self.hart.resume_walk(a, &mut self.log);
    }

    /// Checks that there was exactly one trap, and returns its cause and tval.
    pub fn only_trap(&self) -> (u64, u64) {
        assert_eq!(self.log.traps.len(), 1, "{:x?}", self.log.traps);
        (self.log.traps[0].cause, self.log.traps[0].tval)
    }
}

pub fn entry(pa: u64, flags: u64) -> u64 {
    pa >> 12 << 10 | flags
}

/// An armed entry for block `lba`, readable in user mode.
pub fn armed(lba: u64) -> u64 {
    lba << 10 | pte::L | pte::R | pte::U | pte::A
}

/// `j .`
pub const STOP: u32 = 0x0000_006f;
pub const WFI: u32 = 0x1050_0073;
pub const MRET: u32 = 0x3020_0073;
pub const SRET: u32 = 0x1020_0073;
pub const ECALL: u32 = 0x0000_0073;
pub const EBREAK: u32 = 0x0010_0073;
pub const NOP: u32 = 0x0000_0013;
pub const FENCE_I: u32 = 0x0000_100f;

pub fn r(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}
pub fn i(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}
pub fn s(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | opcode
}
pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, rs1, imm)
}
pub fn ld(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x03, 3, rd, rs1, imm)
}
pub fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x03, 2, rd, rs1, imm)
}
pub fn lb(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x03, 0, rd, rs1, imm)
}
pub fn sd(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s(0x23, 3, rs1, rs2, imm)
}
pub fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s(0x23, 2, rs1, rs2, imm)
}
pub fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x67, 0, rd, rs1, imm)
}
pub fn bne(rs1: u32, rs2: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 63) << 25
        | rs2 << 20
        | rs1 << 15
        | 1 << 12
        | (o >> 1 & 15) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}
pub fn jal(rd: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12 | rd << 7 | 0x6f
}
pub fn csrrw(rd: u32, csr: u16, rs1: u32) -> u32 {
    i(0x73, 1, rd, rs1, i32::from(csr))
}
pub fn csrrs(rd: u32, csr: u16, rs1: u32) -> u32 {
    i(0x73, 2, rd, rs1, i32::from(csr))
}
/// LR, SC or AMO with this funct5, on a doubleword if `double`, otherwise on a word.
pub fn amo(funct5: u32, double: bool, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0x2f, if double { 3 } else { 2 }, funct5 << 2, rd, rs1, rs2)
}

/// Flags of a leaf that allows user mode everything except execution.
pub const OK: u64 = pte::V | pte::R | pte::W | pte::U | pte::A | pte::D;

/// A user program that loads from the address in x5 into x6.
pub fn user_load() -> Rig {
    rig_at(ld(6, 5, 0), VA)
}

/// A user program of one instruction, with `va` in x5.
pub fn rig_at(instruction: u32, va: u64) -> Rig {
    let mut rig = Rig::paged(&[instruction, STOP], Privilege::User);
    rig.hart.set_x(5, va);
    rig.hart.set_x(6, 0x1234);
    rig
}

/// Returns the request of a run that ended because a walk waits for the SMU.
pub fn wait(exit: Exit) -> WalkRequest {
    match exit {
        Exit::SmuWait(request) => request,
        other => panic!("expected a wait for the SMU, not {other:?}"),
    }
}
