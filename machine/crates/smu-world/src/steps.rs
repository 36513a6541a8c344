// SPDX-License-Identifier: Apache-2.0
//! Measures the cycles of each step of a miss, with memory that answers in the next cycle.

use trapless_memory::Cycle;
use trapless_smu::{SmuTiming, SmuUnit};

use crate::sim::Sim;

/// Cycles between events on the unit's pins, without the cycles of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// From a walker's request to the second read of the PTE.
    pub request: u64,
    /// From the value of that read to the command in the queue, with a prefetched frame.
    pub command: u64,
    /// From the command in the queue to the doorbell write.
    pub doorbell: u64,
    /// From the read of the completion queue entry to the exchange of the PTE, without the read of the exclusive pair.
    pub completion: u64,
    /// From the exchange of the PTE to the mark in the PUD.
    pub update: u64,
    /// From the mark in the PUD to the answer.
    pub notify: u64,
}

/// Measures one miss of an idle unit, with memory that takes one cycle.
pub fn measure(unit: Box<dyn SmuUnit>) -> Option<Steps> {
    let mut sim = Sim::new(unit, 4);
    sim.run(500);
    sim.ask(0, 3);
    sim.run(100);
    sim.complete(1, 0, 0);
    sim.run(500);
    let s = sim.answers.first()?.stamps;
    // Each access has its response one cycle later. An exclusive pair is two accesses.
    let between = |from: Option<Cycle>, to: Option<Cycle>, accesses: u64| Some(to?.0 - from?.0 - accesses);
    Some(Steps {
        request: between(s.requested, s.allocated, 0)?,
        command: between(s.allocated, s.command, 1)?,
        doorbell: between(s.command, s.doorbell, 1)?,
        completion: between(s.completion, s.pte, 2)?,
        update: between(s.pte, s.pud, 4)?,
        notify: between(s.pud, s.answered, 1)?,
    })
}

impl Steps {
    /// Converts to times for the reference model, on a bus that models the times of memory. Takes `poll_interval` and
    /// `first_look` from `timing`.
    pub fn timing(self, timing: SmuTiming) -> SmuTiming {
        let cycle = Cycle;
        SmuTiming {
            request: cycle(1),
            cam: cycle(self.request - 1),
            command_write: cycle(self.command),
            doorbell: cycle(self.doorbell),
            completion: cycle(self.completion),
            update: cycle(self.update),
            notify: cycle(self.notify),
            ring_read: cycle(1),
            ..timing
        }
    }
}
