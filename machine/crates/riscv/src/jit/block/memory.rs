// SPDX-License-Identifier: Apache-2.0
//! Loads, stores, and instructions that call a function.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Block, Cold, POOL};
use crate::bugs::{self, Bug};
use crate::entry::PAGE_MASK;
use crate::jit::calls::{self, Call, pack};
use crate::jit::layout;
use crate::lines::{LINE_MASK, LINE_SHIFT};
use crate::op::{Op, Slot};

impl Block<'_> {
    /// Emits the look-up of the address in rax. It leaves the entry's addend in rcx, or jumps to `slow` if there is no entry.
    pub(super) fn look_up(&mut self, size: i32, tag: i32, slow: DynamicLabel) {
        let (unit, unit_shift, indices) = match self.prices.predictor {
            None => (PAGE_MASK, trapless_memory::PAGE_SHIFT, layout::DATA_INDEX),
            Some(_) => (LINE_MASK, LINE_SHIFT, layout::LINE_INDEX),
        };
        let mask = unit as i32 | (size - 1);
        let shift = unit_shift as i8 - layout::DATA_ENTRY_SHIFT as i8;
        dynasm!(self.ops
            ; .arch x64
            ; mov rcx, rax
            ; mov rdx, rax
            ; shr rcx, shift
            ; and rdx, mask
            ; and ecx, indices
            ; cmp rdx, [r13 + rcx + tag]
            ; jne =>slow
            ; mov rcx, [r13 + rcx + layout::ADDEND]);
    }

    pub(super) fn load(&mut self, s: Slot, index: usize) {
        let (slow, resume) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        let a = self.src(s.rs1);
        dynasm!(self.ops; .arch x64; lea rax, [Rq(a) + s.imm]);
        let size = match s.op {
            Op::Lb | Op::Lbu => 1,
            Op::Lh | Op::Lhu => 2,
            Op::Lw | Op::Lwu | Op::Flw => 4,
            _ => 8,
        };
        // Make room for the destination first: that may write another register back, which the exit must know.
        let before_dst = self.find(s.rd);
        if before_dst.is_none() {
            let i = self.place(s.rd, false);
            self.cache[i] = None;
        }
        let before = self.cache;
        self.look_up(size, layout::READ, slow);
        let d = self.dst(s.rd);
        match s.op {
            Op::Lb => dynasm!(self.ops; .arch x64; movsx Rq(d), BYTE [rax + rcx]),
            Op::Lh => dynasm!(self.ops; .arch x64; movsx Rq(d), WORD [rax + rcx]),
            Op::Lw => dynasm!(self.ops; .arch x64; movsxd Rq(d), DWORD [rax + rcx]),
            Op::Lbu => dynasm!(self.ops; .arch x64; movzx Rd(d), BYTE [rax + rcx]),
            Op::Lhu => dynasm!(self.ops; .arch x64; movzx Rd(d), WORD [rax + rcx]),
            Op::Lwu => dynasm!(self.ops; .arch x64; mov Rd(d), [rax + rcx]),
            Op::Flw if bugs::has(Bug::FlwUnboxed) => dynasm!(self.ops; .arch x64; mov Rd(d), [rax + rcx]),
            Op::Flw => dynasm!(self.ops
                ; .arch x64
                ; mov ecx, [rax + rcx]
                ; mov rax, QWORD -0x1_0000_0000
                ; or rax, rcx
                ; mov Rq(d), rax),
            _ => dynasm!(self.ops; .arch x64; mov Rq(d), [rax + rcx]),
        }
        dynasm!(self.ops; .arch x64; =>resume);
        self.cold.push(Cold::Slow { label: slow, index, before, after: self.cache, cost: self.cost, resume });
    }

    pub(super) fn store(&mut self, s: Slot, index: usize) {
        let (slow, resume) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        dynasm!(self.ops; .arch x64; lea rax, [Rq(a) + s.imm]);
        let size = match s.op {
            Op::Sb => 1,
            Op::Sh => 2,
            Op::Sw | Op::Fsw => 4,
            _ => 8,
        };
        self.look_up(size, layout::WRITE, slow);
        match size {
            1 => dynasm!(self.ops; .arch x64; mov [rax + rcx], Rb(b)),
            2 => dynasm!(self.ops; .arch x64; mov [rax + rcx], Rw(b)),
            4 => dynasm!(self.ops; .arch x64; mov [rax + rcx], Rd(b)),
            _ => dynasm!(self.ops; .arch x64; mov [rax + rcx], Rq(b)),
        }
        dynasm!(self.ops; .arch x64; =>resume);
        let cache = self.cache;
        self.cold.push(Cold::Slow { label: slow, index, before: cache, after: cache, cost: self.cost, resume });
    }

    /// Emits an instruction that needs floating point. If the state is not dirty already, the interpreter executes it. If the
    /// instruction itself `dirties` the state, no further check is needed in the block.
    pub(super) fn with_fp(&mut self, index: usize, dirties: bool, emit: impl FnOnce(&mut Self)) {
        if self.fp_checked {
            return emit(self);
        }
        self.fp_checked = dirties;
        let (label, resume) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        dynasm!(self.ops; .arch x64; cmp BYTE [rbx + layout::FP_DIRTY], 0; je =>label);
        let before = self.cache;
        emit(self);
        dynasm!(self.ops; .arch x64; =>resume);
        self.cold.push(Cold::Slow { label, index, before, after: self.cache, cost: self.cost, resume });
    }

    /// Emits a call that executes the instruction or leaves it to the interpreter. All host registers of the pool are lost.
    pub(super) fn call(&mut self, s: Slot, index: usize, function: Call) {
        self.write_back(self.cache);
        self.cache = [None; POOL.len()];
        let (label, resume) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        dynasm!(self.ops
            ; .arch x64
            ; lea rdi, [rbx + layout::HART]
            ; mov rsi, QWORD pack(s) as i64
            ; mov rax, QWORD function as *const () as i64
            ; call rax
            ; test al, al
            ; jz =>label
            ; =>resume);
        let cache = self.cache;
        self.cold.push(Cold::Slow { label, index, before: cache, after: cache, cost: self.cost, resume });
    }

    /// Emits LR, SC or AMO. LR also notes the time.
    pub(super) fn atomic(&mut self, s: Slot, index: usize) {
        if s.op == Op::Lr {
            dynasm!(self.ops
                ; .arch x64
                ; mov rcx, QWORD self.cost as i64
                ; add rcx, r12
                ; mov [rbx + layout::ACC], rcx);
        }
        let function = match s.op {
            Op::Lr => calls::load_reserved,
            Op::Sc => calls::store_conditional,
            _ => calls::amo,
        };
        self.call(s, index, function);
        self.check_limit(index + 2);
    }

    /// Emits an access to a CSR that mostly has an effect on the hart only.
    pub(super) fn csr(&mut self, s: Slot, index: usize) {
        self.call(s, index, calls::csr);
        // Other data entries may be in use now, and the floating-point state may have changed.
        dynasm!(self.ops; .arch x64; mov r13, [rbx + layout::DTLB]);
        self.fp_checked = false;
        self.check_limit(index + 2);
    }
}
