// SPDX-License-Identifier: Apache-2.0
//! Memory, page tables, rings and NVMe devices around the SMU. The world checks every access and records the first breach
//! of a rule.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu_regs as regs;

use trapless_smu::SmuBus;

pub const PTES: usize = 12;
pub const FRAMES: usize = 10;
pub const DESCRIPTORS: usize = 2;
pub const FREE_ENTRIES: u64 = 8;
/// Number of return ring entries. A driver would use more; with this few the ring gets full.
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
/// Number of the first frame, and the offset from physical addresses to DMA addresses.
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

/// Makes the armed entry of page `p`. Its block address encodes `p` and `generation`, the number of times it was armed.
pub fn armed(p: usize, generation: u64) -> u64 {
    let flags = regs::PTE_L.mask() | regs::PTE_U.mask() | regs::PTE_R.mask() | regs::PTE_A.mask();
    flags | regs::PTE_LBA.of(8 * (p as u64 + PTES as u64 * generation)) | regs::PTE_DEVICE.of(device_of(p) as u64)
}

/// Returns the descriptor that a page's entries name.
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

/// Returns the area of an address, and the index in the area: page, ring entry or descriptor.
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

/// Returns the entry that must be updated before this entry.
fn below(area: Area) -> Option<Area> {
    match area {
        Area::Pmd => Some(Area::Pte),
        Area::Pud => Some(Area::Pmd),
        _ => None,
    }
}

/// Place of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With the operating system.
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

/// The device's side of an NVMe queue pair.
#[derive(Clone, Debug, Default)]
pub struct Device {
    sq_head: u64,
    cq_tail: u64,
    cq_head: u64,
    wraps: u64,
    /// The queue pair is deleted, so the device ignores its doorbells.
    deleted: bool,
    pub pending: Vec<Command>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub mem: BTreeMap<u64, u64>,
    /// Latest command identifier of each PMSHR entry.
    commands: BTreeMap<u64, u16>,
    /// Areas in which all accesses meet a bus error, and areas in which only writes do.
    pub faults: BTreeSet<Area>,
    pub write_faults: BTreeSet<Area>,
    /// Whether a write that meets a bus error still takes effect.
    pub takes_effect: bool,
    /// Pages whose exchange met a bus error and is not read back yet: the value seen, the frame, and whether it took effect.
    pub errors: BTreeMap<usize, (u64, usize, bool)>,
    /// Frames for which the SMU cannot know whether they are mapped, with the truth (REQ: SMU-13).
    pub doubts: BTreeMap<usize, bool>,
    /// For each return ring entry: whether the operating system gets the frame back.
    pub returns: VecDeque<bool>,
    /// The windows, if they are set: first byte, last byte, whether for memory, whether for doorbells.
    pub windows: Option<Vec<(u64, u64, bool, bool)>>,
    pub breach: Option<String>,
    pub places: Vec<Place>,
    /// The block that each frame contains.
    content: Vec<Option<u64>>,
    pub devices: Vec<Device>,
    /// The entry of each page that was updated last.
    installed: Vec<Option<Area>>,
    /// Pages whose marks met a bus error. A sync will not find these pages.
    pub lost_mark: BTreeSet<usize>,
    /// Position of each page's latest request in the order of acceptance; and the last position that a finished fence and a
    /// finished drain of each descriptor cover.
    pub accepted: Vec<u64>,
    pub fenced: [u64; DESCRIPTORS],
    pub drained: [u64; DESCRIPTORS],
    /// All accesses in their order, for the tests of rules.
    pub log: Vec<(Area, usize)>,
    /// Number of entries of each queue.
    pub depth: u64,
    /// Cycles of each access, and the cycles that `took` has not reported yet.
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

    /// Ends all bus errors.
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

    /// Returns a page's entry. For a valid entry, returns its flags and the block in its frame.
    pub fn holds(&self, p: usize) -> (u64, Option<u64>) {
        let pte = self.pte(p);
        if !regs::PTE_V.is_set(pte) {
            return (pte, None);
        }
        let frame = self.frame(regs::PTE_PFN.get(pte));
        (pte & !regs::PTE_PFN.mask(), frame.and_then(|f| self.content[f]))
    }

    /// Returns PMD and PUD of a page.
    pub fn marks(&self, p: usize) -> [u64; 2] {
        [PMD, PUD].map(|base| self.word(base + 8 * p as u64))
    }

    /// Tells whether the latest install of this page has updated all three entries.
    pub fn is_marked(&self, p: usize) -> bool {
        self.installed[p] == Some(Area::Pud)
    }

    /// REQ: SMU-15. Checks that an access is in a window of its kind.
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

    /// Records that an access met a bus error.
    fn met(&mut self, area: Area, index: usize) {
        if matches!(area, Area::Pmd | Area::Pud) {
            self.lost_mark.insert(index);
        }
    }

    /// Like [`World::access`], for a write. If a write meets a bus error but takes effect, the error is in the tuple, and the
    /// caller executes the write before it returns the error.
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

    /// Tells whether an exchange or a mark at this address needs no write, so that an error of writes cannot occur.
    fn only_reads(&self, at: PhysAddr, needless: impl Fn(u64) -> bool) -> bool {
        area(at.0, self.depth).is_some_and(|(a, _)| !self.faults.contains(&a)) && needless(self.word(at.0))
    }

    /// Checks a frame in the return ring. MAPPED must be set in its reason if and only if the SMU cannot know whether the frame
    /// is mapped.
    fn returned(&mut self, number: u64, word: u64) {
        let bits = regs::PTE_PFN.width;
        self.check(number >> bits == 0, "SMU-15", || format!("{number:#x} returned: not a frame number"));
        let frame = self.frame(number);
        let doubt = frame.and_then(|f| self.doubts.remove(&f));
        let blind = self.errors.values().any(|(_, f, _)| Some(*f) == frame);
        self.check(!blind, "SMU-13", || {
            format!("frame {frame:?} returned, but the SMU has not read its PTE back after the bus error")
        });
        let told = regs::RETURNED_MAPPED.is_set(word);
        self.check(told == doubt.is_some(), "SMU-13", || {
            format!("frame {frame:?} returned with reason {word:#x}, maybe mapped: {doubt:?}")
        });
        let mapped = doubt == Some(true);
        self.returns.push_back(!mapped);
        if mapped {
            return; // the page or the operating system has the frame
        }
        let held = frame.is_some_and(|f| self.places[f] == Place::Smu);
        self.check(held, "SMU-5", || format!("frame {number:#x} returned, but the SMU did not have it"));
        frame.into_iter().for_each(|f| self.places[f] = Place::Returned);
    }

    /// Decides what the SMU can know about an exchange that met a bus error, from the value that it reads back.
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

    /// Checks and records an exchange of a PTE, also one that met a bus error.
    fn install(&mut self, p: usize, seen: u64, new: u64, error: bool, effect: bool) {
        let (accepted, fenced) = (self.accepted[p], self.fenced[device_of(p)]);
        self.check(accepted > fenced, "SMU-8", || format!("page {p} installed after a fence that covered its request"));
        let Some(frame) = self.frame(regs::PTE_PFN.get(new)) else {
            return self.check(false, "SMU-3", || format!("page {p} installed with an unknown frame: {new:#x}"));
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

    /// Lets the device fetch commands up to the tail in its doorbell.
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

    /// Lets the device complete a command. It writes the data whatever the status is.
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
        self.check(accepted > drained, "SMU-8", || format!("device wrote page {page} after a drain covered it"));
        self.content[command.frame] = (status == 0).then_some(command.lba);
        true
    }

    /// Lets the device write a completion queue entry. Returns false if the queue is full.
    pub fn post(&mut self, d: usize, cid: u16, status: u16) -> bool {
        let depth = self.depth;
        let device = &mut self.devices[d];
        let (tail, phase) = (device.cq_tail, u64::from(device.wraps.is_multiple_of(2)));
        if (tail + 1) % depth == device.cq_head {
            return false;
        }
        device.cq_tail = (tail + 1) % depth;
        device.wraps += u64::from(device.cq_tail == 0);
        // SQ head and SQ identifier have wrong values on purpose.
        let upper = 0xdead_beef | u64::from(cid) << 32 | phase << 48 | u64::from(status) << 49;
        self.mem.insert(cq(d) + 16 * tail + 8, upper);
        true
    }

    /// Lets the operating system create a queue pair in place of a deleted one.
    pub fn create_queues(&mut self, d: usize) {
        self.devices[d] = Device::default();
    }

    /// Lets the operating system delete the queue pair and clear its memory for the next one.
    pub fn delete_queues(&mut self, d: usize) {
        self.devices[d] = Device { deleted: true, ..Device::default() };
        let queue = cq(d)..cq(d) + 16 * self.depth;
        self.mem.retain(|at, _| !queue.contains(at));
    }

    /// Gives a frame back to the operating system.
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
        // An entry that is already marked need not be written.
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
        // An entry that met a bus error is not covered by the tail, so the operating system does not read it.
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
