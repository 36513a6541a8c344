// SPDX-License-Identifier: Apache-2.0
//! The NVMe controller: registers, queues and commands. Checks that it comes to rest, writes only to memory that exists, and
//! continues from a saved state as if it had never been saved.

use std::cell::RefCell;
use std::rc::Rc;

use trapless_memory::{BusError, ClockHz, Cycle, Dma, PhysAddr, Ram};
use trapless_nvme::{Backend, BackendError, Controller, ControllerConfig, Written};
use trapless_timing::{Profile, SsdTiming};

use super::restored;
use crate::demand;
use crate::tape::Tape;

const RAM: u64 = 0x8000_0000;
const RAM_SIZE: u64 = 1 << 20;
const DISK: usize = 1 << 20;
/// Addresses of the two pairs of queues that are set up correctly: submission queue, completion queue.
const QUEUES: [(u64, u64); 2] = [(RAM, RAM + 0x1000), (RAM + 0x2000, RAM + 0x3000)];
const ENTRIES: u64 = 16;
/// Maximum number of memory accesses of one call: enough for a command of the largest size that is transferred block by block.
const MOST_ACCESSES: u64 = 100_000;
/// Maximum number of events between two actions of the host.
const MOST_EVENTS: u64 = 50_000;

/// A disk in memory. All its pages count as written.
struct Disk(Rc<RefCell<Vec<u8>>>);

impl Backend for Disk {
    fn size(&self) -> u64 {
        DISK as u64
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError> {
        buf.copy_from_slice(&self.0.borrow()[offset as usize..][..buf.len()]);
        Ok(())
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError> {
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError> {
        self.0.borrow_mut()[offset as usize..][..len as usize].fill(0);
        Ok(())
    }
    fn written(&self) -> Option<Written> {
        Some(Written::default())
    }
    fn set_written(&mut self, _: Written) -> bool {
        true
    }
}

/// RAM that counts accesses, and that notes accepted writes outside of it.
struct Memory {
    ram: Ram,
    accesses: u64,
    /// Address of an accepted write outside of RAM.
    stray: Option<PhysAddr>,
}

impl Dma for Memory {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        self.accesses += 1;
        Dma::read(&mut self.ram, at, buf)
    }
    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        self.accesses += 1;
        let inside = self.ram.offset(at, data.len() as u64).is_some();
        let done = Dma::write(&mut self.ram, at, data);
        if !inside && done.is_ok() {
            self.stray = Some(at);
        }
        done
    }
}

fn controller(profile: &Profile, disk: &Rc<RefCell<Vec<u8>>>) -> Controller {
    let config =
        ControllerConfig { serial: "FUZZ".into(), max_transfer_pages: 32, max_io_queues: 4, max_queue_entries: 1024 };
    let timing = SsdTiming::new(&profile.ssd, ClockHz(100_000_000), 0);
    Controller::new(
        config,
        timing,
        vec![(Box::new(Disk(Rc::clone(disk))), 512), (Box::new(Disk(Rc::clone(disk))), 4096)],
    )
}

struct Host {
    profile: Profile,
    disk: Rc<RefCell<Vec<u8>>>,
    controller: Controller,
    memory: Memory,
    now: Cycle,
    tails: [u64; 2],
}

/// Uses a controller at random.
pub fn run(t: &mut Tape) -> Result<(), String> {
    let profile = Profile::load("vc707", &[]).map_err(|e| e.to_string())?;
    let disk = Rc::new(RefCell::new(vec![0x5a; DISK]));
    let controller = controller(&profile, &disk);
    let ram = Ram::new(PhysAddr(RAM), RAM_SIZE).map_err(|e| e.to_string())?;
    let memory = Memory { ram, accesses: 0, stray: None };
    let mut h = Host { profile, disk, controller, memory, now: Cycle(0), tails: [0; 2] };
    if t.below(4) > 0 {
        h.set_up()?;
    }
    while t.more() {
        h.step(t)?;
    }
    h.rest(Cycle(u64::MAX - 1))
}

impl Host {
    /// Enables the controller and creates one pair of I/O queues.
    fn set_up(&mut self) -> Result<(), String> {
        let now = self.now;
        self.tails = [0; 2];
        for (register, size, value) in [
            (0x14, 4, 0),
            (0x24, 4, (ENTRIES - 1) << 16 | (ENTRIES - 1)),
            (0x28, 8, QUEUES[0].0),
            (0x30, 8, QUEUES[0].1),
            (0x14, 4, 0x0046_0001),
        ] {
            self.controller.mmio_write(register, size, value, now);
        }
        let size = (ENTRIES - 1) << 16 | 1;
        self.submit(0, &[(0, 5), (6, QUEUES[1].1 as u32), (10, size as u32), (11, 3)]);
        self.submit(0, &[(0, 1), (6, QUEUES[1].0 as u32), (10, size as u32), (11, 1 << 16 | 1)]);
        self.rest(Cycle(self.now.0 + 1_000_000))
    }

    /// Puts a command into a queue and rings the doorbell.
    fn submit(&mut self, queue: usize, words: &[(usize, u32)]) {
        let mut bytes = [0; 64];
        for (n, word) in words {
            bytes[n * 4..n * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        // This cannot fail: the queues are in RAM.
        let _ = Dma::write(&mut self.memory.ram, PhysAddr(QUEUES[queue].0 + 64 * self.tails[queue]), &bytes);
        self.tails[queue] = (self.tails[queue] + 1) % ENTRIES;
        self.controller.mmio_write(0x1000 + 8 * queue as u64, 4, self.tails[queue], self.now);
    }

    fn step(&mut self, t: &mut Tape) -> Result<(), String> {
        let registers = [0x14, 0x20, 0x24, 0x28, 0x30, 0x1000, 0x1004, 0x1008, 0x100c];
        match t.below(16) {
            0..3 => {
                let at = if t.below(4) == 0 { t.below(Controller::BAR_SIZE) } else { t.one(&registers) };
                let (size, value) = (t.size(), t.number(RAM, RAM_SIZE));
                self.controller.mmio_write(at, size, value, self.now);
            }
            3 => {
                let (at, size) = (t.below(Controller::BAR_SIZE), t.size());
                self.controller.mmio_read(at, size, self.now);
            }
            4 => {
                let (at, value) = (RAM + t.below(RAM_SIZE - 8), t.number(RAM, RAM_SIZE));
                let _ = Dma::write(&mut self.memory.ram, PhysAddr(at), &value.to_le_bytes());
            }
            5 | 6 => self.rest(Cycle(self.now.0 + (t.u64() >> t.below(56)) % 10_000_000))?,
            7 => self.again()?,
            8 if t.below(8) == 0 => self.set_up()?,
            _ => {
                let queue = t.below(2) as usize;
                let opcode = if t.below(8) == 0 { t.below(256) } else { t.below(16) };
                let head = opcode | t.below(4) << 16;
                let nsid = t.one(&[1, 1, 2, u64::from(u32::MAX), 0]);
                let mut words = vec![(0, head as u32), (1, nsid as u32)];
                for n in [6, 8] {
                    let address = t.number(RAM, RAM_SIZE);
                    words.extend([(n, address as u32), (n + 1, (address >> 32) as u32)]);
                }
                for n in 10..16 {
                    words.push((n, t.number(0, 2048) as u32));
                }
                self.submit(queue, &words);
            }
        }
        Ok(())
    }

    /// Lets time pass up to `limit`, until the controller has no events left.
    fn rest(&mut self, limit: Cycle) -> Result<(), String> {
        for _ in 0..MOST_EVENTS {
            let next = self.controller.next_event();
            let at = next.max(self.now);
            if next > limit {
                self.now = self.now.max(limit);
                return Ok(());
            }
            self.now = at;
            self.memory.accesses = 0;
            self.controller.advance(at, &mut self.memory, &mut |_| {});
            let accesses = self.memory.accesses;
            demand(accesses < MOST_ACCESSES, || format!("{accesses} accesses to memory in one call"))?;
            demand(self.memory.stray.is_none(), || {
                format!("a write to {:x?} outside RAM was accepted", self.memory.stray)
            })?;
            demand(self.controller.next_event() > at, || {
                format!("the event at {} is still due after advance()", at.0)
            })?;
        }
        Err(format!("the controller has not come to rest after {MOST_EVENTS} events"))
    }

    /// Continues from a saved state.
    fn again(&mut self) -> Result<(), String> {
        let bytes = |c: &Controller| c.save().and_then(|s| postcard::to_stdvec(&s).ok()).ok_or("save() gives no state");
        let state = restored(&self.controller.save().ok_or("save() gives no state")?)?;
        let mut other = controller(&self.profile, &self.disk);
        other.restore(state)?;
        demand(bytes(&other)? == bytes(&self.controller)?, || "restore() does not give the saved state".into())?;
        let seen = |c: &mut Controller| {
            let registers: Vec<u64> = (0..0x40).step_by(4).map(|at| c.mmio_read(at, 4, Cycle(0))).collect();
            (registers, c.next_event(), c.irq_asserted())
        };
        demand(seen(&mut other) == seen(&mut self.controller), || "registers or events differ after restore()".into())?;
        self.controller = other;
        Ok(())
    }
}
