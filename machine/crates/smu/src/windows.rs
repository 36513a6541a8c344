// SPDX-License-Identifier: Apache-2.0
//! Windows: the physical addresses that the unit may use (REQ: SMU-15). Addresses are compared where they come in: those of a request
//! when it is accepted, a queue pair's when its descriptor becomes valid, a ring's whenever it or a window is set.

use serde::{Deserialize, Serialize};
use trapless_memory::PhysAddr;
use trapless_smu_regs as regs;

use crate::Smu;
use crate::bugs::Bug;
use crate::regs::block_at;

/// How many there are: as many as the RTL has by default.
pub(crate) const WINDOWS: usize = 3;
/// Where physical addresses end.
const END: u64 = 1 << 56;

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entries of page tables, rings and queues.
    Memory,
    Doorbell,
}

/// The registers of a window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Window {
    /// Addresses of its first and last 4 KiB.
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
    /// Whether anything is forbidden.
    fn in_force(&self) -> bool {
        self.locked || self.windows.iter().any(|w| w.memory || w.doorbell)
    }

    /// Whether all of `bytes` bytes from an address on, at least one, may be used so.
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

/// The window that a register offset lies in, and the offset in it.
pub(crate) fn window_at(offset: u64) -> Option<(usize, u64)> {
    block_at(offset, regs::WINDOW_BASE, regs::WINDOW_STRIDE, WINDOWS).filter(|(_, field)| *field <= regs::WINDOW_CTRL)
}

impl Smu {
    /// Whether windows may be set: they are not locked, and nothing is under way that they could stop.
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

    /// Whether the three entries of a request may be used.
    pub(crate) fn may_use_entries(&self, entries: [PhysAddr; 3]) -> bool {
        let looked_at = if self.bug(Bug::OverlookUpperEntries) { 1 } else { 3 };
        entries.iter().take(looked_at).all(|at| self.windows.allow(at.0, 8, Kind::Memory))
    }

    /// Whether the queues and doorbells of a descriptor may be used.
    pub(crate) fn may_use_queues(&self, index: usize) -> bool {
        let d = &self.descriptors[index];
        let depth = u64::from(d.depth);
        [(d.sq_base, depth * regs::NVME_SQE_SIZE), (d.cq_base, depth * regs::NVME_CQE_SIZE)]
            .iter()
            .all(|&(at, bytes)| self.windows.allow(at, bytes, Kind::Memory))
            && [d.sq_doorbell, d.cq_doorbell].iter().all(|&at| self.windows.allow(at, 4, Kind::Doorbell))
    }

    /// A ring or a window was set: a ring in no window is not used. One without entries is nowhere.
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

    /// REQ: SMU-15. Borders, kinds, and the end of the address space.
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

    /// REQ: SMU-15. As before there were windows.
    #[test]
    fn without_windows_everything_is_allowed() {
        let mut w = Windows::default();
        assert!(w.allow(u64::MAX, 4, Kind::Doorbell) && w.allow(0, 8, Kind::Memory));
        w.locked = true;
        assert!(!w.allow(0, 8, Kind::Memory));
    }
}
