// SPDX-License-Identifier: Apache-2.0
//! The SMU: registers, rings, ports, walkers that ask and give up, and a device that also completes commands that do not exist.

use std::collections::BTreeSet;

use trapless_memory::{BusError, ClockHz, Cycle, Dma, PhysAddr, Ram};
use trapless_smu::{Answer, Request, Smu, SmuBus, SmuConfig, SmuTiming, SmuUnit};
use trapless_smu_regs as regs;

use super::restored;
use crate::demand;
use crate::tape::Tape;

const RAM: u64 = 0x8000_0000;
const RAM_SIZE: u64 = 1 << 20;
const TABLES: u64 = RAM;
const FREE: u64 = RAM + 0x1_0000;
const RETURNED: u64 = RAM + 0x2_0000;
const SQ: u64 = RAM + 0x3_0000;
const CQ: u64 = RAM + 0x4_0000;
const FRAMES: u64 = RAM + 0x8_0000;
const DOORBELLS: u64 = 0x4000_0000;
const HARTS: u64 = 3;
const MOST_EVENTS: u64 = 200_000;

/// RAM and doorbells, as the SMU reaches them.
struct World {
    ram: Ram,
    stray: Option<PhysAddr>,
}

impl SmuBus for World {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        self.ram.load::<8>(at).map(u64::from_le_bytes).ok_or(BusError(at))
    }
    fn write_u32(&mut self, at: PhysAddr, _: u32) -> Result<(), BusError> {
        if (DOORBELLS..DOORBELLS + 0x4000).contains(&at.0) && at.0.is_multiple_of(4) {
            Ok(())
        } else {
            Err(BusError(at))
        }
    }
    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        let done = Dma::write(&mut self.ram, at, data);
        // Allow only a command or an entry of the return ring, at a place where a ring may have it.
        if done.is_ok() && (!at.0.is_multiple_of(data.len() as u64) || ![16, 64].contains(&data.len())) {
            self.stray = Some(at);
        }
        done
    }
    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError> {
        let seen = self.read_u64(at)?;
        if seen != old {
            return Ok(Err(seen));
        }
        self.ram.store(at, new.to_le_bytes()).ok_or(BusError(at))?;
        Ok(Ok(seen))
    }
    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError> {
        let seen = self.read_u64(at)?;
        self.ram.store(at, (seen | bits).to_le_bytes()).ok_or(BusError(at))?;
        Ok(seen)
    }
}

struct Host {
    smu: Smu,
    world: World,
    now: Cycle,
    /// Waits without an answer: hart and number of the request.
    waits: BTreeSet<(u32, u64)>,
    next: u64,
}

fn descriptor(index: u64, field: u64) -> u64 {
    regs::DESC_BASE + index * regs::DESC_STRIDE + field
}

/// Uses an SMU at random.
pub fn run(t: &mut Tape) -> Result<(), String> {
    let config = SmuConfig {
        pmshr_entries: t.one(&[4, 1, 2, 32, 255]),
        prefetch_depth: t.one(&[4, 0, 1, 16]),
        harts: HARTS as u8,
        socket: 0,
        timeout: Cycle(t.one(&[0, 0, 100, 5000])),
        completion_hints: t.below(2) == 1,
        timing: SmuTiming::isca20(ClockHz(100_000_000)),
    };
    let smu = Smu::new(config).map_err(|e| e.to_string())?;
    let ram = Ram::new(PhysAddr(RAM), RAM_SIZE).map_err(|e| e.to_string())?;
    let mut h = Host { smu, world: World { ram, stray: None }, now: Cycle(0), waits: BTreeSet::new(), next: 0 };
    if t.below(8) > 0 {
        h.set_up();
    }
    while t.more() {
        h.step(t)?;
    }
    Ok(())
}

impl Host {
    fn write(&mut self, at: u64, value: u64) {
        self.smu.mmio_write(at, 8, value, self.now, &mut self.world);
    }

    fn poke(&mut self, at: u64, value: u64) {
        // If the address is not in memory, nothing must happen.
        let _ = self.world.ram.store(PhysAddr(at), value.to_le_bytes());
    }

    fn set_up(&mut self) {
        for n in 0..64 {
            self.poke(FREE + 16 * n, (FRAMES >> 12) + n);
            self.poke(FREE + 16 * n + 8, FRAMES + 4096 * n);
        }
        let device = |field| descriptor(0, field);
        for (register, value) in [
            (regs::FREE_BASE, FREE),
            (regs::FREE_SIZE, 64),
            (regs::RET_BASE, RETURNED),
            (regs::RET_SIZE, 64),
            (device(regs::DESC_SQ_BASE), SQ),
            (device(regs::DESC_CQ_BASE), CQ),
            (device(regs::DESC_SQ_DB), DOORBELLS + 0x1010),
            (device(regs::DESC_CQ_DB), DOORBELLS + 0x1014),
            (device(regs::DESC_DEPTH), 256),
            (device(regs::DESC_NSID), 1),
            (device(regs::DESC_BLOCKS), 3),
            (device(regs::DESC_CTRL), 1),
            (regs::FREE_TAIL, 63),
            (regs::CTRL, 1),
        ] {
            self.write(register, value);
        }
    }

    fn step(&mut self, t: &mut Tape) -> Result<(), String> {
        match t.below(16) {
            0 | 1 => {
                let at = match t.below(4) {
                    0 => t.u64(),
                    1 => descriptor(t.below(9), t.below(15) * 8),
                    2 => regs::PORT_BASE + t.below(HARTS + 1) * regs::PORT_STRIDE + t.below(9) * 8,
                    _ => t.one(&[0x10, 0x20, 0x30, 0x40, 0x100, 0x108, 0x118, 0x140, 0x148, 0x150]),
                };
                let (size, value) = (t.size() as usize, t.number(RAM, RAM_SIZE));
                self.smu.mmio_write(at, size, value, self.now, &mut self.world);
            }
            2 => {
                let (at, size) = (t.number(0, 0x1_0000), t.size() as usize);
                self.smu.read(at, size);
            }
            3 => {
                let (at, value) = (RAM + t.below(RAM_SIZE / 8) * 8, t.number(RAM, RAM_SIZE));
                self.poke(at, value);
            }
            4..8 => self.ask(t)?,
            8 => {
                if let Some(&(hart, id)) = self.waits.first() {
                    self.smu.abandon(hart, id);
                    self.waits.remove(&(hart, id));
                }
                self.smu.abandon(t.below(HARTS + 1) as u32, t.number(0, 4));
            }
            // The device completes a command.
            9..13 => {
                let head = self.smu.read(descriptor(0, regs::DESC_CQ_HEAD), 8);
                let phase = head >> 31 & 1;
                let cid = if t.below(8) == 0 { t.u64() & 0xffff } else { t.below(4) };
                let status = t.one(&[0, 0, 0, 0, 2, 0x281]);
                let at = CQ + 16 * (head & 0x1_ffff);
                self.poke(at + 8, cid << 32 | (status << 1 | phase) << 48);
                self.smu.completion_queue_written(self.now);
                self.pass(self.now + Cycle(t.below(500)))?;
            }
            13 => self.again()?,
            14 => {
                // Take frames back, and give new ones.
                let tail = self.smu.read(regs::RET_TAIL, 8);
                self.write(regs::RET_HEAD, tail);
                let head = self.smu.read(regs::FREE_HEAD, 8);
                self.write(regs::FREE_TAIL, (head + t.below(63)) % 64);
            }
            _ => {
                let cycles = t.number(0, 2000) % 100_000;
                self.pass(self.now + Cycle(cycles))?;
            }
        }
        Ok(())
    }

    /// Lets a walker or a port ask.
    fn ask(&mut self, t: &mut Tape) -> Result<(), String> {
        let page = t.below(8);
        let at = |level: u64| PhysAddr(TABLES + 4096 * level + 8 * page);
        // R, W, X, U, A and L: an armed entry, usually for descriptor 0 of socket 0.
        let entry = 0x25e | t.below(64) << 10 | t.one(&[0, 0, 0, 1u64]) << t.below(57);
        if t.below(4) > 0 {
            self.poke(at(0).0, entry);
        }
        let pte = if t.below(16) == 0 { PhysAddr(t.number(RAM, RAM_SIZE) & !7) } else { at(0) };
        self.next += 1;
        let (hart, id) = (t.below(HARTS) as u32, self.next);
        // A walker waits for one request at a time.
        if self.waits.iter().any(|w| w.0 == hart) {
            return Ok(());
        }
        self.waits.insert((hart, id));
        self.smu.request(self.now, Request { pte, pmd: at(1), pud: at(2), seen: entry, hart, id });
        self.pass(self.now + Cycle(t.below(200)))
    }

    /// Lets time pass.
    fn pass(&mut self, until: Cycle) -> Result<(), String> {
        for _ in 0..MOST_EVENTS {
            let Some(at) = self.smu.next_event().filter(|at| *at <= until) else {
                self.now = until;
                return Ok(());
            };
            let at = at.max(self.now);
            self.now = at;
            let mut answers: Vec<Answer> = Vec::new();
            self.smu.advance(at, &mut self.world, &mut |a: Answer| answers.push(a));
            for a in answers {
                let wanted = self.waits.remove(&(a.hart, a.id));
                demand(wanted, || format!("an answer to hart {} for request {}, which does not wait", a.hart, a.id))?;
                demand(a.at <= at, || format!("an answer with time {} comes at {}", a.at.0, at.0))?;
            }
            demand(self.world.stray.is_none(), || format!("the SMU writes to {:x?}", self.world.stray))?;
            demand(self.smu.next_event().is_none_or(|next| next > at), || {
                format!("the event at {} is still due after advance()", at.0)
            })?;
        }
        Err("the SMU never comes to rest".into())
    }

    /// Continues from a saved state.
    fn again(&mut self) -> Result<(), String> {
        let other = restored(&self.smu)?;
        let registers = |smu: &Smu| (0..0x2000).step_by(8).map(|at| smu.peek(at)).collect::<Vec<_>>();
        demand(registers(&other) == registers(&self.smu), || "registers differ after restore()".into())?;
        demand(other.next_event() == self.smu.next_event(), || "the next event differs after restore()".into())?;
        self.smu = other;
        Ok(())
    }
}
