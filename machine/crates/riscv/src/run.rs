// SPDX-License-Identifier: Apache-2.0
//! Runs of a hart: how they begin and end, and how the hart takes notice of what others have done since its last run.

use trapless_memory::Cycle;

use crate::env::{Bus, Env, Observer, Timing};
use crate::events::{Loss, PageFault};
use crate::exit::{Exit, WalkAnswer};
use crate::hart::{CODE_LINES, Hart, NO_LINE};
use crate::trap::Stop;

/// Longest stretch that is executed at once, in cycles: the lower half of `acc` must not overflow.
const MAX_STRETCH: u64 = 1 << 30;
/// Cycles after an LR during which a run does not end: enough for the 16 instructions of a constrained loop.
const RESERVATION_GRACE: u64 = 64;

impl Hart {
    /// Runs until local time reaches `until` (or passes it by a few instructions), or until something else ends the run.
    ///
    /// A run does not end shortly after an LR. The unprivileged specification requires that certain loops of LR and SC succeed
    /// eventually; so they do, however short the runs are.
    ///
    /// Interrupts are sampled at the start and wherever the hart itself may have unmasked one.
    pub fn run<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>, until: Cycle) -> Exit {
        self.begin(env);
        loop {
            let mut left = until.0.saturating_sub(self.cycle);
            if left == 0 {
                if self.reservation.is_none() || self.cycle - self.reserved_at >= RESERVATION_GRACE {
                    return Exit::QuantumEnd;
                }
                // Continue to the next place where a run may end.
                left = 1;
            }
            self.limit = left.min(MAX_STRETCH) as u32;
            self.take_interrupt(env.observer);
            let exit = self.execute(env);
            self.settle();
            if std::mem::take(&mut self.resync) || exit != Exit::QuantumEnd {
                return exit;
            }
        }
    }

    /// Executes one instruction or takes one trap. Returns [`Exit::Step`] where `run` would have continued.
    pub fn step<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>) -> Exit {
        self.begin(env);
        if self.take_interrupt(env.observer) {
            self.settle();
            return Exit::Step;
        }
        self.limit = 1;
        self.stepping = true;
        let exit = self.execute(env);
        self.stepping = false;
        self.resync = false;
        self.settle();
        if exit == Exit::QuantumEnd { Exit::Step } else { exit }
    }

    /// Takes notice of what others may have done since the last run.
    fn begin<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>) {
        self.reservation = None;
        let ram = env.bus.ram();
        let (host, base) = (ram.host_base().expose_provenance() as u64, ram.base().0);
        if (host, base) != (self.ram_host, self.ram_base) {
            (self.ram_host, self.ram_base) = (host, base);
            self.tlb.flush();
        }
        env.code.trim();
        env.code.drop_overwritten(ram);
        if self.code_generation != env.code.generation() {
            self.code_generation = env.code.generation();
            self.tlb.flush();
        }
        if self.code_epoch != env.code.epoch() {
            self.code_epoch = env.code.epoch();
            self.tlb.protect(None);
        }
        self.take_losses(env.timing);
    }

    /// Forgets lines and pages that the core has lost.
    pub(crate) fn take_losses<T: Timing>(&mut self, timing: &mut T) {
        while let Some(loss) = timing.lost() {
            match loss {
                Loss::Data(line) => self.tlb.lines.forget(line),
                Loss::Right(line) => self.tlb.lines.forget_right(line),
                Loss::Code(line) => {
                    let known = &mut self.code_lines[line as usize % CODE_LINES];
                    if *known == line as u32 {
                        *known = NO_LINE;
                    }
                }
                Loss::DataPage(va) => self.tlb.lines.forget_page(va),
                Loss::CodePage(va) => self.tlb.forget_fetch(va),
                Loss::Everything => {
                    self.code_lines.fill(NO_LINE);
                    self.tlb.flush();
                }
            }
        }
    }

    /// Continues after [`Exit::SmuWait`]. REQ: ISA-6: failures are the ordinary faults of the access. REQ: ISA-7: the time since
    /// that exit counts as waiting. Does nothing if the last run did not end with such an exit.
    pub fn resume_walk<O: Observer>(&mut self, answer: WalkAnswer, observer: &mut O) {
        let Some((request, began)) = self.wait.take() else { return };
        self.csr.shwdpwait = self.csr.shwdpwait.wrapping_add(self.cycle - began);
        let stop = match answer {
            WalkAnswer::Interrupted => return,
            WalkAnswer::Done => {
                self.csr.shwdpserved = self.csr.shwdpserved.wrapping_add(1);
                self.walk_answered = true;
                return;
            }
            WalkAnswer::Changed(value) => {
                self.walk_answered = true;
                if self.count_retry(request.pte_pa.0) {
                    self.changed_pte = Some((request.pte_pa.0, value));
                    return;
                }
                self.page_fault = PageFault::Changed;
                Stop::page_fault(request.access, request.va)
            }
            WalkAnswer::Failed => {
                self.page_fault = PageFault::Refused;
                Stop::page_fault(request.access, request.va)
            }
            WalkAnswer::BusError => Stop::access_fault(request.access, request.va),
        };
        if let Stop::Trap { cause, tval } = stop {
            self.take_trap(cause, tval, observer);
            self.settle();
        }
    }
}
