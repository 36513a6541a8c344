// SPDX-License-Identifier: Apache-2.0
//! The page walker: Sv39, Sv48 and Sv57 with Svade, and the entries armed for the SMU (CONTRACT rules ISA-1 to ISA-6).

use trapless_memory::{Cycle, PAGE_SHIFT, Paging, PhysAddr, Ram};

use crate::bugs;
use crate::csr::status;
use crate::pmp::Verdict;
use crate::trap::Stop;
use crate::{Access, Bus, Env, Fill, Hart, Observer, PageFault, Privilege, Timing, WalkRequest};

/// Bits of a page-table entry.
#[allow(missing_docs)]
pub mod pte {
    pub const V: u64 = 1 << 0;
    pub const R: u64 = 1 << 1;
    pub const W: u64 = 1 << 2;
    pub const X: u64 = 1 << 3;
    pub const U: u64 = 1 << 4;
    pub const G: u64 = 1 << 5;
    pub const A: u64 = 1 << 6;
    pub const D: u64 = 1 << 7;
    /// Armed (LBA-augmented) while V=0, unsynced while V=1.
    pub const L: u64 = 1 << 9;
    pub const PPN_SHIFT: u32 = 10;
    pub const PPN_MASK: u64 = (1 << 44) - 1;
    /// Bits that must be zero in present entries: N, PBMT, reserved.
    pub const RESERVED: u64 = 0x3ff << 54;
    /// Bits that must be zero in armed entries.
    pub const ARMED_RESERVED: u64 = 0x7f << 57;
}

/// How many answers "changed" one access may get before it faults (SMU-3).
const MAX_RETRIES: u32 = 4;

/// The result of a finished walk.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Physical address.
    pub pa: u64,
    /// log2 of the mapping's size.
    pub size: u32,
    /// Whether loads are allowed as well.
    pub read: bool,
    /// Whether stores are allowed as well.
    pub write: bool,
}

/// Whether hardware handles a miss on this entry (ISA-1). Ignores the enable bit.
pub fn is_armed(e: u64) -> bool {
    let fixed = pte::V | pte::L | pte::G | pte::U | pte::D | pte::ARMED_RESERVED;
    let leaf = e & (pte::R | pte::X) != 0;
    // W without R is reserved in all entries.
    let sane = e & (pte::R | pte::W) != pte::W;
    e & fixed == pte::L | pte::U && leaf && sane
}

impl Hart {
    /// Whether R, W, X and U of `e` allow an access.
    fn permits(&self, e: u64, access: Access, p: Privilege) -> bool {
        let user_page = e & pte::U != 0;
        let reach = match p {
            Privilege::User => user_page,
            _ => !user_page || (access != Access::Fetch && self.csr.mstatus & status::SUM != 0),
        };
        let right = match access {
            Access::Fetch => e & pte::X != 0,
            Access::Load => e & pte::R != 0 || (e & pte::X != 0 && self.csr.mstatus & status::MXR != 0),
            Access::Store => e & pte::W != 0,
        };
        reach && right
    }

    /// Translates `va` for an access of mode `p`. Unless `charged`, the walk costs nothing, because a TLB had the translation.
    ///
    /// # Errors
    /// Page fault, access fault on a page-table entry, or an armed entry that the SMU has to serve.
    pub(crate) fn translate<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        access: Access,
        p: Privilege,
        charged: bool,
    ) -> Result<Leaf, Stop> {
        let leaf = self.walk(env, va, access, p, charged)?;
        if self.detailed && charged && self.translates(p) {
            env.timing.walked(access, va, leaf.size);
            self.take_losses(env.timing);
        }
        Ok(leaf)
    }

    /// Looks `va` up in the TLBs of detailed timing, and returns true if a walk must be charged for.
    pub(crate) fn must_walk<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        access: Access,
        p: Privilege,
    ) -> bool {
        if !self.detailed || !self.translates(p) {
            return true;
        }
        let (cycles, found) = env.timing.find(access, va, p);
        self.take_losses(env.timing);
        self.acc += cycles;
        !found
    }

    /// Whether addresses in mode `p` are virtual.
    pub(crate) fn translates(&self, p: Privilege) -> bool {
        p != Privilege::Machine && Paging::of(self.csr.satp).is_some()
    }

    /// Walks the page tables, and charges for it if `charged`.
    fn walk<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        access: Access,
        p: Privilege,
        charged: bool,
    ) -> Result<Leaf, Stop> {
        let Some(paging) = Paging::of(self.csr.satp).filter(|_| p != Privilege::Machine) else {
            return Ok(Leaf { pa: va, size: PAGE_SHIFT, read: true, write: true });
        };
        // Also the result if the loop ends without a leaf.
        self.page_fault = PageFault::Malformed;
        let fault = || Stop::page_fault(access, va);
        if !paging.canonical(va) {
            self.page_fault = PageFault::Absent;
            return Err(fault());
        }
        let started = self.local_now();
        // A walk that the SMU has answered continues at its last step; the upper levels are not charged again.
        let resumed = std::mem::take(&mut self.walk_answered);
        let mut table = self.root_ppn() << PAGE_SHIFT;
        // Addresses of the entries read, by level.
        let mut at = [0; Paging::MAX_LEVELS];
        for level in (0..paging.levels()).rev() {
            let shift = Paging::shift(level);
            let pte_pa = table + (va >> shift & 0x1ff) * 8;
            at[level as usize] = pte_pa;
            let charged = charged && (!resumed || level == 0);
            let e = self.read_pte(env, pte_pa, level, charged).ok_or(Stop::access_fault(access, va))?;
            if e & pte::V == 0 {
                if level == 0 && self.hardware_handles(e) {
                    return Err(self.armed(e, &at, va, access, p, started));
                }
                self.page_fault = if level == 0 && is_armed(e) { PageFault::Armed } else { PageFault::Absent };
                return Err(fault());
            }
            if e & pte::RESERVED != 0 || e & (pte::R | pte::W) == pte::W {
                return Err(fault());
            }
            let ppn = e >> pte::PPN_SHIFT & pte::PPN_MASK;
            if e & (pte::R | pte::X) == 0 {
                if e & (pte::A | pte::D | pte::U) != 0 {
                    return Err(fault());
                }
                table = ppn << PAGE_SHIFT;
                continue;
            }
            let dirty = e & pte::D != 0;
            let misplaced =
                ppn & ((1 << (9 * level)) - 1) != 0 && !(level > 2 && bugs::has(bugs::Bug::LargeMisaligned));
            if !self.permits(e, access, p) {
                self.page_fault = PageFault::Permission;
                return Err(fault());
            }
            if misplaced {
                return Err(fault());
            }
            if e & pte::A == 0 || (access == Access::Store && !dirty) {
                self.page_fault = PageFault::AccessedDirty;
                return Err(fault());
            }
            let offset = va & ((1 << shift) - 1);
            self.retries = (0, 0);
            if e & pte::U != 0 {
                let root_ppn = self.root_ppn();
                let now = self.local_now();
                let at = PhysAddr(pte_pa);
                env.observer.fill(&Fill { root_ppn, va, pte: e, at, access, privilege: p, now });
            }
            return Ok(Leaf {
                pa: ppn << PAGE_SHIFT | offset,
                size: shift,
                read: self.permits(e, Access::Load, p),
                write: dirty && self.permits(e, Access::Store, p),
            });
        }
        Err(fault())
    }

    /// Reads an entry, or takes the value that the SMU saw; `None` if no memory answers at that address.
    fn read_pte<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        at: u64,
        level: u32,
        charged: bool,
    ) -> Option<u64> {
        if self.csr.pmp.check(at, 8, Access::Load, Privilege::Supervisor) == Verdict::Deny {
            return None;
        }
        if charged {
            self.acc += u64::from(self.config.costs.pte_read);
            self.acc += env.timing.pte_read(PhysAddr(at), level, self.local_now());
            self.take_losses(env.timing);
        }
        if let Some((pa, value)) = self.changed_pte
            && pa == at
        {
            self.changed_pte = None;
            return Some(value);
        }
        env.bus.ram().load(PhysAddr(at)).map(u64::from_le_bytes)
    }

    /// REQ: ISA-1, ISA-3: handles an armed entry if the extension is on and the hart is in U mode. Code that must not sleep then
    /// never waits for a device. MPRV does not count: it changes the mode of the access, not of the hart. [user-mode-only]
    fn hardware_handles(&self, e: u64) -> bool {
        let user = self.privilege == Privilege::User || bugs::has(bugs::Bug::ServesKernel);
        self.config.smu && self.csr.shwdp & 1 != 0 && is_armed(e) && user
    }

    /// REQ: ISA-2: checks permission first; a forbidden access traps at once.
    fn armed(
        &mut self,
        e: u64,
        at: &[u64; Paging::MAX_LEVELS],
        va: u64,
        access: Access,
        p: Privilege,
        started: Cycle,
    ) -> Stop {
        if !self.permits(e, access, p) {
            self.page_fault = PageFault::Permission;
            return Stop::page_fault(access, va);
        }
        Stop::Wait(WalkRequest {
            pte_pa: PhysAddr(at[0]),
            pmd_pa: PhysAddr(at[1]),
            pud_pa: PhysAddr(at[2]),
            seen: e,
            access,
            va,
            root_ppn: self.root_ppn(),
            started,
        })
    }

    /// Counts an answer "changed" for the entry at `pte_pa`; returns false if the access has had too many (SMU-3).
    pub(crate) fn count_retry(&mut self, pte_pa: u64) -> bool {
        let n = if self.retries.0 == pte_pa { self.retries.1 + 1 } else { 1 };
        self.retries = (pte_pa, n);
        n <= MAX_RETRIES
    }

    /// Page number of the root table.
    pub(crate) fn root_ppn(&self) -> u64 {
        self.csr.satp & pte::PPN_MASK
    }

    /// Translates by reading the page tables only: no permission checks, no side effects.
    pub(crate) fn peek_translation(&self, ram: &Ram, va: u64) -> Option<PhysAddr> {
        let Some(paging) = Paging::of(self.csr.satp).filter(|_| self.privilege != Privilege::Machine) else {
            return Some(PhysAddr(va));
        };
        if !paging.canonical(va) {
            return None;
        }
        let mut table = self.root_ppn() << PAGE_SHIFT;
        for level in (0..paging.levels()).rev() {
            let shift = Paging::shift(level);
            let e = u64::from_le_bytes(ram.load(PhysAddr(table + (va >> shift & 0x1ff) * 8))?);
            if e & pte::V == 0 {
                return None;
            }
            let ppn = e >> pte::PPN_SHIFT & pte::PPN_MASK;
            if e & (pte::R | pte::X) != 0 {
                let offset = (1 << shift) - 1;
                return Some(PhysAddr((ppn << PAGE_SHIFT) & !offset | va & offset));
            }
            table = ppn << PAGE_SHIFT;
        }
        None
    }
}
