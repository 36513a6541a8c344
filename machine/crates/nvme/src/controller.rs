// SPDX-License-Identifier: Apache-2.0
//! The controller.

use trapless_memory::{Cycle, Dma, MmioEffect, PhysAddr};
use trapless_timing::SsdTiming;

use crate::{Backend, BackendError};

/// What distinguishes one controller from another.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Serial number, at most 20 ASCII characters; makes the namespace's identifiers unique too.
    pub serial: String,
    /// Logical block, 512 or 4096 bytes.
    pub block_bytes: u32,
    /// Largest transfer in 4 KiB pages, a power of two.
    pub max_transfer_pages: u32,
    /// I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}

/// One command's life, told when its completion queue entry has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Status field of the completion without the phase tag: status code in [7:0], type in [10:8], ... DNR in [14].
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

/// The controller with its SSD.
pub struct Controller {
    _timing: SsdTiming,
    _backend: Box<dyn Backend>,
}

impl Controller {
    /// Bytes of the BAR.
    pub const BAR_SIZE: u64 = 0x4000;

    /// A controller after power on.
    pub fn new(config: ControllerConfig, timing: SsdTiming, backend: Box<dyn Backend>) -> Controller {
        let _ = config;
        Controller { _timing: timing, _backend: backend }
    }

    /// Reads a register (32- or 64-bit accesses; anything else reads zero).
    pub fn mmio_read(&mut self, _offset: u64, _size: u32, _now: Cycle) -> u64 {
        0
    }

    /// Writes a register or a doorbell.
    pub fn mmio_write(&mut self, _offset: u64, _size: u32, _value: u64, _now: Cycle) -> MmioEffect {
        MmioEffect::None
    }

    /// The next cycle at which something is due; [`Cycle::NEVER`] if nothing is.
    pub fn next_event(&self) -> Cycle {
        Cycle::NEVER
    }

    /// Does everything due at or before `now`, in the order of time; `observe` is told of every command completed.
    pub fn advance(&mut self, _now: Cycle, _dma: &mut dyn Dma, _observe: &mut dyn FnMut(&CommandRecord)) {}

    /// The INTx pin.
    pub fn irq_asserted(&self) -> bool {
        false
    }

    /// The first failure of the host since the machine began. The guest was told of a media error; the program should
    /// end with this line.
    pub fn host_error(&self) -> Option<&BackendError> {
        None
    }
}
