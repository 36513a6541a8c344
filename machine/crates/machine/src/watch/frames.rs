// SPDX-License-Identifier: Apache-2.0
//! Where the frames for missing pages are. This is read from outside: the ring from the SMU's registers, pages from their
//! entries in guest memory.

use std::collections::HashMap;

use trapless_attribution::Frames;
use trapless_memory::{Cycle, PhysAddr, Ram};
use trapless_smu::SmuUnit;
use trapless_smu_regs as regs;

/// Minimum number of unsynced pages that are remembered before all of them are read again.
const ROOM: usize = 1 << 14;

/// The frame of an entry, if the entry is unsynced.
fn unsynced(entry: u64) -> Option<u64> {
    (regs::PTE_V.is_set(entry) && regs::PTE_L.is_set(entry)).then(|| regs::PTE_PFN.get(entry))
}

/// Pages that were installed and not yet adopted. A page counts from the first time that a hart uses it, so it does not
/// matter whether the SMU or software in its place installed it.
#[derive(Debug)]
pub struct Installed {
    /// Pages that were unsynced when last looked at: address of the entry, and frame.
    unsynced: HashMap<PhysAddr, u64>,
    /// Number of pages that have been adopted.
    adopted: u64,
    room: usize,
}

impl Installed {
    /// Starts without pages.
    pub fn new() -> Installed {
        Installed { unsynced: HashMap::new(), adopted: 0, room: ROOM }
    }

    /// Notes that a hart uses an entry.
    pub fn used(&mut self, at: PhysAddr, entry: u64) {
        if let Some(frame) = unsynced(entry) {
            // If the entry had another frame before, that page was adopted and has been evicted since.
            let before = self.unsynced.insert(at, frame);
            self.adopted += u64::from(before.is_some_and(|before| before != frame));
        }
    }

    /// Finds out which pages are still unsynced.
    pub fn look(&mut self, ram: &Ram) {
        let before = self.unsynced.len();
        self.unsynced.retain(|at, frame| {
            let entry = ram.load::<8>(*at).map_or(0, u64::from_le_bytes);
            unsynced(entry) == Some(*frame)
        });
        self.adopted += (before - self.unsynced.len()) as u64;
        self.room = ROOM.max(2 * self.unsynced.len());
    }

    /// Whether it is time to look again.
    pub fn is_full(&self) -> bool {
        self.unsynced.len() >= self.room
    }
}

/// Frames in the SMU's ring and in its prefetch buffer, as Linux counts them; none if there is no ring.
fn in_ring(smu: &dyn SmuUnit) -> Option<u64> {
    let index = |register: u64| smu.peek(register) as u32;
    (index(regs::FREE_SIZE) != 0).then(|| index(regs::FREE_TAIL).wrapping_sub(index(regs::FREE_USED)).into())
}

/// Where the frames are now.
pub fn frames(installed: &Installed, smu: Option<&dyn SmuUnit>, now: Cycle) -> Frames {
    Frames {
        cycle: now.0,
        ring: smu.and_then(in_ring),
        requests: smu.map_or(0, |smu| regs::STATUS_LIVE.get(smu.peek(regs::STATUS))),
        unsynced: installed.unsynced.len() as u64,
        adopted: installed.adopted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: PhysAddr = PhysAddr(0x8000_0000);

    fn entry(frame: u64, synced: bool) -> u64 {
        regs::PTE_V.of(1) | regs::PTE_L.of((!synced).into()) | regs::PTE_PFN.of(frame)
    }

    fn at(n: u64) -> PhysAddr {
        PhysAddr(BASE.0 + 8 * n)
    }

    #[test]
    fn a_page_is_unsynced_until_its_entry_says_otherwise() {
        let mut ram = Ram::new(BASE, 4096).unwrap();
        let mut installed = Installed::new();
        let counts = |installed: &mut Installed, ram: &Ram| {
            installed.look(ram);
            (installed.unsynced.len(), installed.adopted)
        };
        for n in 0..4 {
            ram.store(at(n), entry(100 + n, false).to_le_bytes()).unwrap();
            installed.used(at(n), entry(100 + n, false));
            installed.used(at(n), entry(100 + n, false)); // by another hart
        }
        installed.used(at(9), entry(7, true));
        assert_eq!(counts(&mut installed, &ram), (4, 0));
        ram.store(at(0), entry(100, true).to_le_bytes()).unwrap(); // adopted
        ram.store(at(1), 0u64.to_le_bytes()).unwrap(); // adopted, then evicted
        assert_eq!(counts(&mut installed, &ram), (2, 2));
        installed.used(at(0), entry(100, true));
        assert_eq!(counts(&mut installed, &ram), (2, 2));
        // Evicted, then installed in another frame.
        ram.store(at(2), entry(200, false).to_le_bytes()).unwrap();
        installed.used(at(2), entry(200, false));
        assert_eq!(counts(&mut installed, &ram), (2, 3));
    }

    #[test]
    fn what_is_remembered_stays_small() {
        let ram = Ram::new(BASE, 4096).unwrap();
        let mut installed = Installed::new();
        (0..ROOM as u64 - 1).for_each(|n| installed.used(at(n), entry(n, false)));
        assert!(!installed.is_full());
        installed.used(at(ROOM as u64), entry(5, false));
        assert!(installed.is_full());
        installed.look(&ram);
        assert!(!installed.is_full() && installed.adopted == ROOM as u64);
    }
}
