// SPDX-License-Identifier: Apache-2.0
//! Completion of commands: their completion queue entries.

use trapless_memory::{BusError, Dma, PhysAddr};

use crate::command::{Completion, Status};
use crate::controller::Controller;
use crate::in_flight::InFlight;
use crate::queue::Waiting;
use crate::record::{CommandRecord, Observe};
use crate::regs;

impl Controller {
    /// Completes a command: writes its completion queue entry, or lets the entry wait until the queue has room.
    pub(crate) fn complete(&mut self, r: &InFlight, outcome: Result<u32, Status>, dma: &mut dyn Dma, observe: Observe) {
        // An earlier command may have deleted the queue, or set Controller Fatal Status because its entry could not be written.
        let Some(cq) = self.cqs[usize::from(r.cqid)].as_mut().filter(|_| self.csts & regs::CSTS_CFS == 0) else {
            return;
        };
        let (result, status) = outcome.map_or_else(|status| (0, status), |result| (result, Status::SUCCESS));
        let c = &r.command;
        let (slba, blocks) = if r.sqid == 0 { (0, 0) } else { (c.slba(), c.blocks()) };
        let block_bytes = self.namespaces.get((c.nsid as usize).wrapping_sub(1)).map_or(0, |ns| ns.block_bytes);
        let record = CommandRecord {
            sqid: r.sqid,
            cqid: r.cqid,
            cid: c.cid,
            opcode: c.opcode,
            slba,
            blocks,
            bytes: if status == Status::SUCCESS { u64::from(blocks) * u64::from(block_bytes) } else { 0 },
            status: status.0,
            doorbell: r.doorbell,
            fetched: r.fetched,
            completed: self.clock,
            cq_entry: PhysAddr(0),
        };
        if status != Status::SUCCESS {
            self.logs.command_failed(&record, c.nsid);
        }
        let completion = Completion { result, sqid: r.sqid, cid: c.cid, status };
        cq.waiting.push_back(Waiting { completion, record, owns_cid: r.owns_cid });
        self.post_waiting(usize::from(r.cqid), dma, observe);
    }

    /// Writes the waiting completions of a queue until the queue is full.
    pub(crate) fn post_waiting(&mut self, id: usize, dma: &mut dyn Dma, observe: Observe) {
        let Some(cq) = &mut self.cqs[id] else { return };
        cq.room_at = None;
        while !cq.full() {
            let Some(w) = cq.waiting.pop_front() else { return };
            let Some(sq) = &mut self.sqs[usize::from(w.completion.sqid)] else { continue };
            if w.owns_cid {
                sq.outstanding.remove(&w.completion.cid);
            }
            match cq.post(&w.completion, sq.head(), dma) {
                Ok(cq_entry) => observe(&CommandRecord { completed: self.clock, cq_entry, ..w.record }),
                Err(BusError(_)) => return self.fatal(),
            }
        }
    }
}
