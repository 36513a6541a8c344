// SPDX-License-Identifier: Apache-2.0
//! The record of a completed command.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};

/// One command from its doorbell to its completion. The record is made when the completion queue entry has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Submission queue, 0 is the admin queue.
    pub sqid: u16,
    /// Completion queue.
    pub cqid: u16,
    /// Command identifier.
    pub cid: u16,
    /// Opcode.
    pub opcode: u8,
    /// Starting LBA of an I/O command.
    pub slba: u64,
    /// Blocks of an I/O command.
    pub blocks: u32,
    /// Their bytes, if the command was done: zero if it failed.
    pub bytes: u64,
    /// Status field of the completion without the phase tag: status code in [7:0], type in [10:8], DNR in [14].
    pub status: u16,
    /// When the doorbell was written.
    pub doorbell: Cycle,
    /// When the command was read from the queue.
    pub fetched: Cycle,
    /// When data and completion queue entry were written.
    pub completed: Cycle,
    /// Where the completion queue entry was written.
    pub cq_entry: PhysAddr,
}

/// Function that is called with every completed command.
pub(crate) type Observe<'a> = &'a mut dyn FnMut(&CommandRecord);
