// SPDX-License-Identifier: Apache-2.0
//! Counts of the reads of each drive, by the SMU and by software.

use serde::Serialize;
use trapless_nvme::CommandRecord;

/// Read commands that a drive has completed, including those that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// How many.
    pub commands: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Reads of a drive, by the owner of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskReads {
    /// The SMU, for walkers and request ports.
    pub unit: Reads,
    /// Software.
    pub software: Reads,
}

impl Reads {
    fn each(self, other: Reads, f: fn(u64, u64) -> u64) -> Reads {
        Reads { commands: f(self.commands, other.commands), bytes: f(self.bytes, other.bytes) }
    }
}

impl DiskReads {
    /// Opcode of the NVM command set.
    const READ: u8 = 0x02;

    /// Counts a command that a drive has completed. `by_unit`: the queue belongs to the SMU.
    pub fn count(&mut self, record: &CommandRecord, by_unit: bool) {
        if record.opcode == Self::READ && record.sqid != 0 {
            let reads = if by_unit { &mut self.unit } else { &mut self.software };
            *reads = reads.each(Reads { commands: 1, bytes: record.bytes }, |a, b| a + b);
        }
    }

    /// The reads since `earlier`.
    pub fn since(&self, earlier: &DiskReads) -> DiskReads {
        let less = |a: Reads, b| a.each(b, |a, b| a - b);
        DiskReads { unit: less(self.unit, earlier.unit), software: less(self.software, earlier.software) }
    }

    /// The sum of both.
    pub fn and(&self, other: &DiskReads) -> DiskReads {
        let plus = |a: Reads, b| a.each(b, |a, b| a + b);
        DiskReads { unit: plus(self.unit, other.unit), software: plus(self.software, other.software) }
    }
}
