// SPDX-License-Identifier: Apache-2.0
//! Times of the SMU's steps.

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, Picos};

/// Time of each step of a miss, in core cycles. All steps are pipelined: steps of different misses overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmuTiming {
    /// The walker sends its request to the SMU.
    pub request: Cycle,
    /// The SMU searches the PMSHR.
    pub cam: Cycle,
    /// The SMU writes the command to the submission queue.
    pub command_write: Cycle,
    /// The SMU writes the doorbell.
    pub doorbell: Cycle,
    /// The SMU takes a completion queue entry and finds its command.
    pub completion: Cycle,
    /// The SMU updates the PTE, the PMD and the PUD: after one third, two thirds and the whole of this time.
    pub update: Cycle,
    /// The answer travels to the walker.
    pub notify: Cycle,
    /// Time between two polls of a completion queue; zero means that the SMU snoops writes to the queue.
    pub poll_interval: Cycle,
    /// Time from a doorbell write to the first poll, if no other command was outstanding; further polls follow at the interval.
    /// With `None`, the SMU polls at multiples of the interval.
    pub first_look: Option<Cycle>,
    /// The SMU reads an entry of the free ring, or writes an entry of the return ring.
    pub ring_read: Cycle,
}

impl SmuTiming {
    /// Returns these times without the memory accesses, for a bus that models them. Each step of a unit still takes one cycle.
    pub fn logic(self) -> SmuTiming {
        SmuTiming { command_write: Cycle(1), update: Cycle(3), ring_read: Cycle(1), ..self }
    }

    /// Returns the times of the RTL's logic (rtl/smu), for a bus that models the times of memory. They were measured in cycles
    /// between the pins of the RTL, with memory that answers in the next cycle. Writing a command takes eight cycles on a 64-bit
    /// bus. Tests of trapless-smu-world check that the RTL has these times; `smu-soak LIBRARY --steps` prints them.
    pub fn rtl(self) -> SmuTiming {
        SmuTiming {
            request: Cycle(1),
            cam: Cycle(2),
            command_write: Cycle(13),
            doorbell: Cycle(3),
            completion: Cycle(3),
            update: Cycle(4),
            notify: Cycle(2),
            ring_read: Cycle(1),
            ..self
        }
    }

    /// Returns the times of figure 11 of the ISCA 2020 paper, for a core clock. They include the memory accesses. The poll
    /// interval is for a poller that reads memory back to back, where one read takes as long as a read of a ring entry.
    pub fn isca20(clock: ClockHz) -> SmuTiming {
        let ns = |ns: f64| clock.cycles(Picos::from_nanos(ns));
        SmuTiming {
            request: Cycle(2),
            cam: Cycle(5),
            command_write: ns(77.16),
            doorbell: ns(1.60),
            completion: Cycle(2),
            update: Cycle(97),
            notify: Cycle(2),
            poll_interval: ns(80.0),
            first_look: None,
            ring_read: ns(80.0),
        }
    }
}
