// SPDX-License-Identifier: Apache-2.0
//! What its users need of an SMU, whatever it is made of: the reference model or the RTL.

use trapless_memory::Cycle;
use trapless_smu_regs::{self as regs, Counter};

use crate::pmshr::Held;
use crate::regs::descriptor_at;
use crate::{Accept, Due, FailReason, Outside, Request, Smu, SmuBus, SmuConfig, SmuSink, SmuTiming, Source};

/// A Storage Management Unit.
///
/// The host gives it time with [`SmuUnit::advance`] whenever [`SmuUnit::next_event`] is due; every other call may change that.
/// A call with a time before that of the latest `advance` counts as made at the latter.
pub trait SmuUnit {
    /// Its sizes and times.
    fn config(&self) -> &SmuConfig;

    /// Other times from now on, for a unit that does not have its own; what is under way keeps its own.
    fn set_timing(&mut self, timing: SmuTiming);

    /// When there is something to do next; `None` while nothing is under way.
    fn next_event(&self) -> Option<Cycle>;

    /// Does everything due at or before `now`, in time order, and gives the answers to `sink`.
    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink);

    /// A walker asks.
    fn request(&mut self, now: Cycle, request: Request) -> Accept;

    /// Whether a request still waits for its acceptance.
    fn is_held(&self, from: Source) -> bool;

    /// A walker no longer waits: no answer will come for (hart, id). The miss goes on.
    fn abandon(&mut self, hart: u32, id: u64);

    /// Register read of `size` 4 or 8 bytes at `offset` into the register block, naturally aligned. Anything else reads zero.
    fn mmio_read(&mut self, offset: u64, size: usize, now: Cycle, bus: &mut dyn SmuBus) -> u64;

    /// Register write of `size` 4 or 8 bytes at `offset` into the register block, naturally aligned. Anything else is ignored.
    /// A 32-bit write leaves the other half as it is. `bus` is used when the unit is being enabled (REQ: SMU-16).
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

    /// A device wrote to a completion queue (which one does not matter). Without [`SmuConfig::completion_hints`] this does
    /// nothing: the poller looks anyway.
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
        // What the write sets in motion begins now; what is already due comes before it in `advance` all the same.
        let before = self.now;
        self.now = now.max(before);
        let acts =
            register == regs::INT_CAUSE || descriptor_at(register).is_some_and(|(_, field)| field == regs::DESC_FENCE);
        match self.port_at(register) {
            // The half that has the bits is not written: nothing begins.
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
