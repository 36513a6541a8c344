// SPDX-License-Identifier: Apache-2.0
//! Fences and drains of a descriptor, and the expiry of its commands (REQ: SMU-8, SMU-12).

use serde::{Deserialize, Serialize};
use trapless_smu_regs as regs;

use crate::pmshr::{Entry, Stage};
use crate::{Bug, FailReason, Smu};

/// Fence and drain of a descriptor. Each covers the requests accepted before this position in the order of acceptance.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fences {
    fence: u64,
    drain: u64,
}

impl Smu {
    /// Handles a write to a descriptor's FENCE.
    pub(crate) fn begin_fences(&mut self, index: usize, value: u64) {
        let (next, fences) = (self.pmshr.next_seq, &mut self.fences[index]);
        if regs::DESC_FENCE_FENCE.is_set(value) {
            fences.fence = next;
        }
        if regs::DESC_FENCE_DRAIN.is_set(value) {
            fences.drain = next;
        }
    }

    /// Reads a descriptor's FENCE: whether its fence and its drain are still running.
    pub(crate) fn fence_status(&self, index: usize) -> u64 {
        let Fences { fence, drain } = self.fences[index];
        let anybody = self.bug(Bug::FenceOfTheUnit);
        let names = |seen: u64| anybody || regs::PTE_DEVICE.get(seen) as usize == index;
        let overlooked = |e: &Entry| self.bug(Bug::FenceOverlooksDevice) && e.stage == Stage::AtDevice;
        let live = self.pmshr.entries().filter(|e| e.is_live() && names(e.seen) && !overlooked(e)).map(|e| e.seq);
        let late = self.late.values().filter(|late| names(late.seen)).map(|late| late.seq);
        let unanswered = live.chain(late).min();
        let overlooked = |e: &Entry| self.bug(Bug::DrainOverlooksQuarantine) && e.is_quarantined();
        let writing = self.pmshr.entries().filter(|e| e.command == Some(index) && !overlooked(e)).map(|e| e.seq).min();
        let before = |oldest: Option<u64>, limit| oldest.is_some_and(|seq| seq < limit);
        regs::DESC_FENCE_FENCE.of(before(unanswered, fence).into())
            | regs::DESC_FENCE_DRAIN.of(before(unanswered.into_iter().chain(writing).min(), drain).into())
    }

    /// Handles a write to a descriptor's EXPIRE.
    pub(crate) fn expire(&mut self, index: usize) {
        for slot in 0..self.pmshr.slots.len() {
            if self.entry(slot).is_some_and(|e| e.command == Some(index) && e.stage == Stage::AtDevice) {
                self.fail(slot, FailReason::Timeout);
            }
        }
    }
}
