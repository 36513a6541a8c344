// SPDX-License-Identifier: Apache-2.0
//! What its users need of an SMU, whatever it is made of: the reference model or the RTL.

use trapless_memory::Cycle;
use trapless_smu_regs::Counter;

use crate::{Accept, Request, Smu, SmuBus, SmuConfig, SmuSink, SmuTiming, Source};

/// A Storage Management Unit.
///
/// The host gives it time with [`SmuUnit::advance`] whenever [`SmuUnit::next_event`] is due; every other call may change that.
/// A call with a time before that of the latest `advance` counts as made at the latter.
pub trait SmuUnit {
    /// Its sizes and times.
    fn config(&self) -> &SmuConfig;

    /// Other times from now on, for a unit that does not have its own.
    fn set_timing(&mut self, timing: SmuTiming);

    /// When there is something to do next; `None` while nothing is under way.
    fn next_event(&self) -> Option<Cycle>;

    /// Does everything due at or before `now`, in time order, and gives the answers to `sink`.
    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink);

    /// A walker asks.
    fn request(&mut self, now: Cycle, request: Request) -> Accept;

    /// Whether a request still waits for its acceptance.
    fn is_held(&self, from: Source) -> bool;

    /// A walker no longer waits.
    fn abandon(&mut self, hart: u32, id: u64);

    /// Register read of `size` bytes at `offset` into the register block.
    fn mmio_read(&mut self, offset: u64, size: usize, now: Cycle, bus: &mut dyn SmuBus) -> u64;

    /// Register write of `size` bytes at `offset` into the register block.
    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus);

    /// What a register reads now, for observers.
    fn peek(&self, offset: u64) -> u64;

    /// As [`SmuUnit::mmio_read`], but it takes no time.
    fn read(&self, offset: u64, size: usize) -> u64 {
        let value = self.peek(offset & !7);
        match (size, offset & 7) {
            (8, 0) => value,
            (4, 0) => value & 0xffff_ffff,
            (4, 4) => value >> 32,
            _ => 0,
        }
    }

    /// The level of the interrupt output (REQ: SMU-17).
    fn interrupt(&self) -> bool;

    /// A device wrote to a completion queue.
    fn completion_queue_written(&mut self, now: Cycle);

    /// The state to go on from elsewhere, if it can be had.
    fn save(&self) -> Option<Smu>;

    /// One counter.
    fn counter(&self, counter: Counter) -> u64 {
        self.peek(Counter::BASE + 8 * counter as u64)
    }

    /// The counters' names and values, in register order.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Counter::NAMES.iter().zip(0..).map(|(name, n)| (*name, self.peek(Counter::BASE + 8 * n))).collect()
    }
}

impl SmuUnit for Smu {
    fn config(&self) -> &SmuConfig {
        self.config()
    }

    fn set_timing(&mut self, timing: SmuTiming) {
        self.set_timing(timing);
    }

    fn next_event(&self) -> Option<Cycle> {
        self.next_event()
    }

    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink) {
        self.advance(now, bus, sink);
    }

    fn request(&mut self, now: Cycle, request: Request) -> Accept {
        self.request(now, request)
    }

    fn is_held(&self, from: Source) -> bool {
        self.is_held(from)
    }

    fn abandon(&mut self, hart: u32, id: u64) {
        self.abandon(hart, id);
    }

    fn mmio_read(&mut self, offset: u64, size: usize, _: Cycle, _: &mut dyn SmuBus) -> u64 {
        Smu::mmio_read(self, offset, size)
    }

    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus) {
        self.mmio_write(offset, size, value, now, bus);
    }

    fn peek(&self, offset: u64) -> u64 {
        Smu::mmio_read(self, offset, 8)
    }

    fn interrupt(&self) -> bool {
        self.interrupt()
    }

    fn completion_queue_written(&mut self, now: Cycle) {
        self.completion_queue_written(now);
    }

    fn save(&self) -> Option<Smu> {
        Some(self.clone())
    }
}
