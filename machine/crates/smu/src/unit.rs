// SPDX-License-Identifier: Apache-2.0
//! The interface of an SMU: the reference model and the RTL implement it.

use trapless_memory::Cycle;
use trapless_smu_regs::{self as regs, Counter};

use crate::pmshr::Held;
use crate::regs::descriptor_at;
use crate::{Accept, Due, FailReason, Outside, Request, Smu, SmuBus, SmuConfig, SmuSink, SmuTiming, Source};

/// A Storage Management Unit.
///
/// The host calls [`SmuUnit::advance`] whenever [`SmuUnit::next_event`] is due. Every other call may change the time of the
/// next event. A call with a time before the latest `advance` counts as made at the time of that `advance`.
pub trait SmuUnit {
    /// Returns the sizes and times of the unit.
    fn config(&self) -> &SmuConfig;

    /// Changes the times of the steps. Steps under way keep their old times. The RTL has its own times and uses only `ring_read`.
    fn set_timing(&mut self, timing: SmuTiming);

    /// Returns the time of the next event, or `None` if no event is due.
    fn next_event(&self) -> Option<Cycle>;

    /// Executes all events due at or before `now`, in the order of time, and sends the answers to `sink`.
    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink);

    /// Sends a walker's request.
    fn request(&mut self, now: Cycle, request: Request) -> Accept;

    /// Tells whether a request of this source still waits for its acceptance.
    fn is_held(&self, from: Source) -> bool;

    /// Abandons a walker's request: the SMU will not answer (hart, id). The miss goes on.
    fn abandon(&mut self, hart: u32, id: u64);

    /// Reads a register: `size` is 4 or 8 bytes, `offset` into the register block is naturally aligned. Other accesses read zero.
    fn mmio_read(&mut self, offset: u64, size: usize, now: Cycle, bus: &mut dyn SmuBus) -> u64;

    /// Writes a register: `size` is 4 or 8 bytes, `offset` into the register block is naturally aligned. Ignores other accesses.
    /// A 32-bit write leaves the other half unchanged. A write that enables the unit uses `bus` (REQ: SMU-16).
    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus);

    /// Returns the value of a register, for observers.
    fn peek(&self, offset: u64) -> u64;

    /// Like [`SmuUnit::mmio_read`], but takes no simulated time.
    fn read(&self, offset: u64, size: usize) -> u64 {
        let value = self.peek(offset & !7);
        match (size, offset & 7) {
            (8, 0) => value,
            (4, 0) => value & 0xffff_ffff,
            (4, 4) => value >> 32,
            _ => 0,
        }
    }

    /// Returns the level of the interrupt output (REQ: SMU-17).
    fn interrupt(&self) -> bool;

    /// Tells the SMU that a device wrote to some completion queue. Does nothing without [`SmuConfig::completion_hints`], where
    /// the SMU polls anyway.
    fn completion_queue_written(&mut self, now: Cycle);

    /// Returns a copy of the state, or `None` if the unit cannot be saved.
    fn save(&self) -> Option<Smu>;

    /// Returns the value of a counter.
    fn counter(&self, counter: Counter) -> u64 {
        self.peek(Counter::BASE + 8 * counter as u64)
    }

    /// Returns names and values of all counters, in the order of the registers.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Counter::NAMES.iter().zip(0..).map(|(name, n)| (*name, self.peek(Counter::BASE + 8 * n))).collect()
    }
}

impl SmuUnit for Smu {
    fn config(&self) -> &SmuConfig {
        &self.config
    }

    fn set_timing(&mut self, timing: SmuTiming) {
        self.config.timing = timing;
    }

    fn next_event(&self) -> Option<Cycle> {
        self.next_due().map(|(at, _)| at)
    }

    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink) {
        let mut out = Outside { bus, sink };
        while let Some((at, due)) = self.next_due() {
            if at > now {
                break;
            }
            self.now = self.now.max(at);
            out.bus.took();
            match due {
                Due::Event => {
                    if let Some((_, event)) = self.events.pop_first() {
                        self.handle(event, &mut out);
                    }
                }
                Due::Poll(descriptor) => self.poll(descriptor, &mut out),
                Due::Timeout(slot) => {
                    self.timeouts.pop_first();
                    self.fail(slot, FailReason::Timeout);
                }
            }
            self.lag = Cycle(0);
        }
        self.now = self.now.max(now);
    }

    fn request(&mut self, now: Cycle, request: Request) -> Accept {
        self.ask(Held { from: Source::Walker(request.hart), request, asked: now.max(self.now) })
    }

    fn is_held(&self, from: Source) -> bool {
        self.pmshr.held.contains_key(&from)
    }

    fn abandon(&mut self, hart: u32, id: u64) {
        let wait = (Source::Walker(hart), id);
        if self.pmshr.held.get(&wait.0).is_some_and(|held| held.request.id == id) {
            self.pmshr.held.remove(&wait.0);
        }
        for entry in self.pmshr.slots.iter_mut().flatten() {
            entry.waiters.retain(|w| (w.from, w.id) != wait);
        }
        self.late.retain(|_, late| (late.waiter.from, late.waiter.id) != wait);
    }

    fn mmio_read(&mut self, offset: u64, size: usize, _: Cycle, _: &mut dyn SmuBus) -> u64 {
        self.read(offset, size)
    }

    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus) {
        let register = offset & !7;
        let old = self.register(register);
        let value = match (size, offset & 7) {
            (8, 0) => value,
            (4, 0) => (old & !0xffff_ffff) | (value & 0xffff_ffff),
            (4, 4) => (old & 0xffff_ffff) | (value << 32),
            _ => return,
        };
        let upper_half = (size, offset & 7) != (4, 0);
        // Actions of this write begin at `now`. `advance` still executes earlier events first.
        let before = self.now;
        self.now = now.max(before);
        let acts =
            register == regs::INT_CAUSE || descriptor_at(register).is_some_and(|(_, field)| field == regs::DESC_FENCE);
        match self.port_at(register) {
            // The write does not cover the lower half, where the bits are, so it has no effect.
            None if acts && (size, offset & 7) == (4, 4) => {}
            Some((port, field)) => self.set_port_register(port, field, value, upper_half),
            None => self.set_register(register, value, bus),
        }
        self.now = before;
    }

    fn peek(&self, offset: u64) -> u64 {
        if offset.is_multiple_of(8) { self.register(offset) } else { 0 }
    }

    fn interrupt(&self) -> bool {
        self.causes() & self.interrupts.enabled != 0
    }

    fn completion_queue_written(&mut self, now: Cycle) {
        if !self.config.completion_hints {
            return;
        }
        let (now, interval) = (now.max(self.now), self.config.timing.poll_interval);
        for descriptor in &mut self.descriptors {
            if descriptor.outstanding() && !descriptor.broken {
                let slot = descriptor.look_after(now, interval);
                descriptor.poll_at = Some(descriptor.poll_at.map_or(slot, |at| at.min(slot)));
            }
        }
    }

    fn save(&self) -> Option<Smu> {
        Some(self.clone())
    }
}
