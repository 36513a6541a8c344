// SPDX-License-Identifier: Apache-2.0
//! Blocks of random instructions, in every mode.

use fastrand::Rng;

use crate::asm::{Asm, Label};
use crate::insn::{self, CForm, Form, Insn, SHORT, WIDE};
use crate::layout::*;
use crate::operands;
use crate::program::{Block, Mode, Program};
use crate::runtime::csr;
use crate::tables::Spaces;

/// Number of instructions at which a block aims.
const LENGTH: usize = 90;
/// Immediates for which the machine takes `slti x0, x0` for a marker.
const MARKERS: std::ops::RangeInclusive<u32> = 0x7a1..=0x7a8;
/// CSRs that random code of each mode reads and writes, because they have no effect on how it continues.
/// mtval is left out: after a breakpoint it may be zero or the address.
const M_CSRS: [u16; 6] = [csr::STVAL, csr::SCAUSE, csr::MCAUSE, csr::FCSR, 0x001, 0x002];
const S_CSRS: [u16; 5] = [csr::STVAL, csr::SCAUSE, csr::FCSR, 0x001, 0x002];
const U_CSRS: [u16; 3] = [csr::FCSR, 0x001, 0x002];

/// A part of a block's code that may be left out: from its first byte's address up to the first address after it.
pub type Span = std::ops::Range<u64>;

/// Emits random instructions.
pub(crate) struct Generator<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) a: Asm,
    pub(crate) block: Block,
    /// Registers that hold addresses in the block's window, with their offset in the window. They are never written.
    pub(crate) pointers: Vec<(u8, u64)>,
    /// Register that counts the rounds of the loop around. Other code never writes it.
    counter: Option<u8>,
    /// Whether the code may be skipped by a branch.
    uncertain: bool,
    certain_factor: u64,
    /// Offset in the window where a page ends, if some accesses should cross the page border.
    pub(crate) page_end: Option<u64>,
    /// Whether the code can access the window. Only then do loops end that wait until an SC succeeds.
    pub(crate) in_reach: bool,
    /// Parts that may be left out, in the order of their addresses.
    pub(crate) spans: Vec<Span>,
}

/// Adds a block of random instructions.
pub fn block(program: &mut Program, rng: &mut Rng, number: u64) {
    let (mode, paging) = match rng.u8(..8) {
        0 | 1 => (Mode::Machine, false),
        2 => (Mode::Supervisor, false),
        3 | 4 => (Mode::Supervisor, true),
        5 => (Mode::User, false),
        _ => (Mode::User, true),
    };
    let name = format!("random {number}, {mode:?}{}", if paging { " with Sv39" } else { "" });
    let mut block = Block::new(name, mode);
    let window = program.window(|| operands::memory(rng));
    if paging {
        block.satp = if mode == Mode::User { program.spaces.u_satp } else { program.spaces.s_satp };
    }
    for x in 1..32 {
        block.x[x] = operands::integer(rng);
        block.f[x] = operands::floating(rng);
    }
    block.f[0] = operands::floating(rng);
    // Mostly legal rounding modes. With a reserved one every instruction that uses it is illegal.
    let frm = if rng.u8(..40) == 0 { rng.u64(5..8) } else { rng.u64(..5) };
    block.fcsr = frm << 5 | rng.u64(..32);
    block.repeat = rng.u64(1..=3);

    // A window across a page border is not contiguous in the alias.
    let whole = window / 4096 == (window + WINDOW - 1) / 4096;
    let mut pointers = Vec::new();
    let any = 16 + rng.u8(..16);
    for register in [2, 8 + rng.u8(..4), 12 + rng.u8(..4), any] {
        let offset = rng.u64(..900) & if rng.bool() { !7 } else { !0 };
        let at = if paging && whole { Spaces::alias(window) } else { DATA + window };
        block.x[usize::from(register)] = at + offset;
        pointers.push((register, offset));
    }
    let mut g = Generator::new(rng, program.asm(), block, pointers, 1);
    g.body(LENGTH);
    let Generator { a, mut block, .. } = g;
    // This is a limit. On average there are far fewer, from reserved rounding modes and words.
    block.traps = LENGTH as u64 / 2;
    program.add(a, block);
}

impl<'a> Generator<'a> {
    /// Creates a generator for code that runs `rounds` times in each run of the block.
    pub(crate) fn new(rng: &'a mut Rng, a: Asm, block: Block, pointers: Vec<(u8, u64)>, rounds: u64) -> Self {
        Generator {
            rng,
            a,
            block,
            pointers,
            counter: None,
            uncertain: false,
            certain_factor: rounds,
            page_end: None,
            in_reach: true,
            spans: Vec::new(),
        }
    }

    /// Emits about `length` instructions.
    pub(crate) fn body(&mut self, length: usize) {
        let end = self.a.here() + length as u64 * 4;
        while self.a.here() < end {
            match self.rng.u8(..40) {
                0 => self.counted_loop(),
                1 => self.jump(),
                2..6 => self.branch(),
                _ => self.straight(),
            }
        }
    }

    /// Emits a part that may be left out as a whole.
    pub(crate) fn span(&mut self, emit: impl FnOnce(&mut Self)) {
        let from = self.a.here();
        emit(self);
        if self.a.here() > from {
            self.spans.push(from..self.a.here());
        }
    }

    pub(crate) fn ran(&mut self, name: &'static str) {
        if !self.uncertain {
            *self.block.executed.entry(name).or_default() += self.certain_factor;
        }
    }

    /// A random register that may be written, because the block does not rely on it.
    pub(crate) fn rd(&mut self) -> u8 {
        loop {
            let r = self.rng.u8(..32);
            if !self.pointers.iter().any(|p| p.0 == r) && self.counter != Some(r) {
                return r;
            }
        }
    }

    pub(crate) fn rs(&mut self) -> u8 {
        self.rng.u8(..32)
    }

    fn counted_loop(&mut self) {
        if self.counter.is_some() || self.uncertain {
            return;
        }
        let counter = loop {
            let r = self.rd();
            // c.bnez needs a register from x8 to x15.
            if (8..16).contains(&r) {
                break r;
            }
        };
        let rounds = self.rng.u64(2..5);
        self.a.li(counter, rounds);
        self.counter = Some(counter);
        self.certain_factor *= rounds;
        let top = self.a.bound();
        for _ in 0..self.rng.u8(1..12) {
            self.straight();
        }
        self.a.i("addi", counter, counter, -1);
        self.ran("addi");
        match self.rng.u8(..4) {
            0 => {
                self.a.cb(false, counter, top);
                self.ran("c.bnez");
            }
            1 => {
                self.a.b("blt", 0, counter, top);
                self.ran("blt");
            }
            2 => {
                self.a.b("bltu", 0, counter, top);
                self.ran("bltu");
            }
            _ => {
                self.a.b("bne", counter, 0, top);
                self.ran("bne");
            }
        }
        self.counter = None;
        self.certain_factor /= rounds;
    }

    /// Emits a few instructions that may be skipped. They do not count as having run.
    fn skipped(&mut self) {
        let count = self.rng.u8(..5);
        self.perhaps(|g| (0..count).for_each(|_| g.straight()));
    }

    /// Emits code that may not run to its end.
    pub(crate) fn perhaps(&mut self, emit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.uncertain, true);
        emit(self);
        self.uncertain = outer;
    }

    /// Whether the register holds an address in the window.
    pub(crate) fn is_pointer(&self, register: u8) -> bool {
        self.pointers.iter().any(|p| p.0 == register)
    }

    fn branch(&mut self) {
        let target = self.a.label();
        self.span(|g| g.branch_to(target));
        self.skipped();
        self.a.bind(target);
    }

    fn branch_to(&mut self, target: Label) {
        if self.rng.u8(..3) == 0 {
            let equal = self.rng.bool();
            let r = 8 + self.rng.u8(..8);
            self.a.cb(equal, r, target);
            self.ran(if equal { "c.beqz" } else { "c.bnez" });
        } else {
            let rows: Vec<&Insn> = WIDE.iter().filter(|i| i.form == Form::Branch).collect();
            let row = self.rng.choice(&rows).expect("not empty").name;
            let (rs1, mut rs2) = (self.rs(), self.rs());
            if self.rng.u8(..6) == 0 {
                rs2 = rs1;
            }
            self.a.b(row, rs1, rs2, target);
            self.ran(row);
        }
    }

    fn jump(&mut self) {
        let target = self.a.label();
        self.span(|g| g.jump_to(target));
        self.skipped();
        self.a.bind(target);
    }

    fn jump_to(&mut self, target: Label) {
        let link = self.rd();
        match self.rng.u8(..5) {
            0 => {
                self.a.cj(target);
                self.ran("c.j");
            }
            1 => {
                self.a.jal(link, target);
                self.ran("jal");
            }
            kind => {
                let to = self.fresh(&[]);
                self.a.la(to, target);
                self.ran("auipc");
                match kind {
                    2 => {
                        self.a.half(0x8002 | u16::from(to) << 7);
                        self.ran("c.jr");
                    }
                    // c.jalr writes its return address to ra.
                    3 if !self.pointers.iter().any(|p| p.0 == 1) && self.counter != Some(1) => {
                        self.a.half(0x9002 | u16::from(to) << 7);
                        self.ran("c.jalr");
                    }
                    _ => {
                        // jalr ignores the lowest bit of the target.
                        let odd = self.rng.i64(0..2);
                        self.a.i("jalr", link, to, odd);
                        self.ran("jalr");
                    }
                }
            }
        }
    }

    pub(crate) fn straight(&mut self) {
        self.span(Self::any);
    }

    fn any(&mut self) {
        match self.rng.u8(..100) {
            0..22 => self.short(),
            22..24 => self.reserved(),
            24..27 if self.in_reach => self.load_reserved(),
            27 => self.environment(),
            // Give registers new operands, so that not everything becomes NaN.
            28..31 => {
                let rd = self.rd();
                let value = operands::integer(self.rng);
                self.a.li(rd, value);
            }
            _ => {
                // A quarter of the table already consists of loads, stores and AMOs.
                let row = self.rng.choice(WIDE).expect("not empty");
                self.wide(row);
            }
        }
    }

    /// A random pointer, and an offset from it at which 16 bytes are inside the window.
    fn place(&mut self, align: u64) -> (u8, i64) {
        let (register, base) = *self.rng.choice(&self.pointers).expect("never empty");
        let mut to = self.rng.u64(..WINDOW - 16);
        if let Some(end) = self.page_end
            && self.rng.u8(..12) == 0
        {
            return (register, (end - self.rng.u64(1..8)) as i64 - base as i64);
        }
        if self.rng.u8(..4) > 0 {
            to &= !(align - 1);
        }
        (register, to as i64 - base as i64)
    }

    fn rounding(&mut self) -> u32 {
        match self.rng.u8(..64) {
            0 => self.rng.u32(5..7),
            1..24 => self.rng.u32(..5),
            _ => 7,
        }
    }

    /// Emits a 32-bit instruction.
    fn wide(&mut self, row: &'static Insn) {
        let (rd, rs1, rs2) = (u32::from(self.rd()), u32::from(self.rs()), u32::from(self.rs()));
        let f = [self.rng.u32(..32), self.rng.u32(..32), self.rng.u32(..32), self.rng.u32(..32)];
        let imm = self.rng.u32(..4096);
        let (d, s1, s2) = (rd << 7, rs1 << 15, rs2 << 20);
        let (fd, fs1, fs2) = (f[0] << 7, f[1] << 15, f[2] << 20);
        let operands = match row.form {
            Form::R => d | s1 | s2,
            Form::I => {
                if row.name == "slti" && rd == 0 && rs1 == 0 && MARKERS.contains(&imm) {
                    return;
                }
                d | s1 | imm << 20
            }
            Form::Shift64 => d | s1 | (imm & 63) << 20,
            Form::Shift32 => d | s1 | (imm & 31) << 20,
            Form::U => d | self.rng.u32(..) & 0xffff_f000,
            Form::Load | Form::LoadFp => {
                let (p, offset) = self.place(8);
                let d = if row.form == Form::Load { d } else { fd };
                d | u32::from(p) << 15 | (offset as u32) << 20
            }
            Form::Store | Form::StoreFp => {
                let (p, offset) = self.place(8);
                let o = offset as u32;
                let s2 = if row.form == Form::Store { s2 } else { fs2 };
                s2 | u32::from(p) << 15 | (o & 31) << 7 | (o >> 5 & 0x7f) << 25
            }
            Form::Amo => {
                let address = self.address(if row.name.ends_with('w') { 4 } else { 8 });
                d | u32::from(address) << 15 | s2 | self.rng.u32(..4) << 25
            }
            Form::F2 => fd | fs1 | fs2,
            Form::F2Round => fd | fs1 | fs2 | self.rounding() << 12,
            Form::F1Round => fd | fs1 | self.rounding() << 12,
            Form::F3Round => fd | fs1 | fs2 | f[3] << 27 | self.rounding() << 12,
            Form::FCompare => d | fs1 | fs2,
            Form::FToInt => d | fs1,
            Form::FToIntRound => d | fs1 | self.rounding() << 12,
            Form::IntToF => fd | s1,
            Form::IntToFRound => fd | s1 | self.rounding() << 12,
            Form::Fence => imm << 20,
            Form::FenceI => 0,
            Form::Csr | Form::CsrI => {
                let set: &[u16] = match self.block.mode {
                    Mode::Machine => &M_CSRS,
                    Mode::Supervisor => &S_CSRS,
                    Mode::User => &U_CSRS,
                };
                d | s1 | u32::from(*self.rng.choice(set).expect("not empty")) << 20
            }
            // Other functions emit these, with their labels and partners.
            Form::Branch | Form::Jal | Form::Jalr | Form::Lr | Form::Sc | Form::System | Form::Sfence => return,
        };
        self.a.word(row.bits | operands);
        self.ran(row.name);
    }

    /// Emits code that puts an address in the window, usually an aligned one, into a register; returns the register.
    fn address(&mut self, align: u64) -> u8 {
        let mask = if self.rng.u8(..16) == 0 { 0 } else { align - 1 };
        self.place_in_register(mask)
    }

    fn place_in_register(&mut self, clear: u64) -> u8 {
        let (p, base) = *self.rng.choice(&self.pointers).expect("never empty");
        let at = self.rng.u64(..WINDOW - 16) & !clear;
        let r = self.fresh(&[]);
        self.a.i("addi", r, p, at as i64 - base as i64);
        r
    }

    /// Emits LR and SC in a loop that must succeed in the end, because either machine may let an SC fail at any time. Then
    /// emits an SC without a reservation, which must fail.
    fn load_reserved(&mut self) {
        let (width, align) = if self.rng.bool() { ("w", 4) } else { ("d", 8) };
        // Always aligned: in QEMU a misaligned SC fails without the exception that the specification requires.
        let address = self.place_in_register(align - 1);
        let [rd, to, success] = [(); 3].map(|()| self.fresh(&[address]));
        let (from, source) = (self.rs(), self.rs());
        if to == from || to == success || rd == success || success == from || success == source {
            return;
        }
        let order = self.rng.u32(..4) << 25;
        let lr = insn::by_name(if width == "w" { "lr.w" } else { "lr.d" });
        let sc = insn::by_name(if width == "w" { "sc.w" } else { "sc.d" });
        let store = |to: u8| sc.bits | order | u32::from(to) << 7 | u32::from(address) << 15 | u32::from(source) << 20;
        let top = self.a.bound();
        self.a.word(lr.bits | order | u32::from(rd) << 7 | u32::from(address) << 15);
        self.a.i("xori", to, from, 5);
        self.a.word(store(success));
        self.a.b("bne", success, 0, top);
        for name in [lr.name, "xori", sc.name, "bne"] {
            self.ran(name);
        }
        if self.rng.bool() {
            let failure = self.rd();
            self.a.word(store(failure));
            self.ran(sc.name);
        }
    }

    /// A random register that may be written and is neither x0 nor in `taken`.
    pub(crate) fn fresh(&mut self, taken: &[u8]) -> u8 {
        loop {
            let r = self.rd();
            if r != 0 && !taken.contains(&r) {
                return r;
            }
        }
    }

    /// Emits a 16-bit instruction.
    pub(crate) fn short(&mut self) {
        let row = self.rng.choice(SHORT).expect("not empty");
        let random = self.rng.u16(..) & !row.mask | row.bits;
        // The word may belong to an earlier row, or be a reserved form, which `reserved` tests.
        let Some(row) = insn::find_short(random) else { return };
        let half = match row.form {
            CForm::Compute => {
                if !self.writable(random) {
                    return;
                }
                random
            }
            CForm::Load(size) | CForm::Store(size) => {
                let compact: Vec<_> = self.pointers.iter().filter(|p| (8..16).contains(&p.0)).copied().collect();
                let (p, base) = *self.rng.choice(&compact).expect("two of the pointers must be in x8..x15");
                // The largest offset is 31 * 8.
                debug_assert!(base + 31 * u64::from(size) < WINDOW);
                let half = random & !(7 << 7) | u16::from(p - 8) << 7;
                if let ("c.lw" | "c.ld", true) = (row.name, self.reserved_register(8 + (half >> 2 & 7) as u8)) {
                    return;
                }
                half
            }
            CForm::LoadSp(_) => {
                if row.name != "c.fldsp" && self.reserved_register((random >> 7 & 31) as u8) {
                    return;
                }
                random
            }
            CForm::StoreSp(_) => random,
            CForm::Jump | CForm::Branch | CForm::JumpRegister | CForm::Break => return,
        };
        self.a.half(half);
        self.ran(row.name);
    }

    fn reserved_register(&self, r: u8) -> bool {
        self.counter == Some(r) || self.pointers.iter().any(|p| p.0 == r)
    }

    /// Whether a 16-bit instruction that computes may write its destination.
    fn writable(&self, half: u16) -> bool {
        let rd = match (half & 3, half >> 13) {
            (0, _) => 8 + (half >> 2 & 7),
            (1, 4) => 8 + (half >> 7 & 7),
            _ => half >> 7 & 31,
        };
        !self.reserved_register(rd as u8)
    }

    /// Emits bits that are not an instruction. Both machines must say so, with the bits as trap value.
    fn reserved(&mut self) {
        for _ in 0..20 {
            let word = self.rng.u32(..) | 3;
            let opcode = word & 0x7f;
            // The CSR tests cover SYSTEM; custom opcodes and longer formats may exist on one of the machines.
            if insn::find_wide(word).is_none() && opcode != 0x73 && word & 0x1f != 0x1f {
                self.a.word(word);
                return;
            }
        }
    }

    fn environment(&mut self) {
        if self.rng.bool() {
            self.a.plain("ecall");
            self.ran("ecall");
        } else if self.rng.bool() {
            self.a.plain("ebreak");
            self.ran("ebreak");
        } else {
            self.a.half(0x9002);
            self.ran("c.ebreak");
        }
    }
}

/// Adds blocks with every 16-bit word that only computes or is reserved.
pub fn all_short_words(program: &mut Program, rng: &mut Rng) {
    let words: Vec<u16> = (0..=u16::MAX)
        .filter(|h| h & 3 != 3)
        .filter(|&h| insn::find_short(h).is_none_or(|row| row.form == CForm::Compute))
        .collect();
    for (n, chunk) in words.chunks(400).enumerate() {
        let mode = [Mode::Machine, Mode::Supervisor, Mode::User][n % 3];
        let mut block =
            Block::new(format!("16-bit words {:04x}..{:04x}, {mode:?}", chunk[0], chunk[chunk.len() - 1]), mode);
        for x in block.x.iter_mut().skip(1) {
            *x = operands::integer(rng);
        }
        let mut a = program.asm();
        for &half in chunk {
            a.half(half);
            match insn::find_short(half) {
                Some(row) => block.ran(row.name),
                None => block.traps += 1,
            }
        }
        program.add(a, block);
    }
}

/// Adds blocks of random 32-bit words in every opcode, except words that access memory, jump, or change how the program
/// continues. Adds every word of SYSTEM without a register as well.
pub fn raw_words(program: &mut Program, rng: &mut Rng) {
    let harmless = |word: u32| match insn::find_wide(word) {
        None => true,
        Some(row) if row.name == "slti" && word & 0xf_8f80 == 0 => !MARKERS.contains(&(word >> 20)),
        Some(row) => matches!(
            row.form,
            Form::R
                | Form::I
                | Form::Shift64
                | Form::Shift32
                | Form::U
                | Form::F2
                | Form::F2Round
                | Form::F1Round
                | Form::F3Round
                | Form::FCompare
                | Form::FToInt
                | Form::FToIntRound
                | Form::IntToF
                | Form::IntToFRound
                | Form::Fence
                | Form::FenceI
        ),
    };
    let system = (0..4096).flat_map(|imm: u32| [imm << 20 | 0x73, imm << 20 | 0x4073]);
    // Opcodes below 0x1f, except custom ones and those of longer formats, which may exist on one of the machines.
    let opcodes: Vec<u32> = (0..32).filter(|o| o & 7 != 7 && ![2, 10, 22, 30, 28].contains(o)).collect();
    let random = std::iter::repeat_with(|| {
        let opcode = *rng.choice(&opcodes).expect("not empty");
        rng.u32(..) & !0x7f | opcode << 2 | 3
    });
    let words: Vec<u32> = system.chain(random.take(24_000)).filter(|&w| harmless(w)).collect();
    for (n, chunk) in words.chunks(500).enumerate() {
        let mode = [Mode::Machine, Mode::Supervisor, Mode::User][n % 3];
        let mut block = Block::new(format!("32-bit words, piece {n}, {mode:?}"), mode);
        for x in 1..32 {
            block.x[x] = operands::integer(rng);
            block.f[x] = operands::floating(rng);
        }
        let mut a = program.asm();
        for &word in chunk {
            a.word(word);
            match insn::find_wide(word) {
                Some(row) => block.ran(row.name),
                None => block.traps += 1,
            }
        }
        block.traps += 100;
        program.add(a, block);
    }
}
