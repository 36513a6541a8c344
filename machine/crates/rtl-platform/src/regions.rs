// SPDX-License-Identifier: Apache-2.0
//! What happens between the guest's marks: cycles, instructions, commands of drives, misses that the walker asked the SMU for.

use serde::Serialize;
use trapless_nvme::CommandRecord;

/// NVMe's read command.
const OPCODE_READ: u8 = 2;

/// A region of interest. Cycles and counts are sums over it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Region {
    /// The guest's number for it.
    pub number: u64,
    /// How long it took.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Commands that drives have served.
    pub commands: u64,
    /// Cycles from their doorbells to their completion queue entries.
    pub device_cycles: u64,
    /// Requests of the walker that were answered with a page.
    pub misses: u64,
    /// Requests that ended otherwise.
    pub other_answers: u64,
    /// Cycles from those misses' requests to their doorbells.
    pub before_device_cycles: u64,
    /// Cycles from their completion queue entries to the answers.
    pub after_device_cycles: u64,
}

/// Regions, closed ones and the one that is open.
#[derive(Debug, Default)]
pub struct Regions {
    /// Regions that have ended.
    pub closed: Vec<Region>,
    open: Option<Region>,
    started: (u64, u64),
    requested: Option<u64>,
    command: Option<(u64, u64)>,
}

impl Regions {
    /// A region begins.
    pub fn begin(&mut self, number: u64, cycle: u64, instructions: u64) {
        self.open = Some(Region { number, ..Region::default() });
        self.started = (cycle, instructions);
    }

    /// The open region ends.
    pub fn end(&mut self, cycle: u64, instructions: u64) {
        if let Some(mut region) = self.open.take() {
            region.cycles = cycle - self.started.0;
            region.instructions = instructions - self.started.1;
            self.closed.push(region);
        }
    }

    /// A drive has ended a command.
    pub fn command(&mut self, record: &CommandRecord) {
        if record.sqid == 0 || record.opcode != OPCODE_READ {
            return;
        }
        let (doorbell, completed) = (record.doorbell.0, record.completed.0);
        if let Some(region) = &mut self.open {
            region.commands += 1;
            region.device_cycles += completed - doorbell;
        }
        self.command = Some((doorbell, completed));
    }

    /// The SMU accepts the walker's request.
    pub fn requested(&mut self, cycle: u64) {
        self.requested = Some(cycle);
        self.command = None;
    }

    /// The SMU answers.
    pub fn answered(&mut self, cycle: u64, done: bool) {
        let (Some(region), Some(requested)) = (&mut self.open, self.requested.take()) else { return };
        match (done, self.command.take()) {
            // One hart waits for one miss at a time: the last command since the request is its own.
            (true, Some((doorbell, completed))) if doorbell >= requested => {
                region.misses += 1;
                region.before_device_cycles += doorbell - requested;
                region.after_device_cycles += cycle - completed;
            }
            _ => region.other_answers += 1,
        }
    }
}
