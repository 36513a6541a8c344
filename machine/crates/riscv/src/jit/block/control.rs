// SPDX-License-Identifier: Apache-2.0
//! Branches, jumps and other exits of a block.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Block, Cache};
use crate::jit::layout;
use crate::op::{SINK, Slot};

impl Block<'_> {
    /// Emits a comparison and a jump to `label`, taken if `condition` (by number: beq, bne, blt, bge, bltu, bgeu) holds.
    pub(super) fn branch(&mut self, s: Slot, condition: u8, label: DynamicLabel) {
        let (a, b) = (self.src(s.rs1), self.src(s.rs2));
        if s.rs2 == 0 {
            dynasm!(self.ops; .arch x64; test Rq(a), Rq(a));
        } else {
            dynasm!(self.ops; .arch x64; cmp Rq(a), Rq(b));
        }
        match condition {
            0 => dynasm!(self.ops; .arch x64; je =>label),
            1 => dynasm!(self.ops; .arch x64; jne =>label),
            2 => dynasm!(self.ops; .arch x64; jl =>label),
            3 => dynasm!(self.ops; .arch x64; jge =>label),
            4 => dynasm!(self.ops; .arch x64; jb =>label),
            _ => dynasm!(self.ops; .arch x64; jae =>label),
        }
    }

    /// Emits code that sets rd to the address of the next instruction.
    pub(super) fn link(&mut self, s: Slot, here: i32) {
        if s.rd != SINK {
            let d = self.dst(s.rd);
            dynasm!(self.ops; .arch x64; lea Rq(d), [r15 + here + 2 * i32::from(s.rs2)]);
        }
    }

    /// Ends the block and continues in another page, `offset` bytes from this page's start.
    pub(super) fn leave_at(&mut self, offset: i32) {
        self.write_back(self.cache);
        self.add_cost(self.cost);
        self.jump_to_page(offset);
    }

    pub(super) fn jump_to_page(&mut self, offset: i32) {
        let fetch = self.stubs.fetch.addr();
        dynasm!(self.ops; .arch x64; lea rax, [r15 + offset]; jmp extern fetch);
    }

    /// Ends the block and continues in slot `index`, wherever its code is.
    pub(super) fn go_on_at(&mut self, index: usize) {
        self.write_back(self.cache);
        self.add_cost(self.cost);
        dynasm!(self.ops; .arch x64; mov eax, 2 * index as i32);
        self.jump_to_slot(index);
    }

    /// Emits a jump to slot `index` through the page's table. eax already holds the slot's offset. Uses rcx.
    pub(super) fn jump_to_slot(&mut self, index: usize) {
        let entry = self.entries.wrapping_add(index).addr() as i64;
        dynasm!(self.ops; .arch x64; mov rcx, QWORD entry; jmp QWORD [rcx]);
    }

    /// Emits a jump to slot `index`, not taken if the limit is reached.
    pub(super) fn jump_checked(&mut self, index: usize) {
        self.leave_at_limit(index);
        self.jump_to_slot(index);
    }

    /// Checks the limit before slot `next` inside a block, as the interpreter does. No guest register may be cached there.
    pub(super) fn check_limit(&mut self, next: usize) {
        let cost = std::mem::take(&mut self.cost);
        self.add_cost(cost);
        self.leave_at_limit(next);
    }

    /// Emits an exit before slot `index` if the limit is reached. The slot's offset stays in eax.
    fn leave_at_limit(&mut self, index: usize) {
        let limit = self.stubs.limit.addr();
        dynasm!(self.ops
            ; .arch x64
            ; mov eax, 2 * index as i32
            ; cmp r12d, [rbx + layout::LIMIT]
            ; jae extern limit);
    }

    /// Emits an exit through `stub` at slot `index`, which returns to `resume`.
    pub(super) fn exit(
        &mut self,
        stub: *const u8,
        index: usize,
        before: Cache,
        cost: u64,
        resume: Option<DynamicLabel>,
    ) {
        self.write_back(before);
        self.add_cost(cost);
        match resume {
            Some(label) => dynasm!(self.ops; .arch x64; lea rdx, [=>label]),
            None => dynasm!(self.ops; .arch x64; xor edx, edx),
        }
        let stub = stub.addr();
        dynasm!(self.ops; .arch x64; mov eax, 2 * index as i32; jmp extern stub);
    }
}
