// SPDX-License-Identifier: Apache-2.0
//! Guests that write nonsense into every device register, ring, queue and page table, while the SMU serves misses.
//!
//! A small loop in the guest executes a table of actions, which is made here from a seed. Each run first sets up the drives
//! and the SMU, mostly correctly, so that the nonsense also meets states that only a working set-up reaches.

use fastrand::Rng;
use trapless_smu_regs as smu;

use crate::asm::{Asm, Label};
use crate::elf;
use crate::runtime::{csr::*, reg::*};

const CODE: u64 = 0x8000_0000;
const SAVE: u64 = 0x8000_2000;
const ACTIONS: u64 = 0x8001_0000;
/// Bytes of a hart's table of actions.
const TABLE: u64 = 0x1_0000;
/// Bytes from [`CODE`] on that S and U mode cannot read or write.
const CLOSED: u64 = 0x4_0000;
/// Memory that actions access: page tables, rings, queues, frames.
const ARENA: u64 = 0x8010_0000;
const ARENA_SIZE: u64 = 0x10_0000;
/// Page tables: the root, then one table of each level, then the tables of leaves.
const ROOT: u64 = ARENA;
const FREE_RING: u64 = ARENA + 0x1_0000;
const RETURN_RING: u64 = ARENA + 0x1_8000;
const ADMIN: u64 = ARENA + 0x2_0000;
const QUEUES: u64 = ARENA + 0x2_8000;
const FRAMES: u64 = ARENA + 0x4_0000;
/// Number of harts of a run.
pub const HARTS: u64 = 2;
/// Number of drives of a run.
pub const DRIVES: u64 = 2;
/// Memory of a run, bytes.
pub const MEMORY: u64 = 16 << 20;

const ECAM: u64 = 0x3000_0000;
const WINDOW: u64 = 0x4000_0000;
const BAR: u64 = 0x1_0000;
const SMU: u64 = 0x1100_0000;
const ACLINT: u64 = 0x0200_0000;
const SHWDP: u16 = 0x5c0;
/// Cycles after which a visit to S or U mode ends, whatever it does.
const VISIT_TICKS: u64 = 400;

/// What an action does, by the number in the guest's table.
#[derive(Clone, Copy)]
enum Op {
    End = 0,
    Store1 = 1,
    Store2 = 2,
    Store4 = 3,
    Store8 = 4,
    Load1 = 5,
    Load4 = 6,
    Load8 = 7,
    Satp = 8,
    Shwdp = 9,
    Delay = 10,
    Interrupts = 11,
    Wait = 12,
    /// A load, store, AMO or jump at `a` in mode `b`.
    VisitLoad = 13,
    VisitStore = 14,
    VisitAmo = 15,
    VisitFetch = 16,
}
const OPS: u64 = 17;

struct Maker {
    rng: Rng,
    actions: Vec<[u64; 4]>,
}

/// Makes the ELF file of a run.
pub fn program(seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let arena = arena(&mut rng);
    let mut tables = Vec::new();
    for hart in 0..HARTS {
        let mut maker = Maker { rng: rng.fork(), actions: Vec::new() };
        if hart == 0 {
            maker.set_up();
        } else {
            maker.push(Op::Delay, 3000, 0);
        }
        maker.push(Op::Satp, 8 << 60 | ROOT >> 12, 0);
        maker.push(Op::Shwdp, 1, 0);
        while maker.actions.len() < TABLE as usize / 32 - 2 {
            maker.random();
        }
        maker.push(Op::End, 0, 0);
        let mut bytes: Vec<u8> = maker.actions.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        bytes.resize(TABLE as usize, 0);
        tables.extend(bytes);
    }
    let code = code();
    elf::write(
        &[
            elf::Segment { at: CODE, data: &code, size: 0x3000 },
            elf::Segment { at: ACTIONS, data: &tables, size: tables.len() as u64 },
            elf::Segment { at: ARENA, data: &arena, size: ARENA_SIZE },
        ],
        &[],
    )
}

/// Makes page tables with armed entries of all kinds, a free ring, and admin commands that create I/O queue pairs.
fn arena(rng: &mut Rng) -> Vec<u8> {
    let mut words = vec![0u64; ARENA_SIZE as usize / 8];
    let mut set = |at: u64, value: u64| words[((at - ARENA) / 8) as usize] = value;
    let pointer = |at: u64| at >> 12 << 10 | 1;
    // From virtual address 0 on: two tables of leaves. At 0x8000_0000: RAM, mapped one to one.
    set(ROOT, pointer(ROOT + 0x1000));
    // At 0xc000_0000: RAM once more, for U-mode.
    set(ROOT + 2 * 8, CODE >> 12 << 10 | 0xcf);
    set(ROOT + 3 * 8, CODE >> 12 << 10 | 0xdf);
    for table in 0..2 {
        set(ROOT + 0x1000 + table * 8, pointer(ROOT + 0x2000 + table * 0x1000));
        for entry in 0..512 {
            set(ROOT + 0x2000 + table * 0x1000 + entry * 8, leaf(rng));
        }
    }
    for entry in 0..64 {
        let frame = FRAMES + rng.u64(..128) * 4096;
        let frame = if rng.u8(..24) == 0 { rng.u64(..) } else { frame };
        set(FREE_RING + entry * 16, frame >> 12);
        set(FREE_RING + entry * 16 + 8, if rng.u8(..24) == 0 { rng.u64(..) } else { frame });
    }
    for drive in 0..DRIVES {
        let admin = ADMIN + drive * 0x2000;
        // Commands that create I/O completion queues 1 and 2, then submission queues 1 and 2: 64 entries, contiguous.
        for (slot, (opcode, queue)) in [(5u64, 1u64), (5, 2), (1, 1), (1, 2)].into_iter().enumerate() {
            let at = admin + slot as u64 * 64;
            let place = QUEUES + drive * 0x8000 + queue * 0x2000 + if opcode == 5 { 0x1000 } else { 0 };
            set(at, opcode | (slot as u64) << 16);
            set(at + 24, place);
            set(at + 40, queue | 63 << 16 | (if opcode == 1 { 1 | queue << 16 } else { 1 }) << 32);
        }
        // Commands that the guest submits itself. Some of them are valid.
        for slot in 0..64 {
            let at = QUEUES + drive * 0x8000 + 0x2000 + slot * 64;
            for word in 0..8 {
                set(at + word * 8, rng.u64(..));
            }
            if rng.bool() {
                set(at, [0u64, 1, 2, 2, 2, 8, 9][rng.usize(..7)] | slot << 16 | 1 << 32);
                set(at + 24, FRAMES + rng.u64(..128) * 4096 + if rng.bool() { 0 } else { rng.u64(..4096) });
                set(at + 32, FRAMES + rng.u64(..128) * 4096);
                set(at + 40, rng.u64(..9000));
                set(at + 48, rng.u64(..64));
            }
        }
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A random page table entry: usually a correctly armed one, sometimes anything.
fn leaf(rng: &mut Rng) -> u64 {
    let armed = smu::PTE_L.of(1) | 0x52 | smu::PTE_LBA.of(rng.u64(..1024) * 8);
    match rng.u8(..12) {
        0 => rng.u64(..),
        1 => armed ^ 1 << rng.u32(..64),
        2 => armed | smu::PTE_DEVICE.of(rng.u64(..8)),
        3 => armed | smu::PTE_LBA.of(rng.u64(..)),
        4 => FRAMES >> 12 << 10 | 0xdf,
        5 => armed | smu::PTE_SOCKET.of(rng.u64(..8)) | smu::PTE_X.of(1),
        _ => armed,
    }
}

impl Maker {
    fn push(&mut self, op: Op, a: u64, b: u64) {
        self.actions.push([op as u64, a, b, 0]);
    }

    /// Adds a step of the set-up. From time to time its value is wrong.
    fn step(&mut self, at: u64, value: u64, wide: bool) {
        let value = if self.rng.u8(..80) == 0 { self.value() } else { value };
        self.push(if wide { Op::Store8 } else { Op::Store4 }, at, value);
    }

    fn set_up(&mut self) {
        for drive in 0..DRIVES {
            let (config, bar) = (ECAM + ((drive + 1) << 15), WINDOW + drive * BAR);
            self.step(config + 0x10, bar, false);
            self.step(config + 0x14, 0, false);
            self.step(config + 4, 6, false);
            self.step(bar + 0x24, 0x003f_003f, false);
            self.step(bar + 0x28, ADMIN + drive * 0x2000, true);
            self.step(bar + 0x30, ADMIN + drive * 0x2000 + 0x1000, true);
            self.step(bar + 0x14, 0x0046_0001, false);
            self.push(Op::Delay, 500, 0);
            self.step(bar + 0x1000, 4, false);
        }
        self.push(Op::Delay, 10_000, 0);
        for descriptor in 0..2 {
            let at = SMU + smu::DESC_BASE + descriptor * smu::DESC_STRIDE;
            let (bar, queue) = (WINDOW + descriptor * BAR, QUEUES + descriptor * 0x8000 + 0x4000);
            self.step(at + smu::DESC_SQ_BASE, queue, true);
            self.step(at + smu::DESC_CQ_BASE, queue + 0x1000, true);
            self.step(at + smu::DESC_SQ_DB, bar + 0x1010, true);
            self.step(at + smu::DESC_CQ_DB, bar + 0x1014, true);
            self.step(at + smu::DESC_DEPTH, 64, true);
            self.step(at + smu::DESC_NSID, 1, true);
            self.step(at + smu::DESC_BLOCKS, 3, true);
            self.step(at + smu::DESC_CTRL, 1, true);
        }
        self.step(SMU + smu::FREE_BASE, FREE_RING, true);
        self.step(SMU + smu::FREE_SIZE, 64, true);
        self.step(SMU + smu::RET_BASE, RETURN_RING, true);
        self.step(SMU + smu::RET_SIZE, 128, true);
        self.step(SMU + smu::FREE_TAIL, 60, true);
        let timeout = [0, 100, 100_000][self.rng.usize(..3)];
        self.step(SMU + smu::TIMEOUT, timeout, true);
        self.step(SMU + smu::CTRL, 1, true);
    }

    /// A random value, often one that means something to a register.
    fn value(&mut self) -> u64 {
        let r = self.rng.u64(..);
        match self.rng.u8(..12) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => r,
            4 => 1 << (r & 63),
            5 => r & 0xff,
            6 => r & 0xffff,
            7 => ARENA + r % ARENA_SIZE,
            8 => (ARENA + r % ARENA_SIZE) & !0xfff,
            9 => WINDOW + 0x1000 + (r & 0x1fffc),
            10 => CODE + MEMORY - (r & 0xff),
            _ => r & 0x3f,
        }
    }

    /// An address, usually one of a device.
    fn device(&mut self) -> u64 {
        let r = self.rng.u64(..);
        match self.rng.u8(..20) {
            0..6 => SMU + (r & 0x7f8),
            6 => SMU + (r & 0xffff),
            7..11 => WINDOW + (r & 1) * BAR + 0x1000 + (r >> 1 & 0xfc),
            11..13 => WINDOW + (r & 1) * BAR + (r >> 1 & 0x3f),
            13 => WINDOW + (r & 0x3fff_ffff),
            14 => ECAM + (r & 3) * 0x8000 + (r >> 2 & 0xfff),
            15 => ECAM + (r & 0xf_ffff),
            16 => 0x0c00_0000 + (r & 0x3ff_ffff),
            17 => ACLINT + (r & 0xffff),
            18 => 0x1000_0000 + (r & 0x1ff),
            _ => r & 0x7fff_ffff,
        }
    }

    fn random(&mut self) {
        let r = self.rng.u64(..);
        match self.rng.u8(..40) {
            0..8 => {
                let (op, at, value) = (self.store_size(), self.device(), self.value());
                // The finisher would end the run, and a reset of the whole machine is not what is tested.
                if at >> 12 != 0x100 {
                    self.push(op, at, value);
                }
            }
            8..10 => {
                let at = self.device();
                let op = [Op::Load1, Op::Load4, Op::Load8][self.rng.usize(..3)];
                self.push(op, at, 0);
            }
            10..13 => {
                // Write to rings, queues or page tables.
                let at = ARENA + (r & (FRAMES - ARENA - 1));
                let (op, value) = (self.store_size(), self.value());
                self.push(op, at & !7, value);
            }
            13..15 => {
                // Arm an entry again.
                let value = leaf(&mut self.rng);
                self.push(Op::Store8, ROOT + 0x2000 + (r & 0x1ff8), value);
            }
            15..17 => {
                // Give frames to the SMU, and take what it returns.
                self.push(Op::Store8, SMU + smu::FREE_TAIL, r & 0x3f);
                self.push(Op::Store8, SMU + smu::RET_HEAD, r >> 8 & 0x7f);
            }
            17..19 => {
                let descriptor = smu::DESC_BASE + (r >> 8 & 1) * smu::DESC_STRIDE;
                let fences = [descriptor + smu::DESC_FENCE, descriptor + smu::DESC_EXPIRE];
                let register = [fences[0], fences[1], smu::CTRL, smu::CTRL, smu::TIMEOUT][self.rng.usize(..5)];
                self.push(Op::Store8, SMU + register, r & if register == fences[0] { 3 } else { 1 });
            }
            19..21 => {
                // Ring the doorbell of queue 1 or 2, which the guest's own commands use.
                let bar = WINDOW + (r & 1) * BAR;
                self.push(Op::Store4, bar + 0x1008 + (r >> 1 & 4), r >> 8 & 0x3f);
            }
            21..23 => self.push(Op::Shwdp, u64::from(r & 7 != 0), 0),
            23 => {
                let value = if r & 7 == 0 { self.value() } else { 8 << 60 | ROOT >> 12 };
                self.push(Op::Satp, value, 0);
            }
            24 => self.push(Op::Delay, r & 0x3ff, 0),
            25 => self.push(Op::Interrupts, r & 0xaaa, 0),
            26 if r & 31 == 0 => self.push(Op::Wait, 0, 0),
            _ => {
                let op = match self.rng.u8(..8) {
                    0 => Op::VisitFetch,
                    1 => Op::VisitAmo,
                    2 | 3 => Op::VisitStore,
                    _ => Op::VisitLoad,
                };
                let va = if r & 31 == 0 { self.value() } else { r >> 8 & 0x3f_fff8 };
                // Nonsense code could run forever.
                let va = if matches!(op, Op::VisitFetch) { va | 8 } else { va };
                self.push(op, va, u64::from(r & 0x60 != 0));
            }
        }
    }

    fn store_size(&mut self) -> Op {
        [Op::Store1, Op::Store2, Op::Store4, Op::Store4, Op::Store8, Op::Store8][self.rng.usize(..6)]
    }
}

/// Makes the guest's code: the loop, the visits to S and U mode, and the trap handler.
fn code() -> Vec<u8> {
    let mut asm = Asm::new(CODE);
    let a = &mut asm;
    let (next, handler, visit, rest) = (a.label(), a.label(), a.label(), a.label());
    a.csr("csrrs", T0, MHARTID, 0);
    a.li(T1, HARTS);
    a.b("bgeu", T0, T1, rest);
    // Visits may execute the code, but not read or write it, the tables or the save areas. Drives may do all that.
    a.li(T1, CODE >> 2 | (CLOSED / 8 - 1));
    a.csr("csrrw", 0, PMPADDR0, T1);
    a.li(T1, u64::MAX >> 10);
    a.csr("csrrw", 0, PMPADDR0 + 1, T1);
    a.li(T1, 0x1f << 8 | 0x1c);
    a.csr("csrrw", 0, PMPCFG0, T1);
    a.la(T1, handler);
    a.csr("csrrw", 0, MTVEC, T1);
    // Keep the current action in memory: a visit may change every register.
    a.li(S1, SAVE);
    a.i("slli", T1, T0, 6);
    a.r("add", S1, S1, T1);
    a.csr("csrrw", 0, MSCRATCH, S1);
    a.li(S0, ACTIONS);
    a.i("slli", T1, T0, 16);
    a.r("add", S0, S0, T1);
    a.s("sd", S0, S1, 0);

    a.bind(next);
    a.csr("csrrs", S1, MSCRATCH, 0);
    a.i("ld", S0, S1, 0);
    a.i("ld", T0, S0, 0);
    a.i("ld", A0, S0, 8);
    a.i("ld", A1, S0, 16);
    a.i("addi", S0, S0, 32);
    a.s("sd", S0, S1, 0);
    let labels: Vec<Label> = (0..OPS).map(|_| a.label()).collect();
    for (n, label) in labels.iter().enumerate() {
        let other = a.label();
        a.li(T1, n as u64);
        a.b("bne", T0, T1, other);
        a.j(*label);
        a.bind(other);
    }
    a.j(rest);
    let bind = |a: &mut Asm, op: Op| a.bind(labels[op as usize]);
    for (op, name) in [(Op::Store1, "sb"), (Op::Store2, "sh"), (Op::Store4, "sw"), (Op::Store8, "sd")] {
        bind(a, op);
        a.s(name, A1, A0, 0);
        a.j(next);
    }
    for (op, name) in [(Op::Load1, "lbu"), (Op::Load4, "lw"), (Op::Load8, "ld")] {
        bind(a, op);
        a.i(name, T0, A0, 0);
        a.j(next);
    }
    for (op, csr) in [(Op::Satp, SATP), (Op::Shwdp, SHWDP)] {
        bind(a, op);
        a.csr("csrrw", 0, csr, A0);
        a.plain("sfence.vma");
        a.j(next);
    }
    bind(a, Op::Delay);
    let again = a.bound();
    a.i("addi", A0, A0, -1);
    a.b("blt", 0, A0, again);
    a.j(next);
    bind(a, Op::Interrupts);
    a.csr("csrrw", 0, MIE, A0);
    a.csr("csrrsi", 0, MSTATUS, 8);
    a.i("addi", 0, 0, 0);
    a.csr("csrrci", 0, MSTATUS, 8);
    a.j(next);
    bind(a, Op::Wait);
    a.plain("wfi");
    a.j(next);
    for (n, op) in [Op::VisitLoad, Op::VisitStore, Op::VisitAmo, Op::VisitFetch].into_iter().enumerate() {
        bind(a, op);
        a.li(A2, n as u64);
        a.j(visit);
    }

    // Go to S mode (b = 0, with SUM) or U mode (b = 1). The timer ends the visit, and every wait for the SMU.
    a.bind(visit);
    a.li(T0, ACLINT + 0xbff8);
    a.i("ld", T1, T0, 0);
    a.i("addi", T1, T1, VISIT_TICKS as i64);
    a.csr("csrrs", T2, MHARTID, 0);
    a.i("slli", T2, T2, 3);
    a.li(T0, ACLINT + 0x4000);
    a.r("add", T0, T0, T2);
    a.s("sd", T1, T0, 0);
    a.li(T0, 1 << 7);
    a.csr("csrrw", 0, MIE, T0);
    a.li(T0, 3 << 11);
    a.csr("csrrc", 0, MSTATUS, T0);
    a.i("xori", T1, A1, 1);
    a.i("slli", T1, T1, 11);
    a.li(T0, 1 << 18 | 1 << 7);
    a.r("or", T0, T0, T1);
    a.csr("csrrs", 0, MSTATUS, T0);
    let guest = a.label();
    a.la(T0, guest);
    // If nonsense in satp left U-mode bare, there is nothing at that address: a trap like any other.
    a.i("slli", T1, A1, 30);
    a.r("add", T0, T0, T1);
    a.csr("csrrw", 0, MEPC, T0);
    a.plain("mret");

    // Traps: an interrupt from M-mode is switched off; everything else ends the action.
    a.align(4);
    a.bind(handler);
    let abandon = a.label();
    a.csr("csrrw", 0, MIE, 0);
    a.csr("csrrs", T0, MCAUSE, 0);
    a.b("bge", T0, 0, abandon);
    a.csr("csrrs", T0, MSTATUS, 0);
    a.i("srli", T0, T0, 11);
    a.i("andi", T0, T0, 3);
    a.b("beq", T0, 0, abandon);
    a.i("addi", T0, T0, -1);
    a.b("beq", T0, 0, abandon);
    a.plain("mret");
    a.bind(abandon);
    a.li(T0, 3 << 11);
    a.csr("csrrs", 0, MSTATUS, T0);
    a.la(T0, next);
    a.csr("csrrw", 0, MEPC, T0);
    a.plain("mret");

    a.bind(labels[Op::End as usize]);
    a.bind(rest);
    a.csr("csrrw", 0, MIE, 0);
    let sleep = a.bound();
    a.plain("wfi");
    a.j(sleep);

    // The code that visits run.
    a.bind(guest);
    let (store, amo, fetch) = (a.label(), a.label(), a.label());
    a.li(T0, 1);
    a.b("beq", A2, T0, store);
    a.li(T0, 2);
    a.b("beq", A2, T0, amo);
    a.li(T0, 3);
    a.b("beq", A2, T0, fetch);
    a.i("ld", T0, A0, 0);
    a.plain("ecall");
    a.bind(store);
    a.s("sd", A0, A0, 0);
    a.plain("ecall");
    a.bind(amo);
    a.r("amoadd.d", T0, A0, A0);
    a.plain("ecall");
    a.bind(fetch);
    a.i("jalr", RA, A0, 0);
    a.plain("ecall");
    asm.finish()
}
