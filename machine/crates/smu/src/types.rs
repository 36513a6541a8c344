// SPDX-License-Identifier: Apache-2.0
//! Requests, answers, and records of misses for observers.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};

/// A request of a walker or of a software request port (REQ: SMU-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Address of the leaf entry.
    pub pte: PhysAddr,
    /// Address of the entry one level above the leaf entry.
    pub pmd: PhysAddr,
    /// Address of the entry two levels above the leaf entry.
    pub pud: PhysAddr,
    /// The value of the armed entry that the walker read.
    pub seen: u64,
    /// Number of the requesting hart, or of the port.
    pub hart: u32,
    /// Identifier that the walker chooses and that the answer repeats. A pair (hart, id) must not be reused while it waits.
    pub id: u64,
}

/// Source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// The walker of this hart.
    Walker(u32),
    /// This software request port.
    Port(u32),
}

/// Result of [`SmuUnit::request`](crate::SmuUnit::request).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accept {
    /// The SMU has accepted the request. It will answer the request exactly once, unless the walker abandons it.
    Accepted,
    /// The PMSHR is full, so the SMU has not accepted the request yet. It holds the request and accepts it when its turn comes
    /// (REQ: SMU-6). The walker waits meanwhile and may abandon the request.
    Full,
}

/// Reason why a request failed. LAST_ERROR and the return ring use the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum FailReason {
    /// The free ring is empty or unusable.
    NoFrame = 1,
    /// The device answered with an error status.
    Device = 2,
    /// An access of the SMU met a bus error. The walker then raises an access fault, not a page fault.
    Bus = 3,
    /// The SMU is disabled.
    Disabled = 4,
    /// The entry names another socket, or a descriptor that is not valid.
    Descriptor = 5,
    /// The device did not complete the command in time, or such commands keep too many PMSHR entries (REQ: SMU-10).
    Timeout = 6,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The SMU has installed the page. This is the new value of the entry.
    Done(u64),
    /// The entry did not have the value seen. This is the value that the SMU found.
    Changed(u64),
    /// The SMU could not serve the miss.
    Failed(FailReason),
}

/// The answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the hart, or of the software request port.
    pub hart: u32,
    /// Identifier of the request; zero for a port.
    pub id: u64,
    /// The value of the entry in the request.
    pub seen: u64,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Time at which the answer reaches the walker; never later than the `now` of the call that returns the answer.
    pub at: Cycle,
    /// Time of the request.
    pub asked: Cycle,
    /// True if the request joined a miss that an earlier request had started.
    pub joined: bool,
    /// Times of the steps of the miss.
    pub stamps: Stamps,
}

/// Times at which the steps of a miss ended; `None` for a step that the miss did not reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamps {
    /// The first request arrived.
    pub requested: Option<Cycle>,
    /// The miss had a PMSHR entry, and the SMU read the PTE again.
    pub allocated: Option<Cycle>,
    /// The miss got a frame.
    pub frame: Option<Cycle>,
    /// The command was in the submission queue.
    pub command: Option<Cycle>,
    /// The doorbell was written. The time of the device begins.
    pub doorbell: Option<Cycle>,
    /// The SMU saw the completion queue entry. For the SMU, the time of the device ends.
    pub completion: Option<Cycle>,
    /// The PTE was exchanged.
    pub pte: Option<Cycle>,
    /// The PMD was marked.
    pub pmd: Option<Cycle>,
    /// The PUD was marked.
    pub pud: Option<Cycle>,
    /// The answer was sent.
    pub answered: Option<Cycle>,
}

/// Record of a miss that is over, even if no request waited for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Source of the first request.
    pub from: Source,
    /// Address of the PTE.
    pub pte: PhysAddr,
    /// The value of the armed entry.
    pub seen: u64,
    /// Outcome of the miss.
    pub outcome: Outcome,
    /// Number of requests for the miss, including the first and abandoned ones.
    pub requests: u32,
    /// Times of its steps.
    pub stamps: Stamps,
}

/// Receives answers and events of an SMU. A closure that takes an [`Answer`] implements it.
pub trait SmuSink {
    /// Receives the answer to a walker's request.
    fn answer(&mut self, answer: Answer);

    /// Tells an observer that the SMU has accepted a held request of this source.
    fn accepted(&mut self, _from: Source) {}

    /// Tells an observer that the answer to a software request port is in the port's registers.
    fn port_answered(&mut self, _answer: &Answer) {}

    /// Tells an observer that a miss is over.
    fn miss_over(&mut self, _miss: &Miss) {}
}

impl<F: FnMut(Answer)> SmuSink for F {
    fn answer(&mut self, answer: Answer) {
        self(answer);
    }
}
