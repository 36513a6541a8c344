// SPDX-License-Identifier: Apache-2.0
//! Completion unit: polls the completion queues, finds the PMSHR entry of each completed command, and ends quarantines.

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu_regs::{self as regs, Counter};

use crate::bugs::Bug;
use crate::pmshr::{Entry, Stage};
use crate::{FailReason, Outside, Smu};

impl Smu {
    /// Starts to poll for the completion of a submitted command (REQ: SMU-9: only while a command is outstanding). Polls once
    /// even with completion hints, because the device may have written an entry while no command was outstanding.
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

    /// Polls a completion queue once.
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
                    // Without this doorbell write the device will at some time find the queue full.
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

    /// Ends the command that a completion queue entry names by its command identifier. The SMU does not use SQ head and SQ
    /// identifier of the entry, so wrong values in them do no harm (REQ: SMU-10).
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

    /// Returns the frame of an answered entry whose command has ended (REQ: SMU-7).
    fn quarantine_over(&mut self, slot: usize) {
        if self.entry(slot).is_some_and(|e| matches!(e.stage, Stage::Answering(_) | Stage::Over)) {
            self.return_frame(slot);
            self.release_slot(slot);
        }
    }

    /// Continues a miss after its completion is decoded.
    pub(crate) fn completed(&mut self, slot: usize, status: u16) {
        if status == 0 {
            return self.start_install(slot);
        }
        self.last_status = status;
        self.fail(slot, FailReason::Device);
    }

    /// Fails all misses at a device after a bus error on its completion queue or a doorbell. The SMU cannot see their
    /// completions, so their frames stay in quarantine until RELEASE.
    pub(crate) fn device_lost(&mut self, index: usize) {
        self.error = true;
        self.descriptors[index].broken = true;
        for slot in 0..self.pmshr.slots.len() {
            if self.entry(slot).is_some_and(|e| e.command == Some(index) && e.stage == Stage::AtDevice) {
                self.fail(slot, FailReason::Bus);
            }
        }
    }

    /// Handles a write to RELEASE: the operating system guarantees that no command of this descriptor can write any more.
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
