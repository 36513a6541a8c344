// SPDX-License-Identifier: Apache-2.0
//! The steps of a miss up to the doorbell (acceptance, lookup, frame, command) and its end (failure, answer, release).

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu_regs::{self as regs, Counter};

use crate::bugs::Bug;
use crate::free_ring::Fetched;
use crate::pmshr::{Entry, Held, Stage, Waiter};
use crate::return_ring::{Keeper, Returned};
use crate::{Accept, Answer, Event, FailReason, LateAnswer, Miss, Outcome, Outside, Smu, Source, Stamps};

/// Width of a physical address in bits.
const PADDR_BITS: u32 = 56;

impl Smu {
    /// Accepts a request, or holds it until its turn.
    pub(crate) fn ask(&mut self, held: Held) -> Accept {
        if self.accept(held, held.asked + self.config.timing.request) {
            return Accept::Accepted;
        }
        self.count(Counter::PmshrFull);
        self.pmshr.held.insert(held.from, held);
        Accept::Full
    }

    /// Accepts a request that reaches the PMSHR at `arrives`. Returns false if the PMSHR is full.
    fn accept(&mut self, held: Held, arrives: Cycle) -> bool {
        let Held { from, request, asked } = held;
        let ready = arrives + self.config.timing.cam;
        let mut waiter = Waiter { from, id: request.id, seen: request.seen, asked, ready, joined: false };
        if !self.enabled {
            self.refuse(waiter, FailReason::Disabled, arrives);
            return true;
        }
        // An unaligned address is not the address of an entry. Only software can send such a request.
        let addresses = [request.pte, request.pmd, request.pud];
        if addresses.iter().any(|at| at.0 % 8 != 0) {
            self.refuse(waiter, FailReason::Descriptor, ready);
            return true;
        }
        if addresses.iter().any(|at| at.0 >> PADDR_BITS != 0) || !self.may_use_entries(addresses) {
            self.error = true;
            self.refuse(waiter, FailReason::Bus, ready);
            return true;
        }
        if let Some(entry) = self.pmshr.find(request.pte).and_then(|slot| self.entry(slot)) {
            // REQ: SMU-1
            waiter.joined = true;
            entry.waiters.push(waiter);
            entry.requests = entry.requests.saturating_add(1);
            self.count_request(from);
            self.count(Counter::Coalesced);
            return true;
        }
        // REQ: SMU-10
        if self.pmshr.is_crowded_for(request.seen) {
            self.refuse(waiter, FailReason::Timeout, ready);
            return true;
        }
        let Some(slot) = self.pmshr.free_slot() else {
            // REQ: SMU-10. All entries are in quarantine, which may last forever, so the request must not wait for its end.
            let hopeless = self.pmshr.live() == 0;
            if hopeless {
                self.refuse(waiter, FailReason::Timeout, ready);
            }
            return hopeless;
        };
        self.pmshr.fill(slot, &request, waiter);
        self.schedule(ready, Event::Step(slot));
        self.count_request(from);
        true
    }

    fn count_request(&mut self, from: Source) {
        self.count(Counter::Requests);
        if matches!(from, Source::Port(_)) {
            self.count(Counter::PortRequests);
        }
    }

    /// Accepts a request and fails it.
    fn refuse(&mut self, waiter: Waiter, reason: FailReason, from: Cycle) {
        self.last_reason = reason as u8;
        self.count_request(waiter.from);
        self.count(outcome_counter(Outcome::Failed(reason)));
        let stamps = Stamps { requested: Some(waiter.asked), ..Stamps::default() };
        self.deliver_later(self.pmshr.next_seq, waiter.seen, waiter, Outcome::Failed(reason), stamps, from);
        self.pmshr.next_seq += 1;
    }

    /// Accepts held requests in turn (REQ: SMU-6). A request whose miss is live joins the miss even while no entry is free.
    pub(crate) fn admit(&mut self) {
        for from in self.pmshr.held_in_turn() {
            let Some(&held) = self.pmshr.held.get(&from) else { continue };
            if self.accept(held, self.now) {
                self.pmshr.take_held(from);
            }
        }
    }

    /// Ends the current stage of an entry.
    pub(crate) fn step(&mut self, slot: usize, out: &mut Outside<'_>) {
        let Some(stage) = self.entry(slot).map(|e| e.stage) else { return };
        match stage {
            Stage::Lookup => self.look_up(slot, out),
            Stage::Command => self.write_command(slot, out),
            Stage::Doorbell(tail) => self.ring_doorbell(slot, tail, out),
            Stage::Completing(status) => self.completed(slot, status),
            Stage::Pte => self.install_pte(slot, out),
            Stage::Pmd(installed) => self.mark_pmd(slot, installed, out),
            Stage::Pud(installed) => self.mark_pud(slot, installed, out),
            Stage::ReadBack(installed) => self.read_back(slot, installed, out),
            Stage::Answering(outcome) => self.broadcast(slot, outcome, out),
            Stage::WaitFrame | Stage::AtDevice | Stage::Over => {}
        }
    }

    /// Moves an entry to its next stage, which takes `time`.
    pub(crate) fn enter(&mut self, slot: usize, stage: Stage, time: Cycle) {
        if let Some(entry) = self.entry(slot) {
            entry.stage = stage;
            self.schedule(self.now + self.lag + time, Event::Step(slot));
        }
    }

    /// REQ: SMU-2. Reads the PTE again before any other step.
    fn look_up(&mut self, slot: usize, out: &mut Outside<'_>) {
        let (now, socket) = (self.now, u64::from(self.config.socket));
        let second_look = !self.bug(Bug::NoSecondLook);
        let Some(entry) = self.entry(slot) else { return };
        entry.stamps.allocated = Some(now);
        let seen = entry.seen;
        let found = out.bus.read_u64(entry.pte);
        self.lag += out.bus.took();
        match found {
            Err(_) => return self.fail(slot, FailReason::Bus),
            Ok(value) if value != seen && second_look => return self.changed(slot, value),
            Ok(_) => {}
        }
        let descriptor = &self.descriptors[regs::PTE_DEVICE.get(seen) as usize];
        if !regs::pte_names_block(seen) || regs::PTE_SOCKET.get(seen) != socket || !descriptor.serves() {
            return self.fail(slot, FailReason::Descriptor);
        }
        if let Some(entry) = self.entry(slot) {
            entry.stage = Stage::WaitFrame;
        }
        self.frame_waiters.push(slot);
        self.feed();
    }

    /// Gives prefetched frames to the entries that wait for a frame, oldest first. Restarts the fetcher. Fails the entries
    /// that still wait if no frame can come.
    pub(crate) fn feed(&mut self) {
        while !self.frame_waiters.is_empty() {
            let Some(frame) = self.free.take() else { break };
            let (now, slot) = (self.now, self.frame_waiters.remove(0));
            if let Some(entry) = self.entry(slot) {
                entry.frame = Some(frame);
                entry.stamps.frame = Some(now);
            }
            self.enter(slot, Stage::Command, self.config.timing.command_write);
        }
        if !self.enabled && !self.bug(Bug::KeepPrefetched) {
            // REQ: SMU-5. The prefetched frames go back to the operating system.
            while let Some(frame) = self.free.buffer.pop_front() {
                self.return_prefetched(frame.pfn, FailReason::Disabled as u64);
            }
        }
        self.pump_fetch();
        let to_come = self.free.fetching || (self.free.has_entry() && self.returns.takes_bad_entry());
        if !to_come && self.free.buffer.is_empty() {
            for slot in std::mem::take(&mut self.frame_waiters) {
                self.fail(slot, FailReason::NoFrame);
            }
        }
    }

    /// Starts to read a free ring entry if a frame is needed, the ring has an entry, and the buffer has room.
    pub(crate) fn pump_fetch(&mut self) {
        let (depth, kept) = (usize::from(self.config.prefetch_depth), self.returns.kept_prefetch());
        let ahead = self.enabled && self.free.buffer.len() + kept < depth;
        let needed = self.free.buffer.len() < self.frame_waiters.len() && kept <= depth;
        let stopped = self.free.fetching || self.returns.has_bad_entry();
        if (ahead || needed) && !stopped && self.free.has_entry() {
            self.free.fetching = true;
            self.schedule(self.now + self.lag + self.ring_time(), Event::Fetch);
        }
    }

    /// Reads a free ring entry at the end of its fetch.
    pub(crate) fn fetched(&mut self, out: &mut Outside<'_>) {
        let fetched = self.free.fetch(out.bus);
        self.lag += out.bus.took();
        match fetched {
            Ok(Some(Fetched::Frame) | None) => {}
            Ok(Some(Fetched::Malformed(pfn))) => {
                self.error = true;
                self.return_prefetched(pfn, regs::REASON_BAD_ENTRY);
            }
            Err(_) => self.error = true,
        }
        self.feed();
    }

    fn return_prefetched(&mut self, pfn: u64, reason: u64) {
        self.returns.waiting.push_back(Returned { pfn, reason, keeper: Keeper::Prefetch });
        self.pump_returns();
    }

    /// Writes the command into the submission queue.
    fn write_command(&mut self, slot: usize, out: &mut Outside<'_>) {
        let now = self.now;
        let Some((seen, Some(frame))) = self.entry(slot).map(|e| (e.seen, e.frame)) else { return };
        let index = regs::PTE_DEVICE.get(seen) as usize;
        if !self.descriptors[index].serves() {
            return self.fail(slot, FailReason::Descriptor);
        }
        let cid = self.pmshr.next_command(slot);
        let written = self.descriptors[index].write_command(cid, regs::PTE_LBA.get(seen), frame, out.bus);
        self.lag += out.bus.took();
        match written {
            Err(_) => self.fail(slot, FailReason::Bus),
            Ok(tail) => {
                self.count(Counter::Commands);
                if let Some(entry) = self.entry(slot) {
                    entry.command = Some(index);
                    entry.stamps.command = Some(now);
                }
                self.enter(slot, Stage::Doorbell(tail), self.config.timing.doorbell);
            }
        }
    }

    /// Writes the doorbell. The device starts to work, and the timeout of the command begins.
    fn ring_doorbell(&mut self, slot: usize, tail: u32, out: &mut Outside<'_>) {
        let (now, timeout) = (self.now, self.timeout);
        let Some(entry) = self.entry(slot) else { return };
        let Some(index) = entry.command else {
            return self.fail(slot, FailReason::Descriptor); // the descriptor was released in between
        };
        entry.stamps.doorbell = Some(now);
        entry.stage = Stage::AtDevice;
        let descriptor = &self.descriptors[index];
        if descriptor.broken || out.bus.write_u32(PhysAddr(descriptor.sq_doorbell), tail).is_err() {
            // The frame goes into quarantine: the command is in the queue, and a later doorbell write would start it.
            return self.device_lost(index);
        }
        if timeout != 0 {
            self.timeouts.insert((now + Cycle(timeout), slot));
        }
        self.start_polling(index);
    }

    /// Fails the miss. Returns its frame unless a command may still write it (REQ: SMU-7).
    pub(crate) fn fail(&mut self, slot: usize, reason: FailReason) {
        self.last_reason = reason as u8;
        if reason == FailReason::Timeout && self.bug(Bug::NoQuarantine) {
            self.pmshr.slots[slot].as_mut().into_iter().for_each(|e| e.command = None);
        }
        match reason {
            FailReason::Bus => self.error = true,
            FailReason::Timeout => self.interrupts.timed_out = true,
            _ => {}
        }
        self.conclude(slot, Outcome::Failed(reason), reason as u64);
    }

    /// Ends the miss because a hart has changed the PTE to `value`.
    pub(crate) fn changed(&mut self, slot: usize, value: u64) {
        if self.bug(Bug::LoseFrame) {
            self.pmshr.slots[slot].as_mut().into_iter().for_each(|e| e.frame = None);
        }
        self.conclude(slot, Outcome::Changed(value), regs::REASON_CHANGED);
    }

    /// Ends the miss with its answer.
    pub(crate) fn conclude(&mut self, slot: usize, outcome: Outcome, reason: u64) {
        self.timeouts.retain(|&(_, s)| s != slot);
        if let Some(entry) = self.entry(slot) {
            let mapped = if entry.is_in_doubt() { regs::RETURNED_MAPPED.mask() } else { 0 };
            entry.reason = reason | mapped;
        }
        self.enter(slot, Stage::Answering(outcome), self.config.timing.notify);
        self.return_frame(slot);
    }

    /// REQ: SMU-6. Sends the answer to every waiter exactly once.
    fn broadcast(&mut self, slot: usize, outcome: Outcome, out: &mut Outside<'_>) {
        let now = self.now;
        let Some(entry) = self.entry(slot) else { return };
        entry.stage = Stage::Over;
        entry.stamps.answered = Some(now);
        let (waiters, seq, stamps) = (std::mem::take(&mut entry.waiters), entry.seq, entry.stamps);
        let Entry { from, pte, seen, requests, .. } = *entry;
        let miss = Miss { from, pte, seen, outcome, requests, stamps };
        self.count(outcome_counter(outcome));
        for waiter in waiters {
            if waiter.joined && self.bug(Bug::ForgetJoiners) {
                continue;
            }
            if self.bug(Bug::AnswerTwice) {
                self.tell(waiter, outcome, stamps, now, out);
            }
            if waiter.ready > now {
                self.deliver_later(seq, seen, waiter, outcome, stamps, waiter.ready);
            } else {
                self.tell(waiter, outcome, stamps, now, out);
            }
        }
        out.sink.miss_over(&miss);
        self.release_slot(slot);
    }

    fn deliver_later(&mut self, seq: u64, seen: u64, waiter: Waiter, outcome: Outcome, stamps: Stamps, from: Cycle) {
        let at = from + self.config.timing.notify;
        let key = self.next_event_id;
        self.late.insert(key, LateAnswer { seq, seen, waiter, outcome, stamps, at });
        self.schedule(at, Event::Deliver(key));
    }

    /// Sends the answer to one waiter.
    pub(crate) fn tell(&mut self, waiter: Waiter, outcome: Outcome, stamps: Stamps, at: Cycle, out: &mut Outside<'_>) {
        let Waiter { from, id, seen, asked, joined, .. } = waiter;
        let (Source::Walker(hart) | Source::Port(hart)) = from;
        let answer = Answer { hart, id, seen, outcome, at, asked, joined, stamps };
        match from {
            Source::Walker(_) => out.sink.answer(answer),
            Source::Port(port) => {
                self.answer_port(port, outcome);
                out.sink.port_answered(&answer);
            }
        }
    }

    /// Frees the entry if it is finished. Then accepts held requests.
    pub(crate) fn release_slot(&mut self, slot: usize) {
        if self.pmshr.slots[slot].as_ref().is_some_and(|e| e.is_finished()) {
            self.pmshr.slots[slot] = None;
        }
        self.admit();
    }
}

fn outcome_counter(outcome: Outcome) -> Counter {
    match outcome {
        Outcome::Done(_) => Counter::Installed,
        Outcome::Changed(_) => Counter::Changed,
        Outcome::Failed(FailReason::NoFrame) => Counter::FailNoFrame,
        Outcome::Failed(FailReason::Device) => Counter::FailDevice,
        Outcome::Failed(FailReason::Bus) => Counter::FailBus,
        Outcome::Failed(FailReason::Disabled) => Counter::FailDisabled,
        Outcome::Failed(FailReason::Descriptor) => Counter::FailDescriptor,
        Outcome::Failed(FailReason::Timeout) => Counter::FailTimeout,
    }
}
