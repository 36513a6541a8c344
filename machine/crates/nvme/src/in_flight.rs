// SPDX-License-Identifier: Apache-2.0
//! Commands in service, in the order in which they are done.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use trapless_memory::Cycle;
use trapless_timing::SsdOp;

use crate::command::{Command, Status};

/// A command that has passed the checks that need no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Io {
    /// Byte offset in the namespace, length, and where on the medium that is.
    Read(u64, u64, u64),
    /// Byte offset in the namespace, length.
    Write(u64, u64),
    WriteZeroes(u64, u64),
    /// Number of ranges.
    Deallocate(u32),
    /// What is written is in the image, or in memory by intent: only the medium has to do with it.
    Flush,
    /// Hints.
    Nothing,
}

impl Io {
    /// What the medium is asked for.
    pub fn ssd_op(self) -> SsdOp {
        match self {
            Io::Read(_, bytes, at) => SsdOp::Read { at, bytes },
            Io::Write(_, bytes) => SsdOp::Write(bytes),
            Io::Flush => SsdOp::Flush,
            Io::WriteZeroes(..) | Io::Deallocate(_) | Io::Nothing => SsdOp::NoData,
        }
    }
}

/// What is to be done when a command is due.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Admin,
    Io(Io),
    /// Refused when it was fetched.
    Fail(Status),
    /// An Asynchronous Event Request that has its event.
    Event(u32),
}

/// A command between fetch and completion.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub command: Command,
    pub sqid: u16,
    pub cqid: u16,
    pub doorbell: Cycle,
    pub fetched: Cycle,
    pub work: Work,
    /// False for a command whose identifier was in use already.
    pub owns_cid: bool,
}

/// Asynchronous events: only the one for invalid doorbell writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    /// Requests that wait for an event.
    pub requests: VecDeque<InFlight>,
    /// An event that found no request: dword 0 of its completion.
    pub pending: Option<u32>,
    /// Reported, and the log page not read since: no further event of this type.
    pub reported: bool,
}

/// Commands by the cycle at which they are due, then by the order of their arrival.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlightSet {
    commands: BTreeMap<(Cycle, u64), InFlight>,
    arrivals: u64,
}

impl InFlightSet {
    pub fn insert(&mut self, due: Cycle, command: InFlight) {
        self.arrivals += 1;
        self.commands.insert((due, self.arrivals), command);
    }

    pub fn first_due(&self) -> Option<Cycle> {
        self.commands.first_key_value().map(|((due, _), _)| *due)
    }

    pub fn pop_first(&mut self) -> Option<InFlight> {
        self.commands.pop_first().map(|(_, command)| command)
    }

    /// Takes out all commands that `wanted` picks.
    pub fn extract(&mut self, wanted: impl Fn(&InFlight) -> bool) -> Vec<InFlight> {
        let mut out = Vec::new();
        self.commands.retain(|_, command| {
            let take = wanted(command);
            if take {
                out.push(*command);
            }
            !take
        });
        out
    }
}
