// SPDX-License-Identifier: Apache-2.0
//! Records of single events. Only a limited number of records is kept for each kind of event; later events are only counted.

use crate::categories::Category;
use crate::faults::Fault;

/// Names of the steps of a miss that the SMU serves, in order (`MissTimes` of the machine).
pub const MISS_STEPS: [&str; 9] =
    ["walk", "request", "allocated", "frame", "doorbell", "device_end", "seen", "installed", "resumed"];
/// Names of what happens between one step and the next.
pub const MISS_SPANS: [&str; MISS_STEPS.len() - 1] =
    ["walk", "request", "frame", "command", "device", "completion", "install", "resume"];

/// A miss that the SMU served.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// The hart that asked first; none if a request port asked.
    pub hart: Option<usize>,
    /// Address accessed; zero for a port.
    pub va: u64,
    /// Time of each step in core cycles: walk, request, allocated, frame, doorbell, device's end, seen, installed,
    /// resumed.
    pub at: [u64; MISS_STEPS.len()],
}

/// A command of a drive.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Number of the drive; the first is 0.
    pub drive: usize,
    /// Submission queue.
    pub queue: u16,
    /// Opcode.
    pub opcode: u8,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Time at which the doorbell was rung, in core cycles.
    pub doorbell: u64,
    /// Time at which the drive read the command.
    pub fetched: u64,
    /// Time at which the drive wrote the completion entry.
    pub completed: u64,
}

/// A stretch of a hart's time.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub hart: u32,
    pub context: u32,
    pub category: Category,
    pub from: u64,
    pub to: u64,
}

/// Records of one kind.
#[derive(Debug)]
pub struct Kept<T> {
    pub records: Vec<T>,
    /// Number of records that were not kept.
    pub cut: u64,
}

impl<T> Kept<T> {
    fn new() -> Kept<T> {
        Kept { records: Vec::new(), cut: 0 }
    }

    fn push(&mut self, limit: usize, record: T) {
        if self.records.len() < limit { self.records.push(record) } else { self.cut += 1 }
    }
}

/// The records of all kinds.
#[derive(Debug)]
pub struct Log {
    limit: usize,
    pub slices: Kept<Slice>,
    pub faults: Kept<Fault>,
    /// Misses, each with the task if a hart asked.
    pub misses: Kept<(Miss, Option<usize>)>,
    pub commands: Kept<Command>,
}

impl Log {
    /// Creates a log that keeps up to `limit` records of each kind.
    pub fn new(limit: usize) -> Log {
        Log { limit, slices: Kept::new(), faults: Kept::new(), misses: Kept::new(), commands: Kept::new() }
    }

    pub fn slice(&mut self, hart: usize, category: Category, context: usize, from: u64, to: u64) {
        self.slices.push(self.limit, Slice { hart: hart as u32, context: context as u32, category, from, to });
    }

    pub fn fault(&mut self, fault: Fault) {
        self.faults.push(self.limit, fault);
    }

    pub fn miss(&mut self, miss: Miss, context: Option<usize>) {
        self.misses.push(self.limit, (miss, context));
    }

    pub fn command(&mut self, command: Command) {
        self.commands.push(self.limit, command);
    }
}
