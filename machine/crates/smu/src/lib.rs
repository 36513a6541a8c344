// SPDX-License-Identifier: Apache-2.0
//! Reference model of the Storage Management Unit (spec/smu.md): serves page misses from an NVMe device.
//!
//! Pure and deterministic: it has no threads and no clock, and all its I/O goes through [`SmuBus`]. The host calls
//! [`SmuUnit::request`], register accesses, and [`SmuUnit::advance`] whenever [`SmuUnit::next_event`] is due. A call may come with a
//! time before that of the latest `advance` (harts are simulated in turn); it counts as made at the latter.
//!
//! Each step that touches memory is a separate event, so that everything that can happen between two steps in hardware can
//! happen between them here. The steps are: the PTE read again, the command, the doorbell, a look at the completion queue,
//! the exchange of the PTE, the PMD's mark, the PUD's mark, the answer.

mod bugs;
mod bus;
mod completion;
mod fence;
mod free_ring;
mod interrupts;
mod miss;
mod nvme_host;
mod pmshr;
mod port;
mod regs;
mod return_ring;
mod timing;
mod types;
mod unit;
mod updater;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trapless_memory::Cycle;
use trapless_smu_regs::{Counter, DESC_COUNT, PORT_COUNT};

use crate::fence::Fences;
use crate::free_ring::FreeRing;
use crate::interrupts::Interrupts;
use crate::nvme_host::Descriptor;
use crate::pmshr::{Entry, Pmshr, Waiter};
use crate::port::Port;
use crate::return_ring::{Keeper, ReturnRing, Returned};
use crate::windows::Windows;

pub use bugs::Bug;
pub use bus::SmuBus;
pub use timing::SmuTiming;
pub use types::{Accept, Answer, FailReason, Miss, Outcome, Request, SmuSink, Source, Stamps};
pub use unit::SmuUnit;

/// A configuration that no SMU can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmuError {
    /// A field is out of range.
    #[error("smu.{field} must be {range}, not {value}")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
}

/// Sizes and times of an SMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmuConfig {
    /// PMSHR entries, 1 to 255; also the most commands in flight.
    pub pmshr_entries: u8,
    /// Frames fetched from the free ring in advance.
    pub prefetch_depth: u8,
    /// Harts that may ask (shown in CAP); as many of the software request ports exist.
    pub harts: u8,
    /// Which socket field of an armed entry means this SMU, 0 to 7.
    pub socket: u8,
    /// Reset value of TIMEOUT in cycles; zero means never.
    pub timeout: Cycle,
    /// Whether the host calls [`SmuUnit::completion_queue_written`] after every write of a device to a completion queue.
    /// Then polls that would find nothing are not simulated one by one; timing is the same. Nor are those that would meet
    /// a bus error.
    pub completion_hints: bool,
    /// Step times.
    pub timing: SmuTiming,
}

/// Something that happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Event {
    /// The stage of this PMSHR entry ends.
    Step(usize),
    /// A free ring entry has been read.
    Fetch,
    /// A return ring entry has been written.
    Return,
    /// This one of the late answers goes out.
    Deliver(u64),
}

/// An answer that does not come from a PMSHR entry's broadcast.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LateAnswer {
    /// Its miss' place in the order of acceptance, and value seen, for fences.
    seq: u64,
    seen: u64,
    waiter: Waiter,
    outcome: Outcome,
    stamps: Stamps,
    at: Cycle,
}

/// What comes next.
enum Due {
    Event,
    Poll(usize),
    Timeout(usize),
}

/// What the SMU acts on during one [`SmuUnit::advance`].
struct Outside<'a> {
    bus: &'a mut dyn SmuBus,
    sink: &'a mut dyn SmuSink,
}

/// The Storage Management Unit.
///
/// ```
/// use trapless_memory::{BusError, ClockHz, Cycle, PhysAddr};
/// use trapless_smu::{Answer, FailReason, Outcome, Request, Smu, SmuBus, SmuConfig, SmuTiming, SmuUnit};
///
/// /// No memory at all.
/// struct Nothing;
///
/// impl SmuBus for Nothing {
///     fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
///         Err(BusError(at))
///     }
///     fn write_u32(&mut self, at: PhysAddr, _: u32) -> Result<(), BusError> {
///         Err(BusError(at))
///     }
///     fn write_bytes(&mut self, at: PhysAddr, _: &[u8]) -> Result<(), BusError> {
///         Err(BusError(at))
///     }
///     fn compare_exchange_u64(&mut self, at: PhysAddr, _: u64, _: u64) -> Result<Result<u64, u64>, BusError> {
///         Err(BusError(at))
///     }
///     fn fetch_or_u64(&mut self, at: PhysAddr, _: u64) -> Result<u64, BusError> {
///         Err(BusError(at))
///     }
/// }
///
/// let mut smu = Smu::new(SmuConfig {
///     pmshr_entries: 8,
///     prefetch_depth: 4,
///     harts: 1,
///     socket: 0,
///     timeout: Cycle(0),
///     completion_hints: false,
///     timing: SmuTiming::isca20(ClockHz(2_800_000_000)),
/// })?;
///
/// // Software has not enabled the SMU, so it refuses what the walker of hart 0 asks for.
/// let (pte, pmd, pud) = (PhysAddr(0x8000_3000), PhysAddr(0x8000_2000), PhysAddr(0x8000_1000));
/// smu.request(Cycle(100), Request { pte, pmd, pud, seen: 0, hart: 0, id: 1 });
/// let mut answers = Vec::new();
/// while let Some(at) = smu.next_event() {
///     smu.advance(at, &mut Nothing, &mut |answer: Answer| answers.push(answer));
/// }
/// assert_eq!(answers[0].outcome, Outcome::Failed(FailReason::Disabled));
/// # Ok::<(), trapless_smu::SmuError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Smu {
    config: SmuConfig,
    /// Everything before this has happened.
    now: Cycle,
    /// How long the accesses took that the present event has made; what it leads to comes after them.
    lag: Cycle,
    events: BTreeMap<(Cycle, u64), Event>,
    next_event_id: u64,
    late: BTreeMap<u64, LateAnswer>,
    timeouts: BTreeSet<(Cycle, usize)>,
    pmshr: Pmshr,
    /// PMSHR entries that wait for a frame, oldest first.
    frame_waiters: Vec<usize>,
    free: FreeRing,
    returns: ReturnRing,
    windows: Windows,
    interrupts: Interrupts,
    descriptors: Vec<Descriptor>,
    ports: Vec<Port>,
    fences: Vec<Fences>,
    enabled: bool,
    error: bool,
    timeout: u64,
    last_status: u16,
    last_reason: u8,
    counters: Vec<u64>,
    #[cfg(feature = "bugs")]
    seeded: Option<Bug>,
}

impl Smu {
    /// An SMU after reset.
    ///
    /// # Errors
    /// [`SmuError::OutOfRange`] for a configuration outside the documented ranges.
    pub fn new(config: SmuConfig) -> Result<Smu, SmuError> {
        let wrong = |field, value: u8, range| Err(SmuError::OutOfRange { field, value: value.into(), range });
        if config.pmshr_entries == 0 {
            return wrong("pmshr_entries", config.pmshr_entries, "1 to 255");
        }
        if config.socket > 7 {
            return wrong("socket", config.socket, "0 to 7");
        }
        Ok(Smu {
            now: Cycle(0),
            lag: Cycle(0),
            events: BTreeMap::new(),
            next_event_id: 0,
            late: BTreeMap::new(),
            timeouts: BTreeSet::new(),
            pmshr: Pmshr::new(config.pmshr_entries.into()),
            frame_waiters: Vec::new(),
            free: FreeRing::default(),
            returns: ReturnRing::default(),
            windows: Windows::default(),
            descriptors: vec![Descriptor::new(); DESC_COUNT],
            ports: vec![Port::default(); PORT_COUNT.min(config.harts.into())],
            fences: vec![Fences::default(); DESC_COUNT],
            enabled: false,
            error: false,
            timeout: config.timeout.0,
            interrupts: Interrupts::default(),
            last_status: 0,
            last_reason: 0,
            counters: vec![0; Counter::COUNT],
            #[cfg(feature = "bugs")]
            seeded: None,
            config,
        })
    }

    /// Goes on from a saved state with the times of `config`; `None` if the sizes differ.
    pub fn with_times_of(mut self, config: SmuConfig) -> Option<Smu> {
        let sizes = |c: &SmuConfig| (c.pmshr_entries, c.prefetch_depth, c.harts, c.socket);
        if sizes(&self.config) != sizes(&config) {
            return None;
        }
        self.config = config;
        Some(self)
    }

    /// The earliest thing to do. At one time: events first, in the order in which they were set up, then polls, then
    /// timeouts, so that a completion that comes just in time counts.
    fn next_due(&self) -> Option<(Cycle, Due)> {
        let event = self.events.first_key_value().map(|(&(at, _), _)| (at, Due::Event));
        let polls = self.descriptors.iter().enumerate().filter_map(|(i, d)| Some((d.poll_at?, Due::Poll(i))));
        let timeout = self.timeouts.first().map(|&(at, slot)| (at, Due::Timeout(slot)));
        event.into_iter().chain(polls).chain(timeout).min_by_key(|&(at, _)| at)
    }

    fn handle(&mut self, event: Event, out: &mut Outside<'_>) {
        match event {
            Event::Step(slot) => self.step(slot, out),
            Event::Fetch => self.fetched(out),
            Event::Return => self.returned(out),
            Event::Deliver(key) => {
                if let Some(late) = self.late.remove(&key) {
                    self.tell(late.waiter, late.outcome, late.stamps, late.at, out);
                }
            }
        }
    }

    fn schedule(&mut self, at: Cycle, event: Event) {
        self.events.insert((at, self.next_event_id), event);
        self.next_event_id += 1;
    }

    fn count(&mut self, counter: Counter) {
        self.counters[counter as usize] += 1;
    }

    fn entry(&mut self, slot: usize) -> Option<&mut Entry> {
        self.pmshr.slots.get_mut(slot)?.as_mut()
    }

    /// Sends a PMSHR entry's frame back. It stays with the entry until the return ring has it.
    fn return_frame(&mut self, slot: usize) {
        let Some(entry) = self.entry(slot) else { return };
        let (Some(frame), None, false) = (entry.frame, entry.command, entry.returning) else { return };
        entry.returning = true;
        let reason = entry.reason;
        self.returns.waiting.push_back(Returned { pfn: frame.pfn, reason, keeper: Keeper::Slot(slot) });
        self.pump_returns();
    }

    /// Starts writing the return ring if it can be written.
    fn pump_returns(&mut self) {
        if !self.returns.writing && self.returns.can_write() {
            self.returns.writing = true;
            self.schedule(self.now + self.lag + self.ring_time(), Event::Return);
        }
    }

    /// A return ring entry is written: whoever kept the frame is free of it.
    fn returned(&mut self, out: &mut Outside<'_>) {
        let written = self.returns.write(out.bus);
        self.lag += out.bus.took();
        match written {
            Err(_) => self.error = true,
            Ok(None) => {}
            Ok(Some(returned)) => {
                self.count(Counter::Returned);
                if let Keeper::Slot(slot) = returned.keeper {
                    if let Some(entry) = self.entry(slot) {
                        entry.frame = None;
                        entry.returning = false;
                    }
                    self.release_slot(slot);
                }
            }
        }
        self.pump_returns();
        self.feed();
    }

    /// One access to a ring. At least a cycle, so that a ring full of nonsense cannot hold time up.
    fn ring_time(&self) -> Cycle {
        self.config.timing.ring_read.max(Cycle(1))
    }
}
