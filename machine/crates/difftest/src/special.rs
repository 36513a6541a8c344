// SPDX-License-Identifier: Apache-2.0
//! Hand-made parts of self-hashing blocks: self-modifying code, faults, changing page tables, and visits to U-mode.

use crate::cells::{Kind, state};
use crate::insn::{Form, Insn, WIDE};
use crate::layout::*;
use crate::program::Mode;
use crate::random::Generator;
use crate::runtime::csr;
use crate::tables::{DATA_OFFSET, SCRATCH, SCRATCH_PAGES, Spaces};

/// Number of random instructions between two special parts.
const PIECE: usize = 40;
const SUM_AND_MXR: u64 = 3 << 18;
const SPP: u64 = 1 << 8;

impl Generator<'_> {
    /// Emits the code of a cell.
    pub(crate) fn special(&mut self, kind: Kind, spaces: &Spaces) {
        for _ in 0..3 {
            self.body(PIECE);
            match kind {
                Kind::Random => {}
                Kind::Patching => self.patch(),
                Kind::Faults => self.touch_anything(),
                Kind::Remapping => self.remap(spaces),
                Kind::Visiting => self.visit(),
            }
        }
        self.body(PIECE / 2);
    }

    /// A random instruction that computes in registers that the cell may use.
    pub(crate) fn arithmetic(&mut self) -> u32 {
        let forms = [Form::R, Form::Shift32, Form::Shift64, Form::U];
        let rows: Vec<&Insn> = WIDE.iter().filter(|i| forms.contains(&i.form)).collect();
        let row = self.rng.choice(&rows).expect("not empty");
        let (rd, rs1, rs2) = (u32::from(self.rd()), u32::from(self.rs()), u32::from(self.rs()));
        let operands = match row.form {
            Form::R => rs1 << 15 | rs2 << 20,
            Form::Shift32 => rs1 << 15 | self.rng.u32(..32) << 20,
            Form::Shift64 => rs1 << 15 | self.rng.u32(..64) << 20,
            _ => self.rng.u32(..) & 0xffff_f000,
        };
        row.bits | rd << 7 | operands
    }

    /// Emits code that sets `register` to an address in the table whose address is in state field `table`: a new one each round.
    fn choose(&mut self, register: u8, table: i64) {
        let other = self.fresh(&[register]);
        let shift = self.rng.i64(24..50);
        let (random, table) = (self.state(state::RANDOM), self.state(table));
        self.a.i("ld", register, 2, random);
        self.a.i("srli", register, register, shift);
        self.a.i("andi", register, register, 0x7f8);
        self.a.i("ld", other, 2, table);
        self.a.r("add", register, register, other);
    }

    /// Emits an instruction that another one replaces in some rounds.
    fn patch(&mut self) {
        let at = self.fresh(&[]);
        let other = self.fresh(&[at]);
        let shift = self.rng.i64(16..44);
        let (random, words) = (self.state(state::RANDOM), self.state(state::WORDS));
        let slot = self.a.label();
        self.a.i("ld", at, 2, random);
        self.a.i("srli", at, at, shift);
        self.a.i("andi", other, at, 31);
        self.a.b("bne", other, 0, slot);
        self.a.i("srli", at, at, 6);
        self.a.i("andi", at, at, 31 << 2);
        self.a.r("add", at, at, 2);
        self.a.i("lw", at, at, words);
        self.a.la(other, slot);
        let word = self.arithmetic();
        // The instruction and the code that replaces it must only be left out together.
        self.span(|g| {
            g.a.s("sw", at, other, 0);
            g.a.plain("fence.i");
            g.a.bind(slot);
            g.a.word(word);
        });
    }

    /// Emits an access to the page at the address in `at`, and notes which instruction ran. `fetches`: it may be a fetch.
    fn access(&mut self, at: u8, fetches: bool) {
        let taken: Vec<u8> = self.pointers.iter().map(|p| p.0).chain([at]).collect();
        let (register, f) = (self.fresh(&taken), self.rng.u8(..32));
        let offset = (DATA_OFFSET + 8 * self.rng.u64(..16)) as i64;
        let supervisor = self.block.mode == Mode::Supervisor;
        match self.rng.u8(..if fetches { 10 } else { 8 }) {
            0..3 => {
                let name = *self.rng.choice(&["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu"]).expect("not empty");
                self.span(|g| g.a.i(name, register, at, offset));
                self.ran(name);
            }
            3 => {
                let name = if self.rng.bool() { "flw" } else { "fld" };
                self.span(|g| g.a.i(name, f, at, offset));
                self.ran(name);
            }
            4..6 => {
                let name = *self.rng.choice(&["sb", "sh", "sw", "sd"]).expect("not empty");
                self.span(|g| g.a.s(name, register, at, offset));
                self.ran(name);
            }
            6 => {
                let name = if self.rng.bool() { "fsw" } else { "fsd" };
                self.span(|g| g.a.s(name, f, at, offset));
                self.ran(name);
            }
            7 => {
                self.a.i("addi", at, at, offset);
                let name = *self.rng.choice(&["amoadd.d", "amoswap.w", "amomaxu.d", "lr.d"]).expect("not empty");
                let source = if name == "lr.d" { 0 } else { self.rs() };
                self.span(|g| g.a.r(name, register, at, source));
                self.ran(name);
            }
            _ => {
                // QEMU 7.2 lets S-mode fetch from a user page that a load with SUM has just read, until the next fence.
                if supervisor {
                    self.a.plain("sfence.vma");
                    self.ran("sfence.vma");
                }
                self.span(|g| g.a.i("jalr", 1, at, 0));
                self.ran("jalr");
            }
        }
    }

    /// Emits an access to one of the pages that are mapped in all ways.
    fn touch_anything(&mut self) {
        // jalr writes ra.
        let at = self.fresh(&[1]);
        if self.block.mode == Mode::Supervisor {
            let [bits, mask] = [(); 2].map(|()| self.fresh(&[at]));
            if bits != mask {
                let random = self.state(state::RANDOM);
                self.a.li(mask, SUM_AND_MXR);
                self.a.i("ld", bits, 2, random);
                self.a.r("and", bits, bits, mask);
                self.a.csr("csrrc", 0, csr::SSTATUS, mask);
                self.a.csr("csrrs", 0, csr::SSTATUS, bits);
            }
        }
        self.choose(at, state::CASES);
        self.a.i("ld", at, at, 0);
        self.access(at, true);
    }

    /// Emits code that changes the entry of a page and accesses the page.
    fn remap(&mut self, spaces: &Spaces) {
        let page = self.rng.u64(..SCRATCH_PAGES);
        let at = self.fresh(&[1]);
        let slot = self.fresh(&[1, at]);
        self.choose(at, state::ENTRIES);
        self.a.i("ld", at, at, 0);
        self.a.li(slot, spaces.scratch_table + page * 8);
        self.a.s("sd", at, slot, 0);
        self.a.li(at, SCRATCH + page * 4096);
        let fenced = if self.rng.bool() { 0 } else { at };
        self.a.r("sfence.vma", 0, fenced, 0);
        self.ran("sfence.vma");
        for _ in 0..self.rng.u8(1..4) {
            self.a.li(at, SCRATCH + page * 4096);
            self.access(at, true);
        }
    }

    /// Emits some instructions in U-mode, where the window cannot be accessed. A delegated exception ends the visit.
    fn visit(&mut self) {
        let (user, back) = (self.a.label(), self.a.label());
        let [at, other] = loop {
            let pair = [(); 2].map(|()| self.fresh(&[]));
            if pair[0] != pair[1] {
                break pair;
            }
        };
        let stvec = self.state(state::STVEC);
        self.a.la(at, back);
        self.a.csr("csrrw", at, csr::STVEC, at);
        self.a.s("sd", at, 2, stvec);
        self.a.la(at, user);
        self.a.li(other, USER_CODE - CODE);
        self.a.r("add", at, at, other);
        self.a.csr("csrrw", 0, csr::SEPC, at);
        self.a.li(other, SPP);
        self.a.csr("csrrc", 0, csr::SSTATUS, other);
        self.a.plain("sret");
        self.a.bind(user);
        self.in_reach = false;
        self.perhaps(|g| (0..16).for_each(|_| g.straight()));
        self.in_reach = true;
        self.a.plain("ecall");
        // A trap vector must be a multiple of four.
        self.a.align(4);
        self.a.bind(back);
        self.a.i("ld", at, 2, stvec);
        self.a.csr("csrrw", 0, csr::STVEC, at);
        for name in ["csrrw", "sret", "csrrw"] {
            self.ran(name);
        }
    }
}
