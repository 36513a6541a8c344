// SPDX-License-Identifier: Apache-2.0
//! Detailed timing in translated code: lines of code, and the branch predictor (its rules are in predictor.rs).
//!
//! Only rax, rcx and rdx are used.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{Block, Cold, SLOTS_OF_LINE};
use crate::hart::CODE_LINES;
use crate::jit::layout;
use crate::op::Slot;
use crate::predictor::{Predictor, is_link};

impl Block<'_> {
    /// Emits a check whether the line of slot `index` is known to be cached.
    pub(super) fn check_line(&mut self, index: usize) {
        let line = (self.first_line + (index / SLOTS_OF_LINE) as u64) as u32;
        let at = layout::CODE_LINES + 4 * (line as usize % CODE_LINES) as i32;
        let (label, resume) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        dynasm!(self.ops; .arch x64; cmp DWORD [rbx + at], line as i32; jne =>label; =>resume);
        self.cold.push(Cold::Line { label, index, before: self.cache, cost: self.cost, resume });
    }

    /// What the address of slot `index` contributes to the predictor's indices.
    fn hash(&self, index: usize) -> u32 {
        Predictor::hash((self.first_line << crate::lines::LINE_SHIFT) + 2 * index as u64)
    }

    /// Emits the prediction of the branch of slot `index`, on the path on which it is `taken` or not.
    pub(super) fn predict_branch(&mut self, index: usize, taken: bool) {
        let Some(config) = self.prices.predictor else { return };
        let mask = (1i32 << config.history_bits) - 1;
        let hash = self.hash(index) as i32 & mask;
        let (label, back) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        dynasm!(self.ops
            ; .arch x64
            ; mov eax, [rbx + layout::HISTORY]
            ; mov ecx, eax
            ; lea eax, [rax + rax + i32::from(taken)]
            ; xor ecx, hash
            ; mov [rbx + layout::HISTORY], eax
            ; and ecx, mask);
        if taken {
            dynasm!(self.ops; .arch x64; cmp BYTE [rbx + rcx + layout::COUNTERS], 3);
        } else {
            dynasm!(self.ops; .arch x64; cmp BYTE [rbx + rcx + layout::COUNTERS], 0);
        }
        dynasm!(self.ops; .arch x64; jne =>label; =>back);
        self.cold.push(Cold::Count { label, taken, back });
    }

    /// Moves the counter at rcx, which is not at its end, and charges for a misprediction if the counter was on the wrong side.
    pub(super) fn count(&mut self, label: DynamicLabel, taken: bool, back: DynamicLabel) {
        dynasm!(self.ops; .arch x64; =>label);
        if taken {
            dynasm!(self.ops
                ; .arch x64
                ; inc BYTE [rbx + rcx + layout::COUNTERS]
                ; cmp BYTE [rbx + rcx + layout::COUNTERS], 2
                ; ja =>back);
        } else {
            dynasm!(self.ops; .arch x64; dec BYTE [rbx + rcx + layout::COUNTERS]; jz =>back);
        }
        self.mispredicted(back);
    }

    /// Charges for a misprediction.
    pub(super) fn mispredicted(&mut self, back: DynamicLabel) {
        let penalty = self.prices.predictor.map_or(0, |p| p.mispredict_cycles) as i32;
        dynasm!(self.ops; .arch x64; add r12, penalty; inc QWORD [rbx + layout::MISSED]; jmp =>back);
    }

    /// Emits code that pushes the return address of a call.
    pub(super) fn predict_call(&mut self, s: Slot, here: i32) {
        let Some(config) = self.prices.predictor.filter(|_| is_link(s.rd)) else { return };
        dynasm!(self.ops
            ; .arch x64
            ; mov ecx, [rbx + layout::TOP]
            ; lea rdx, [r15 + here + 2 * i32::from(s.rs2)]
            ; inc ecx
            ; and ecx, config.returns as i32 - 1
            ; mov [rbx + layout::TOP], ecx
            ; mov [rbx + rcx * 8 + layout::RETURNS], rdx);
    }

    /// Emits the prediction of the indirect jump of slot `index` to the address in rax. rax is preserved.
    pub(super) fn predict_jump(&mut self, s: Slot, index: usize) {
        let Some(config) = self.prices.predictor else { return };
        let (label, back) = (self.ops.new_dynamic_label(), self.ops.new_dynamic_label());
        let target = if is_link(s.rs1) && !is_link(s.rd) {
            dynasm!(self.ops
                ; .arch x64
                ; mov ecx, [rbx + layout::TOP]
                ; mov rdx, [rbx + rcx * 8 + layout::RETURNS]
                ; dec ecx
                ; and ecx, config.returns as i32 - 1
                ; mov [rbx + layout::TOP], ecx
                ; cmp rdx, rax);
            None
        } else {
            let slot = self.hash(index) & (config.targets - 1);
            let at = layout::TARGETS + 8 * slot as i32;
            dynasm!(self.ops; .arch x64; cmp [rbx + at], rax);
            Some(at)
        };
        dynasm!(self.ops; .arch x64; jne =>label; =>back);
        self.cold.push(Cold::Wrong { label, target, back });
    }
}
