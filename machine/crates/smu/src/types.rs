// SPDX-License-Identifier: Apache-2.0
//! Requests, answers and what an observer sees of a miss.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};

/// What a walker asks for (REQ: SMU-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Where the leaf entry is.
    pub pte: PhysAddr,
    /// Where the entry above it is.
    pub pmd: PhysAddr,
    /// Where the entry above that is.
    pub pud: PhysAddr,
    /// The armed entry that the walker saw.
    pub seen: u64,
    /// Who asks.
    pub hart: u32,
    /// Chosen by the walker; comes back in the answer. (hart, id) names a wait; do not use one again while it waits.
    pub id: u64,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// The walker of this hart.
    Walker(u32),
    /// This software request port.
    Port(u32),
}

/// What [`SmuUnit::request`](crate::SmuUnit::request) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accept {
    /// The request is in; it will be answered exactly once, unless it is abandoned.
    Accepted,
    /// PMSHR full: not accepted yet. The request stays at the hart's port and goes in when its turn comes
    /// (REQ: SMU-6), then it is answered like any other. The walker waits meanwhile and may abandon it.
    Full,
}

/// Why a request failed. The numbers are those of LAST_ERROR and of the return ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum FailReason {
    /// The free ring is empty or unusable.
    NoFrame = 1,
    /// The device answered with an error status.
    Device = 2,
    /// An access of the SMU met a bus error; outranks a page fault: the walker raises an access fault.
    Bus = 3,
    /// The SMU is disabled.
    Disabled = 4,
    /// The entry names another socket, or a descriptor that is not valid.
    Descriptor = 5,
    /// The device did not answer in time, or every PMSHR entry is taken by commands of which that is true.
    Timeout = 6,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Installed: this is the entry now.
    Done(u64),
    /// The entry was changed by somebody else: this is the value the SMU saw.
    Changed(u64),
    /// The miss was not served.
    Failed(FailReason),
}

/// An answer to one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whose request: the hart, or the number of the software request port.
    pub hart: u32,
    /// The request's id; zero of a port's.
    pub id: u64,
    /// The entry that the one who asked saw.
    pub seen: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// When the answer reaches the walker; never later than the `now` of the call that gives it.
    pub at: Cycle,
    /// When this waiter asked.
    pub asked: Cycle,
    /// True when the request joined a miss that another had started.
    pub joined: bool,
    /// The steps of the miss.
    pub stamps: Stamps,
}

/// Times at which the steps of a miss ended; `None` where it never came to that step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamps {
    /// The first request came.
    pub requested: Option<Cycle>,
    /// A PMSHR entry was taken and the PTE read again.
    pub allocated: Option<Cycle>,
    /// A free frame was taken.
    pub frame: Option<Cycle>,
    /// The command stood in the submission queue.
    pub command: Option<Cycle>,
    /// The doorbell was written: the device's time begins.
    pub doorbell: Option<Cycle>,
    /// The completion queue entry was seen (the device's end as far as the SMU can know).
    pub completion: Option<Cycle>,
    /// The PTE was exchanged.
    pub pte: Option<Cycle>,
    /// The PMD got its mark.
    pub pmd: Option<Cycle>,
    /// The PUD got its mark.
    pub pud: Option<Cycle>,
    /// The answer was sent.
    pub answered: Option<Cycle>,
}

/// A miss that is over, whether or not somebody still waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Source that began the miss.
    pub from: Source,
    /// Which PTE.
    pub pte: PhysAddr,
    /// The armed entry.
    pub seen: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// Requests that it served, the first one included, abandoned ones too.
    pub requests: u32,
    /// Its steps.
    pub stamps: Stamps,
}

/// Takes what the SMU says. A closure over [`Answer`] is one.
pub trait SmuSink {
    /// A wait is answered.
    fn answer(&mut self, answer: Answer);

    /// A walker's request, or a software request port's, that was not accepted at once is accepted now. For observers.
    fn accepted(&mut self, _from: Source) {}

    /// Called when the answer to a software request port is in the port's registers. For observers.
    fn port_answered(&mut self, _answer: &Answer) {}

    /// A miss is over. For observers.
    fn miss_over(&mut self, _miss: &Miss) {}
}

impl<F: FnMut(Answer)> SmuSink for F {
    fn answer(&mut self, answer: Answer) {
        self(answer);
    }
}
