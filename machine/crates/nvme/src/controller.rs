// SPDX-License-Identifier: Apache-2.0
//! The controller: registers, doorbells and the order of events.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, Cycle, Dma, MmioEffect, PhysAddr};
use trapless_timing::{SsdOp, SsdParams, SsdState, SsdTiming};

use crate::admin::Outcome;
use crate::command::{Command, Completion, Status};
use crate::fault::{Armed, Strike};
use crate::feature::Features;
use crate::in_flight::InFlightSet;
use crate::io::Io;
use crate::log::{self, Logs};
use crate::namespace::{MAX_NAMESPACES, Namespace};
use crate::queue::{CompletionQueue, InvalidDoorbell, SubmissionQueue, Waiting};
use crate::{Backend, BackendError, Written, regs};

/// What distinguishes one controller from another. Values out of range are moved into it.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Serial number, at most 20 ASCII characters; the namespaces' identifiers are made from it, so it must be unique.
    pub serial: String,
    /// Largest transfer in 4 KiB pages, a power of two up to 1024.
    pub max_transfer_pages: u32,
    /// I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}

/// One command's life, told when its completion queue entry has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Submission queue, 0 is the admin queue.
    pub sqid: u16,
    /// Completion queue.
    pub cqid: u16,
    /// Command identifier.
    pub cid: u16,
    /// Opcode.
    pub opcode: u8,
    /// Starting LBA of an I/O command.
    pub slba: u64,
    /// Blocks of an I/O command.
    pub blocks: u32,
    /// Their bytes, if the command was done: zero if it failed.
    pub bytes: u64,
    /// Status field of the completion without the phase tag: status code in [7:0], type in [10:8], DNR in [14].
    pub status: u16,
    /// When the doorbell was written.
    pub doorbell: Cycle,
    /// When the command was read from the queue.
    pub fetched: Cycle,
    /// When data and completion queue entry were written.
    pub completed: Cycle,
    /// Where the completion queue entry was written.
    pub cq_entry: PhysAddr,
}

/// What is to be done when a command is due.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Admin,
    Io(Io),
    /// Refused when it was fetched.
    Fail(Status),
    /// An Asynchronous Event Request that has its event.
    Event(u32),
}

/// A command between fetch and completion.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub command: Command,
    pub sqid: u16,
    pub cqid: u16,
    pub doorbell: Cycle,
    pub fetched: Cycle,
    pub work: Work,
    /// False for a command whose identifier was in use already.
    pub owns_cid: bool,
}

/// Asynchronous events: only the one for invalid doorbell writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    /// Requests that wait for an event.
    pub requests: VecDeque<InFlight>,
    /// An event that found no request: dword 0 of its completion.
    pub pending: Option<u32>,
    /// Reported, and the log page not read since: no further event of this type.
    pub reported: bool,
}

/// Who is told of every completed command.
pub(crate) type Observe<'a> = &'a mut dyn FnMut(&CommandRecord);

/// Commands of one submission queue that the controller takes in before any is completed.
const MAX_OUTSTANDING: usize = 1024;

/// The controller with its SSD.
pub struct Controller {
    pub(crate) config: ControllerConfig,
    /// By identifier, the first being 1.
    pub(crate) namespaces: Vec<Namespace>,
    timing: SsdTiming,
    pub(crate) cc: u32,
    csts: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    /// Interrupt mask.
    intm: u32,
    /// Queues by identifier; 0 is the admin queue.
    pub(crate) sqs: Vec<Option<SubmissionQueue>>,
    pub(crate) cqs: Vec<Option<CompletionQueue>>,
    pub(crate) in_flight: InFlightSet,
    pub(crate) features: Features,
    pub(crate) logs: Logs,
    pub(crate) events: Events,
    pub(crate) faults: Vec<Armed>,
    /// Taken out of its slot: registers read all ones, and nothing is done any more.
    removed: bool,
    /// Time of the latest event done.
    clock: Cycle,
    /// Time of the next event.
    next: Cycle,
    pub(crate) buffer: Vec<u8>,
    pub(crate) host_error: Option<BackendError>,
}

/// What a controller knows: all that its configuration, its faults and its SSD's image do not say.
#[derive(Serialize, Deserialize)]
pub struct ControllerState {
    cc: u32,
    csts: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    intm: u32,
    sqs: Vec<Option<SubmissionQueue>>,
    cqs: Vec<Option<CompletionQueue>>,
    in_flight: InFlightSet,
    features: Features,
    logs: Logs,
    events: Events,
    removed: bool,
    clock: Cycle,
    next: Cycle,
    busy: SsdState,
    /// Of each namespace: its bytes and block size, and what was written over its image in memory.
    namespaces: Vec<(u64, u32, Written)>,
}

/// What can be next.
enum Event {
    /// A full completion queue has room again.
    Room(usize),
    /// A command is done.
    Due,
    /// A submission queue has entries to fetch.
    Fetch(usize),
}

impl Controller {
    /// Bytes of the BAR.
    pub const BAR_SIZE: u64 = 0x4000;

    /// A controller after power on. Its namespaces, at least one and [`MAX_NAMESPACES`] at most, are given by what they hold
    /// and the bytes of their logical block, 512 or 4096.
    pub fn new(config: ControllerConfig, timing: SsdTiming, contents: Vec<(Box<dyn Backend>, u32)>) -> Controller {
        let mut begin = 0;
        let namespace = |(backend, block_bytes): (Box<dyn Backend>, u32)| {
            let block_bytes = if block_bytes == 4096 { 4096 } else { 512 };
            let namespace = Namespace { block_bytes, begin, backend };
            begin += namespace.backend.size();
            namespace
        };
        let namespaces = contents.into_iter().take(MAX_NAMESPACES).map(namespace).collect();
        let config = ControllerConfig {
            max_transfer_pages: config.max_transfer_pages.clamp(1, 1024).next_power_of_two(),
            max_io_queues: config.max_io_queues.clamp(1, 64),
            max_queue_entries: config.max_queue_entries.clamp(2, 65536),
            ..config
        };
        let queues = config.max_io_queues as usize + 1;
        Controller {
            features: Features::new(config.max_io_queues),
            config,
            namespaces,
            timing,
            cc: 0,
            csts: 0,
            aqa: 0,
            asq: 0,
            acq: 0,
            intm: 0,
            sqs: vec![None; queues],
            cqs: vec![None; queues],
            in_flight: InFlightSet::default(),
            logs: Logs::default(),
            events: Events::default(),
            faults: Vec::new(),
            removed: false,
            clock: Cycle(0),
            next: Cycle::NEVER,
            buffer: Vec::new(),
            host_error: None,
        }
    }

    /// The state, to go on from elsewhere; `None` when the image itself was written to, which a state cannot hold.
    pub fn save(&self) -> Option<ControllerState> {
        Some(ControllerState {
            cc: self.cc,
            csts: self.csts,
            aqa: self.aqa,
            asq: self.asq,
            acq: self.acq,
            intm: self.intm,
            sqs: self.sqs.clone(),
            cqs: self.cqs.clone(),
            in_flight: self.in_flight.clone(),
            features: self.features.clone(),
            logs: self.logs.clone(),
            events: self.events.clone(),
            removed: self.removed,
            clock: self.clock,
            next: self.next,
            busy: self.timing.save(),
            namespaces: self
                .namespaces
                .iter()
                .map(|ns| Some((ns.backend.size(), ns.block_bytes, ns.backend.written()?)))
                .collect::<Option<_>>()?,
        })
    }

    /// Goes on from a state.
    ///
    /// # Errors
    /// What does not fit: the number of queues or namespaces, an image's size or format, or that it takes no writes in memory.
    pub fn restore(&mut self, state: ControllerState) -> Result<(), &'static str> {
        if state.sqs.len() != self.sqs.len() || state.cqs.len() != self.cqs.len() {
            return Err("has another number of queues");
        }
        if state.namespaces.len() != self.namespaces.len() {
            return Err("has another number of namespaces");
        }
        for (ns, (bytes, block_bytes, written)) in self.namespaces.iter_mut().zip(state.namespaces) {
            if bytes != ns.backend.size() {
                return Err("has another size");
            }
            if block_bytes != ns.block_bytes {
                return Err("has blocks of another size");
            }
            if !ns.backend.set_written(written) {
                return Err("was attached as a snapshot");
            }
        }
        let ControllerState { cc, csts, aqa, asq, acq, intm, sqs, cqs, in_flight, features, logs, events, .. } = state;
        (self.cc, self.csts, self.aqa, self.asq, self.acq, self.intm) = (cc, csts, aqa, asq, acq, intm);
        (self.sqs, self.cqs, self.in_flight) = (sqs, cqs, in_flight);
        (self.features, self.logs, self.events) = (features, logs, events);
        (self.removed, self.clock, self.next) = (state.removed, state.clock, state.next);
        self.timing.restore(&state.busy);
        Ok(())
    }

    /// The namespace with this identifier.
    pub(crate) fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.namespaces.get((nsid as usize).checked_sub(1)?)
    }

    /// The SSD behind it.
    pub fn ssd(&self) -> &SsdParams {
        self.timing.params()
    }

    /// Logical blocks of each namespace, and the bytes of one.
    pub fn formats(&self) -> impl Iterator<Item = (u64, u32)> {
        self.namespaces.iter().map(|ns| (ns.blocks(), ns.block_bytes))
    }

    /// Reads a register. Accesses of 4 and 8 bytes are the specification's; narrower ones see their part.
    pub fn mmio_read(&mut self, offset: u64, size: u32, _now: Cycle) -> u64 {
        let word = u64::from(self.register(offset & !3));
        match size {
            8 => word | u64::from(self.register((offset & !3) + 4)) << 32,
            4 => word,
            _ => word >> (8 * (offset & 3)) & ((1 << (8 * size.min(2))) - 1),
        }
    }

    fn register(&self, offset: u64) -> u32 {
        if self.removed {
            return u32::MAX;
        }
        let high = |r: u64| (r >> 32) as u32;
        let cap = regs::capabilities(self.config.max_queue_entries);
        match offset {
            regs::CAP => cap as u32,
            0x04 => high(cap),
            regs::VS => regs::VERSION,
            regs::INTMS | regs::INTMC => self.intm,
            regs::CC => self.cc,
            regs::CSTS => self.csts,
            regs::AQA => self.aqa,
            regs::ASQ => self.asq as u32,
            0x2c => high(self.asq),
            regs::ACQ => self.acq as u32,
            0x34 => high(self.acq),
            _ => 0,
        }
    }

    /// Writes a register (4 or 8 bytes, aligned) or a doorbell (4 bytes); anything else is ignored.
    pub fn mmio_write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect {
        match size {
            4 if offset % 4 == 0 => self.write(offset, value as u32, now),
            8 if offset % 8 == 0 && offset < regs::DOORBELLS => {
                self.write(offset, value as u32, now);
                self.write(offset + 4, (value >> 32) as u32, now);
            }
            _ => return MmioEffect::None,
        }
        self.next = self.next_due().map_or(Cycle::NEVER, |(at, _)| at);
        MmioEffect::Resync
    }

    fn write(&mut self, offset: u64, value: u32, now: Cycle) {
        if self.removed {
            return;
        }
        let low = |r: u64| r & !0xffff_ffff | u64::from(value & !0xfff);
        let high = |r: u64| r & 0xffff_ffff | u64::from(value) << 32;
        let disabled = self.cc & regs::CC_EN == 0;
        match offset {
            regs::INTMS => self.intm |= value,
            regs::INTMC => self.intm &= !value,
            regs::CC => self.write_cc(value),
            regs::AQA if disabled => self.aqa = value & 0x0fff_0fff,
            regs::ASQ if disabled => self.asq = low(self.asq),
            0x2c if disabled => self.asq = high(self.asq),
            regs::ACQ if disabled => self.acq = low(self.acq),
            0x34 if disabled => self.acq = high(self.acq),
            regs::DOORBELLS.. if self.running() => {
                let index = ((offset - regs::DOORBELLS) / 4) as usize;
                let rung = if index % 2 == 0 {
                    let sq = self.sqs.get_mut(index / 2).and_then(Option::as_mut);
                    sq.map(|sq| sq.ring(value, now)).ok_or(0x00)
                } else {
                    let cq = self.cqs.get_mut(index / 2).and_then(Option::as_mut);
                    cq.map(|cq| cq.ring(value, now)).ok_or(0x00)
                };
                match rung {
                    Ok(Ok(())) => {}
                    // Error events 00h and 01h: write to an invalid doorbell register, invalid value.
                    Ok(Err(InvalidDoorbell)) => self.error_event(0x01, now),
                    Err(no_queue) => self.error_event(no_queue, now),
                }
            }
            _ => {}
        }
    }

    fn write_cc(&mut self, value: u32) {
        let was_enabled = self.cc & regs::CC_EN != 0;
        self.cc = value & regs::CC_WRITABLE;
        match (was_enabled, value & regs::CC_EN != 0) {
            (true, false) => self.reset(),
            (false, true) => self.enable(),
            _ => {}
        }
        if value & regs::CC_SHN != 0 && self.csts & regs::CSTS_CFS == 0 {
            self.csts = self.csts & !regs::CSTS_SHST | regs::CSTS_SHST_COMPLETE;
        }
    }

    /// Controller reset: everything goes but the admin queues' registers.
    fn reset(&mut self) {
        self.csts = 0;
        self.intm = 0;
        self.stop();
        self.sqs.fill(None);
        self.cqs.fill(None);
        self.features = Features::new(self.config.max_io_queues);
        self.timing.reset();
    }

    fn enable(&mut self) {
        let (asqs, acqs) = ((self.aqa & 0xfff) + 1, (self.aqa >> 16 & 0xfff) + 1);
        if self.cc & regs::CC_CSS_MPS_AMS != 0 || asqs < 2 || acqs < 2 {
            self.csts = regs::CSTS_CFS;
            return;
        }
        self.sqs[0] = Some(SubmissionQueue::new(PhysAddr(self.asq), asqs, 0));
        self.cqs[0] = Some(CompletionQueue::new(PhysAddr(self.acq), acqs, Some(0)));
        self.csts = regs::CSTS_RDY;
    }

    /// Ready and not failed.
    fn running(&self) -> bool {
        self.csts & (regs::CSTS_RDY | regs::CSTS_CFS) == regs::CSTS_RDY
    }

    /// Memory did not answer where a queue should be: Controller Fatal Status, until the host resets.
    fn fatal(&mut self) {
        self.csts |= regs::CSTS_CFS;
        self.stop();
    }

    /// The device is taken out of its slot.
    fn remove(&mut self) {
        self.reset();
        self.removed = true;
    }

    /// Whether the device has been taken out of its slot.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    fn stop(&mut self) {
        self.in_flight = InFlightSet::default();
        self.events = Events::default();
    }

    /// The next cycle at which something is due; [`Cycle::NEVER`] if nothing is.
    pub fn next_event(&self) -> Cycle {
        self.next
    }

    /// Does everything due at or before `now`, in the order of time; `observe` is told of every command completed.
    pub fn advance(&mut self, now: Cycle, dma: &mut dyn Dma, observe: &mut dyn FnMut(&CommandRecord)) {
        while self.next <= now {
            let Some((at, event)) = self.next_due() else { break };
            // A queue that was held back is served now, not when its doorbell was due.
            self.clock = self.clock.max(at);
            match event {
                Event::Room(id) => self.post_waiting(id, dma, observe),
                Event::Due => self.finish(dma, observe),
                Event::Fetch(id) => self.fetch(id, dma),
            }
            self.next = self.next_due().map_or(Cycle::NEVER, |(at, _)| at);
        }
    }

    fn next_due(&self) -> Option<(Cycle, Event)> {
        if !self.running() {
            return None;
        }
        let room = self.cqs.iter().enumerate().filter_map(|(id, cq)| Some((cq.as_ref()?.room_at?, Event::Room(id))));
        let due = self.in_flight.first_due().map(|at| (at, Event::Due));
        let fetch = self.sqs.iter().enumerate().filter_map(|(id, sq)| {
            let sq = sq.as_ref().filter(|sq| sq.outstanding.len() < MAX_OUTSTANDING)?;
            Some((sq.doorbells.front()?.at + self.timing.fetch_delay(), Event::Fetch(id)))
        });
        // The first of equals, so the order never depends on anything but the guest.
        room.chain(due).chain(fetch).min_by_key(|(at, _)| *at)
    }

    /// Fetches the entries of a queue's oldest doorbell write, as many as the controller takes in.
    fn fetch(&mut self, id: usize, dma: &mut dyn Dma) {
        let fetched = self.clock;
        while let Some(sq) = self.sqs[id].as_mut().filter(|sq| sq.outstanding.len() < MAX_OUTSTANDING) {
            let (command, doorbell) = match sq.fetch(dma) {
                Ok(Some(entry)) => entry,
                Ok(None) => return,
                Err(BusError(_)) => return self.fatal(),
            };
            let cqid = sq.cqid;
            let owns_cid = sq.outstanding.insert(command.cid);
            let mut late = Cycle(0);
            let (work, op) = if !owns_cid {
                (Work::Fail(Status::COMMAND_ID_CONFLICT), SsdOp::Refused)
            } else if id == 0 {
                (Work::Admin, SsdOp::Admin)
            } else {
                match self.plan(&command) {
                    Ok(io) => match self.strike(id as u16, &command, fetched) {
                        None => (Work::Io(io), io.ssd_op()),
                        Some(Strike::Fail(status)) => (Work::Fail(status), io.ssd_op()),
                        Some(Strike::Late(by)) => {
                            late = by;
                            (Work::Io(io), io.ssd_op())
                        }
                        Some(Strike::Hang) => continue,
                        Some(Strike::Fatal) => return self.fatal(),
                        Some(Strike::Remove) => return self.remove(),
                    },
                    Err(status) => (Work::Fail(status), SsdOp::Refused),
                }
            };
            let due = self.timing.start(fetched, op) + late;
            self.in_flight.insert(due, InFlight { command, sqid: id as u16, cqid, doorbell, fetched, work, owns_cid });
        }
    }

    /// Does the first command due and completes it.
    fn finish(&mut self, dma: &mut dyn Dma, observe: Observe) {
        let Some(request) = self.in_flight.pop_first() else { return };
        let outcome = match request.work {
            Work::Io(io) => self.execute_io(&request.command, io, dma).map(|()| 0),
            Work::Fail(status) => Err(status),
            Work::Event(event) => Ok(event),
            Work::Admin => match self.execute_admin(&request, dma, observe) {
                Ok(Outcome::Done(result)) => Ok(result),
                Ok(Outcome::Kept) => return,
                Err(status) => Err(status),
            },
        };
        self.complete(&request, outcome, dma, observe);
    }

    /// Completes a command: its entry is written, or waits for room.
    pub(crate) fn complete(&mut self, r: &InFlight, outcome: Result<u32, Status>, dma: &mut dyn Dma, observe: Observe) {
        // An admin command that deleted queues, or an earlier entry that could not be written, may have changed all.
        let Some(cq) = self.cqs[usize::from(r.cqid)].as_mut().filter(|_| self.csts & regs::CSTS_CFS == 0) else {
            return;
        };
        let (result, status) = outcome.map_or_else(|status| (0, status), |result| (result, Status::SUCCESS));
        let c = &r.command;
        let (slba, blocks) = if r.sqid == 0 { (0, 0) } else { (c.slba(), c.blocks()) };
        let block_bytes = self.namespaces.get((c.nsid as usize).wrapping_sub(1)).map_or(0, |ns| ns.block_bytes);
        let record = CommandRecord {
            sqid: r.sqid,
            cqid: r.cqid,
            cid: c.cid,
            opcode: c.opcode,
            slba,
            blocks,
            bytes: if status == Status::SUCCESS { u64::from(blocks) * u64::from(block_bytes) } else { 0 },
            status: status.0,
            doorbell: r.doorbell,
            fetched: r.fetched,
            completed: self.clock,
            cq_entry: PhysAddr(0),
        };
        if status != Status::SUCCESS {
            self.logs.command_failed(&record, c.nsid);
        }
        let completion = Completion { result, sqid: r.sqid, cid: c.cid, status };
        cq.waiting.push_back(Waiting { completion, record, owns_cid: r.owns_cid });
        self.post_waiting(usize::from(r.cqid), dma, observe);
    }

    /// Writes the completions that wait for a queue, as far as it has room.
    fn post_waiting(&mut self, id: usize, dma: &mut dyn Dma, observe: Observe) {
        let Some(cq) = &mut self.cqs[id] else { return };
        cq.room_at = None;
        while !cq.full() {
            let Some(w) = cq.waiting.pop_front() else { return };
            let Some(sq) = &mut self.sqs[usize::from(w.completion.sqid)] else { continue };
            if w.owns_cid {
                sq.outstanding.remove(&w.completion.cid);
            }
            match cq.post(&w.completion, sq.head(), dma) {
                Ok(cq_entry) => observe(&CommandRecord { completed: self.clock, cq_entry, ..w.record }),
                Err(BusError(_)) => return self.fatal(),
            }
        }
    }

    /// Reports an error event to the host, once until it reads the error log.
    fn error_event(&mut self, info: u32, now: Cycle) {
        self.logs.invalid_doorbell();
        if std::mem::replace(&mut self.events.reported, true) {
            return;
        }
        let event = u32::from(log::ERROR_PAGE) << 16 | info << 8;
        match self.events.requests.pop_front() {
            Some(request) => self.in_flight.insert(now + Cycle(1), InFlight { work: Work::Event(event), ..request }),
            None => self.events.pending = Some(event),
        }
    }

    /// The INTx pin: an entry is unread in a queue whose interrupts are enabled and not masked.
    pub fn irq_asserted(&self) -> bool {
        let mut queues = self.cqs.iter().flatten();
        queues.any(|cq| cq.unread() && cq.vector.is_some_and(|v| v < 32 && self.intm >> v & 1 == 0))
    }

    /// The first failure of the host since the machine began. The guest was told of a media error; the program should
    /// end with this line.
    pub fn host_error(&self) -> Option<&BackendError> {
        self.host_error.as_ref()
    }
}
