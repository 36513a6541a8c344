// SPDX-License-Identifier: Apache-2.0
//! The host's interface: registers, doorbells and the interrupt pin.

use trapless_memory::{Cycle, MmioEffect, PhysAddr};

use crate::controller::Controller;
use crate::in_flight::{InFlight, Work};
use crate::queue::{CompletionQueue, InvalidDoorbell, SubmissionQueue};
use crate::{log, regs};

impl Controller {
    /// Reads a register. NVMe defines accesses of 4 and 8 bytes; a narrower access returns its part of the register.
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

    /// Writes a register (4 or 8 bytes, aligned) or a doorbell (4 bytes). Ignores all other accesses.
    pub fn mmio_write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect {
        match size {
            4 if offset.is_multiple_of(4) => self.write(offset, value as u32, now),
            8 if offset.is_multiple_of(8) && offset < regs::DOORBELLS => {
                self.write(offset, value as u32, now);
                self.write(offset + 4, (value >> 32) as u32, now);
            }
            _ => return MmioEffect::None,
        }
        self.plan_next();
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
                let rung = if index.is_multiple_of(2) {
                    let sq = self.sqs.get_mut(index / 2).and_then(Option::as_mut);
                    sq.map(|sq| sq.ring(value, now)).ok_or(0x00)
                } else {
                    let cq = self.cqs.get_mut(index / 2).and_then(Option::as_mut);
                    cq.map(|cq| cq.ring(value, now)).ok_or(0x00)
                };
                match rung {
                    Ok(Ok(())) => {}
                    // Error event 00h is a write to an invalid doorbell register, 01h an invalid doorbell value.
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

    /// Logs an error and reports it to the host. Reports no second event before the host has read the error log.
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

    /// Returns the level of the INTx pin: high if a queue with enabled and unmasked interrupts has an unread entry.
    pub fn irq_asserted(&self) -> bool {
        let mut queues = self.cqs.iter().flatten();
        queues.any(|cq| cq.unread() && cq.vector.is_some_and(|v| v < 32 && self.intm >> v & 1 == 0))
    }
}
