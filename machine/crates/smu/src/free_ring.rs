// SPDX-License-Identifier: Apache-2.0
//! Free page fetcher: the ring from which the OS gives frames, and the buffer into which they are fetched ahead.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, PhysAddr};
use trapless_smu_regs as regs;

use crate::SmuBus;
use crate::pmshr::Frame;

/// Largest ring: indices run free in 32 bits, and full must differ from empty.
const MAX_ENTRIES: u64 = 1 << 31;
/// Highest bit of a ring base that need not be zero: an entry address never wraps.
const MAX_BASE: u64 = 1 << 56;

/// Whether a ring may lie there.
pub(crate) fn ring_base_ok(base: u64) -> bool {
    base.is_multiple_of(16) && base < MAX_BASE
}

/// Whether a ring may have this number of entries.
pub(crate) fn ring_size_ok(entries: u64) -> bool {
    entries == 0 || (entries.is_power_of_two() && entries <= MAX_ENTRIES)
}

/// What one fetch brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// A frame, now in the buffer.
    Frame,
    /// An entry that names no frame; this is what it had for a frame number, as many bits as one has (REQ: SMU-15).
    Malformed(u64),
}

/// The ring and the prefetch buffer (REQ: SMU-5).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FreeRing {
    pub base: u64,
    pub size: u32,
    pub head: u32,
    pub tail: u32,
    /// Frames given to requests.
    pub used: u32,
    /// A bus error was met; nothing is fetched until the ring is set up again.
    pub broken: bool,
    /// It lies in no window: nothing is fetched (REQ: SMU-15).
    pub outside: bool,
    /// An entry is being read.
    pub fetching: bool,
    pub buffer: VecDeque<Frame>,
}

impl FreeRing {
    /// Starts again with empty indices, after the base or size changed.
    pub fn reset(&mut self) {
        (self.head, self.tail, self.used, self.broken) = (0, 0, 0, false);
    }

    /// Whether the ring has an entry to fetch.
    pub fn has_entry(&self) -> bool {
        !self.broken && !self.outside && self.head != self.tail
    }

    /// Moves the producer index, unless that would leave more entries than the ring has.
    pub fn set_tail(&mut self, tail: u32) -> bool {
        let fits = tail.wrapping_sub(self.head) <= self.size;
        if fits {
            self.tail = tail;
        }
        fits
    }

    /// Reads the entry at the head, if there is one.
    pub fn fetch(&mut self, bus: &mut dyn SmuBus) -> Result<Option<Fetched>, BusError> {
        self.fetching = false;
        if !self.has_entry() {
            return Ok(None);
        }
        let at = self.base + u64::from(self.head & (self.size - 1)) * regs::FREE_ENTRY_SIZE;
        let read = |bus: &mut dyn SmuBus, offset| bus.read_u64(PhysAddr(at + offset));
        let words = read(bus, regs::FREE_ENTRY_PFN).and_then(|pfn| Ok((pfn, read(bus, regs::FREE_ENTRY_DMA)?)));
        let (pfn, dma) = words.inspect_err(|_| self.broken = true)?;
        self.head = self.head.wrapping_add(1);
        // A frame number beyond the PTE's field, or a data address that is not a whole page, would reach outside the frame.
        if pfn >> regs::PTE_PFN.width != 0 || dma % 4096 != 0 {
            return Ok(Some(Fetched::Malformed(pfn & (regs::PTE_PFN.mask() >> regs::PTE_PFN.shift))));
        }
        self.buffer.push_back(Frame { pfn, dma });
        Ok(Some(Fetched::Frame))
    }

    /// Takes a frame for a request.
    pub fn take(&mut self) -> Option<Frame> {
        let frame = self.buffer.pop_front()?;
        self.used = self.used.wrapping_add(1);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_past_the_ring_is_refused() {
        let mut ring = FreeRing { size: 8, head: u32::MAX - 1, tail: u32::MAX - 1, ..FreeRing::default() };
        assert!(ring.set_tail(6)); // eight entries, across the wrap
        assert!(!ring.set_tail(7));
        assert!(!ring.set_tail(u32::MAX - 2));
        assert_eq!(ring.tail, 6);
        let mut none = FreeRing::default();
        assert!(none.set_tail(0) && !none.set_tail(1));
    }

    #[test]
    fn ring_geometry_is_checked() {
        assert!(ring_size_ok(0) && ring_size_ok(1) && ring_size_ok(1 << 31));
        assert!(!ring_size_ok(3) && !ring_size_ok(1 << 32));
        assert!(ring_base_ok(0x8000_0010) && !ring_base_ok(0x8000_0008) && !ring_base_ok(!15));
    }
}
