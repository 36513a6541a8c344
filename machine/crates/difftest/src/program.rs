// SPDX-License-Identifier: Apache-2.0
//! A test program: blocks of code with their initial states, assembled into an ELF file.

use std::collections::BTreeMap;

use trapless_memory::Paging;

use crate::asm::Asm;
use crate::elf;
use crate::layout::*;
use crate::runtime::{self, Runtime};
use crate::tables::{Spaces, Tables};

/// Privilege mode, by its encoding in `mstatus.MPP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mode {
    User = 0,
    Supervisor = 1,
    Machine = 3,
}

/// What is not compared in a block. The code that sets a field says why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relax {
    /// Trap values.
    pub tval: bool,
    /// Causes.
    pub cause: bool,
    /// Integer registers at the end, one bit each.
    pub x: u32,
    /// `mstatus.FS` and SD.
    pub fs: bool,
    /// `mstatus.MPRV`.
    pub mprv: bool,
}

/// A trap that the specification requires; it is known before anything runs.
#[derive(Clone, Debug)]
pub struct Expected {
    /// What is tested.
    pub what: String,
    /// Exception code, or none.
    pub cause: Option<u64>,
    /// Trap value.
    pub tval: u64,
}

/// A block: code that runs from a known state to its last `ebreak`.
#[derive(Clone)]
pub struct Block {
    /// Name of the block, for people to read.
    pub name: String,
    /// Address of its first instruction.
    pub entry: u64,
    /// Address of its last `ebreak`.
    pub end: u64,
    /// The code, for address [`Block::entry`].
    pub code: Vec<u8>,
    /// Mode at the beginning.
    pub mode: Mode,
    /// Further bits of `mstatus`.
    pub mstatus: u64,
    /// `satp`.
    pub satp: u64,
    /// `medeleg`.
    pub medeleg: u64,
    /// `mideleg`.
    pub mideleg: u64,
    /// Initial x1..x31.
    pub x: [u64; 32],
    /// Initial f0..f31.
    pub f: [u64; 32],
    /// Initial `fcsr`.
    pub fcsr: u64,
    /// How often the block runs.
    pub repeat: u64,
    /// [`flag`] bits.
    pub flags: u64,
    /// What is not compared.
    pub relax: Relax,
    /// Traps that must occur, in order; any other is an error. `None`: whatever the reference does.
    pub expected: Option<Vec<Expected>>,
    /// Integer registers that must have these values at the end.
    pub expected_x: Vec<(u8, u64)>,
    /// Mnemonics that certainly run, and how often in one run of the block.
    pub executed: BTreeMap<&'static str, u64>,
    /// What the block covers apart from instructions: CSRs, faults.
    pub covers: Vec<String>,
    /// Maximum number of log records that one run of the block writes, without its end record.
    pub traps: u64,
}

impl Block {
    /// `mstatus.FS` of a block with floating point.
    pub const FS_DIRTY: u64 = 3 << 13;

    /// Creates an empty block with all registers zero.
    pub fn new(name: impl Into<String>, mode: Mode) -> Block {
        Block {
            name: name.into(),
            entry: 0,
            end: 0,
            code: Vec::new(),
            mode,
            mstatus: Block::FS_DIRTY,
            satp: 0,
            medeleg: 0,
            mideleg: 0,
            x: [0; 32],
            f: [0; 32],
            fcsr: 0,
            repeat: 1,
            flags: 0,
            relax: Relax::default(),
            expected: None,
            expected_x: Vec::new(),
            executed: BTreeMap::new(),
            covers: Vec::new(),
            traps: 0,
        }
    }

    /// Notes that an instruction certainly runs once in every run of the block.
    pub fn ran(&mut self, name: &'static str) {
        *self.executed.entry(name).or_default() += 1;
    }

    /// Number of instructions that certainly run, over all runs of the block.
    pub fn instructions(&self) -> u64 {
        self.executed.values().sum::<u64>() * self.repeat
    }

    /// Maximum number of words that the block logs.
    fn log_words(&self) -> usize {
        (record::END_WORDS + self.traps as usize * record::TRAP_WORDS) * self.repeat as usize
    }
}

/// A program under construction.
pub struct Program {
    /// Its blocks, by their numbers in the log.
    pub blocks: Vec<Block>,
    /// Addresses of the parts of the runtime that blocks use.
    pub runtime: Runtime,
    /// The two address spaces and the playground.
    pub spaces: Spaces,
    /// Initial content of [`DATA`].
    pub data: Vec<u8>,
    /// Code of all blocks, for address [`CODE`].
    pub code: Vec<u8>,
    next_code: u64,
    next_window: u64,
    log_words: usize,
}

impl Default for Program {
    fn default() -> Program {
        Program::new()
    }
}

impl Program {
    /// Creates a program without blocks. Blocks with address translation use Sv39.
    pub fn new() -> Program {
        Program::paged(Paging::Sv39)
    }

    /// Creates a program without blocks. Blocks with address translation use this mode.
    pub fn paged(paging: Paging) -> Program {
        Program {
            blocks: Vec::new(),
            // The addresses do not depend on the number of blocks; the code is built again at the end.
            runtime: runtime::build(1),
            spaces: Spaces::new(paging),
            data: Vec::new(),
            code: Vec::new(),
            next_code: CODE,
            next_window: 0,
            log_words: 0,
        }
    }

    /// Creates an assembler for the next block.
    pub fn asm(&self) -> Asm {
        Asm::new(self.next_code)
    }

    /// Takes a data window and fills it with 8-byte values from `fill`. Returns its offset in [`DATA`].
    pub fn window(&mut self, mut fill: impl FnMut() -> u64) -> u64 {
        let at = self.next_window * WINDOW;
        self.next_window += 1;
        assert!(at + WINDOW <= DATA_SIZE, "too many data windows for DATA_SIZE");
        self.data.extend((0..WINDOW / 8).flat_map(|_| fill().to_le_bytes()));
        at
    }

    /// Adds the block whose code is in `asm`, and its closing `ebreak`.
    pub fn add(&mut self, mut asm: Asm, mut block: Block) {
        block.entry = self.next_code;
        block.end = asm.here();
        asm.plain("ebreak");
        self.next_code = asm.here();
        block.code = asm.finish();
        self.code.extend(&block.code);
        assert!(self.next_code <= CODE + CODE_SIZE, "too much code for CODE_SIZE");
        self.log_words += block.log_words();
        assert!(self.log_words * 8 < LOG_SIZE as usize, "the log would not fit in LOG_SIZE");
        self.blocks.push(block);
        assert!(DESCRIPTORS + self.blocks.len() as u64 * DESCRIPTOR_SIZE <= INITIAL, "too many blocks");
    }

    /// A copy of the program with this block only. Code and data keep their addresses.
    pub fn only(&self, block: usize) -> Program {
        self.with(vec![self.blocks[block].clone()])
    }

    /// A copy of the program with other blocks of the same code.
    pub fn with(&self, blocks: Vec<Block>) -> Program {
        Program {
            runtime: runtime::build(1),
            spaces: self.spaces.clone(),
            data: self.data.clone(),
            code: self.code.clone(),
            log_words: blocks.iter().map(Block::log_words).sum(),
            blocks,
            ..*self
        }
    }

    /// Whether there is room for another block of ordinary size.
    pub fn has_room(&self) -> bool {
        self.next_code + 0x4000 < CODE + CODE_SIZE
            && (self.next_window + 1) * WINDOW <= DATA_SIZE
            && (self.log_words + 0x1000) * 8 < LOG_SIZE as usize
            && INITIAL + (self.blocks.len() as u64 + 1) * INITIAL_SIZE <= TABLES
    }

    /// Number of instructions of the tests that certainly run.
    pub fn instructions(&self) -> u64 {
        self.blocks.iter().map(Block::instructions).sum()
    }

    /// Number of the block that contains a code address.
    pub fn block_at(&self, pc: u64) -> Option<usize> {
        self.blocks.iter().position(|b| (b.entry..=b.end).contains(&pc))
    }

    /// Makes the ELF file.
    pub fn elf(&self) -> Vec<u8> {
        let mut descriptors = Vec::new();
        let mut initial = Vec::new();
        for (number, b) in self.blocks.iter().enumerate() {
            let mut d = vec![0; DESCRIPTOR_SIZE as usize / 8];
            let mut set = |at: i64, value: u64| d[at as usize / 8] = value;
            set(descriptor::ENTRY, b.entry);
            set(descriptor::END_PC, b.end);
            set(descriptor::MSTATUS, b.mstatus | (b.mode as u64) << 11 | 0xa_0000_0000);
            set(descriptor::SATP, b.satp);
            set(descriptor::MEDELEG, b.medeleg);
            set(descriptor::MIDELEG, b.mideleg);
            set(descriptor::INITIAL, INITIAL + number as u64 * INITIAL_SIZE);
            set(descriptor::REPEAT, b.repeat);
            set(descriptor::FLAGS, b.flags);
            set(descriptor::HEADER, number as u64);
            descriptors.extend(d.into_iter().flat_map(u64::to_le_bytes));
            initial.extend(b.x.iter().chain(&b.f).chain([&b.fcsr]).flat_map(|v| v.to_le_bytes()));
        }
        let runtime = runtime::build(self.blocks.len());
        assert_eq!((runtime.m_vectors, runtime.s_vectors), (self.runtime.m_vectors, self.runtime.s_vectors));
        let tables: &Tables = &self.spaces.tables;
        elf::write(
            &[
                elf::Segment { at: RUNTIME, data: &runtime.code, size: runtime.code.len() as u64 },
                elf::Segment { at: CONTROL, data: &[], size: DESCRIPTORS - CONTROL },
                elf::Segment { at: DESCRIPTORS, data: &descriptors, size: descriptors.len() as u64 },
                elf::Segment { at: INITIAL, data: &initial, size: initial.len() as u64 },
                elf::Segment { at: TABLES, data: &tables.bytes(), size: tables.bytes().len() as u64 },
                elf::Segment {
                    at: PLAYGROUND,
                    data: &self.spaces.playground,
                    size: self.spaces.playground.len() as u64,
                },
                elf::Segment { at: CODE, data: &self.code, size: self.code.len() as u64 },
                elf::Segment { at: DATA, data: &self.data, size: DATA_SIZE },
                elf::Segment { at: LOG, data: &[], size: LOG_SIZE },
            ],
            // The end covers only what may have been written, so that short programs are cheap to compare.
            &[("begin_signature", DATA), ("end_signature", LOG + (self.log_words as u64 + 8) * 8)],
        )
    }

    /// Number of bytes from [`DATA`] on that are compared.
    pub fn compared(&self) -> usize {
        (LOG - DATA) as usize + (self.log_words + 8) * 8
    }
}
