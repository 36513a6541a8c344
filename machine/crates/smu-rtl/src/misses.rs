// SPDX-License-Identifier: Apache-2.0
//! Times of the steps of each miss, found from the accesses on the pins.

use std::collections::BTreeMap;

use trapless_memory::Cycle;
use trapless_smu::Stamps;
use trapless_smu_regs as regs;

use crate::axi::Access;

/// AXI identifiers of the parts that read. They follow the identifiers of the updaters (rtl/smu/rtl/trapless_smu.sv).
const LOOKUP: u32 = 0;
const POLLER: u32 = 2;
const COMMAND_BYTES: usize = 64;
/// A limit above the number of misses that can be live.
const MOST: usize = 512;

#[derive(Clone, Debug)]
struct Miss {
    pte: u64,
    cid: Option<u64>,
    stamps: Stamps,
    /// The entry that the SMU installed.
    installed: u64,
}

/// A miss whose PTE, PMD and PUD are updated.
#[derive(Clone, Copy, Debug)]
pub struct Installed {
    /// Address of the PTE.
    pub pte: u64,
    /// Value of the PTE.
    pub value: u64,
    /// Times of its steps so far.
    pub stamps: Stamps,
}

/// The misses between their lookup and their answer.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    live: Vec<Miss>,
    updaters: u32,
    polled: BTreeMap<u64, u64>,
    /// Address of the PTE that each updater works on.
    updating: [u64; 8],
    /// Installed misses that were not taken with [`Misses::take_installed`].
    installed: Vec<Installed>,
}

impl Misses {
    /// Creates an empty set for a unit with this number of updaters.
    pub fn new(updaters: u32) -> Misses {
        Misses { updaters, ..Misses::default() }
    }

    fn is_poll(&self, access: &Access) -> bool {
        matches!(*access, Access::Read { part, .. } if part == self.updaters + POLLER)
    }

    /// Tells whether the access is a poll of a completion queue that finds the same value as the poll before.
    pub fn finds_nothing(&mut self, access: &Access) -> bool {
        match *access {
            Access::Read { at, value: Ok(value), .. } if self.is_poll(access) => {
                self.polled.insert(at, value) == Some(value)
            }
            _ => false,
        }
    }

    /// Records the step that an access at time `now` belongs to.
    pub fn note(&mut self, access: &Access, now: Cycle) {
        match *access {
            Access::Read { part, at, .. } if part == self.updaters + LOOKUP => {
                self.live.retain(|m| m.pte != at);
                if self.live.len() == MOST {
                    self.live.remove(0); // the oldest miss failed long ago
                }
                let stamps = Stamps { allocated: Some(now), ..Stamps::default() };
                self.live.push(Miss { pte: at, cid: None, stamps, installed: 0 });
            }
            Access::Read { value: Ok(cqe), .. } if self.is_poll(access) => {
                let cid = regs::CQE_CID.get(cqe);
                let miss = self.live.iter_mut().find(|m| m.cid == Some(cid));
                miss.into_iter().for_each(|m| m.stamps.completion = Some(now));
            }
            Access::Read { part, at, exclusive: true, value } => {
                let updater = part as usize % self.updating.len();
                if self.live.iter().any(|m| m.pte == at && m.stamps.pte.is_none()) {
                    self.updating[updater] = at;
                } else if value.is_ok_and(|v| regs::PTE_L.is_set(v)) {
                    self.updated(updater, None, now); // the entry is already marked, so the unit does not write it
                }
            }
            Access::Write { part, exclusive: true, done: true, value, .. } => {
                self.updated(part as usize % self.updating.len(), Some(value), now);
            }
            Access::Write { bytes: COMMAND_BYTES, value, .. } => {
                // If a PMSHR entry has a new command, its old miss is over.
                let cid = value >> 16 & 0xffff;
                self.live.retain(|m| m.cid != Some(cid));
                // The command does not name its PTE. We give it to the first miss that waits for a command.
                if let Some(m) = self.live.iter_mut().find(|m| m.cid.is_none() && m.stamps.command.is_none()) {
                    m.cid = Some(cid);
                    m.stamps.frame = m.stamps.frame.or(Some(now));
                    m.stamps.command = Some(now);
                }
            }
            Access::Write { bytes: 4, .. } => {
                let m = self.live.iter_mut().find(|m| m.stamps.command.is_some() && m.stamps.doorbell.is_none());
                m.into_iter().for_each(|m| m.stamps.doorbell = Some(now));
            }
            _ => {}
        }
    }

    /// Records that an updater has finished the PTE, the PMD or the PUD.
    fn updated(&mut self, updater: usize, written: Option<u64>, now: Cycle) {
        let pte = self.updating[updater];
        let Some(m) = self.live.iter_mut().find(|m| m.pte == pte) else { return };
        if let (Some(value), None) = (written, m.stamps.pte) {
            m.installed = value;
        }
        let s = &mut m.stamps;
        let step = [&mut s.pte, &mut s.pmd, &mut s.pud].into_iter().find(|step| step.is_none());
        let Some(step) = step else { return };
        *step = Some(now);
        if m.stamps.pud.is_some() {
            self.installed.push(Installed { pte, value: m.installed, stamps: m.stamps });
        }
    }

    /// Returns the installed misses and forgets them.
    pub fn take_installed(&mut self) -> Vec<Installed> {
        std::mem::take(&mut self.installed)
    }

    /// Returns the times of the steps of this PTE's miss.
    pub fn stamps(&self, pte: u64) -> Stamps {
        self.live.iter().find(|m| m.pte == pte).map_or_else(Stamps::default, |m| m.stamps)
    }
}
