// SPDX-License-Identifier: Apache-2.0
//! Return ring: frames that go back to the operating system.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, PhysAddr};
use trapless_smu_regs as regs;

use crate::SmuBus;

/// The part of the unit that keeps a frame until the frame is in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Keeper {
    /// A PMSHR entry, which is not free until then.
    Slot(usize),
    /// A place in the prefetch buffer.
    Prefetch,
}

/// A frame that goes back to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Returned {
    pub pfn: u64,
    pub reason: u64,
    pub keeper: Keeper,
}

/// The return ring and the frames that wait for it (REQ: SMU-5). The number of waiting frames is bounded, because each keeps
/// its PMSHR entry or its place in the prefetch buffer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReturnRing {
    pub base: u64,
    pub size: u32,
    pub head: u32,
    pub tail: u32,
    /// An access to the ring met a bus error. The SMU writes nothing until software sets up the ring again.
    pub broken: bool,
    /// The ring is in no window, so the SMU writes nothing (REQ: SMU-15).
    pub outside: bool,
    /// The SMU is writing an entry.
    pub writing: bool,
    pub waiting: VecDeque<Returned>,
}

impl ReturnRing {
    /// Resets the indices after the base or size changed.
    pub fn reset(&mut self) {
        (self.head, self.tail, self.broken) = (0, 0, false);
    }

    /// Tells whether the SMU can write an entry now.
    pub fn can_write(&self) -> bool {
        !self.broken && !self.outside && !self.waiting.is_empty() && self.tail.wrapping_sub(self.head) < self.size
    }

    /// Sets the consumer index. Refuses it and returns false if it passes the producer index or goes back.
    pub fn set_head(&mut self, head: u32) -> bool {
        let fits = self.tail.wrapping_sub(head) <= self.tail.wrapping_sub(self.head);
        if fits {
            self.head = head;
        }
        fits
    }

    /// Returns the number of places in the prefetch buffer that waiting frames keep.
    pub fn kept_prefetch(&self) -> usize {
        self.waiting.iter().filter(|r| r.keeper == Keeper::Prefetch).count()
    }

    /// Tells whether a malformed free ring entry waits. It stops the fetcher, so at most one waits at a time.
    pub fn has_bad_entry(&self) -> bool {
        self.waiting.iter().any(|r| r.reason == regs::REASON_BAD_ENTRY)
    }

    /// Tells whether a malformed entry waits that the ring can take without help from software.
    pub fn takes_bad_entry(&self) -> bool {
        self.has_bad_entry() && (self.writing || self.can_write())
    }

    /// Writes an entry for the first waiting frame, if the ring can take it.
    pub fn write(&mut self, bus: &mut dyn SmuBus) -> Result<Option<Returned>, BusError> {
        self.writing = false;
        if !self.can_write() {
            return Ok(None);
        }
        let Some(&first) = self.waiting.front() else { return Ok(None) };
        let at = self.base + u64::from(self.tail & (self.size - 1)) * regs::RET_ENTRY_SIZE;
        let mut entry = [0; regs::RET_ENTRY_SIZE as usize];
        for (offset, word) in [(regs::RET_ENTRY_PFN, first.pfn), (regs::RET_ENTRY_REASON, first.reason)] {
            entry[offset as usize..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bus.write_bytes(PhysAddr(at), &entry).inspect_err(|_| self.broken = true)?;
        self.tail = self.tail.wrapping_add(1);
        self.waiting.pop_front();
        Ok(Some(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_outside_the_filled_part_is_refused() {
        let mut ring = ReturnRing { size: 8, head: u32::MAX, tail: 3, ..ReturnRing::default() };
        assert!(!ring.set_head(4) && !ring.set_head(u32::MAX - 1));
        assert!(ring.set_head(2) && ring.set_head(2) && ring.set_head(3));
        assert!(!ring.set_head(2));
    }
}
