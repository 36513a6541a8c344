// SPDX-License-Identifier: Apache-2.0
//! Windows: the physical addresses that the unit may use (REQ: SMU-15). The SMU checks the addresses of a request when it accepts
//! the request, those of a queue pair when its descriptor becomes valid, and those of a ring whenever software sets the ring or
//! a window.

use serde::{Deserialize, Serialize};
use trapless_memory::PhysAddr;
use trapless_smu_regs as regs;

use crate::Smu;
use crate::bugs::Bug;
use crate::regs::block_at;

/// Number of windows, the default of the RTL.
pub(crate) const WINDOWS: usize = 3;
/// End of the physical address space.
const END: u64 = 1 << 56;

/// Use of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entries of page tables, rings and queues.
    Memory,
    Doorbell,
}

/// The registers of a window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Window {
    /// Addresses of the first and the last 4 KiB of the window.
    first: u64,
    last: u64,
    memory: bool,
    doorbell: bool,
}

/// All windows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    windows: [Window; WINDOWS],
    pub locked: bool,
}

impl Windows {
    /// Tells whether the windows restrict addresses: they are locked, or at least one is set.
    fn in_force(&self) -> bool {
        self.locked || self.windows.iter().any(|w| w.memory || w.doorbell)
    }

    /// Tells whether the SMU may use `bytes` bytes from address `at` on for this kind of access. Checks at least one byte.
    pub fn allow(&self, at: u64, bytes: u64, kind: Kind) -> bool {
        if !self.in_force() {
            return true;
        }
        let Some(last) = at.checked_add(bytes.saturating_sub(1)).filter(|last| *last < END) else { return false };
        let granule = |at: u64| at & !0xfff;
        let within = |w: &Window| w.first <= granule(at) && granule(last) <= w.last;
        let of_kind = |w: &&Window| if kind == Kind::Memory { w.memory } else { w.doorbell };
        self.windows.iter().filter(of_kind).any(within)
    }

    pub fn register(&self, index: usize, field: u64) -> u64 {
        let w = &self.windows[index];
        match field {
            regs::WINDOW_FIRST => w.first,
            regs::WINDOW_LAST => w.last,
            regs::WINDOW_CTRL => {
                regs::WINDOW_CTRL_MEMORY.of(w.memory.into()) | regs::WINDOW_CTRL_DOORBELL.of(w.doorbell.into())
            }
            _ => 0,
        }
    }

    fn set(&mut self, index: usize, field: u64, value: u64) {
        let w = &mut self.windows[index];
        match field {
            regs::WINDOW_FIRST => w.first = value & regs::WINDOW_FIRST_GRANULE.mask(),
            regs::WINDOW_LAST => w.last = value & regs::WINDOW_LAST_GRANULE.mask(),
            _ => {
                (w.memory, w.doorbell) =
                    (regs::WINDOW_CTRL_MEMORY.is_set(value), regs::WINDOW_CTRL_DOORBELL.is_set(value))
            }
        }
    }
}

/// Returns the window at a register offset, and the offset in the window.
pub(crate) fn window_at(offset: u64) -> Option<(usize, u64)> {
    block_at(offset, regs::WINDOW_BASE, regs::WINDOW_STRIDE, WINDOWS).filter(|(_, field)| *field <= regs::WINDOW_CTRL)
}

impl Smu {
    /// Tells whether software may set windows: they are not locked, and the unit is disabled, idle and has no queue pair in use.
    fn windows_may_change(&self) -> bool {
        let used = self.descriptors.iter().any(|d| d.valid || d.outstanding());
        !self.windows.locked && !self.enabled && self.is_idle() && !used
    }

    pub(crate) fn set_window(&mut self, index: usize, field: u64, value: u64) {
        if self.windows_may_change() {
            self.windows.set(index, field, value);
            self.look_at_rings();
        } else {
            self.error = true;
        }
    }

    pub(crate) fn lock_windows(&mut self, value: u64) {
        if self.windows_may_change() {
            self.windows.locked = regs::WINDOW_LOCK_LOCKED.is_set(value);
            self.look_at_rings();
        } else {
            self.error = true;
        }
    }

    /// Tells whether the windows contain the three entries of a request.
    pub(crate) fn may_use_entries(&self, entries: [PhysAddr; 3]) -> bool {
        let looked_at = if self.bug(Bug::OverlookUpperEntries) { 1 } else { 3 };
        entries.iter().take(looked_at).all(|at| self.windows.allow(at.0, 8, Kind::Memory))
    }

    /// Tells whether the windows contain the queues and doorbells of a descriptor.
    pub(crate) fn may_use_queues(&self, index: usize) -> bool {
        let d = &self.descriptors[index];
        let depth = u64::from(d.depth);
        [(d.sq_base, depth * regs::NVME_SQE_SIZE), (d.cq_base, depth * regs::NVME_CQE_SIZE)]
            .iter()
            .all(|&(at, bytes)| self.windows.allow(at, bytes, Kind::Memory))
            && [d.sq_doorbell, d.cq_doorbell].iter().all(|&at| self.windows.allow(at, 4, Kind::Doorbell))
    }

    /// Checks the rings after software has set a ring or a window. The SMU does not use a ring outside the windows. A ring
    /// without entries needs no window.
    pub(crate) fn look_at_rings(&mut self) {
        let outside =
            |base, size: u32, entry| size != 0 && !self.windows.allow(base, u64::from(size) * entry, Kind::Memory);
        let free = outside(self.free.base, self.free.size, regs::FREE_ENTRY_SIZE);
        let returns = outside(self.returns.base, self.returns.size, regs::RET_ENTRY_SIZE);
        (self.free.outside, self.returns.outside) = (free, returns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u64, last: u64) -> Windows {
        let mut windows = Windows::default();
        windows.set(1, regs::WINDOW_FIRST, first);
        windows.set(1, regs::WINDOW_LAST, last);
        windows.set(1, regs::WINDOW_CTRL, 1);
        windows
    }

    /// REQ: SMU-15. Checks borders of a window, kinds of access, and the end of the address space.
    #[test]
    fn what_lies_in_a_window_is_allowed() {
        let allow = |w: &Windows, at, bytes| w.allow(at, bytes, Kind::Memory);
        let w = window(0x8000_0000, 0x8000_1fff);
        assert!(allow(&w, 0x8000_0000, 8) && allow(&w, 0x8000_1ff8, 8) && allow(&w, 0x8000_0000, 0x2000));
        assert!(!allow(&w, 0x7fff_fff8, 8) && !allow(&w, 0x8000_2000, 8) && !allow(&w, 0x8000_0010, 0x2000));
        assert!(!w.allow(0x8000_0000, 4, Kind::Doorbell));
        let w = window(0x8000_2000, 0x8000_1fff);
        assert!(!allow(&w, 0x8000_1000, 8) && !allow(&w, 0x8000_2000, 8));
        let w = window(END - 0x1000, END - 1);
        assert!(
            allow(&w, END - 16, 16)
                && !allow(&w, END - 16, 32)
                && !allow(&w, u64::MAX - 7, 8)
                && !allow(&w, u64::MAX, 8)
        );
        assert!(!allow(&w, END - 16, u64::MAX));
    }

    /// REQ: SMU-15. Until a window is set or the windows are locked, the SMU may use all addresses.
    #[test]
    fn without_windows_everything_is_allowed() {
        let mut w = Windows::default();
        assert!(w.allow(u64::MAX, 4, Kind::Doorbell) && w.allow(0, 8, Kind::Memory));
        w.locked = true;
        assert!(!w.allow(0, 8, Kind::Memory));
    }
}
