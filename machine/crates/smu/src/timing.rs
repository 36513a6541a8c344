// SPDX-License-Identifier: Apache-2.0
//! What the SMU's steps cost.

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, Picos};

/// Time of each step of a miss, in core cycles. All of it is pipelined: steps of different misses overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmuTiming {
    /// The walker writes its request.
    pub request: Cycle,
    /// Search of the PMSHR.
    pub cam: Cycle,
    /// The command is written to the submission queue.
    pub command_write: Cycle,
    /// The doorbell is written.
    pub doorbell: Cycle,
    /// A completion queue entry is taken and its command found.
    pub completion: Cycle,
    /// The three entry updates together: PTE, PMD and PUD at one third, two thirds and the end of it.
    pub update: Cycle,
    /// The answer travels to the walker.
    pub notify: Cycle,
    /// Distance of two looks at a completion queue; zero means that writes to it are snooped.
    pub poll_interval: Cycle,
    /// From a doorbell to the first look, when none was outstanding; then one interval after another. Without it the poller looks
    /// at multiples of its interval.
    pub first_look: Option<Cycle>,
    /// One entry of the free ring is read or one of the return ring written.
    pub ring_read: Cycle,
}

impl SmuTiming {
    /// The same without the memory accesses, for a bus that times them: each unit then needs a cycle for its own step.
    pub fn logic(self) -> SmuTiming {
        SmuTiming { command_write: Cycle(1), update: Cycle(3), ring_read: Cycle(1), ..self }
    }

    /// The same with the RTL's logic (rtl/smu), for a bus that times memory: cycles between its pins, measured with memory that
    /// answers in the next cycle. A command takes eight of its cycles on a 64-bit bus. Tests of trapless-smu-world hold the
    /// RTL to these figures; `smu-soak LIBRARY --steps` prints them.
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

    /// The figures of ISCA20, figure 11 (they include the memory accesses), for a core clock. The poll interval is that
    /// of a poller which reads memory back to back, one read taking as long as a ring entry's.
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
