// SPDX-License-Identifier: Apache-2.0
//! Integer arithmetic on guest registers.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{Block, RAX};
use crate::bugs::{self, Bug};
use crate::op::{Op, SINK, Slot};

impl Block<'_> {
    pub(super) fn binary(&mut self, s: Slot) {
        if s.rd == SINK {
            return;
        }
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        // The destination may also be the second operand.
        let to = if d == b && d != a { RAX } else { d };
        if to != a {
            dynasm!(self.ops; .arch x64; mov Rq(to), Rq(a));
        }
        match s.op {
            Op::Add => dynasm!(self.ops; .arch x64; add Rq(to), Rq(b)),
            Op::Sub => dynasm!(self.ops; .arch x64; sub Rq(to), Rq(b)),
            Op::Xor => dynasm!(self.ops; .arch x64; xor Rq(to), Rq(b)),
            Op::Or => dynasm!(self.ops; .arch x64; or Rq(to), Rq(b)),
            _ => dynasm!(self.ops; .arch x64; and Rq(to), Rq(b)),
        }
        if to != d {
            dynasm!(self.ops; .arch x64; mov Rq(d), Rq(to));
        }
    }

    pub(super) fn binary_word(&mut self, s: Slot) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        if s.op == Op::Addw {
            dynasm!(self.ops; .arch x64; lea eax, [Rq(a) + Rq(b)]);
        } else {
            dynasm!(self.ops; .arch x64; mov eax, Rd(a); sub eax, Rd(b));
        }
        dynasm!(self.ops; .arch x64; movsxd Rq(d), eax);
    }

    pub(super) fn shift(&mut self, s: Slot) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        dynasm!(self.ops; .arch x64; mov ecx, Rd(b); mov rax, Rq(a));
        match s.op {
            Op::Sll => dynasm!(self.ops; .arch x64; shl rax, cl),
            Op::Srl => dynasm!(self.ops; .arch x64; shr rax, cl),
            Op::Sra => dynasm!(self.ops; .arch x64; sar rax, cl),
            Op::Sllw => dynasm!(self.ops; .arch x64; shl eax, cl),
            _ if s.op == Op::Srlw || bugs::has(Bug::SrawLogical) => dynasm!(self.ops; .arch x64; shr eax, cl),
            _ => dynasm!(self.ops; .arch x64; sar eax, cl),
        }
        self.result(d, matches!(s.op, Op::Sllw | Op::Srlw | Op::Sraw));
    }

    /// Moves rax, or the sign-extended eax for a `word`, to `d`.
    pub(super) fn result(&mut self, d: u8, word: bool) {
        if word {
            dynasm!(self.ops; .arch x64; movsxd Rq(d), eax);
        } else {
            dynasm!(self.ops; .arch x64; mov Rq(d), rax);
        }
    }

    pub(super) fn immediate(&mut self, s: Slot) {
        if s.rd == SINK {
            return;
        }
        let a = self.src(s.rs1);
        let d = self.dst(s.rd);
        match s.op {
            Op::Addi if a == d => dynasm!(self.ops; .arch x64; add Rq(d), s.imm),
            Op::Addi => dynasm!(self.ops; .arch x64; lea Rq(d), [Rq(a) + s.imm]),
            Op::Addiw => dynasm!(self.ops; .arch x64; lea eax, [Rq(a) + s.imm]; movsxd Rq(d), eax),
            _ => {
                if a != d {
                    dynasm!(self.ops; .arch x64; mov Rq(d), Rq(a));
                }
                match s.op {
                    Op::Xori => dynasm!(self.ops; .arch x64; xor Rq(d), s.imm),
                    Op::Ori => dynasm!(self.ops; .arch x64; or Rq(d), s.imm),
                    _ => dynasm!(self.ops; .arch x64; and Rq(d), s.imm),
                }
            }
        }
    }

    pub(super) fn shift_immediate(&mut self, s: Slot) {
        let a = self.src(s.rs1);
        let d = self.dst(s.rd);
        let by = s.imm as i8;
        match s.op {
            Op::Slli | Op::Srli | Op::Srai => {
                if a != d {
                    dynasm!(self.ops; .arch x64; mov Rq(d), Rq(a));
                }
                match s.op {
                    Op::Slli => dynasm!(self.ops; .arch x64; shl Rq(d), by & 63),
                    Op::Srli => dynasm!(self.ops; .arch x64; shr Rq(d), by & 63),
                    _ => dynasm!(self.ops; .arch x64; sar Rq(d), by & 63),
                }
            }
            _ => {
                dynasm!(self.ops; .arch x64; mov eax, Rd(a));
                match s.op {
                    Op::Slliw => dynasm!(self.ops; .arch x64; shl eax, by & 31),
                    Op::Srliw => dynasm!(self.ops; .arch x64; shr eax, by & 31),
                    _ => dynasm!(self.ops; .arch x64; sar eax, by & 31),
                }
                self.result(d, true);
            }
        }
    }

    /// Emits code that sets rd to 1 if the last comparison says less, otherwise to 0.
    pub(super) fn set_flag(&mut self, rd: u8, signed: bool) {
        let d = self.dst(rd);
        if signed {
            dynasm!(self.ops; .arch x64; setl al);
        } else {
            dynasm!(self.ops; .arch x64; setb al);
        }
        dynasm!(self.ops; .arch x64; movzx Rd(d), al);
    }

    pub(super) fn multiply(&mut self, s: Slot) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        dynasm!(self.ops; .arch x64; mov rax, Rq(a); imul rax, Rq(b));
        self.result(d, s.op == Op::Mulw);
    }

    pub(super) fn multiply_high(&mut self, s: Slot) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        dynasm!(self.ops; .arch x64; mov rax, Rq(a));
        match s.op {
            Op::Mulh => dynasm!(self.ops; .arch x64; imul Rq(b)),
            _ if s.op == Op::Mulhu || bugs::has(Bug::MulhsuUnsigned) => dynasm!(self.ops; .arch x64; mul Rq(b)),
            _ => dynasm!(self.ops
                ; .arch x64
                ; mul Rq(b)
                ; mov rcx, Rq(a)
                ; sar rcx, 63
                ; and rcx, Rq(b)
                ; sub rdx, rcx),
        }
        dynasm!(self.ops; .arch x64; mov Rq(d), rdx);
    }

    /// Emits a division. Zero divisors and overflow get their results without the host's division instruction.
    pub(super) fn divide(&mut self, s: Slot) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        let d = self.dst(s.rd);
        let word = matches!(s.op, Op::Divw | Op::Divuw | Op::Remw | Op::Remuw);
        let signed = matches!(s.op, Op::Div | Op::Rem | Op::Divw | Op::Remw);
        let quotient = matches!(s.op, Op::Div | Op::Divu | Op::Divw | Op::Divuw);
        let (by_zero, by_minus_one, done) =
            (self.ops.new_dynamic_label(), self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        dynasm!(self.ops; .arch x64; mov rax, Rq(a); mov rcx, Rq(b));
        if word {
            dynasm!(self.ops; .arch x64; test ecx, ecx; jz =>by_zero);
        } else {
            dynasm!(self.ops; .arch x64; test rcx, rcx; jz =>by_zero);
        }
        match (signed, word) {
            (true, true) => dynasm!(self.ops; .arch x64; cmp ecx, -1; je =>by_minus_one; cdq; idiv ecx),
            (true, false) => dynasm!(self.ops; .arch x64; cmp rcx, -1; je =>by_minus_one; cqo; idiv rcx),
            (false, true) => dynasm!(self.ops; .arch x64; xor edx, edx; div ecx),
            (false, false) => dynasm!(self.ops; .arch x64; xor edx, edx; div rcx),
        }
        if !quotient {
            dynasm!(self.ops; .arch x64; mov rax, rdx);
        }
        dynasm!(self.ops; .arch x64; jmp =>done; =>by_minus_one);
        if signed {
            if quotient {
                dynasm!(self.ops; .arch x64; neg rax);
            } else if !bugs::has(Bug::RemainderOfMinusOne) {
                dynasm!(self.ops; .arch x64; xor eax, eax);
            }
            dynasm!(self.ops; .arch x64; jmp =>done);
        }
        dynasm!(self.ops; .arch x64; =>by_zero);
        if quotient {
            dynasm!(self.ops; .arch x64; mov rax, -1);
        }
        dynasm!(self.ops; .arch x64; =>done);
        self.result(d, word);
    }
}
