// SPDX-License-Identifier: Apache-2.0
//! Serves the controller's events in the order of time: room in a completion queue, a command that is due, entries to fetch.

use trapless_memory::{BusError, Cycle, Dma};
use trapless_timing::SsdOp;

use crate::CommandRecord;
use crate::admin::Outcome;
use crate::command::Status;
use crate::controller::Controller;
use crate::fault::Strike;
use crate::in_flight::{InFlight, Work};
use crate::record::Observe;

/// Largest number of commands of one submission queue in service at the same time.
const MAX_OUTSTANDING: usize = 1024;

/// An event of the controller. The value is the queue's identifier.
enum Event {
    /// A full completion queue has room again.
    Room(usize),
    /// A command is due.
    Due,
    /// A submission queue has entries to fetch.
    Fetch(usize),
}

impl Controller {
    /// Serves all events due at or before `now`, in the order of time. Calls `observe` for every completed command.
    pub fn advance(&mut self, now: Cycle, dma: &mut dyn Dma, observe: &mut dyn FnMut(&CommandRecord)) {
        while self.next <= now {
            let Some((at, event)) = self.next_due() else { break };
            // A queue at its limit of commands in service is fetched from late: now, not at the time of its doorbell write.
            self.clock = self.clock.max(at);
            match event {
                Event::Room(id) => self.post_waiting(id, dma, observe),
                Event::Due => self.finish(dma, observe),
                Event::Fetch(id) => self.fetch(id, dma),
            }
            self.plan_next();
        }
    }

    /// Recomputes the time of the next event.
    pub(crate) fn plan_next(&mut self) {
        self.next = self.next_due().map_or(Cycle::NEVER, |(at, _)| at);
    }

    fn next_due(&self) -> Option<(Cycle, Event)> {
        if !self.running() {
            return None;
        }
        let room = self.cqs.iter().enumerate().filter_map(|(id, cq)| Some((cq.as_ref()?.room_at?, Event::Room(id))));
        let due = self.in_flight.first_due().map(|at| (at, Event::Due));
        let fetch = self.sqs.iter().enumerate().filter_map(|(id, sq)| {
            let sq = sq.as_ref().filter(|sq| sq.outstanding.len() < MAX_OUTSTANDING)?;
            Some((sq.doorbells.front()?.at + self.timing.fetch_delay(), Event::Fetch(id)))
        });
        // Of several events at the same cycle, `min_by_key` returns the first, so the order depends only on the guest.
        room.chain(due).chain(fetch).min_by_key(|(at, _)| *at)
    }

    /// Fetches the entries of a queue's oldest doorbell write, up to the limit of commands in service.
    fn fetch(&mut self, id: usize, dma: &mut dyn Dma) {
        let fetched = self.clock;
        while let Some(sq) = self.sqs[id].as_mut().filter(|sq| sq.outstanding.len() < MAX_OUTSTANDING) {
            let (command, doorbell) = match sq.fetch(dma) {
                Ok(Some(entry)) => entry,
                Ok(None) => return,
                Err(BusError(_)) => return self.fatal(),
            };
            let cqid = sq.cqid;
            let owns_cid = sq.outstanding.insert(command.cid);
            let mut late = Cycle(0);
            let (work, op) = if !owns_cid {
                (Work::Fail(Status::COMMAND_ID_CONFLICT), SsdOp::Refused)
            } else if id == 0 {
                (Work::Admin, SsdOp::Admin)
            } else {
                match self.plan(&command) {
                    Ok(io) => match self.faults.strike(id as u16, &command, fetched) {
                        None => (Work::Io(io), io.ssd_op()),
                        Some(Strike::Fail(status)) => (Work::Fail(status), io.ssd_op()),
                        Some(Strike::Media(status)) => {
                            self.logs.count_media_error();
                            (Work::Fail(status), io.ssd_op())
                        }
                        Some(Strike::Late(by)) => {
                            late = by;
                            (Work::Io(io), io.ssd_op())
                        }
                        Some(Strike::Hang) => continue,
                        Some(Strike::Fatal) => return self.fatal(),
                        Some(Strike::Remove) => return self.remove(),
                    },
                    Err(status) => (Work::Fail(status), SsdOp::Refused),
                }
            };
            let due = self.timing.start(fetched, op) + late;
            self.in_flight.insert(due, InFlight { command, sqid: id as u16, cqid, doorbell, fetched, work, owns_cid });
        }
    }

    /// Executes the first command that is due, and completes it.
    fn finish(&mut self, dma: &mut dyn Dma, observe: Observe) {
        let Some(request) = self.in_flight.pop_first() else { return };
        let outcome = match request.work {
            Work::Io(io) => self.execute_io(&request.command, io, dma).map(|()| 0),
            Work::Fail(status) => Err(status),
            Work::Event(event) => Ok(event),
            Work::Admin => match self.execute_admin(&request, dma, observe) {
                Ok(Outcome::Done(result)) => Ok(result),
                Ok(Outcome::Kept) => return,
                Err(status) => Err(status),
            },
        };
        self.complete(&request, outcome, dma, observe);
    }
}
