// SPDX-License-Identifier: Apache-2.0
//! A unit that sees other numbers than the world. The rules do not depend on the addresses of page tables, rings, queues and
//! doorbells, on the numbers of frames, blocks and descriptors, or on the permissions of entries. A disguise changes bits of
//! these numbers on the way to its unit, and changes them back on the way to the world. So every test also runs with numbers
//! in which each bit is sometimes 0 and sometimes 1. Queues and rings must be shorter than a page.

use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu::{
    Accept, Answer, Miss, Outcome, Request, Smu, SmuBus, SmuConfig, SmuSink, SmuTiming, SmuUnit, Source,
};
use trapless_smu_regs as regs;
use trapless_smu_rtl::Dice;

use crate::world::{FREE_RING, PMD, PT, PUD, RET_RING, cq_doorbell};

/// Bits of an address that select a region of the world.
const REGION: u64 = 0x00ff_ffff_ffff_0000;

/// Bits that the disguise inverts.
#[derive(Clone, Copy, Debug)]
struct Masks {
    high: u64,
    low: u64,
    lba: u64,
    device: u64,
    flags: u64,
    /// Bits of PMD and PUD. The unit marks these entries and leaves their other bits unchanged.
    upper: u64,
    pfn: u64,
    dma: u64,
    nsid: u64,
    blocks: u64,
}

/// Content of a register.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Address,
    Entry,
    Nsid,
    Blocks,
}

impl Masks {
    fn new(seed: u64) -> Masks {
        let mut dice = Dice::new(seed);
        let mut bits = |mask: u64| dice.roll() & mask;
        Masks {
            high: bits(REGION),
            low: bits(0xff00_0000_0000_ffff),
            lba: bits(regs::PTE_LBA.mask()),
            device: bits(regs::DESC_COUNT as u64 - 1),
            flags: bits(regs::PTE_W.mask() | regs::PTE_X.mask() | regs::PTE_A.mask()),
            upper: bits(!regs::PTE_L.mask()),
            pfn: bits(regs::PTE_PFN.mask()) >> regs::PTE_PFN.shift,
            dma: bits(!0xfff),
            nsid: bits(0xffff_ffff),
            blocks: bits(3),
        }
    }

    /// Returns the bits that are inverted in a region of the world, in addition to `high`.
    fn low(&self, region: u64) -> u64 {
        self.low
            & match region {
                PT | PMD | PUD => 0xfff8,
                FREE_RING | RET_RING => 0xff80,
                at if at == cq_doorbell(0) & REGION => 0xff00_0000_0000_fffc,
                _ => 0xf000,
            }
    }

    fn to_unit(self, at: u64) -> u64 {
        at ^ self.high ^ self.low(at & REGION)
    }

    fn to_world(self, at: u64) -> u64 {
        at ^ self.high ^ self.low((at ^ self.high) & REGION)
    }

    /// Converts a leaf entry, in either direction.
    fn entry(self, value: u64) -> u64 {
        let flags = if regs::PTE_R.is_set(value) { self.flags } else { 0 };
        if regs::PTE_V.is_set(value) {
            value ^ regs::PTE_PFN.of(self.pfn) ^ flags
        } else if regs::PTE_L.is_set(value) {
            value ^ self.lba ^ regs::PTE_DEVICE.of(self.device) ^ flags
        } else {
            value
        }
    }

    /// Converts a word of memory, in either direction. `at` is its address in the world.
    fn word(self, at: u64, value: u64) -> u64 {
        match at & REGION {
            PT => self.entry(value),
            PMD | PUD => value ^ self.upper,
            FREE_RING if at % regs::FREE_ENTRY_SIZE == regs::FREE_ENTRY_PFN => value ^ self.pfn,
            FREE_RING => value ^ self.dma,
            RET_RING if at % regs::RET_ENTRY_SIZE == regs::RET_ENTRY_PFN => value ^ self.pfn,
            _ => value,
        }
    }

    /// Converts an NVMe command.
    fn command(self, data: &[u8]) -> Vec<u8> {
        let turn: [(u64, u64); 3] = [
            (regs::NVME_SQE_NSID, self.nsid),
            (regs::NVME_SQE_PRP1, self.dma),
            (regs::NVME_SQE_SLBA, self.lba >> regs::PTE_LBA.shift),
        ];
        let mut command = data.to_vec();
        for (at, mask) in turn {
            command[at as usize..].iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
        }
        let count = &mut command[regs::NVME_SQE_CDW12 as usize];
        *count = (0..4_u64).find(|n| (1 << n) - 1 == *count).map_or(*count, |n| (1 << (n ^ self.blocks)) - 1);
        command
    }

    fn register(self, kind: Kind, value: u64, address: impl Fn(u64) -> u64) -> u64 {
        match kind {
            Kind::Plain => value,
            Kind::Address => address(value),
            Kind::Entry => self.entry(value),
            Kind::Nsid => value ^ self.nsid,
            Kind::Blocks => value ^ self.blocks,
        }
    }

    fn outcome(self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done(entry) => Outcome::Done(self.entry(entry)),
            Outcome::Changed(entry) => Outcome::Changed(self.entry(entry)),
            Outcome::Failed(reason) => Outcome::Failed(reason),
        }
    }

    fn answer(self, answer: &Answer) -> Answer {
        Answer { seen: self.entry(answer.seen), outcome: self.outcome(answer.outcome), ..*answer }
    }
}

/// The unit with its disguise.
pub struct Disguise {
    unit: Box<dyn SmuUnit>,
    masks: Masks,
}

impl Disguise {
    pub fn new(unit: Box<dyn SmuUnit>, seed: u64) -> Disguise {
        Disguise { unit, masks: Masks::new(seed) }
    }

    /// Creates a disguise that changes only the numbers of descriptors: descriptor 0 of the world is this one of the unit.
    pub fn at(unit: Box<dyn SmuUnit>, descriptor: u64) -> Disguise {
        let none = Masks { high: 0, low: 0, lba: 0, device: 0, flags: 0, upper: 0, pfn: 0, dma: 0, nsid: 0, blocks: 0 };
        Disguise { unit, masks: Masks { device: descriptor, ..none } }
    }

    /// Returns the offset of the unit's register for a register of the world, and its kind of content.
    fn register(&self, offset: u64) -> (u64, Kind) {
        let inside = |base: u64, stride: u64, count: u64| {
            offset.checked_sub(base).filter(|at| *at < stride * count).map(|at| (at % stride) & !7)
        };
        if let Some(field) = inside(regs::DESC_BASE, regs::DESC_STRIDE, regs::DESC_COUNT as u64) {
            let kind = match field {
                regs::DESC_SQ_BASE | regs::DESC_CQ_BASE | regs::DESC_SQ_DB | regs::DESC_CQ_DB => Kind::Address,
                regs::DESC_NSID => Kind::Nsid,
                regs::DESC_BLOCKS => Kind::Blocks,
                _ => Kind::Plain,
            };
            return (offset ^ (self.masks.device * regs::DESC_STRIDE), kind);
        }
        let kind = match inside(regs::PORT_BASE, regs::PORT_STRIDE, self.unit.config().harts.into()) {
            Some(regs::PORT_PTE_ADDR | regs::PORT_PMD_ADDR | regs::PORT_PUD_ADDR) => Kind::Address,
            Some(regs::PORT_ENTRY | regs::PORT_ANSWER) => Kind::Entry,
            None if matches!(offset & !7, regs::FREE_BASE | regs::RET_BASE) => Kind::Address,
            _ => Kind::Plain,
        };
        (offset, kind)
    }
}

impl SmuUnit for Disguise {
    fn config(&self) -> &SmuConfig {
        self.unit.config()
    }

    fn set_timing(&mut self, timing: SmuTiming) {
        self.unit.set_timing(timing);
    }

    fn next_event(&self) -> Option<Cycle> {
        self.unit.next_event()
    }

    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink) {
        let masks = self.masks;
        self.unit.advance(now, &mut Far { bus, masks }, &mut Told { sink, masks });
    }

    fn request(&mut self, now: Cycle, request: Request) -> Accept {
        let m = self.masks;
        let at = |at: PhysAddr| PhysAddr(m.to_unit(at.0));
        let Request { pte, pmd, pud, seen, .. } = request;
        let there = Request { pte: at(pte), pmd: at(pmd), pud: at(pud), seen: m.entry(seen), ..request };
        self.unit.request(now, there)
    }

    fn is_held(&self, from: Source) -> bool {
        self.unit.is_held(from)
    }

    fn abandon(&mut self, hart: u32, id: u64) {
        self.unit.abandon(hart, id);
    }

    fn mmio_read(&mut self, offset: u64, size: usize, now: Cycle, bus: &mut dyn SmuBus) -> u64 {
        let (there, kind) = self.register(offset);
        let masks = self.masks;
        if matches!(kind, Kind::Plain) || size != 8 {
            return self.unit.mmio_read(there, size, now, &mut Far { bus, masks });
        }
        let value = self.unit.mmio_read(there, size, now, &mut Far { bus, masks });
        masks.register(kind, value, |at| masks.to_world(at))
    }

    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus) {
        let (there, kind) = self.register(offset);
        let masks = self.masks;
        let to_unit = |whole: u64| masks.register(kind, whole, |at| masks.to_unit(at));
        // The conversion of one half may depend on the other half.
        let half = |old: u64| match offset % 8 {
            0 => to_unit(old & !0xffff_ffff | value & 0xffff_ffff) & 0xffff_ffff,
            _ => to_unit(old & 0xffff_ffff | value << 32) >> 32,
        };
        let value = match (kind, size) {
            (Kind::Plain, _) => value,
            (_, 8) => to_unit(value),
            _ => half(self.peek(offset & !7)),
        };
        self.unit.mmio_write(there, size, value, now, &mut Far { bus, masks });
    }

    fn peek(&self, offset: u64) -> u64 {
        let (there, kind) = self.register(offset);
        self.masks.register(kind, self.unit.peek(there), |at| self.masks.to_world(at))
    }

    fn interrupt(&self) -> bool {
        self.unit.interrupt()
    }

    fn completion_queue_written(&mut self, now: Cycle) {
        self.unit.completion_queue_written(now);
    }

    fn save(&self) -> Option<Smu> {
        None
    }
}

/// The world's bus, converted for the unit.
struct Far<'a> {
    bus: &'a mut dyn SmuBus,
    masks: Masks,
}

impl Far<'_> {
    fn at(&self, at: PhysAddr) -> PhysAddr {
        PhysAddr(self.masks.to_world(at.0))
    }
}

impl SmuBus for Far<'_> {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        let here = self.at(at);
        self.bus.read_u64(here).map(|value| self.masks.word(here.0, value)).map_err(|_| BusError(at))
    }

    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError> {
        self.bus.write_u32(self.at(at), value).map_err(|_| BusError(at))
    }

    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        let here = self.at(at);
        let data = if data.len() as u64 == regs::NVME_SQE_SIZE {
            self.masks.command(data)
        } else {
            let words = data.chunks_exact(8).zip((here.0..).step_by(8));
            let word = |(bytes, at): (&[u8], u64)| {
                self.masks.word(at, bytes.try_into().map_or(0, u64::from_le_bytes)).to_le_bytes()
            };
            words.flat_map(word).collect()
        };
        self.bus.write_bytes(here, &data).map_err(|_| BusError(at))
    }

    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError> {
        let here = self.at(at);
        let turn = |value| self.masks.word(here.0, value);
        let done = self.bus.compare_exchange_u64(here, turn(old), turn(new)).map_err(|_| BusError(at))?;
        Ok(done.map(turn).map_err(turn))
    }

    fn took(&mut self) -> Cycle {
        self.bus.took()
    }

    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError> {
        let here = self.at(at);
        self.bus.fetch_or_u64(here, bits).map(|value| self.masks.word(here.0, value)).map_err(|_| BusError(at))
    }
}

/// The world's sink, which gets converted answers.
struct Told<'a> {
    sink: &'a mut dyn SmuSink,
    masks: Masks,
}

impl SmuSink for Told<'_> {
    fn answer(&mut self, answer: Answer) {
        self.sink.answer(self.masks.answer(&answer));
    }

    fn accepted(&mut self, from: Source) {
        self.sink.accepted(from);
    }

    fn port_answered(&mut self, answer: &Answer) {
        self.sink.port_answered(&self.masks.answer(answer));
    }

    fn miss_over(&mut self, miss: &Miss) {
        let m = self.masks;
        let (pte, seen, outcome) = (PhysAddr(m.to_world(miss.pte.0)), m.entry(miss.seen), m.outcome(miss.outcome));
        self.sink.miss_over(&Miss { pte, seen, outcome, ..*miss });
    }
}
