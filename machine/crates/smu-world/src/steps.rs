// SPDX-License-Identifier: Apache-2.0
//! What the steps of a miss cost in a unit when memory answers in the next cycle.

use trapless_memory::Cycle;
use trapless_smu::{SmuTiming, SmuUnit};

use crate::sim::Sim;

/// Cycles between what shows on the unit's pins, without those of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// A walker's request to the second look at the PTE.
    pub request: u64,
    /// What the look gave to the command in the queue, with a frame fetched ahead.
    pub command: u64,
    /// Command written to doorbell.
    pub doorbell: u64,
    /// Completion queue entry read to PTE exchanged, the read of the exclusive pair left out.
    pub completion: u64,
    /// PTE to PMD to PUD.
    pub update: u64,
    /// PUD marked to answer.
    pub notify: u64,
}

/// Lets a unit at rest serve one miss, on memory that takes a cycle.
pub fn measure(unit: Box<dyn SmuUnit>) -> Option<Steps> {
    let mut sim = Sim::new(unit, 4);
    sim.run(500);
    sim.ask(0, 3);
    sim.run(100);
    sim.complete(1, 0, 0);
    sim.run(500);
    let s = sim.answers.first()?.stamps;
    // Each access has its response a cycle later; of an exclusive pair there are two.
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
    /// As the reference model takes them, for a bus that times memory: `poll_interval` and the rest from `timing`.
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
