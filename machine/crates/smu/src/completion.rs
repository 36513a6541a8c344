// SPDX-License-Identifier: Apache-2.0
//! Completion unit: looks at the completion queues, finds the command's entry, ends quarantines.

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu_regs::{self as regs, Counter};

use crate::bugs::Bug;
use crate::pmshr::{Entry, Stage};
use crate::{FailReason, Outside, Smu};

impl Smu {
    /// A command was submitted: look for its completion (REQ: SMU-9: only while one is outstanding). The first look is
    /// taken even with hints, for what a device wrote while nothing was outstanding.
    pub(crate) fn start_polling(&mut self, index: usize) {
        let (now, timing) = (self.now, self.config.timing);
        let descriptor = &mut self.descriptors[index];
        if let Some(after) = timing.first_look
            && descriptor.submitted == descriptor.completed + 1
        {
            descriptor.looks_from = now + after;
        }
        let slot = descriptor.look_after(now, timing.poll_interval);
        if descriptor.poll_at.is_none() {
            descriptor.poll_at = Some(slot);
        }
    }

    /// One look at a completion queue.
    pub(crate) fn poll(&mut self, index: usize, out: &mut Outside<'_>) {
        let (now, interval) = (self.now, self.config.timing.poll_interval);
        let descriptor = &mut self.descriptors[index];
        descriptor.poll_at = None;
        if !descriptor.outstanding() || descriptor.broken {
            return;
        }
        match descriptor.take_completion(out.bus) {
            Err(_) => return self.device_lost(index),
            Ok(None) => {
                if !self.config.completion_hints {
                    descriptor.poll_at = Some(descriptor.look_after(now + Cycle(1), interval));
                }
                return;
            }
            Ok(Some(entry)) => {
                let (doorbell, head) = (PhysAddr(descriptor.cq_doorbell), descriptor.cq_head);
                let rung = out.bus.write_u32(doorbell, head);
                self.match_completion(index, entry);
                if rung.is_err() {
                    // The device will take the queue for full some day.
                    return self.device_lost(index);
                }
                if self.bug(Bug::UpperMarksFirst) {
                    self.mark_early(out);
                }
            }
        }
        let descriptor = &mut self.descriptors[index];
        if descriptor.outstanding() {
            descriptor.poll_at = Some(now + self.config.timing.completion.max(Cycle(1)));
        }
    }

    /// A completion queue entry, by its command identifier. SQ head and SQ identifier are not used: nothing depends on
    /// them, so nothing wrong in them can do harm (REQ: SMU-10).
    fn match_completion(&mut self, index: usize, cqe: u64) {
        let (now, cid) = (self.now, regs::CQE_CID.get(cqe));
        let mut slot = self.pmshr.slot_of_command(cid);
        if self.bug(Bug::WrapCommandId) {
            slot = Some(cid as usize % self.pmshr.slots.len());
        }
        let at_device = |e: &&mut Entry| e.command == Some(index) && !matches!(e.stage, Stage::Doorbell(_));
        let Some((slot, entry)) = slot.and_then(|slot| Some((slot, self.entry(slot).filter(at_device)?))) else {
            return self.count(Counter::StrayCqe);
        };
        entry.command = None;
        if entry.stage == Stage::AtDevice {
            entry.stamps.completion = Some(now);
            self.timeouts.retain(|&(_, s)| s != slot);
            let status = regs::CQE_STATUS.get(cqe) as u16;
            self.enter(slot, Stage::Completing(status), self.config.timing.completion);
        }
        self.count(Counter::Completions);
        self.descriptors[index].completed += 1;
        self.quarantine_over(slot);
    }

    /// The command of an answered entry has ended: its frame may go back (REQ: SMU-7).
    fn quarantine_over(&mut self, slot: usize) {
        if self.entry(slot).is_some_and(|e| matches!(e.stage, Stage::Answering(_) | Stage::Over)) {
            self.return_frame(slot);
            self.release_slot(slot);
        }
    }

    /// The completion is decoded.
    pub(crate) fn completed(&mut self, slot: usize, status: u16) {
        if status == 0 {
            return self.start_install(slot);
        }
        self.last_status = status;
        self.fail(slot, FailReason::Device);
    }

    /// The completion queue cannot be read, or a doorbell cannot be rung: whatever is at the device is out of sight, hence in
    /// quarantine until RELEASE.
    pub(crate) fn device_lost(&mut self, index: usize) {
        self.error = true;
        self.descriptors[index].broken = true;
        for slot in 0..self.pmshr.slots.len() {
            if self.entry(slot).is_some_and(|e| e.command == Some(index) && e.stage == Stage::AtDevice) {
                self.fail(slot, FailReason::Bus);
            }
        }
    }

    /// RELEASE: the OS says that no command of this descriptor can write any more.
    pub(crate) fn release_descriptor(&mut self, index: usize) {
        let descriptor = &mut self.descriptors[index];
        descriptor.completed = descriptor.submitted;
        descriptor.reset_indices();
        descriptor.broken = false;
        descriptor.poll_at = None;
        for slot in 0..self.pmshr.slots.len() {
            let Some(entry) = self.entry(slot).filter(|e| e.command == Some(index)) else { continue };
            entry.command = None;
            if entry.stage == Stage::AtDevice {
                self.fail(slot, FailReason::Descriptor);
            }
            self.quarantine_over(slot);
        }
    }
}
