// SPDX-License-Identifier: Apache-2.0
//! Commands in service, in the order of their completion.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use trapless_memory::Cycle;
use trapless_timing::SsdOp;

use crate::command::{Command, Status};

/// A decoded I/O command. It has passed all checks that do not read guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Io {
    /// Byte offset in the namespace, length in bytes, and byte offset on the medium.
    Read(u64, u64, u64),
    /// Byte offset in the namespace, length in bytes.
    Write(u64, u64),
    WriteZeroes(u64, u64),
    /// Number of ranges.
    Deallocate(u32),
    /// Flush only takes time on the medium. Written data is already in the image, or stays in memory in a snapshot.
    Flush,
    /// Dataset Management with hints only, which the model ignores.
    Nothing,
}

impl Io {
    /// Returns the operation that the medium must do.
    pub fn ssd_op(self) -> SsdOp {
        match self {
            Io::Read(_, bytes, at) => SsdOp::Read { at, bytes },
            Io::Write(_, bytes) => SsdOp::Write(bytes),
            Io::Flush => SsdOp::Flush,
            Io::WriteZeroes(..) | Io::Deallocate(_) | Io::Nothing => SsdOp::NoData,
        }
    }
}

/// Work to do when a command is due.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Admin,
    Io(Io),
    /// The command fails with this status: the check after its fetch, or a fault, has decided that.
    Fail(Status),
    /// An Asynchronous Event Request completes with this event.
    Event(u32),
}

/// A command that was fetched and is not complete.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub command: Command,
    pub sqid: u16,
    pub cqid: u16,
    pub doorbell: Cycle,
    pub fetched: Cycle,
    pub work: Work,
    /// False if an outstanding command of the queue already had this command's identifier.
    pub owns_cid: bool,
}

/// Asynchronous events. The controller reports only invalid doorbell writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    /// Requests that wait for an event.
    pub requests: VecDeque<InFlight>,
    /// An event that no request was waiting for: dword 0 of its completion.
    pub pending: Option<u32>,
    /// An event was reported, and the host has not read the log page since then. Until then no further event is reported.
    pub reported: bool,
}

/// Commands ordered by the cycle at which they are due, then by their arrival.
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

    /// Removes and returns the commands for which `wanted` is true.
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
