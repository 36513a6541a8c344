// SPDX-License-Identifier: Apache-2.0
//! Memory, page tables, rings and NVMe devices around the SMU. The world sees every access and keeps the first breach of
//! a rule.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu_regs as regs;

use trapless_smu::SmuBus;

pub const PTES: usize = 12;
pub const FRAMES: usize = 10;
pub const DESCRIPTORS: usize = 2;
pub const FREE_ENTRIES: u64 = 8;
/// Smaller than a driver would make it, so that it gets full.
pub const RET_ENTRIES: u64 = 4;
/// Depth of the queues, unless a test sets another.
pub const DEPTH: u64 = 7;

pub const PT: u64 = 0x8000_0000;
pub const PMD: u64 = 0x8001_0000;
pub const PUD: u64 = 0x8002_0000;
pub const FREE_RING: u64 = 0x8003_0000;
pub const RET_RING: u64 = 0x8004_0000;
const QUEUES: u64 = 0x8010_0000;
const DOORBELLS: u64 = 0x4000_1000;
/// First frame number, and where the device sees frame 0 of memory.
const FIRST_PFN: u64 = 0x9_0000;
const IOMMU: u64 = 1 << 40;

pub fn sq(d: usize) -> u64 {
    QUEUES + 0x2_0000 * d as u64
}

pub fn cq(d: usize) -> u64 {
    sq(d) + 0x1_0000
}

pub fn sq_doorbell(d: usize) -> u64 {
    DOORBELLS + 8 * d as u64
}

pub fn cq_doorbell(d: usize) -> u64 {
    sq_doorbell(d) + 4
}

pub fn pfn(frame: usize) -> u64 {
    FIRST_PFN + frame as u64
}

pub fn dma(frame: usize) -> u64 {
    (pfn(frame) << 12) + IOMMU
}

/// The armed entry of page `p`, whose block address tells `p` and how often it was armed.
pub fn armed(p: usize, generation: u64) -> u64 {
    let flags = regs::PTE_L.mask() | regs::PTE_U.mask() | regs::PTE_R.mask() | regs::PTE_A.mask();
    flags | regs::PTE_LBA.of(8 * (p as u64 + PTES as u64 * generation)) | regs::PTE_DEVICE.of(device_of(p) as u64)
}

/// The descriptor that a page's entries name.
pub fn device_of(p: usize) -> usize {
    p % DESCRIPTORS
}

fn page_of_lba(lba: u64) -> usize {
    (lba / 8) as usize % PTES
}

/// Parts of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Pte,
    Pmd,
    Pud,
    FreeRing,
    RetRing,
    Sq,
    Cq,
    SqDoorbell,
    CqDoorbell,
}

pub const AREAS: [Area; 9] = [
    Area::Pte,
    Area::Pmd,
    Area::Pud,
    Area::FreeRing,
    Area::RetRing,
    Area::Sq,
    Area::Cq,
    Area::SqDoorbell,
    Area::CqDoorbell,
];

/// The area of an address and which of its kind it is: page, ring entry, descriptor.
fn area(at: u64, depth: u64) -> Option<(Area, usize)> {
    let within = |base: u64, len: u64| (base..base + len).contains(&at).then(|| (at - base) / 8);
    let word = |base, n: usize| within(base, 8 * n as u64).map(|i| i as usize);
    if let Some(i) = word(PT, PTES) {
        return Some((Area::Pte, i));
    }
    if let Some(i) = word(PMD, PTES) {
        return Some((Area::Pmd, i));
    }
    if let Some(i) = word(PUD, PTES) {
        return Some((Area::Pud, i));
    }
    if let Some(i) = within(FREE_RING, 16 * FREE_ENTRIES) {
        return Some((Area::FreeRing, i as usize / 2));
    }
    if let Some(i) = within(RET_RING, 16 * RET_ENTRIES) {
        return Some((Area::RetRing, i as usize / 2));
    }
    (0..DESCRIPTORS).find_map(|d| {
        if within(sq(d), 64 * depth).is_some() {
            return Some((Area::Sq, d));
        }
        if within(cq(d), 16 * depth).is_some() {
            return Some((Area::Cq, d));
        }
        (at == sq_doorbell(d))
            .then_some((Area::SqDoorbell, d))
            .or((at == cq_doorbell(d)).then_some((Area::CqDoorbell, d)))
    })
}

/// What must have been updated before this entry.
fn below(area: Area) -> Option<Area> {
    match area {
        Area::Pmd => Some(Area::Pte),
        Area::Pud => Some(Area::Pmd),
        _ => None,
    }
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The OS has it.
    Os,
    /// In the free ring or with the SMU.
    Smu,
    /// In the return ring.
    Returned,
    /// Mapped by this page.
    Page(usize),
}

/// A command that a device has fetched.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub cid: u16,
    pub lba: u64,
    pub frame: usize,
}

/// An NVMe queue pair's other end.
#[derive(Clone, Debug, Default)]
pub struct Device {
    sq_head: u64,
    cq_tail: u64,
    cq_head: u64,
    wraps: u64,
    /// Its queue pair is deleted: doorbells are nobody's.
    deleted: bool,
    pub pending: Vec<Command>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub mem: BTreeMap<u64, u64>,
    /// The latest identifier of each of the unit's entries.
    commands: BTreeMap<u64, u16>,
    /// Areas in which accesses meet a bus error, and those in which writes alone do.
    pub faults: BTreeSet<Area>,
    pub write_faults: BTreeSet<Area>,
    /// Whether a write that meets one takes effect all the same.
    pub takes_effect: bool,
    /// Pages whose exchange met one, and which are not read back yet: the value seen, the frame, and whether it took effect.
    pub errors: BTreeMap<usize, (u64, usize, bool)>,
    /// Frames of which the SMU cannot know whether they were mapped, and whether they were (REQ: SMU-13).
    pub doubts: BTreeMap<usize, bool>,
    /// For each return ring entry: whether the frame is the OS's again.
    pub returns: VecDeque<bool>,
    /// Windows in force, if there are any: from and up to which byte, whether memory, whether doorbells.
    pub windows: Option<Vec<(u64, u64, bool, bool)>>,
    pub breach: Option<String>,
    pub places: Vec<Place>,
    /// Which block each frame holds.
    content: Vec<Option<u64>>,
    pub devices: Vec<Device>,
    /// Last step of each page's install.
    installed: Vec<Option<Area>>,
    /// Pages whose marks met a bus error: nobody will find them.
    pub lost_mark: BTreeSet<usize>,
    /// Order of acceptance of each page's latest request, and the last that a finished fence and drain of a descriptor cover.
    pub accepted: Vec<u64>,
    pub fenced: [u64; DESCRIPTORS],
    pub drained: [u64; DESCRIPTORS],
    /// Accesses in order, for the rule tests.
    pub log: Vec<(Area, usize)>,
    /// Entries of each queue.
    pub depth: u64,
    /// Cycles that each access takes, and those that the SMU has not been told yet.
    pub latency: u64,
    took: u64,
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    pub fn new() -> World {
        World {
            mem: BTreeMap::new(),
            faults: BTreeSet::new(),
            commands: BTreeMap::new(),
            write_faults: BTreeSet::new(),
            takes_effect: false,
            errors: BTreeMap::new(),
            doubts: BTreeMap::new(),
            returns: VecDeque::new(),
            windows: None,
            breach: None,
            places: vec![Place::Os; FRAMES],
            content: vec![None; FRAMES],
            devices: vec![Device::default(); DESCRIPTORS],
            installed: vec![None; PTES],
            depth: DEPTH,
            latency: 0,
            took: 0,
            lost_mark: BTreeSet::new(),
            accepted: vec![0; PTES],
            fenced: [0; DESCRIPTORS],
            drained: [0; DESCRIPTORS],
            log: Vec::new(),
        }
    }

    /// No access meets a bus error any more.
    pub fn mend(&mut self) {
        self.faults.clear();
        self.write_faults.clear();
    }

    pub fn check(&mut self, holds: bool, rule: &str, what: impl FnOnce() -> String) {
        if !holds && self.breach.is_none() {
            self.breach = Some(format!("{rule}: {}", what()));
        }
    }

    pub fn word(&self, at: u64) -> u64 {
        self.mem.get(&at).copied().unwrap_or(0)
    }

    pub fn pte(&self, p: usize) -> u64 {
        self.word(PT + 8 * p as u64)
    }

    /// A page's entry; of a valid one its flags and the block that its frame holds.
    pub fn holds(&self, p: usize) -> (u64, Option<u64>) {
        let pte = self.pte(p);
        if !regs::PTE_V.is_set(pte) {
            return (pte, None);
        }
        let frame = self.frame(regs::PTE_PFN.get(pte));
        (pte & !regs::PTE_PFN.mask(), frame.and_then(|f| self.content[f]))
    }

    /// The entries above it.
    pub fn marks(&self, p: usize) -> [u64; 2] {
        [PMD, PUD].map(|base| self.word(base + 8 * p as u64))
    }

    /// Whether the whole install of this page was seen since it last began.
    pub fn is_marked(&self, p: usize) -> bool {
        self.installed[p] == Some(Area::Pud)
    }

    /// REQ: SMU-15. An access lies in a window of its kind.
    fn held(&mut self, at: PhysAddr, allowed: &[Area]) {
        let bell = allowed.contains(&Area::SqDoorbell);
        let inside = |w: &Vec<(u64, u64, bool, bool)>| {
            w.iter().any(|&(from, to, memory, bells)| (from..=to).contains(&at.0) && if bell { bells } else { memory })
        };
        let fine = self.windows.as_ref().is_none_or(inside);
        self.check(fine, "SMU-15", || format!("access to {at:?}, which is in no window"));
    }

    fn access(&mut self, at: PhysAddr, allowed: &[Area]) -> Result<(Area, usize), BusError> {
        self.held(at, allowed);
        let found = area(at.0, self.depth).filter(|(a, _)| allowed.contains(a));
        self.check(found.is_some(), "SMU-10", || format!("access to {at:?}, expected {allowed:?}"));
        let (area, index) = found.ok_or(BusError(at))?;
        if self.faults.contains(&area) {
            self.met(area, index);
            return Err(BusError(at));
        }
        self.log.push((area, index));
        self.took += self.latency;
        Ok((area, index))
    }

    /// A bus error is met.
    fn met(&mut self, area: Area, index: usize) {
        if matches!(area, Area::Pmd | Area::Pud) {
            self.lost_mark.insert(index);
        }
    }

    /// As [`World::access`] for a write: one that meets an error, but takes effect, goes on with what it answers in the end.
    fn access_to_write(
        &mut self,
        at: PhysAddr,
        allowed: &[Area],
    ) -> Result<(Area, usize, Result<(), BusError>), BusError> {
        self.held(at, allowed);
        let found = area(at.0, self.depth).filter(|(a, _)| allowed.contains(a));
        let faulty = |(a, _): &(Area, usize)| self.faults.contains(a) || self.write_faults.contains(a);
        let Some((area, index)) = found.filter(faulty) else {
            let (area, index) = self.access(at, allowed)?;
            return Ok((area, index, Ok(())));
        };
        self.met(area, index);
        if self.takes_effect { Ok((area, index, Err(BusError(at)))) } else { Err(BusError(at)) }
    }

    /// Whether an exchange or a mark at this address would only read, since its write alone would meet an error.
    fn only_reads(&self, at: PhysAddr, needless: impl Fn(u64) -> bool) -> bool {
        area(at.0, self.depth).is_some_and(|(a, _)| !self.faults.contains(&a)) && needless(self.word(at.0))
    }

    /// Checks a frame in the return ring: its reason says that it may be mapped if, and only if, that is so.
    fn returned(&mut self, number: u64, word: u64) {
        let bits = regs::PTE_PFN.width;
        self.check(number >> bits == 0, "SMU-15", || format!("{number:#x} returned, which is no frame number"));
        let frame = self.frame(number);
        let doubt = frame.and_then(|f| self.doubts.remove(&f));
        let blind = self.errors.values().any(|(_, f, _)| Some(*f) == frame);
        self.check(!blind, "SMU-13", || {
            format!("frame {frame:?} returned, and nobody has looked whether a page maps it")
        });
        let told = regs::RETURNED_MAPPED.is_set(word);
        self.check(told == doubt.is_some(), "SMU-13", || {
            format!("frame {frame:?} returned with {word:#x}, in doubt: {doubt:?}")
        });
        let mapped = doubt == Some(true);
        self.returns.push_back(!mapped);
        if mapped {
            return; // the page's, or the OS's by now
        }
        let held = frame.is_some_and(|f| self.places[f] == Place::Smu);
        self.check(held, "SMU-5", || format!("frame {number:#x} returned, which the SMU did not hold"));
        frame.into_iter().for_each(|f| self.places[f] = Place::Returned);
    }

    /// What the SMU can know of an exchange that met a bus error, from what it reads back.
    fn read_back(&mut self, p: usize, found: Option<u64>) {
        let Some((seen, frame, effect)) = self.errors.remove(&p) else { return };
        let ours = |value| regs::PTE_V.is_set(value) && self.frame(regs::PTE_PFN.get(value)) == Some(frame);
        match found {
            Some(value) if value == seen => {
                self.check(!effect, "SMU-8", || format!("page {p} armed again during its miss"));
            }
            Some(value) if ours(value) => self.installed[p] = Some(Area::Pte),
            _ => {
                self.installed[p] = Some(Area::Pte);
                self.doubts.insert(frame, effect);
            }
        }
    }

    pub fn frame(&self, number: u64) -> Option<usize> {
        number.checked_sub(FIRST_PFN).map(|f| f as usize).filter(|&f| f < FRAMES)
    }

    fn mark(&mut self, area: Area, p: usize, bits: u64) {
        let last = self.installed[p];
        self.check(last.is_some() && last == below(area), "SMU-3", || {
            format!("page {p}: {area:?} marked after {last:?}")
        });
        self.check(bits == regs::PTE_L.mask(), "SMU-3", || format!("marked with {bits:#x}"));
        self.installed[p] = Some(area);
    }

    /// The PTE is written, or met an error.
    fn install(&mut self, p: usize, seen: u64, new: u64, error: bool, effect: bool) {
        let (accepted, fenced) = (self.accepted[p], self.fenced[device_of(p)]);
        self.check(accepted > fenced, "SMU-8", || format!("page {p} installed after a fence over its request"));
        let Some(frame) = self.frame(regs::PTE_PFN.get(new)) else {
            return self.check(false, "SMU-3", || format!("page {p} got a frame that nobody gave: {new:#x}"));
        };
        let (place, content) = (self.places[frame], self.content[frame]);
        self.check(place == Place::Smu, "SMU-3", || format!("frame {frame} installed from {place:?}"));
        let lba = regs::PTE_LBA.get(seen);
        self.check(content == Some(lba), "SMU-4", || format!("page {p} installed with {content:?}, not block {lba}"));
        self.check(new == regs::pte_installed(seen, pfn(frame)), "SMU-3", || format!("page {p} installed as {new:#x}"));
        if effect {
            self.places[frame] = Place::Page(p);
        }
        self.installed[p] = effect.then_some(Area::Pte);
        if error {
            self.errors.insert(p, (seen, frame, effect));
        }
    }

    /// The device takes what its doorbell announces.
    pub fn fetch_commands(&mut self, d: usize, tail: u64) {
        let mut device = self.devices[d].clone();
        while device.sq_head != tail {
            let word = |n: u64| self.word(sq(d) + 64 * device.sq_head + 8 * n);
            let (cdw0, prp1, slba, cdw12) = (word(0), word(3), word(5), word(6));
            let frame = self.frame(prp1.wrapping_sub(IOMMU) >> 12);
            let sound = cdw0 & 0xffff == 2 && cdw12 == 7 && cdw0 >> 32 == 1 + d as u64 && prp1 % 4096 == 0;
            self.check(sound && frame.is_some(), "SMU-9", || {
                format!("command {cdw0:#x} {prp1:#x} {slba:#x} {cdw12:#x}")
            });
            let cid = (cdw0 >> 16) as u16;
            let twice = device.pending.iter().any(|c| c.cid == cid);
            self.check(!twice, "SMU-7", || format!("command identifier {cid} used again"));
            let index = regs::CID_INDEX.get(cid.into());
            let before = self.commands.insert(index, cid);
            self.check(before != Some(cid), "SMU-9", || format!("generation of {cid:#x} used again"));
            device.pending.extend(frame.map(|frame| Command { cid, lba: slba, frame }));
            device.sq_head = (device.sq_head + 1) % self.depth;
        }
        self.devices[d] = device;
    }

    /// The device ends a command. Data are written whatever the status says.
    pub fn complete(&mut self, d: usize, which: usize, status: u16) -> bool {
        let Some(len) = Some(self.devices[d].pending.len()).filter(|&n| n > 0) else { return false };
        let command = self.devices[d].pending[which % len];
        if !self.post(d, command.cid, status) {
            return false;
        }
        self.devices[d].pending.swap_remove(which % len);
        let (place, page) = (self.places[command.frame], page_of_lba(command.lba));
        self.check(place == Place::Smu, "SMU-7", || format!("device wrote frame {} in {place:?}", command.frame));
        let (accepted, drained) = (self.accepted[page], self.drained[d]);
        self.check(accepted > drained, "SMU-8", || format!("device wrote for page {page} after a drain over it"));
        self.content[command.frame] = (status == 0).then_some(command.lba);
        true
    }

    /// The device writes a completion queue entry, if there is room.
    pub fn post(&mut self, d: usize, cid: u16, status: u16) -> bool {
        let depth = self.depth;
        let device = &mut self.devices[d];
        let (tail, phase) = (device.cq_tail, u64::from(device.wraps.is_multiple_of(2)));
        if (tail + 1) % depth == device.cq_head {
            return false;
        }
        device.cq_tail = (tail + 1) % depth;
        device.wraps += u64::from(device.cq_tail == 0);
        // SQ head and SQ identifier are nonsense on purpose.
        let upper = 0xdead_beef | u64::from(cid) << 32 | phase << 48 | u64::from(status) << 49;
        self.mem.insert(cq(d) + 16 * tail + 8, upper);
        true
    }

    /// The OS creates a queue pair where there was one.
    pub fn create_queues(&mut self, d: usize) {
        self.devices[d] = Device::default();
    }

    /// The OS deletes the queue pair and clears its memory for the next one.
    pub fn delete_queues(&mut self, d: usize) {
        self.devices[d] = Device { deleted: true, ..Device::default() };
        let queue = cq(d)..cq(d) + 16 * self.depth;
        self.mem.retain(|at, _| !queue.contains(at));
    }

    /// The OS takes a frame back.
    pub fn take_back(&mut self, frame: usize) {
        self.places[frame] = Place::Os;
        self.content[frame] = None;
    }
}

impl SmuBus for World {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        let access = self.access(at, &[Area::Pte, Area::Pmd, Area::Pud, Area::FreeRing, Area::RetRing, Area::Cq]);
        if let Some((Area::Pte, p)) = area(at.0, self.depth) {
            self.read_back(p, access.ok().map(|_| self.word(at.0)));
        }
        let (area, p) = access?;
        self.check(area != Area::RetRing || at.0 == RET_RING, "SMU-10", || format!("return ring read at {at:?}"));
        let value = self.word(at.0);
        // One that has its mark already need not be written.
        if let Some(below) = below(area)
            && regs::PTE_L.is_set(value)
            && self.installed[p] == Some(below)
        {
            self.installed[p] = Some(area);
        }
        Ok(value)
    }

    fn took(&mut self) -> Cycle {
        Cycle(std::mem::take(&mut self.took))
    }

    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError> {
        let (area, d, response) = self.access_to_write(at, &[Area::SqDoorbell, Area::CqDoorbell])?;
        self.check(u64::from(value) < self.depth, "SMU-9", || format!("doorbell {area:?} {d} rung with {value}"));
        match area {
            _ if u64::from(value) >= self.depth || self.devices[d].deleted => {}
            Area::SqDoorbell => self.fetch_commands(d, u64::from(value)),
            _ => self.devices[d].cq_head = u64::from(value),
        }
        response
    }

    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        let (area, _, response) = self.access_to_write(at, &[Area::Sq, Area::RetRing])?;
        let size = if area == Area::Sq { 64 } else { 16 };
        self.check(data.len() == size && at.0.is_multiple_of(size as u64), "SMU-10", || {
            format!("write of {} at {at:?}", data.len())
        });
        for (i, word) in data.chunks_exact(8).enumerate() {
            let word = word.try_into().map(u64::from_le_bytes).unwrap_or(0);
            self.mem.insert(at.0 + 8 * i as u64, word);
        }
        // One that met an error is behind the tail, where nobody looks.
        if area == Area::RetRing && response.is_ok() {
            self.returned(self.word(at.0), self.word(at.0 + regs::RET_ENTRY_REASON));
        }
        response
    }

    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError> {
        const ENTRIES: [Area; 3] = [Area::Pte, Area::Pmd, Area::Pud];
        if at.0 == RET_RING {
            let (.., response) = self.access_to_write(at, &[Area::RetRing])?;
            let value = self.word(at.0);
            self.check(old == new, "SMU-16", || format!("{new:#x} written over {old:#x} to try an exchange"));
            return response.map(|()| if value == old { Ok(old) } else { Err(value) });
        }
        if self.only_reads(at, |value| value != old) {
            self.access(at, &ENTRIES)?;
            return Ok(Err(self.word(at.0)));
        }
        let access = self.access_to_write(at, &ENTRIES);
        let value = self.word(at.0);
        let failed = !matches!(access, Ok((_, _, Ok(()))));
        if let Some((Area::Pte, p)) = area(at.0, self.depth).filter(|_| failed) {
            if value != old {
                if let Some(frame) = self.frame(regs::PTE_PFN.get(new)) {
                    self.errors.insert(p, (old, frame, false));
                }
                return Err(BusError(at));
            }
            if access.is_err() {
                self.install(p, old, new, true, false);
            }
        }
        let (area, p, response) = access?;
        if value != old {
            response?;
            return Ok(Err(value));
        }
        if area != Area::Pte {
            self.check(value & new == value, "SMU-3", || {
                format!("{area:?} of page {p} became {new:#x} from {value:#x}")
            });
            self.mark(area, p, new & !value);
            self.mem.insert(at.0, new);
            return response.map(|()| Ok(old));
        }
        self.check(regs::pte_names_block(value), "SMU-3", || format!("page {p} overwritten while it was {value:#x}"));
        self.install(p, old, new, response.is_err(), true);
        self.mem.insert(at.0, new);
        response.map(|()| Ok(old))
    }

    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError> {
        let (area, p, response) = if self.only_reads(at, |value| value & bits == bits) {
            let (area, p) = self.access(at, &[Area::Pmd, Area::Pud])?;
            (area, p, Ok(()))
        } else {
            self.access_to_write(at, &[Area::Pmd, Area::Pud])?
        };
        self.mark(area, p, bits);
        let value = self.word(at.0);
        self.mem.insert(at.0, value | bits);
        response.map(|()| value)
    }
}
