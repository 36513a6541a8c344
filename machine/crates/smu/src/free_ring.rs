// SPDX-License-Identifier: Apache-2.0
//! Free page fetcher: the ring through which the operating system gives frames, and the buffer of prefetched frames.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, PhysAddr};
use trapless_smu_regs as regs;

use crate::SmuBus;
use crate::pmshr::Frame;

/// Largest ring: the 32-bit indices are not reduced modulo the size, and a full ring must differ from an empty one.
const MAX_ENTRIES: u64 = 1 << 31;
/// Limit of ring bases, so that the address of an entry never wraps.
const MAX_BASE: u64 = 1 << 56;

/// Tells whether a ring may have this base address.
pub(crate) fn ring_base_ok(base: u64) -> bool {
    base.is_multiple_of(16) && base < MAX_BASE
}

/// Tells whether a ring may have this number of entries.
pub(crate) fn ring_size_ok(entries: u64) -> bool {
    entries == 0 || (entries.is_power_of_two() && entries <= MAX_ENTRIES)
}

/// Result of reading one ring entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// The entry was valid. Its frame is now in the buffer.
    Frame,
    /// The entry was malformed. The value is its frame number, cut to the width of a frame number (REQ: SMU-15).
    Malformed(u64),
}

/// The free ring and the prefetch buffer (REQ: SMU-5).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FreeRing {
    pub base: u64,
    pub size: u32,
    pub head: u32,
    pub tail: u32,
    /// Number of frames given to requests.
    pub used: u32,
    /// An access to the ring met a bus error. The SMU fetches nothing until software sets up the ring again.
    pub broken: bool,
    /// The ring is in no window, so the SMU fetches nothing (REQ: SMU-15).
    pub outside: bool,
    /// The SMU is reading an entry.
    pub fetching: bool,
    pub buffer: VecDeque<Frame>,
}

impl FreeRing {
    /// Resets the indices after the base or size changed.
    pub fn reset(&mut self) {
        (self.head, self.tail, self.used, self.broken) = (0, 0, 0, false);
    }

    /// Tells whether the ring has an entry to fetch.
    pub fn has_entry(&self) -> bool {
        !self.broken && !self.outside && self.head != self.tail
    }

    /// Sets the producer index. Refuses it and returns false if the ring would then hold more entries than its size.
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
        // A frame number that does not fit into the PTE, or an unaligned DMA address, would lead to accesses outside the frame.
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
        assert!(ring.set_tail(6)); // eight entries; the index wraps
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
