// SPDX-License-Identifier: Apache-2.0
//! Costs of each hart's memory accesses: its page walk cache always counts, caches and TLBs in detailed timing only.

use serde::Serialize;
use trapless_memory::{ClockHz, Cycle, PhysAddr};
use trapless_riscv::{Access, Loss, Privilege, Timing};
use trapless_timing::{
    Answer, Detail, Hierarchy, LINE_SHIFT, Line, Loss as CacheLoss, Side, StoreBuffer, Thread, Tlb, Want,
};

use super::walk_cache::WalkCache;

/// Number of misses of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissCounts {
    /// Lines of code that were not in the first level.
    pub l1i: u64,
    /// Lines of data that were not in the first level, including those of page walks.
    pub l1d: u64,
    /// Lines of both kinds that were not in the core's second level either.
    pub l2: u64,
    /// Lines that were not in the last level either and came from memory.
    pub last: u64,
    /// Pages of code that were not in the first-level TLB.
    pub itlb: u64,
    /// Pages of data that were not in the first-level TLB.
    pub dtlb: u64,
    /// Pages of both kinds that were not in the second-level TLB either, so that the hart walked.
    pub walks: u64,
    /// Mispredicted branches.
    pub branches: u64,
}

/// Misses of user programs and of the kernel (with the firmware).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Misses {
    /// U-mode.
    pub user: MissCounts,
    /// All other modes.
    pub kernel: MissCounts,
}

macro_rules! each_count {
    ($a:expr, $b:expr, $f:expr) => {{
        let (a, b, f) = ($a, $b, $f);
        MissCounts {
            l1i: f(a.l1i, b.l1i),
            l1d: f(a.l1d, b.l1d),
            l2: f(a.l2, b.l2),
            last: f(a.last, b.last),
            itlb: f(a.itlb, b.itlb),
            dtlb: f(a.dtlb, b.dtlb),
            walks: f(a.walks, b.walks),
            branches: f(a.branches, b.branches),
        }
    }};
}

impl Misses {
    /// The misses since `earlier`.
    pub fn since(&self, earlier: &Misses) -> Misses {
        let less = |a: u64, b: u64| a - b;
        Misses {
            user: each_count!(self.user, earlier.user, less),
            kernel: each_count!(self.kernel, earlier.kernel, less),
        }
    }

    /// The sum of both.
    pub fn and(&self, other: &Misses) -> Misses {
        let plus = |a: u64, b: u64| a + b;
        Misses { user: each_count!(self.user, other.user, plus), kernel: each_count!(self.kernel, other.kernel, plus) }
    }

    /// The counts of a mode.
    pub fn of(&mut self, mode: Privilege) -> &mut MissCounts {
        if mode == Privilege::User { &mut self.user } else { &mut self.kernel }
    }
}

/// There is no memory from this address on. Page tables and registers may contain such addresses; caches cannot hold them.
const BEYOND: PhysAddr = PhysAddr(1 << 38);

/// Maximum number of losses that are kept for a hart. With more, the hart forgets everything instead: if it slept while others
/// used its core, the list could grow longer than all that the hart knows.
const MOST_LOSSES: usize = 4096;

/// One hart's part of detailed timing.
#[derive(Clone, Debug)]
struct Own {
    stores: StoreBuffer,
    /// Losses that the hart does not know yet.
    lost: Vec<Loss>,
    misses: Misses,
    /// Mode of the page walk in progress.
    walking: Privilege,
}

impl Own {
    fn lose(&mut self, loss: Loss) {
        if self.lost.len() == MOST_LOSSES {
            self.lost.clear();
            self.lost.push(Loss::Everything);
        }
        self.lost.push(loss);
    }
}

/// Caches and TLBs of all cores.
#[derive(Clone, Debug)]
struct Caches {
    hierarchy: Hierarchy,
    /// TLBs of each core.
    tlbs: Vec<Tlb>,
    /// The part of each hart.
    own: Vec<Own>,
    /// Number of harts of a core.
    threads: usize,
    l1_cycles: u64,
    smu_timed: bool,
}

/// Costs of memory accesses of all harts.
#[derive(Clone, Debug)]
pub struct Times {
    walk_caches: Vec<WalkCache>,
    /// Number of harts of a core.
    threads: usize,
    caches: Option<Caches>,
}

impl Times {
    /// Creates costs without detailed timing, for `threads` harts per core. A hart's page walk cache has `entries` entries; a
    /// page table entry that is not in it costs `read` cycles.
    pub fn new(harts: usize, threads: usize, entries: u32, read: u32) -> Times {
        Times { walk_caches: vec![WalkCache::new(entries, read); harts], threads, caches: None }
    }

    /// Begins detailed timing with empty caches and TLBs, or ends it.
    pub fn set_detail(&mut self, detail: Option<&Detail>, clock: ClockHz) {
        let (harts, threads) = (self.walk_caches.len(), self.threads);
        let cores = harts.div_ceil(threads);
        self.caches = detail.map(|d| {
            // Each thread has an equal share of the entries.
            let stores = StoreBuffer::new(d.caches.store_buffer as usize / threads);
            let own = Own { stores, lost: Vec::new(), misses: Misses::default(), walking: Privilege::Supervisor };
            Caches {
                hierarchy: Hierarchy::new(d.hierarchy(cores, clock)),
                tlbs: vec![Tlb::new(d.tlb(), threads); cores],
                own: vec![own; harts],
                threads,
                l1_cycles: d.caches.l1_cycles.into(),
                smu_timed: d.caches.smu_timed,
            }
        });
    }

    /// Forgets the contents of caches, TLBs and page walk caches, but not the counts.
    pub fn forget(&mut self, detail: Option<&Detail>, clock: ClockHz) {
        self.walk_caches.iter_mut().for_each(WalkCache::fence);
        let Some(before) = self.caches.take() else { return };
        self.set_detail(detail, clock);
        let own = self.caches.iter_mut().flat_map(|c| &mut c.own);
        for (own, before) in own.zip(before.own) {
            own.misses = before.misses;
        }
    }

    /// The costs of one hart.
    pub fn of(&mut self, hart: usize) -> HartTimes<'_> {
        HartTimes { hart, times: self }
    }

    /// Notes that a device has written memory.
    pub fn overwritten(&mut self, at: PhysAddr, len: u64) {
        let Some(caches) = &mut self.caches else { return };
        let last = (at.0 + len.max(1) - 1) >> LINE_SHIFT;
        for line in at.0 >> LINE_SHIFT..=last {
            caches.hierarchy.overwritten(PhysAddr(line << LINE_SHIFT));
        }
        caches.route();
    }

    /// Notes that the SMU reads or writes memory. Returns the cycles that this takes, if timing is detailed.
    pub fn reached_by_smu(&mut self, write: bool, at: PhysAddr, now: Cycle) -> u64 {
        let Some(caches) = self.caches.as_mut().filter(|_| at < BEYOND) else { return 0 };
        let cycles = caches.hierarchy.access_by_device(write, at, now);
        caches.route();
        if caches.smu_timed { cycles } else { 0 }
    }

    /// Misses of one hart, in user mode and in other modes, without branches.
    pub fn misses_of(&self, hart: usize) -> Option<&Misses> {
        self.caches.as_ref().map(|c| &c.own[hart].misses)
    }

    /// Misses of all harts, without branches.
    pub fn misses(&self) -> Option<Misses> {
        let caches = self.caches.as_ref()?;
        Some(caches.own.iter().fold(Misses::default(), |sum, own| sum.and(&own.misses)))
    }
}

impl Caches {
    /// Passes each core's losses to its harts.
    #[inline]
    fn route(&mut self) {
        while let Some(lost) = self.hierarchy.take_lost() {
            let Line(line) = lost.line;
            let loss = match lost.what {
                CacheLoss::Code => Loss::Code(line),
                CacheLoss::Data => Loss::Data(line),
                CacheLoss::Right => Loss::Right(line),
            };
            let first = lost.core * self.threads;
            self.own[first..].iter_mut().take(self.threads).for_each(|own| own.lose(loss));
        }
    }

    fn access(&mut self, hart: usize, want: Want, at: PhysAddr, now: Cycle, by: Privilege) -> (u64, bool) {
        if at >= BEYOND {
            return (0, false);
        }
        let granted = self.hierarchy.access(hart / self.threads, want, at, now);
        if granted.from > Answer::First {
            let counts = self.own[hart].misses.of(by);
            match want {
                Want::Fetch => counts.l1i += 1,
                Want::Load | Want::Store => counts.l1d += 1,
            }
            counts.l2 += u64::from(granted.from > Answer::Second);
            counts.last += u64::from(granted.from > Answer::Last);
            self.route();
        }
        (granted.cycles, granted.writable)
    }

    /// The TLB that a hart uses, the hart's thread number in its core, and the hart's own part.
    fn tlb(&mut self, hart: usize) -> (&mut Tlb, Thread, &mut Own) {
        (&mut self.tlbs[hart / self.threads], (hart % self.threads) as Thread, &mut self.own[hart])
    }

    /// Passes the pages that a core's TLB has lost to the core's harts.
    fn take_pages(&mut self, hart: usize) {
        let core = hart / self.threads;
        while let Some((thread, side, va)) = self.tlbs[core].take_lost() {
            self.own[core * self.threads + usize::from(thread)].lose(match side {
                Side::Code => Loss::CodePage(va),
                Side::Data => Loss::DataPage(va),
            });
        }
    }
}

/// The costs of one hart's accesses.
pub struct HartTimes<'a> {
    hart: usize,
    times: &'a mut Times,
}

impl HartTimes<'_> {
    /// Another hart has fenced some pages: drops all translations of this hart's TLB, which is more than the hart itself forgets.
    pub fn fence_range(&mut self) {
        self.fence(None);
        if let Some(caches) = &mut self.times.caches {
            caches.tlb(self.hart).2.lose(Loss::Everything);
        }
    }

    /// Misses so far in detailed timing, without branches.
    pub fn misses(&self) -> Option<&Misses> {
        self.times.misses_of(self.hart)
    }
}

fn side(access: Access) -> Side {
    if access == Access::Fetch { Side::Code } else { Side::Data }
}

impl Timing for HartTimes<'_> {
    fn pte_read(&mut self, at: PhysAddr, level: u32, now: Cycle) -> u64 {
        let walks = &mut self.times.walk_caches[self.hart];
        if walks.holds(at, level) {
            return 0;
        }
        match &mut self.times.caches {
            None => walks.miss,
            Some(caches) => {
                let by = caches.own[self.hart].walking;
                caches.access(self.hart, Want::Load, at, now, by).0 + caches.l1_cycles
            }
        }
    }

    fn fence(&mut self, page: Option<u64>) {
        self.times.walk_caches[self.hart].fence();
        if let Some(caches) = &mut self.times.caches {
            let (tlb, thread, own) = caches.tlb(self.hart);
            if tlb.fence(thread, page) {
                own.lose(Loss::Everything);
            }
        }
    }

    fn switched(&mut self) {
        // Address space identifiers do not exist.
        if let Some(caches) = &mut self.times.caches {
            let (tlb, thread, _) = caches.tlb(self.hart);
            tlb.fence(thread, None);
        }
    }

    fn find(&mut self, access: Access, va: u64, by: Privilege) -> (u64, bool) {
        let Some(caches) = &mut self.times.caches else { return (0, true) };
        let (tlb, thread, own) = caches.tlb(self.hart);
        let (cycles, found) = tlb.find(thread, side(access), va);
        if cycles > 0 || !found {
            let counts = own.misses.of(by);
            match side(access) {
                Side::Code => counts.itlb += 1,
                Side::Data => counts.dtlb += 1,
            }
            counts.walks += u64::from(!found);
            own.walking = by;
            caches.take_pages(self.hart);
        }
        (cycles, found)
    }

    fn walked(&mut self, access: Access, va: u64, size: u32) {
        if let Some(caches) = &mut self.times.caches {
            let (tlb, thread, _) = caches.tlb(self.hart);
            tlb.enter(thread, side(access), va, size);
            caches.take_pages(self.hart);
        }
    }

    fn data(&mut self, access: Access, waits: bool, at: PhysAddr, now: Cycle, by: Privilege) -> (u64, bool) {
        let Some(caches) = &mut self.times.caches else { return (0, true) };
        if access != Access::Store {
            return caches.access(self.hart, Want::Load, at, now, by);
        }
        let (cycles, writable) = caches.access(self.hart, Want::Store, at, now, by);
        if cycles == 0 || waits {
            return (cycles, writable);
        }
        (caches.own[self.hart].stores.push(now, cycles), writable)
    }

    fn code(&mut self, at: PhysAddr, now: Cycle, by: Privilege) -> u64 {
        match &mut self.times.caches {
            Some(caches) => caches.access(self.hart, Want::Fetch, at, now, by).0,
            None => 0,
        }
    }

    fn lost(&mut self) -> Option<Loss> {
        self.times.caches.as_mut()?.own[self.hart].lost.pop()
    }
}
