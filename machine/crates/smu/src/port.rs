// SPDX-License-Identifier: Apache-2.0
//! Software request ports (REQ: SMU-11): registers through which software sends requests as a walker does.

use serde::{Deserialize, Serialize};
use trapless_memory::PhysAddr;
use trapless_smu_regs as regs;

use crate::bugs::Bug;
use crate::pmshr::Held;
use crate::regs::block_at;
use crate::{Outcome, Request, Smu, Source};

/// The registers of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Port {
    pte: u64,
    pmd: u64,
    pud: u64,
    entry: u64,
    busy: bool,
    /// Outcome of the last request.
    outcome: Option<Outcome>,
}

impl Port {
    pub fn register(&self, field: u64) -> u64 {
        match field {
            regs::PORT_PTE_ADDR => self.pte,
            regs::PORT_PMD_ADDR => self.pmd,
            regs::PORT_PUD_ADDR => self.pud,
            regs::PORT_ENTRY => self.entry,
            regs::PORT_STATUS => self.status(),
            regs::PORT_ANSWER => match self.outcome {
                Some(Outcome::Done(pte) | Outcome::Changed(pte)) => pte,
                Some(Outcome::Failed(_)) | None => 0,
            },
            _ => 0,
        }
    }

    fn status(&self) -> u64 {
        let (outcome, reason) = match self.outcome {
            None => (0, 0),
            Some(Outcome::Done(_)) => (regs::OUTCOME_DONE, 0),
            Some(Outcome::Changed(_)) => (regs::OUTCOME_CHANGED, 0),
            Some(Outcome::Failed(reason)) => (regs::OUTCOME_FAILED, reason as u64),
        };
        regs::PORT_STATUS_BUSY.of(self.busy.into())
            | regs::PORT_STATUS_OUTCOME.of(outcome)
            | regs::PORT_STATUS_REASON.of(reason)
    }
}

impl Smu {
    /// Returns the port at a register offset, and the offset in the port.
    pub(crate) fn port_at(&self, offset: u64) -> Option<(usize, u64)> {
        block_at(offset, regs::PORT_BASE, regs::PORT_STRIDE, self.ports.len())
    }

    /// Writes a port's register. `upper_half` tells that the write covers the register's upper half. Such a write to ENTRY
    /// starts a request.
    pub(crate) fn set_port_register(&mut self, index: usize, field: u64, value: u64, upper_half: bool) {
        let port = &mut self.ports[index];
        if port.busy {
            self.error = true;
            return;
        }
        match field {
            regs::PORT_PTE_ADDR => port.pte = value,
            regs::PORT_PMD_ADDR => port.pmd = value,
            regs::PORT_PUD_ADDR => port.pud = value,
            regs::PORT_ENTRY => port.entry = value,
            _ => {}
        }
        if field == regs::PORT_ENTRY && upper_half {
            port.busy = true;
            port.outcome = None;
            let (pte, pmd, pud) = (PhysAddr(port.pte), PhysAddr(port.pmd), PhysAddr(port.pud));
            let number = index as u32;
            let request = Request { pte, pmd, pud, seen: value, hart: number, id: 0 };
            self.ask(Held { from: Source::Port(number), request, asked: self.now });
        }
    }

    /// Writes an answer to a port's registers.
    pub(crate) fn answer_port(&mut self, index: u32, outcome: Outcome) {
        if self.bug(Bug::ForgetPorts) {
            return;
        }
        if let Some(port) = self.ports.get_mut(index as usize) {
            port.busy = false;
            port.outcome = Some(outcome);
        }
    }
}
