// SPDX-License-Identifier: Apache-2.0
//! Reference model of the Storage Management Unit (spec/smu.md), which serves page misses from an NVMe device.
//!
//! The model is deterministic: it has no threads and no clock, and all its I/O goes through [`SmuBus`]. The host calls
//! [`SmuUnit::request`], the register accesses, and [`SmuUnit::advance`] whenever [`SmuUnit::next_event`] is due. Harts are
//! simulated in turn, so a call may have an earlier time than the latest `advance`. It then counts as made at that time.
//!
//! Each step that accesses memory is a separate event. So harts and devices can act between two steps of the model as they can in
//! hardware. The steps are: read the PTE again, write the command, write the doorbell, poll the completion queue, exchange the
//! PTE, mark the PMD, mark the PUD, send the answer.

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

/// Error of an invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmuError {
    /// A field is out of range.
    #[error("smu.{field} must be {range}, not {value}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The allowed values.
        range: &'static str,
    },
}

/// Sizes and times of an SMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmuConfig {
    /// Number of PMSHR entries, 1 to 255. This is also the largest number of commands in flight.
    pub pmshr_entries: u8,
    /// Number of frames to prefetch from the free ring.
    pub prefetch_depth: u8,
    /// Number of harts that may send requests (CAP shows it). The SMU has this number of software request ports, at most 32.
    pub harts: u8,
    /// Number of this SMU in the socket field of armed entries, 0 to 7.
    pub socket: u8,
    /// Reset value of TIMEOUT in cycles; zero means no timeout.
    pub timeout: Cycle,
    /// Whether the host calls [`SmuUnit::completion_queue_written`] after every write of a device to a completion queue.
    /// The model then skips the polls that would find nothing; timing stays the same. It also skips polls that would meet
    /// a bus error.
    pub completion_hints: bool,
    /// Times of the steps of a miss.
    pub timing: SmuTiming,
}

/// An event with a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Event {
    /// The stage of this PMSHR entry ends.
    Step(usize),
    /// A free ring entry has been read.
    Fetch,
    /// A return ring entry has been written.
    Return,
    /// The late answer with this key is sent.
    Deliver(u64),
}

/// An answer that is sent later than, or without, a PMSHR entry's broadcast.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LateAnswer {
    /// Position of the miss in the order of acceptance, and the value that the miss saw. Fences need both.
    seq: u64,
    seen: u64,
    waiter: Waiter,
    outcome: Outcome,
    stamps: Stamps,
    at: Cycle,
}

/// The next action of the SMU.
enum Due {
    Event,
    Poll(usize),
    Timeout(usize),
}

/// Memory and the receiver of answers during one [`SmuUnit::advance`].
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
/// /// A bus on which every access fails.
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
/// // Software has not enabled the SMU, so the SMU refuses the request of hart 0's walker.
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
    /// Current time: all events before it are done.
    now: Cycle,
    /// Cycles that the memory accesses of the current event took. The steps that follow start after them.
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
    /// Creates an SMU in its state after reset.
    ///
    /// # Errors
    /// Returns [`SmuError::OutOfRange`] if a field of the configuration is outside its documented range.
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

    /// Continues from a saved state with the times of `config`. Returns `None` if the sizes differ.
    pub fn with_times_of(mut self, config: SmuConfig) -> Option<Smu> {
        let sizes = |c: &SmuConfig| (c.pmshr_entries, c.prefetch_depth, c.harts, c.socket);
        if sizes(&self.config) != sizes(&config) {
            return None;
        }
        self.config = config;
        Some(self)
    }

    /// Returns the earliest action. At the same time, events come first, in the order of their scheduling, then polls, then
    /// timeouts. So a completion that is seen in the cycle of the timeout still counts.
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

    /// Returns a PMSHR entry's frame. The entry keeps the frame until it is in the return ring.
    fn return_frame(&mut self, slot: usize) {
        let Some(entry) = self.entry(slot) else { return };
        let (Some(frame), None, false) = (entry.frame, entry.command, entry.returning) else { return };
        entry.returning = true;
        let reason = entry.reason;
        self.returns.waiting.push_back(Returned { pfn: frame.pfn, reason, keeper: Keeper::Slot(slot) });
        self.pump_returns();
    }

    /// Starts to write a return ring entry, if the ring is usable and a frame waits.
    fn pump_returns(&mut self) {
        if !self.returns.writing && self.returns.can_write() {
            self.returns.writing = true;
            self.schedule(self.now + self.lag + self.ring_time(), Event::Return);
        }
    }

    /// Writes a return ring entry. The PMSHR entry or prefetch buffer that kept the frame is then free.
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

    /// Time of one access to a ring: at least one cycle, so that time advances even if all entries of a ring are malformed.
    fn ring_time(&self) -> Cycle {
        self.config.timing.ring_read.max(Cycle(1))
    }
}
