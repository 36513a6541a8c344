// SPDX-License-Identifier: Apache-2.0
//! The record of a completed command.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};

/// Record of one command, made when its completion queue entry has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Identifier of the submission queue; 0 is the admin queue.
    pub sqid: u16,
    /// Identifier of the completion queue.
    pub cqid: u16,
    /// Command identifier.
    pub cid: u16,
    /// Opcode.
    pub opcode: u8,
    /// Starting LBA of an I/O command.
    pub slba: u64,
    /// Number of blocks of an I/O command.
    pub blocks: u32,
    /// Size of these blocks in bytes, or zero if the command failed.
    pub bytes: u64,
    /// Status field of the completion without the phase tag: status code in [7:0], type in [10:8], DNR in [14].
    pub status: u16,
    /// Time of the doorbell write.
    pub doorbell: Cycle,
    /// Time at which the controller read the command from the queue.
    pub fetched: Cycle,
    /// Time at which the controller wrote the data and the completion queue entry.
    pub completed: Cycle,
    /// Address of the completion queue entry.
    pub cq_entry: PhysAddr,
}

/// Function that the controller calls for every completed command.
pub(crate) type Observe<'a> = &'a mut dyn FnMut(&CommandRecord);
