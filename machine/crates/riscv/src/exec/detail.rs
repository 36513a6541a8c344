// SPDX-License-Identifier: Apache-2.0
//! Detailed timing of instructions other than loads and stores: lines of code, and predictions of jumps.

use trapless_memory::PhysAddr;

use crate::hart::{CODE_LINES, Hart};
use crate::lines::LINE_SHIFT;
use crate::op::Slot;
use crate::predictor::is_link;
use crate::{Bus, Env, Observer, Timing};

impl Hart {
    /// Notes that the instruction at physical address `pa` is jumped to, or is the first one in another line of code.
    #[inline]
    pub(super) fn enter_line<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>, pa: u64) {
        let line = (pa >> LINE_SHIFT) as u32;
        let at = line as usize % CODE_LINES;
        if self.code_lines[at] != line {
            self.acc += env.timing.code(PhysAddr(pa), self.local_now(), self.privilege);
            self.take_losses(env.timing);
            self.code_lines[at] = line;
        }
    }

    /// Notes a jump-and-link instruction that returns to `to`.
    pub(super) fn predict_call(&mut self, s: Slot, to: u64) {
        if is_link(s.rd) {
            self.predictor.call(to);
        }
    }

    /// Predicts an indirect jump at `pa` to `target` that returns to `to`. Returns the cycles lost.
    pub(super) fn predict_jump(&mut self, s: Slot, pa: u64, target: u64, to: u64) -> u64 {
        let lost = if is_link(s.rs1) && !is_link(s.rd) {
            self.predictor.ret(target)
        } else {
            self.predictor.indirect(pa, target)
        };
        self.predict_call(s, to);
        lost
    }
}
