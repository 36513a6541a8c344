// SPDX-License-Identifier: Apache-2.0
//! Self-hashing blocks: loops around random and hand-made code. Each round has new operands; at its end all registers, some
//! of the block's memory and all traps are added to a hash. So millions of instructions leave only a few words to compare.
//!
//! A cell has two pages of data, which are neighbours in its address space but usually not in memory. Its window lies across
//! their border; its state lies before the window. The code reaches both through sp, its first pointer, and never changes sp.

use fastrand::Rng;

use crate::asm::Asm;
use crate::layout::*;
use crate::operands;
use crate::program::{Block, Mode, Program};
use crate::random::{Generator, Span};
use crate::runtime::csr;
use crate::tables::{SCRATCH_PAGES, Spaces, entry, pte};

/// Bytes of a cell's window before the page border, and as many after it.
const HALF_WINDOW: u64 = WINDOW / 2;
/// Bytes from the start of the state to the window.
const STATE_SIZE: i64 = 256;
/// Number of data pages.
const PAGES: u64 = DATA_SIZE / 4096;
/// Number of data pages, at the end, that hold operands and other tables of all cells.
const TABLE_PAGES: u64 = 16;
const INTEGERS: u64 = DATA + DATA_SIZE - TABLE_PAGES * 4096;
const FLOATS: u64 = INTEGERS + 0x5000;
const CASES: u64 = INTEGERS + 0xa000;
const ENTRIES: u64 = INTEGERS + 0xb000;
/// Number of places in the operand tables from which a round may take its operands. `OPERANDS`: how many follow each place.
const BEGINNINGS: u64 = 2048;
const OPERANDS: u64 = 256;
/// Number of entries of the other tables.
const CHOICES: u64 = 256;

/// Offsets in a cell's state.
pub(crate) mod state {
    /// Number of rounds left.
    pub const COUNTER: i64 = 0;
    /// State of a linear congruential generator, which decides everything that changes between rounds.
    pub const RANDOM: i64 = 8;
    /// The hash.
    pub const HASH: i64 = 16;
    /// Values of three registers, while the frame uses the registers.
    pub const SAVED: i64 = 24;
    /// The value of [`crate::layout::HASH_FACTOR`].
    pub const FACTOR: i64 = 48;
    /// Address of the table of integer operands.
    pub const INTEGERS: i64 = 56;
    /// Address of the table of floating-point operands.
    pub const FLOATS: i64 = 64;
    /// Address of a table: addresses of pages that are mapped in all ways.
    pub const CASES: i64 = 72;
    /// Address of a table: page table entries.
    pub const ENTRIES: i64 = 80;
    /// Saved `stvec`, while the cell has its own.
    pub const STVEC: i64 = 88;
    /// 32 instructions with which the cell may overwrite its code.
    pub const WORDS: i64 = 128;
}

/// A self-hashing block of a program.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Number of the cell's block in the program.
    pub block: usize,
    /// How often the cell's code runs.
    pub rounds: u64,
    /// Parts of the cell's code that can be left out.
    pub spans: Vec<Span>,
    /// Offset in [`DATA`] of the number of rounds left.
    pub counter: usize,
    /// Offsets in [`DATA`] of the cell's two pages.
    pub pages: [u64; 2],
}

/// A program of cells.
pub struct Cells {
    /// The program.
    pub program: Program,
    /// Its cells, in the order of the blocks.
    pub cells: Vec<Cell>,
    used: Vec<bool>,
}

/// What a cell's code does apart from random instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Random,
    /// It changes itself.
    Patching,
    /// It touches pages that are mapped in all ways.
    Faults,
    /// It changes page table entries.
    Remapping,
    /// It goes to U-mode and comes back.
    Visiting,
}

impl Cells {
    /// Starts without cells, but with their tables.
    pub fn new(rng: &mut Rng) -> Cells {
        let mut program = Program::new();
        program.data = vec![0; DATA_SIZE as usize];
        let mut used = vec![false; PAGES as usize];
        used[(PAGES - TABLE_PAGES) as usize..].fill(true);
        let mut fill = |at: u64, count: u64, value: &mut dyn FnMut() -> u64| {
            for i in 0..count {
                let to = (at - DATA + i * 8) as usize;
                program.data[to..to + 8].copy_from_slice(&value().to_le_bytes());
            }
        };
        fill(INTEGERS, BEGINNINGS + OPERANDS, &mut || operands::integer(rng));
        fill(FLOATS, BEGINNINGS + OPERANDS, &mut || operands::floating(rng));
        // QEMU 7.2 sets A and D itself, so leave out entries that lack them.
        let cases: Vec<u64> = program.spaces.cases.iter().filter(|c| !c.lacks_ad()).map(|c| c.va).collect();
        fill(CASES, CHOICES, &mut || *rng.choice(&cases).expect("not empty"));
        fill(ENTRIES, CHOICES, &mut || page_table_entry(rng));
        Cells { program, cells: Vec::new(), used }
    }

    /// Adds a cell that runs its code `rounds` times; returns false if there is no room.
    pub fn add(&mut self, rng: &mut Rng, rounds: u64) -> bool {
        let (mode, paging) = match rng.u8(..8) {
            0 => (Mode::Machine, false),
            1 => (Mode::Supervisor, false),
            2..5 => (Mode::Supervisor, true),
            5 => (Mode::User, false),
            _ => (Mode::User, true),
        };
        let kind = match rng.u8(..16) {
            0 | 1 => Kind::Patching,
            2 | 3 if paging => Kind::Faults,
            4 | 5 if paging && mode == Mode::Supervisor => Kind::Remapping,
            6 | 7 if paging && mode == Mode::Supervisor => Kind::Visiting,
            _ => Kind::Random,
        };
        let Some((va, pages)) = self.take_pages(rng, paging).filter(|_| self.program.has_room()) else { return false };
        let number = self.program.blocks.len();
        let name = format!("cell {number}, {kind:?}, {mode:?}{}", if paging { " with Sv39" } else { "" });
        let mut block = Block::new(name, mode);
        block.flags = flag::HASH_TRAPS;
        if paging {
            block.satp = if mode == Mode::User { self.program.spaces.u_satp } else { self.program.spaces.s_satp };
        }
        // The last ebreak must reach M-mode.
        block.medeleg = if rng.bool() { 0 } else { rng.u64(..) & 0xb3f7 };
        if kind == Kind::Visiting {
            block.medeleg |= 1 << 8;
        }
        block.mstatus |= rng.u64(..) & (SUM | MXR);
        for x in 1..32 {
            block.x[x] = operands::integer(rng);
            block.f[x] = operands::floating(rng);
        }
        block.f[0] = operands::floating(rng);
        block.fcsr = rng.u64(..5) << 5 | rng.u64(..32);
        let window = va + 4096 - HALF_WINDOW;
        let mut pointers: Vec<(u8, u64)> = Vec::new();
        let any = 16 + rng.u8(..16);
        for register in [2, 8 + rng.u8(..4), 12 + rng.u8(..4), any] {
            let offset = rng.u64(..900) & if rng.bool() { !7 } else { !0 };
            block.x[usize::from(register)] = window + offset;
            pointers.push((register, offset));
        }

        let mut g = Generator::new(rng, self.program.asm(), block, pointers, rounds);
        g.page_end = Some(HALF_WINDOW);
        let frame = Frame::new(&mut g);
        let top = g.a.bound();
        frame.mutate(&mut g);
        g.special(kind, &self.program.spaces);
        frame.hash(&mut g);
        frame.again(&mut g, top);
        let words: Vec<u32> = (0..32).map(|_| g.arithmetic()).collect();
        let Generator { a, block, mut spans, .. } = g;
        spans.sort_by_key(|s| s.start);

        let at = |offset: u64| (pages[(offset / 4096) as usize] + offset % 4096) as usize;
        for offset in (4096 - HALF_WINDOW..4096 + HALF_WINDOW).step_by(8) {
            let value = operands::memory(rng);
            self.program.data[at(offset)..at(offset) + 8].copy_from_slice(&value.to_le_bytes());
        }
        let base = at(4096 - HALF_WINDOW - STATE_SIZE as u64);
        let mut set = |field: i64, value: u64| {
            let to = base + field as usize;
            self.program.data[to..to + 8].copy_from_slice(&value.to_le_bytes());
        };
        set(state::COUNTER, rounds);
        set(state::RANDOM, rng.u64(..));
        set(state::FACTOR, HASH_FACTOR);
        for (field, table) in
            [(state::INTEGERS, INTEGERS), (state::FLOATS, FLOATS), (state::CASES, CASES), (state::ENTRIES, ENTRIES)]
        {
            set(field, table);
        }
        for (n, register) in frame.registers.into_iter().enumerate() {
            set(state::SAVED + 8 * n as i64, block.x[usize::from(register)]);
        }
        for (n, pair) in words.chunks_exact(2).enumerate() {
            set(state::WORDS + 8 * n as i64, u64::from(pair[0]) | u64::from(pair[1]) << 32);
        }
        self.cells.push(Cell { block: number, rounds, spans, counter: base, pages });
        self.program.add(a, block);
        true
    }

    /// Takes two free pages that are neighbours in the address space. Returns their address there and their offsets in the data.
    fn take_pages(&mut self, rng: &mut Rng, paging: bool) -> Option<(u64, [u64; 2])> {
        for _ in 0..1000 {
            let page = rng.u64(..PAGES - 1);
            let pages = [page, page + 1].map(|p| if paging { Spaces::page_behind(p) } else { p });
            if pages.iter().all(|p| !self.used[*p as usize]) {
                pages.iter().for_each(|p| self.used[*p as usize] = true);
                let base = if paging { ALIAS } else { DATA };
                return Some((base + page * 4096, pages.map(|p| p * 4096)));
            }
        }
        None
    }
}

const SUM: u64 = 1 << 18;
const MXR: u64 = 1 << 19;

/// A random entry of the last level, most often a valid leaf.
fn page_table_entry(rng: &mut Rng) -> u64 {
    let at = PLAYGROUND + rng.u64(..SCRATCH_PAGES) * 4096;
    let bits = rng.u64(..1024) | pte::AD;
    let valid = if rng.u8(..8) == 0 { 0 } else { pte::V };
    let reserved = if rng.u8(..8) == 0 { 1 << rng.u8(54..64) } else { 0 };
    entry(at, bits & !pte::V | valid) | reserved
}

/// Code that every cell has around its own code.
struct Frame {
    /// Registers that the frame uses and restores.
    registers: [u8; 3],
    /// Distance from sp to the state.
    base: i64,
}

impl Frame {
    fn new(g: &mut Generator<'_>) -> Frame {
        let first = g.fresh(&[]);
        let second = g.fresh(&[first]);
        let third = g.fresh(&[first, second]);
        Frame { registers: [first, second, third], base: g.state(0) }
    }

    fn load(&self, a: &mut Asm, register: u8, field: i64) {
        a.i("ld", register, 2, self.base + field);
    }

    /// Emits code that gives some registers new operands.
    fn mutate(&self, g: &mut Generator<'_>) {
        let [t0, t1, _] = self.registers;
        let free: Vec<u8> = (1..32).filter(|r| !self.registers.contains(r) && !g.is_pointer(*r)).collect();
        let a = &mut g.a;
        self.load(a, t0, state::RANDOM);
        self.load(a, t1, state::FACTOR);
        a.r("mul", t0, t0, t1);
        a.i("addi", t0, t0, 1365);
        a.s("sd", t0, 2, self.base + state::RANDOM);
        a.i("srli", t0, t0, 64 - 11);
        a.i("slli", t0, t0, 3);
        for (field, load) in [(state::INTEGERS, "ld"), (state::FLOATS, "fld")] {
            self.load(a, t1, field);
            a.r("add", t1, t1, t0);
            for _ in 0..12 {
                let register = if load == "ld" { *g.rng.choice(&free).expect("not empty") } else { g.rng.u8(..32) };
                a.i(load, register, t1, 8 * g.rng.i64(0..OPERANDS as i64));
            }
        }
        for (n, register) in self.registers.into_iter().enumerate() {
            self.load(a, register, state::SAVED + 8 * n as i64);
        }
    }

    /// Emits code that adds all registers and some memory to the hash.
    fn hash(&self, g: &mut Generator<'_>) {
        let [t0, t1, t2] = self.registers;
        let rest: Vec<u8> = (1..32).filter(|r| !self.registers.contains(r) && !g.is_pointer(*r)).collect();
        let offset = g.pointers[0].1 as i64;
        let a = &mut g.a;
        for (n, register) in self.registers.into_iter().enumerate() {
            a.s("sd", register, 2, self.base + state::SAVED + 8 * n as i64);
        }
        self.load(a, t0, state::HASH);
        self.load(a, t1, state::FACTOR);
        let add = |a: &mut Asm, register: u8| {
            a.r("mul", t0, t0, t1);
            a.r("add", t0, t0, register);
        };
        for register in rest {
            add(a, register);
        }
        for n in 0..3 {
            self.load(a, t2, state::SAVED + 8 * n);
            add(a, t2);
        }
        for f in 0..32 {
            a.r("fmv.x.d", t2, f, 0);
            add(a, t2);
        }
        a.csr("csrrs", t2, csr::FCSR, 0);
        add(a, t2);
        // Add four words of the window; each round chooses others.
        self.load(a, t2, state::RANDOM);
        a.i("srli", t2, t2, 40);
        a.i("andi", t2, t2, 0x3f8);
        a.r("add", t2, t2, 2);
        for n in 0..4 {
            a.r("mul", t0, t0, t1);
            a.i("ld", t1, t2, 128 * n - offset);
            a.r("add", t0, t0, t1);
            self.load(a, t1, state::FACTOR);
        }
        a.s("sd", t0, 2, self.base + state::HASH);
    }

    /// Emits code that starts the next round, if there is one.
    fn again(&self, g: &mut Generator<'_>, top: crate::asm::Label) {
        let [t0, ..] = self.registers;
        let a = &mut g.a;
        self.load(a, t0, state::COUNTER);
        a.i("addi", t0, t0, -1);
        a.s("sd", t0, 2, self.base + state::COUNTER);
        a.b("bne", t0, 0, top);
        for (n, register) in self.registers.into_iter().enumerate() {
            self.load(a, register, state::SAVED + 8 * n as i64);
        }
    }
}

impl Generator<'_> {
    /// Offset of a field of the cell's state from sp.
    pub(crate) fn state(&self, field: i64) -> i64 {
        field - self.pointers[0].1 as i64 - STATE_SIZE
    }
}
