// SPDX-License-Identifier: Apache-2.0
//! Reference model of the Storage Management Unit (spec/smu.md): serves page misses from an NVMe device.
//!
//! Pure and deterministic: no threads, no clock of its own, no I/O but through [`SmuBus`]. The host calls
//! [`Smu::request`], register accesses, and [`Smu::advance`] whenever [`Smu::next_event`] is due. Calls may come with
//! times that run back a little (harts simulated in turn); the SMU takes such a call as made at its own latest time.

mod bus;
mod timing;
mod types;

use serde::{Deserialize, Serialize};
use trapless_memory::Cycle;

pub use bus::SmuBus;
pub use timing::SmuTiming;
pub use types::{Accept, Answer, FailReason, Miss, Outcome, Request, SmuSink, Stamps};

/// A configuration that no SMU can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmuError {
    /// A field is out of range.
    #[error("smu.{field} is {value}, must be {range}")]
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
    /// Harts that may ask (shown in CAP).
    pub harts: u8,
    /// Which socket field of an armed entry means this SMU, 0 to 7.
    pub socket: u8,
    /// Reset value of TIMEOUT in cycles; zero means never.
    pub timeout: Cycle,
    /// Whether the host calls [`Smu::completion_queue_written`] after every write of a device to a completion queue.
    /// Then polls that would find nothing are not simulated one by one; timing is the same.
    pub completion_hints: bool,
    /// Step times.
    pub timing: SmuTiming,
}

/// The Storage Management Unit.
#[derive(Clone, Debug)]
pub struct Smu {
    config: SmuConfig,
    now: Cycle,
}

impl Smu {
    /// An SMU after reset.
    ///
    /// # Errors
    /// [`SmuError::OutOfRange`] for a configuration outside the documented ranges.
    pub fn new(config: SmuConfig) -> Result<Smu, SmuError> {
        Ok(Smu { config, now: Cycle(0) })
    }

    /// Register read of `size` 4 or 8 bytes at `offset` into the register block. Anything else reads zero.
    pub fn mmio_read(&self, _offset: u64, _size: usize) -> u64 {
        0
    }

    /// Register write of `size` 4 or 8 bytes at `offset` into the register block. Anything else is ignored.
    /// [`Smu::next_event`] may change.
    pub fn mmio_write(&mut self, _offset: u64, _size: usize, _value: u64, now: Cycle) {
        self.now = self.now.max(now);
    }

    /// A walker asks. [`Smu::next_event`] may change.
    pub fn request(&mut self, now: Cycle, _request: Request) -> Accept {
        self.now = self.now.max(now);
        Accept::Accepted
    }

    /// A walker no longer waits: no answer will come for (hart, id). The miss goes on.
    pub fn abandon(&mut self, _hart: u32, _id: u64) {}

    /// A device wrote to a completion queue (which one does not matter). [`Smu::next_event`] may change.
    pub fn completion_queue_written(&mut self, now: Cycle) {
        self.now = self.now.max(now);
    }

    /// When [`Smu::advance`] has something to do next; `None` while nothing is under way.
    pub fn next_event(&self) -> Option<Cycle> {
        None
    }

    /// Does everything due at or before `now`, in time order, and gives the answers to `sink`.
    pub fn advance(&mut self, now: Cycle, _bus: &mut dyn SmuBus, _sink: &mut dyn SmuSink) {
        self.now = self.now.max(now);
    }

    /// The configuration.
    pub fn config(&self) -> &SmuConfig {
        &self.config
    }

    /// The counters' names and values, in register order.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        std::iter::empty()
    }
}
