// SPDX-License-Identifier: Apache-2.0
//! Reports every jump to an observer.

use trapless_memory::Cycle;

use crate::hart::Hart;
use crate::op::Slot;
use crate::predictor::is_link;
use crate::{Jump, JumpKind, Observer};

/// Register numbers of tp and a0.
const TP: usize = 4;
const A0: usize = 10;

impl Hart {
    /// Reports a jump to `to`. `acc` already counts the jump.
    pub(crate) fn follow<O: Observer>(&self, observer: &mut O, kind: JumpKind, to: u64, acc: u64) {
        observer.jumped(&Jump {
            kind,
            to,
            privilege: self.privilege,
            tp: self.regs[TP],
            a0: self.regs[A0],
            now: Cycle(self.cycle + (acc & 0xffff_ffff)),
            retired: self.retired.iter().sum::<u64>() + (acc >> 32),
            mispredicted: self.mispredictions(),
        });
    }

    /// Number of mispredicted branches and jumps so far, in all modes.
    pub fn mispredictions(&self) -> u64 {
        self.mispredicted.iter().sum::<u64>() + self.predictor.missed
    }
}

/// Classifies a `jal` or `jalr` whose return address is `next` (unprivileged specification, hints for return stacks).
pub(super) fn kind(s: Slot, indirect: bool, next: u64) -> JumpKind {
    if is_link(s.rd) {
        JumpKind::Call(next)
    } else if indirect && is_link(s.rs1) {
        JumpKind::Return
    } else {
        JumpKind::Jump
    }
}
