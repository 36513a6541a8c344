// SPDX-License-Identifier: Apache-2.0
//! Measures the regions of interest: cycles, instructions, commands of drives, misses for which the walker asked the SMU.

use serde::Serialize;
use trapless_nvme::CommandRecord;

/// Opcode of NVMe's read command.
const OPCODE_READ: u8 = 2;

/// A region of interest. Cycles and counts are sums over the region.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Region {
    /// Number that the guest gave it.
    pub number: u64,
    /// Length of the region in cycles.
    pub cycles: u64,
    /// Number of retired instructions.
    pub instructions: u64,
    /// Number of reads that drives have served.
    pub commands: u64,
    /// Sum of the cycles from each doorbell to its completion queue entry.
    pub device_cycles: u64,
    /// Number of requests of the walker that were answered with a page.
    pub misses: u64,
    /// Number of requests that ended in any other way.
    pub other_answers: u64,
    /// Sum of the cycles from each miss's request to its doorbell.
    pub before_device_cycles: u64,
    /// Sum of the cycles from each miss's completion queue entry to its answer.
    pub after_device_cycles: u64,
}

/// The regions that have ended, and the one that is open.
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
    /// Begins a region.
    pub fn begin(&mut self, number: u64, cycle: u64, instructions: u64) {
        self.open = Some(Region { number, ..Region::default() });
        self.started = (cycle, instructions);
    }

    /// Ends the open region.
    pub fn end(&mut self, cycle: u64, instructions: u64) {
        if let Some(mut region) = self.open.take() {
            region.cycles = cycle - self.started.0;
            region.instructions = instructions - self.started.1;
            self.closed.push(region);
        }
    }

    /// Notes that a drive has finished a command.
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

    /// Notes that the SMU has accepted the walker's request.
    pub fn requested(&mut self, cycle: u64) {
        self.requested = Some(cycle);
        self.command = None;
    }

    /// Notes that the SMU has answered.
    pub fn answered(&mut self, cycle: u64, done: bool) {
        let (Some(region), Some(requested)) = (&mut self.open, self.requested.take()) else { return };
        match (done, self.command.take()) {
            // The hart waits for one miss at a time, so the last command since the request belongs to the miss.
            (true, Some((doorbell, completed))) if doorbell >= requested => {
                region.misses += 1;
                region.before_device_cycles += doorbell - requested;
                region.after_device_cycles += cycle - completed;
            }
            _ => region.other_answers += 1,
        }
    }
}
