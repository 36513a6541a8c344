// SPDX-License-Identifier: Apache-2.0
//! The steps of each miss, as they show on the pins.

use std::collections::BTreeMap;

use trapless_memory::Cycle;
use trapless_smu::Stamps;
use trapless_smu_regs as regs;

use crate::axi::Access;

/// AXI identifiers of the parts that read, behind those of the updaters (rtl/smu/rtl/trapless_smu.sv).
const LOOKUP: u32 = 0;
const POLLER: u32 = 2;
const COMMAND_BYTES: usize = 64;
/// More than there can be.
const MOST: usize = 512;

#[derive(Clone, Debug)]
struct Miss {
    pte: u64,
    cid: Option<u64>,
    stamps: Stamps,
    /// The entry that was written.
    installed: u64,
}

/// A miss whose entry and upper marks are written.
#[derive(Clone, Copy, Debug)]
pub struct Installed {
    /// Where its entry is.
    pub pte: u64,
    /// The entry.
    pub value: u64,
    /// Its steps so far.
    pub stamps: Stamps,
}

/// Misses between their lookup and their answer.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    live: Vec<Miss>,
    updaters: u32,
    polled: BTreeMap<u64, u64>,
    /// Which miss each updater is at, by its PTE.
    updating: [u64; 8],
    /// What was installed and not taken.
    installed: Vec<Installed>,
}

impl Misses {
    /// None.
    pub fn new(updaters: u32) -> Misses {
        Misses { updaters, ..Misses::default() }
    }

    fn is_poll(&self, access: &Access) -> bool {
        matches!(*access, Access::Read { part, .. } if part == self.updaters + POLLER)
    }

    /// Whether this is a look at a completion queue that sees what it saw the last time.
    pub fn finds_nothing(&mut self, access: &Access) -> bool {
        match *access {
            Access::Read { at, value: Ok(value), .. } if self.is_poll(access) => {
                self.polled.insert(at, value) == Some(value)
            }
            _ => false,
        }
    }

    /// Notes an access at this time. Gives the time of a doorbell.
    pub fn note(&mut self, access: &Access, now: Cycle) {
        match *access {
            Access::Read { part, at, .. } if part == self.updaters + LOOKUP => {
                self.live.retain(|m| m.pte != at);
                if self.live.len() == MOST {
                    self.live.remove(0); // failed long ago
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
                    self.updated(updater, None, now); // marked already: not written
                }
            }
            Access::Write { part, exclusive: true, done: true, value, .. } => {
                self.updated(part as usize % self.updating.len(), Some(value), now);
            }
            Access::Write { bytes: COMMAND_BYTES, value, .. } => {
                // An entry that has a new command is done with the old one.
                let cid = value >> 16 & 0xffff;
                self.live.retain(|m| m.cid != Some(cid));
                // The command names its miss only by what it reads; the first that waits for one has it.
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

    /// An updater is done with an entry.
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

    /// Takes what was installed.
    pub fn take_installed(&mut self) -> Vec<Installed> {
        std::mem::take(&mut self.installed)
    }

    /// The steps of the miss of this PTE.
    pub fn stamps(&self, pte: u64) -> Stamps {
        self.live.iter().find(|m| m.pte == pte).map_or_else(Stamps::default, |m| m.stamps)
    }
}
