// SPDX-License-Identifier: Apache-2.0
//! Submission and completion queue entries (NVMe 1.4, sections 4.2, 4.6) and status codes (section 4.6.1).

use serde::{Deserialize, Serialize};

/// Size of a submission queue entry in bytes.
pub const SQE_BYTES: u64 = 64;
/// Size of a completion queue entry in bytes.
pub const CQE_BYTES: u64 = 16;

/// Admin command opcodes (section 5).
pub mod admin {
    pub const DELETE_IO_SQ: u8 = 0x00;
    pub const CREATE_IO_SQ: u8 = 0x01;
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const DELETE_IO_CQ: u8 = 0x04;
    pub const CREATE_IO_CQ: u8 = 0x05;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
}

/// The namespace identifier of all namespaces (section 6.1).
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// NVM command opcodes (section 6).
pub mod nvm {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
}

/// A status field: status code in [7:0], status code type in [10:8], do-not-retry in [14].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status(pub u16);

impl Status {
    const DNR: u16 = 1 << 14;

    pub const SUCCESS: Status = Status(0);
    pub const INVALID_OPCODE: Status = Status(0x001 | Self::DNR);
    pub const INVALID_FIELD: Status = Status(0x002 | Self::DNR);
    pub const COMMAND_ID_CONFLICT: Status = Status(0x003 | Self::DNR);
    pub const DATA_TRANSFER_ERROR: Status = Status(0x004);
    pub const ABORT_REQUESTED: Status = Status(0x007);
    pub const ABORTED_SQ_DELETION: Status = Status(0x008);
    pub const INVALID_NAMESPACE: Status = Status(0x00b | Self::DNR);
    pub const COMMAND_SEQUENCE: Status = Status(0x00c | Self::DNR);
    pub const PRP_OFFSET_INVALID: Status = Status(0x013 | Self::DNR);
    pub const WRITE_PROTECTED: Status = Status(0x020 | Self::DNR);
    pub const LBA_OUT_OF_RANGE: Status = Status(0x080 | Self::DNR);

    pub const CQ_INVALID: Status = Status(0x100 | Self::DNR);
    pub const INVALID_QUEUE_ID: Status = Status(0x101 | Self::DNR);
    pub const INVALID_QUEUE_SIZE: Status = Status(0x102 | Self::DNR);
    pub const ASYNC_EVENT_LIMIT: Status = Status(0x105 | Self::DNR);
    pub const INVALID_INTERRUPT_VECTOR: Status = Status(0x108 | Self::DNR);
    pub const INVALID_LOG_PAGE: Status = Status(0x109 | Self::DNR);
    pub const INVALID_QUEUE_DELETION: Status = Status(0x10c | Self::DNR);
    pub const FEATURE_NOT_SAVEABLE: Status = Status(0x10d | Self::DNR);

    pub const WRITE_FAULT: Status = Status(0x280);
    pub const UNRECOVERED_READ_ERROR: Status = Status(0x281);
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub opcode: u8,
    /// FUSE in [1:0], PSDT in [7:6].
    pub flags: u8,
    pub cid: u16,
    pub nsid: u32,
    pub prp1: u64,
    pub prp2: u64,
    /// Command dwords 10 to 15.
    pub cdw: [u32; 6],
}

impl Command {
    /// Decodes an entry.
    pub fn parse(bytes: &[u8; SQE_BYTES as usize]) -> Command {
        let dword = |i: usize| {
            let mut b = [0; 4];
            b.copy_from_slice(&bytes[4 * i..4 * i + 4]);
            u32::from_le_bytes(b)
        };
        let qword = |i: usize| u64::from(dword(i)) | u64::from(dword(i + 1)) << 32;
        Command {
            opcode: dword(0) as u8,
            flags: (dword(0) >> 8) as u8,
            cid: (dword(0) >> 16) as u16,
            nsid: dword(1),
            prp1: qword(6),
            prp2: qword(8),
            cdw: std::array::from_fn(|i| dword(10 + i)),
        }
    }

    /// Returns command dword `n`, 10 to 15.
    pub fn dw(&self, n: usize) -> u32 {
        self.cdw[n - 10]
    }

    /// Returns the starting LBA of a Read, Write or Write Zeroes.
    pub fn slba(&self) -> u64 {
        u64::from(self.dw(10)) | u64::from(self.dw(11)) << 32
    }

    /// Returns the number of blocks of a Read, Write or Write Zeroes.
    pub fn blocks(&self) -> u32 {
        (self.dw(12) & 0xffff) + 1
    }

    /// Refuses fused operations and SGLs, which the controller does not support.
    pub fn check_flags(&self) -> Result<(), Status> {
        if self.flags & 0b1100_0011 == 0 { Ok(()) } else { Err(Status::INVALID_FIELD) }
    }
}

/// A completion queue entry without its phase tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Dword 0, command specific.
    pub result: u32,
    pub sqid: u16,
    pub cid: u16,
    pub status: Status,
}

impl Completion {
    /// Encodes the entry.
    pub fn bytes(&self, sq_head: u16, phase: bool) -> [u8; CQE_BYTES as usize] {
        let mut b = [0; CQE_BYTES as usize];
        b[0..4].copy_from_slice(&self.result.to_le_bytes());
        b[8..10].copy_from_slice(&sq_head.to_le_bytes());
        b[10..12].copy_from_slice(&self.sqid.to_le_bytes());
        b[12..14].copy_from_slice(&self.cid.to_le_bytes());
        b[14..16].copy_from_slice(&(self.status.0 << 1 | u16::from(phase)).to_le_bytes());
        b
    }
}
