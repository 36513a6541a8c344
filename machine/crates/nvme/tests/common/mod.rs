// SPDX-License-Identifier: Apache-2.0
//! A host for the controller: memory, queues and a driver that submits one command at a time.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use trapless_memory::{BusError, ClockHz, Cycle, Dma, PhysAddr, Ram};
use trapless_nvme::{Backend, BackendError, CommandRecord, Controller, ControllerConfig};
use trapless_timing::{SsdParams, SsdTiming};

pub const RAM: u64 = 0x8000_0000;
pub const RAM_SIZE: u64 = 16 << 20;
pub const ASQ: u64 = RAM;
pub const ACQ: u64 = RAM + 0x1000;
pub const IO_SQ: u64 = RAM + 0x10000;
pub const IO_CQ: u64 = RAM + 0x20000;
pub const DATA: u64 = RAM + 0x100000;
pub const ADMIN_ENTRIES: u32 = 8;
pub const DNR: u16 = 1 << 14;
pub const CSTS: u64 = 0x1c;

/// A disk in memory. Accesses at or after `bad_from` fail.
pub struct Disk {
    pub bytes: Vec<u8>,
    pub read_only: bool,
    /// Bytes at and after this offset cannot be read or written.
    pub bad_from: u64,
}

impl Disk {
    /// Creates a disk on which every 512-byte block is filled with its block number.
    pub fn numbered(size: usize) -> Disk {
        let mut bytes = vec![0; size];
        for (i, b) in bytes.chunks_exact_mut(8).enumerate() {
            b.copy_from_slice(&(i as u64 / 64).to_le_bytes());
        }
        Disk { bytes, read_only: false, bad_from: u64::MAX }
    }

    fn check(&self, what: &'static str, offset: u64, len: u64) -> Result<(), BackendError> {
        assert!(offset + len <= self.bytes.len() as u64, "{what} outside the disk");
        assert!(what == "read" || !self.read_only, "{what} on a read-only disk");
        if offset + len > self.bad_from {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(BackendError::Io { path: "disk.img".into(), what, offset, source });
        }
        Ok(())
    }
}

impl Backend for Disk {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_only(&self) -> bool {
        self.read_only
    }
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError> {
        self.check("read", offset, buf.len() as u64)?;
        buf.copy_from_slice(&self.bytes[offset as usize..][..buf.len()]);
        Ok(())
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError> {
        self.check("write", offset, data.len() as u64)?;
        self.bytes[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError> {
        self.check("zero", offset, len)?;
        self.bytes[offset as usize..][..len as usize].fill(0);
        Ok(())
    }
}

/// Guest memory that records every write. Accesses outside the memory fail.
pub struct Memory {
    pub ram: Ram,
    pub writes: Vec<(PhysAddr, u64)>,
    pub accesses: u64,
}

impl Dma for Memory {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        self.accesses += 1;
        self.ram.read(at, buf)
    }
    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        self.accesses += 1;
        self.ram.write(at, data)?;
        self.writes.push((at, data.len() as u64));
        Ok(())
    }
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sqe(pub [u32; 16]);

impl Sqe {
    pub fn new(opcode: u8, nsid: u32) -> Sqe {
        let mut s = Sqe::default();
        s.0[0] = opcode.into();
        s.0[1] = nsid;
        s
    }
    pub fn nsid(mut self, nsid: u32) -> Sqe {
        self.0[1] = nsid;
        self
    }
    pub fn cid(mut self, cid: u16) -> Sqe {
        self.0[0] = self.0[0] & 0xffff | u32::from(cid) << 16;
        self
    }
    pub fn prp(mut self, prp1: u64, prp2: u64) -> Sqe {
        self.0[6..10].copy_from_slice(&[prp1 as u32, (prp1 >> 32) as u32, prp2 as u32, (prp2 >> 32) as u32]);
        self
    }
    pub fn dw(mut self, n: usize, value: u32) -> Sqe {
        self.0[n] = value;
        self
    }
    pub fn lba(self, slba: u64, blocks: u32) -> Sqe {
        self.dw(10, slba as u32).dw(11, (slba >> 32) as u32).dw(12, blocks - 1)
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqe {
    pub result: u32,
    pub sq_head: u16,
    pub sqid: u16,
    pub cid: u16,
    pub phase: bool,
    /// Status without DNR.
    pub status: u16,
    pub dnr: bool,
}

/// The driver's state of a queue pair.
#[derive(Clone, Copy)]
pub struct Pair {
    pub id: u16,
    pub sq: u64,
    pub cq: u64,
    pub entries: u32,
    pub tail: u32,
    pub head: u32,
    pub phase: bool,
}

impl Pair {
    pub fn new(id: u16, sq: u64, cq: u64, entries: u32) -> Pair {
        Pair { id, sq, cq, entries, tail: 0, head: 0, phase: true }
    }
}

pub struct Host {
    pub ctrl: Controller,
    pub mem: Memory,
    pub now: Cycle,
    pub records: Vec<CommandRecord>,
    pub admin: Pair,
    pub io: Pair,
}

pub const CLOCK: ClockHz = ClockHz(100_000_000);

/// Creates a controller with one namespace for each disk. The number beside a disk is its block size in bytes.
pub fn controller(disks: Vec<(Disk, u32)>) -> Controller {
    controller_of(disks.into_iter().map(|(disk, block)| (Box::new(disk) as Box<dyn Backend>, block)).collect())
}

pub fn controller_of(contents: Vec<(Box<dyn Backend>, u32)>) -> Controller {
    let timing = SsdTiming::new(&SsdParams::load("optane-m2").unwrap(), CLOCK, 0);
    let config =
        ControllerConfig { serial: "TEST1".into(), max_transfer_pages: 32, max_io_queues: 4, max_queue_entries: 1024 };
    Controller::new(config, timing, contents)
}

impl Host {
    /// Creates a host with a controller that is not enabled.
    pub fn off(disk: Disk) -> Host {
        Host::of(vec![(disk, 512)])
    }

    /// Like `off`, with several namespaces.
    pub fn of(disks: Vec<(Disk, u32)>) -> Host {
        let ram = Ram::new(PhysAddr(RAM), RAM_SIZE).unwrap();
        Host {
            ctrl: controller(disks),
            mem: Memory { ram, writes: Vec::new(), accesses: 0 },
            now: Cycle(0),
            records: Vec::new(),
            admin: Pair::new(0, ASQ, ACQ, ADMIN_ENTRIES),
            io: Pair::new(1, IO_SQ, IO_CQ, 16),
        }
    }

    /// Creates a host with an enabled controller that has no I/O queues.
    pub fn enabled(disk: Disk) -> Host {
        let mut h = Host::off(disk);
        h.enable();
        h
    }

    /// Creates a host with an enabled controller that has I/O queue pair 1.
    pub fn new() -> Host {
        Host::with(Disk::numbered(1 << 20))
    }

    pub fn with(disk: Disk) -> Host {
        Host::with_namespaces(vec![(disk, 512)])
    }

    pub fn with_namespaces(disks: Vec<(Disk, u32)>) -> Host {
        let mut h = Host::of(disks);
        h.enable();
        h.create_pair(h.io);
        h
    }

    pub fn enable(&mut self) {
        self.admin = Pair::new(0, ASQ, ACQ, ADMIN_ENTRIES);
        self.write(0x24, (ADMIN_ENTRIES - 1) << 16 | (ADMIN_ENTRIES - 1));
        self.ctrl.mmio_write(0x28, 8, ASQ, self.now);
        self.ctrl.mmio_write(0x30, 8, ACQ, self.now);
        self.write(0x14, 0x0046_0001);
        assert_eq!(self.read(CSTS), 1);
    }

    pub fn create_pair(&mut self, p: Pair) {
        let (id, size) = (u32::from(p.id), (p.entries - 1) << 16);
        self.poke(p.cq, &vec![0; 16 * p.entries as usize]);
        assert_eq!(self.admin(Sqe::new(5, 0).prp(p.cq, 0).dw(10, size | id).dw(11, 3)).status, 0);
        assert_eq!(self.admin(Sqe::new(1, 0).prp(p.sq, 0).dw(10, size | id).dw(11, id << 16 | 1)).status, 0);
    }

    pub fn read(&mut self, offset: u64) -> u32 {
        self.ctrl.mmio_read(offset, 4, self.now) as u32
    }

    pub fn write(&mut self, offset: u64, value: u32) {
        self.ctrl.mmio_write(offset, 4, value.into(), self.now);
    }

    pub fn poke(&mut self, at: u64, data: &[u8]) {
        self.mem.ram.write(PhysAddr(at), data).unwrap();
    }

    pub fn peek(&mut self, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.mem.ram.read(PhysAddr(at), &mut data).unwrap();
        data
    }

    pub fn poke_u64s(&mut self, at: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.poke(at, &bytes);
    }

    /// Writes an entry at the tail without a doorbell write.
    pub fn push(&mut self, p: &mut Pair, s: Sqe) {
        self.poke(p.sq + 64 * u64::from(p.tail), &s.bytes());
        p.tail = (p.tail + 1) % p.entries;
    }

    pub fn ring_sq(&mut self, p: &Pair) {
        self.write(0x1000 + 8 * u64::from(p.id), p.tail);
    }

    /// Reads the next unread completion, if there is one, without a doorbell write.
    pub fn poll(&mut self, p: &mut Pair) -> Option<Cqe> {
        let b = self.peek(p.cq + 16 * u64::from(p.head), 16);
        let half = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
        let status = half(14);
        if (status & 1 == 1) != p.phase {
            return None;
        }
        p.head += 1;
        if p.head == p.entries {
            p.head = 0;
            p.phase = !p.phase;
        }
        Some(Cqe {
            result: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            sq_head: half(8),
            sqid: half(10),
            cid: half(12),
            phase: status & 1 == 1,
            status: status >> 1 & !DNR,
            dnr: status >> 1 & DNR != 0,
        })
    }

    pub fn ring_cq(&mut self, p: &Pair) {
        self.write(0x1004 + 8 * u64::from(p.id), p.head);
    }

    /// Runs the controller up to `cycle`.
    pub fn until(&mut self, cycle: Cycle) {
        self.now = cycle;
        let records = &mut self.records;
        self.ctrl.advance(cycle, &mut self.mem, &mut |r| records.push(*r));
    }

    /// Runs the controller until no event is due.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            let next = self.ctrl.next_event();
            if next == Cycle::NEVER {
                return;
            }
            self.until(next.max(self.now));
        }
        panic!("the controller still has events after 100,000 steps");
    }

    /// Executes one admin command.
    pub fn admin(&mut self, s: Sqe) -> Cqe {
        let mut p = self.admin;
        let done = self.submit(&mut p, s);
        self.admin = p;
        done.expect("no completion")
    }

    /// Executes one I/O command on queue pair 1.
    pub fn io(&mut self, s: Sqe) -> Cqe {
        let mut p = self.io;
        let done = self.submit(&mut p, s);
        self.io = p;
        done.expect("no completion")
    }

    pub fn submit(&mut self, p: &mut Pair, s: Sqe) -> Option<Cqe> {
        self.push(p, s);
        self.ring_sq(p);
        self.settle();
        let done = self.poll(p)?;
        self.ring_cq(p);
        Some(done)
    }
}

pub fn read(slba: u64, blocks: u32) -> Sqe {
    Sqe::new(2, 1).lba(slba, blocks).prp(DATA, DATA + 0x1000)
}

pub fn write(slba: u64, blocks: u32) -> Sqe {
    Sqe::new(1, 1).lba(slba, blocks).prp(DATA, DATA + 0x1000)
}
