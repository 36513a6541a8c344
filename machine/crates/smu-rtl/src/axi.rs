// SPDX-License-Identifier: Apache-2.0
//! Memory at the SMU's AXI4 master. Every access goes to an [`SmuBus`] when it arrives; its response comes after a delay.

use std::collections::VecDeque;

use trapless_memory::{BusError, PhysAddr};
use trapless_smu::SmuBus;

use crate::dice::Dice;
use crate::pins::{Inputs, Outputs};

const OKAY: u8 = 0;
const EXOKAY: u8 = 1;
const SLVERR: u8 = 2;

/// Behaviour of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Cycles from an access to its response, at least 1, in addition to the cycles that the bus reports.
    pub latency: u64,
    /// Largest number of additional random cycles. If not 0, responses overtake each other, and channels are not always ready.
    pub jitter: u64,
    /// One in this number of exclusive writes fails at random, as if another master used the line; 0: none fails.
    pub lost_reservations: u64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Memory {
    /// Chooses the behaviour at random.
    pub fn by_chance(seed: u64) -> Memory {
        let mut dice = Dice::new(seed);
        let jitter = [0, 0, 3, 30, 300][dice.below(5) as usize];
        let lost_reservations = [0, 2, 10][dice.below(3) as usize];
        Memory { latency: 1 + dice.below(20), jitter, lost_reservations, seed }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { latency: 1, jitter: 0, lost_reservations: 0, seed: 0 }
    }
}

/// An access on the bus. `part` is its AXI identifier, which tells the part of the unit. `exclusive` tells whether the access
/// belongs to an exclusive pair.
#[allow(missing_docs)] // the names of the fields say what they are
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read of one or more 64-bit values. `value` is the first.
    Read { part: u32, at: u64, exclusive: bool, value: Result<u64, BusError> },
    /// A write. `value` is its first 64 bits; `done` tells whether it took effect.
    Write { part: u32, at: u64, bytes: usize, exclusive: bool, value: u64, done: bool },
}

#[derive(Debug)]
struct Response {
    id: u32,
    due: u64,
    resp: u8,
    /// Whether the unit may act on it. A poll that finds nothing new gives the unit nothing to do.
    work: bool,
    /// Remaining beats of a read.
    beats: VecDeque<[u64; 8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    id: u32,
    addr: u64,
    len: u8,
    size: u8,
    lock: bool,
}

/// The memory side of the AXI4 master.
pub(crate) struct Axi {
    memory: Memory,
    data_bytes: u64,
    dice: Dice,
    longest: u64,
    reads: Vec<Response>,
    writes: Vec<Response>,
    /// Index of the response that is on its channel.
    read_shown: Option<usize>,
    write_shown: Option<usize>,
    addresses: VecDeque<Address>,
    data: VecDeque<([u64; 8], u64, bool)>,
    /// Address and value of each identifier's last exclusive read.
    monitor: Vec<Option<(u64, u64)>>,
    /// Read address, write address and write data that were on the channels in the last cycle and were not accepted.
    stuck: (Option<Address>, Option<Address>, Option<[u64; 8]>),
}

impl Axi {
    pub fn new(memory: Memory, data_width: u32, id_width: u32) -> Axi {
        Axi {
            memory,
            data_bytes: u64::from(data_width / 8),
            dice: Dice::new(memory.seed),
            longest: 0,
            reads: Vec::new(),
            writes: Vec::new(),
            read_shown: None,
            write_shown: None,
            addresses: VecDeque::new(),
            data: VecDeque::new(),
            monitor: vec![None; 1 << id_width],
            stuck: (None, None, None),
        }
    }

    pub fn set_memory(&mut self, memory: Memory) {
        self.dice = Dice::new(memory.seed);
        self.memory = memory;
    }

    pub fn set_latency(&mut self, latency: u64) {
        self.memory.latency = latency;
    }

    /// Tells whether a response is outstanding that the unit may act on.
    pub fn is_working(&self) -> bool {
        let waits = !(self.writes.is_empty() && self.addresses.is_empty() && self.data.is_empty());
        waits || self.reads.iter().any(|r| r.work)
    }

    /// Returns the longest time of a response so far, in cycles.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Drives the responses of this cycle to the pins.
    pub fn drive(&mut self, now: u64, pins: &mut Inputs) {
        let free = |dice: &mut Dice, jitter: u64| u8::from(jitter == 0 || !dice.one_in(4));
        let jitter = self.memory.jitter;
        pins.arready = free(&mut self.dice, jitter);
        pins.awready = free(&mut self.dice, jitter);
        pins.wready = free(&mut self.dice, jitter);
        self.read_shown = choose(&self.reads, now, self.read_shown);
        pins.rvalid = self.read_shown.is_some().into();
        if let Some(read) = self.read_shown.map(|i| &self.reads[i]) {
            pins.rid = read.id;
            pins.rresp = read.resp;
            pins.rdata = read.beats[0];
            pins.rlast = (read.beats.len() == 1).into();
        }
        self.write_shown = choose(&self.writes, now, self.write_shown);
        pins.bvalid = self.write_shown.is_some().into();
        if let Some(write) = self.write_shown.map(|i| &self.writes[i]) {
            pins.bid = write.id;
            pins.bresp = write.resp;
        }
    }

    /// Handles the accesses on the pins in this cycle. Calls `seen` for each; `seen` returns whether the unit may act on it.
    pub fn take(
        &mut self,
        now: u64,
        ins: &Inputs,
        outs: &Outputs,
        bus: &mut dyn SmuBus,
        seen: &mut dyn FnMut(Access) -> bool,
    ) {
        if let Some(i) = self.read_shown.filter(|_| outs.rready == 1) {
            self.reads[i].beats.pop_front();
            if self.reads[i].beats.is_empty() {
                self.reads.remove(i);
            }
            self.read_shown = None; // another response may come between two beats
        }
        if let Some(i) = self.write_shown.filter(|_| outs.bready == 1) {
            self.writes.remove(i);
            self.write_shown = None;
        }
        let read = (outs.arvalid == 1).then_some(Address {
            id: outs.arid,
            addr: outs.araddr,
            len: outs.arlen,
            size: outs.arsize,
            lock: outs.arlock == 1,
        });
        let write = (outs.awvalid == 1).then_some(Address {
            id: outs.awid,
            addr: outs.awaddr,
            len: outs.awlen,
            size: outs.awsize,
            lock: outs.awlock == 1,
        });
        let data = (outs.wvalid == 1).then_some(outs.wdata);
        self.is_stable(read, write, data);
        self.stuck =
            (read.filter(|_| ins.arready == 0), write.filter(|_| ins.awready == 0), data.filter(|_| ins.wready == 0));
        if let Some(a) = read.filter(|_| ins.arready == 1) {
            self.read(now, a, bus, seen);
        }
        self.addresses.extend(write.filter(|_| ins.awready == 1));
        if ins.wready == 1 {
            self.data.extend(data.map(|words| (words, outs.wstrb, outs.wlast == 1)));
        }
        while let Some(a) = self.addresses.front().copied().filter(|a| self.data.len() > usize::from(a.len)) {
            self.addresses.pop_front();
            let beats: Vec<_> = self.data.drain(..=usize::from(a.len)).collect();
            self.write(now, a, &beats, bus, seen);
        }
    }

    /// Checks that address and data on a channel stay unchanged until they are accepted.
    fn is_stable(&self, read: Option<Address>, write: Option<Address>, data: Option<[u64; 8]>) {
        let (r, w, d) = &self.stuck;
        assert!(r.is_none() || *r == read, "AXI read address changed while it waited: {r:?}, then {read:?}");
        assert!(w.is_none() || *w == write, "AXI write address changed while it waited: {w:?}, then {write:?}");
        let words = (self.data_bytes / 8) as usize;
        let same = d.is_none_or(|d| data.is_some_and(|now| now[..words] == d[..words]));
        assert!(same, "AXI write data changed while it waited: {d:?}, then {data:?}");
    }

    fn due(&mut self, now: u64, bus: &mut dyn SmuBus) -> u64 {
        let more = if self.memory.jitter == 0 { 0 } else { self.dice.below(self.memory.jitter + 1) };
        let cycles = self.memory.latency.max(1) + more + bus.took().0;
        self.longest = self.longest.max(cycles);
        now + cycles
    }

    fn read(&mut self, now: u64, a: Address, bus: &mut dyn SmuBus, seen: &mut dyn FnMut(Access) -> bool) {
        let bytes = (u64::from(a.len) + 1) << a.size;
        assert!(
            a.size >= 3 && a.addr.is_multiple_of(bytes) && 1 << a.size <= self.data_bytes,
            "AXI read with an unexpected size or alignment: {a:?}"
        );
        let mut resp = if a.lock { EXOKAY } else { OKAY };
        let mut first = None;
        let mut beats = VecDeque::new();
        for beat in 0..=u64::from(a.len) {
            let mut lanes = [0; 8];
            for at in (a.addr + (beat << a.size)..).step_by(8).take(1 << (a.size - 3)) {
                let value = bus.read_u64(PhysAddr(at));
                first.get_or_insert(value);
                lanes[(at % self.data_bytes / 8) as usize] = value.unwrap_or(0x0bad_0bad_0bad_0bad);
                if value.is_err() {
                    resp = SLVERR;
                }
            }
            beats.push_back(lanes);
        }
        let value = first.unwrap_or(Err(BusError(PhysAddr(a.addr))));
        if a.lock {
            assert!(bytes == 8, "AXI exclusive read of {bytes} bytes");
            self.monitor[a.id as usize] = value.ok().map(|v| (a.addr, v));
        }
        let work = seen(Access::Read { part: a.id, at: a.addr, exclusive: a.lock, value });
        let due = self.due(now, bus);
        self.reads.push(Response { id: a.id, due, resp, work, beats });
    }

    fn write(
        &mut self,
        now: u64,
        a: Address,
        beats: &[([u64; 8], u64, bool)],
        bus: &mut dyn SmuBus,
        seen: &mut dyn FnMut(Access) -> bool,
    ) {
        let beat_bytes = 1_u64 << a.size;
        let mut bytes = Vec::with_capacity(64);
        for (n, (words, strobe, last)) in beats.iter().enumerate() {
            let lane = (a.addr + beat_bytes * n as u64) % self.data_bytes;
            let want = if beat_bytes == 64 { u64::MAX } else { ((1 << beat_bytes) - 1) << lane };
            assert!(*strobe == want, "AXI write {a:?} with strobe {strobe:#x}, not {want:#x}");
            assert!(*last == (n + 1 == beats.len()), "AXI write {a:?} has WLAST on the wrong beat");
            let all: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            bytes.extend_from_slice(&all[lane as usize..(lane + beat_bytes) as usize]);
        }
        assert!(a.addr.is_multiple_of(bytes.len() as u64), "AXI write is not aligned: {a:?}");
        let word = |n: usize| bytes[n..n + 8].try_into().map_or(0, u64::from_le_bytes);
        let at = PhysAddr(a.addr);
        let resp = match (a.lock, bytes.len()) {
            (true, 8) => self.exclusive_write(a, word(0), bus),
            (true, n) => panic!("AXI exclusive write of {n} bytes"),
            (false, 4) => {
                bus.write_u32(at, u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).map(|()| OKAY)
            }
            (false, _) => bus.write_bytes(at, &bytes).map(|()| OKAY),
        };
        let done = if a.lock { resp == Ok(EXOKAY) } else { resp.is_ok() };
        let value = if bytes.len() >= 8 { word(0) } else { 0 };
        seen(Access::Write { part: a.id, at: a.addr, bytes: bytes.len(), exclusive: a.lock, value, done });
        let due = self.due(now, bus);
        self.writes.push(Response { id: a.id, due, resp: resp.unwrap_or(SLVERR), work: true, beats: VecDeque::new() });
    }

    /// REQ: SMU-3. Writes if memory still has the value of the exclusive read.
    fn exclusive_write(&mut self, a: Address, new: u64, bus: &mut dyn SmuBus) -> Result<u8, BusError> {
        let Some((_, old)) = self.monitor[a.id as usize].take().filter(|(at, _)| *at == a.addr) else {
            panic!("AXI exclusive write without its read: {a:?}");
        };
        if self.memory.lost_reservations != 0 && self.dice.one_in(self.memory.lost_reservations) {
            return Ok(OKAY);
        }
        Ok(if bus.compare_exchange_u64(PhysAddr(a.addr), old, new)?.is_ok() { EXOKAY } else { OKAY })
    }
}

/// Chooses the response to drive: the current one until it is accepted, then the first that is due and is the oldest of its
/// identifier.
fn choose(responses: &[Response], now: u64, shown: Option<usize>) -> Option<usize> {
    let first_of_its = |i: usize| !responses[..i].iter().any(|r| r.id == responses[i].id);
    shown.or_else(|| (0..responses.len()).find(|&i| responses[i].due <= now && first_of_its(i)))
}
