// SPDX-License-Identifier: Apache-2.0
//! Admin commands (NVMe 1.4, section 5).

use trapless_memory::{Dma, PAGE_SIZE, PhysAddr};

use crate::command::{Command, Status, admin};
use crate::controller::Controller;
use crate::identify::{self, ASYNC_EVENT_LIMIT};
use crate::in_flight::InFlight;
use crate::queue::{CompletionQueue, SubmissionQueue};
use crate::record::Observe;
use crate::{log, prp, regs};

/// Result of an admin command that did not fail.
pub enum Outcome {
    /// The command is complete. The value is dword 0 of its completion.
    Done(u32),
    /// The controller keeps the command until it has an event to report.
    Kept,
}

impl Controller {
    /// Executes an admin command.
    pub(crate) fn execute_admin(
        &mut self,
        request: &InFlight,
        dma: &mut dyn Dma,
        observe: Observe,
    ) -> Result<Outcome, Status> {
        let c = &request.command;
        c.check_flags()?;
        let result = match c.opcode {
            admin::CREATE_IO_CQ => self.create_cq(c)?,
            admin::CREATE_IO_SQ => self.create_sq(c)?,
            admin::DELETE_IO_SQ => self.delete_sq(c, dma, observe)?,
            admin::DELETE_IO_CQ => self.delete_cq(c)?,
            admin::IDENTIFY => self.identify(c, dma)?,
            admin::GET_LOG_PAGE => self.get_log_page(c, dma)?,
            admin::GET_FEATURES => self.features.get(c)?,
            admin::SET_FEATURES => {
                let io_queues = self.sqs[1..].iter().any(Option::is_some) || self.cqs[1..].iter().any(Option::is_some);
                self.features.set(c, io_queues)?
            }
            admin::ABORT => self.abort(c, dma, observe),
            admin::ASYNC_EVENT_REQUEST => {
                if self.events.requests.len() > usize::from(ASYNC_EVENT_LIMIT) {
                    return Err(Status::ASYNC_EVENT_LIMIT);
                }
                match self.events.pending.take() {
                    Some(event) => event,
                    None => {
                        self.events.requests.push_back(*request);
                        return Ok(Outcome::Kept);
                    }
                }
            }
            _ => return Err(Status::INVALID_OPCODE),
        };
        Ok(Outcome::Done(result))
    }

    /// Returns the I/O queue identifier in dword 10, or an error if it is out of range.
    fn io_queue_id(&self, c: &Command) -> Result<usize, Status> {
        let id = c.dw(10) & 0xffff;
        if id == 0 || id > self.config.max_io_queues { Err(Status::INVALID_QUEUE_ID) } else { Ok(id as usize) }
    }

    /// Returns address and size of the queue to create. Requires a contiguous, page-aligned queue, and valid entry sizes in CC.
    fn new_queue(&self, c: &Command) -> Result<(PhysAddr, u32), Status> {
        let size = (c.dw(10) >> 16) + 1;
        if size < 2 || size > self.config.max_queue_entries || self.cc & regs::CC_IOES != regs::CC_IOES_VALID {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        if c.dw(11) & 1 == 0 {
            return Err(Status::INVALID_FIELD);
        }
        if !c.prp1.is_multiple_of(PAGE_SIZE) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok((PhysAddr(c.prp1), size))
    }

    fn create_cq(&mut self, c: &Command) -> Result<u32, Status> {
        let id = self.io_queue_id(c)?;
        if self.cqs[id].is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let (base, size) = self.new_queue(c)?;
        let interrupts = c.dw(11) & 2 != 0;
        let vector = (c.dw(11) >> 16) as u16;
        // The controller has one interrupt vector, number 0: the INTx pin.
        if interrupts && vector != 0 {
            return Err(Status::INVALID_INTERRUPT_VECTOR);
        }
        self.cqs[id] = Some(CompletionQueue::new(base, size, interrupts.then_some(vector)));
        Ok(0)
    }

    fn create_sq(&mut self, c: &Command) -> Result<u32, Status> {
        let id = self.io_queue_id(c)?;
        if self.sqs[id].is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let cqid = (c.dw(11) >> 16) as u16;
        if u32::from(cqid) > self.config.max_io_queues {
            return Err(Status::INVALID_QUEUE_ID);
        }
        if cqid == 0 || self.cqs[usize::from(cqid)].is_none() {
            return Err(Status::CQ_INVALID);
        }
        let (base, size) = self.new_queue(c)?;
        self.sqs[id] = Some(SubmissionQueue::new(base, size, cqid));
        Ok(0)
    }

    /// Aborts the commands of the queue that are still in service, then deletes the queue. No DMA for them happens afterwards.
    fn delete_sq(&mut self, c: &Command, dma: &mut dyn Dma, observe: Observe) -> Result<u32, Status> {
        let id = self.io_queue_id(c)?;
        let cqid = self.sqs[id].as_ref().ok_or(Status::INVALID_QUEUE_ID)?.cqid;
        let doomed: Vec<_> = self.in_flight.extract(|r| usize::from(r.sqid) == id);
        for r in doomed {
            self.complete(&r, Err(Status::ABORTED_SQ_DELETION), dma, observe);
        }
        if let Some(cq) = &mut self.cqs[usize::from(cqid)] {
            cq.waiting.retain(|w| usize::from(w.completion.sqid) != id);
        }
        self.sqs[id] = None;
        Ok(0)
    }

    fn delete_cq(&mut self, c: &Command) -> Result<u32, Status> {
        let id = self.io_queue_id(c)?;
        if self.cqs[id].is_none() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        if self.sqs.iter().flatten().any(|sq| usize::from(sq.cqid) == id) {
            return Err(Status::INVALID_QUEUE_DELETION);
        }
        self.cqs[id] = None;
        Ok(0)
    }

    /// Aborts the command if it is still in service. Sets bit 0 of the result if nothing was aborted.
    fn abort(&mut self, c: &Command, dma: &mut dyn Dma, observe: Observe) -> u32 {
        let (sqid, cid) = (c.dw(10) as u16, (c.dw(10) >> 16) as u16);
        let found = self.in_flight.extract(|r| r.sqid == sqid && r.command.cid == cid && r.owns_cid);
        for r in &found {
            self.complete(r, Err(Status::ABORT_REQUESTED), dma, observe);
        }
        u32::from(found.is_empty())
    }

    fn identify(&mut self, c: &Command, dma: &mut dyn Dma) -> Result<u32, Status> {
        let data = match c.dw(10) & 0xff {
            0x00 => {
                let ns = self.namespace(c.nsid).ok_or(Status::INVALID_NAMESPACE)?;
                identify::namespace(&self.config, c.nsid, ns)
            }
            0x01 => identify::controller(&self.config, self.namespaces.len() as u32),
            0x02 if c.nsid < 0xffff_fffe => identify::active_namespaces(c.nsid, self.namespaces.len() as u32),
            0x03 if self.namespace(c.nsid).is_some() => identify::namespace_descriptors(&self.config, c.nsid),
            0x02 | 0x03 => return Err(Status::INVALID_NAMESPACE),
            _ => return Err(Status::INVALID_FIELD),
        };
        let to = prp::segments(dma, c.prp1, c.prp2, data.len() as u64)?;
        prp::scatter(dma, &to, &data[..])?;
        Ok(0)
    }

    fn get_log_page(&mut self, c: &Command, dma: &mut dyn Dma) -> Result<u32, Status> {
        let id = c.dw(10) & 0xff;
        let page = self.logs.page(id)?;
        let bytes = 4 * ((u64::from(c.dw(11) & 0xffff) << 16 | u64::from(c.dw(10) >> 16)) + 1);
        let offset = u64::from(c.dw(12)) | u64::from(c.dw(13)) << 32;
        if offset % 4 != 0 || offset > page.len() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        if bytes > u64::from(self.config.max_transfer_pages) * PAGE_SIZE {
            return Err(Status::INVALID_FIELD);
        }
        // Bytes beyond the end of the page are undefined in NVMe; we return zeroes.
        let mut data = page[offset as usize..].to_vec();
        data.resize(bytes as usize, 0);
        let to = prp::segments(dma, c.prp1, c.prp2, bytes)?;
        prp::scatter(dma, &to, &data)?;
        let retain = c.dw(10) & 1 << 15 != 0;
        if id == u32::from(log::ERROR_PAGE) && !retain {
            self.events.reported = false;
        }
        Ok(0)
    }
}
