// SPDX-License-Identifier: Apache-2.0
//! Features (NVMe 1.4, section 5.21). The controller keeps the values that the host sets until a reset. No feature is
//! saveable, and none changes the behaviour of the model.

use serde::{Deserialize, Serialize};

use crate::command::{Command, Status};

const POWER_MANAGEMENT: usize = 0x02;
const TEMPERATURE_THRESHOLD: usize = 0x04;
const VOLATILE_WRITE_CACHE: usize = 0x06;
const NUMBER_OF_QUEUES: usize = 0x07;
const INTERRUPT_VECTOR: usize = 0x09;
const COUNT: usize = 0x0c;

/// Over-temperature threshold, kelvin.
const DEFAULT_THRESHOLD: u32 = 353;

/// The current values of the features, by feature identifier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Features {
    current: [u32; COUNT],
    max_io_queues: u32,
}

impl Features {
    /// Returns the features with their values after a reset.
    pub fn new(max_io_queues: u32) -> Features {
        let mut current = [0; COUNT];
        current[TEMPERATURE_THRESHOLD] = DEFAULT_THRESHOLD;
        current[VOLATILE_WRITE_CACHE] = 1;
        current[NUMBER_OF_QUEUES] = (max_io_queues - 1) | (max_io_queues - 1) << 16;
        Features { current, max_io_queues }
    }

    /// Executes Get Features. The result is dword 0 of the completion.
    pub fn get(&self, c: &Command) -> Result<u32, Status> {
        let id = known(c)?;
        if id == TEMPERATURE_THRESHOLD {
            composite_over(c.dw(11))?;
        }
        match c.dw(10) >> 8 & 7 {
            0 => Ok(self.current[id]),
            // No feature is saveable, so the saved value equals the default value.
            1 | 2 => Ok(Features::new(self.max_io_queues).current[id]),
            3 => Ok(1 << 2), // changeable
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Executes Set Features. The result is dword 0 of the completion. `io_queues` tells whether any I/O queue exists.
    pub fn set(&mut self, c: &Command, io_queues: bool) -> Result<u32, Status> {
        let id = known(c)?;
        if c.dw(10) >> 31 == 1 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let value = c.dw(11);
        match id {
            NUMBER_OF_QUEUES => {
                if io_queues {
                    return Err(Status::COMMAND_SEQUENCE);
                }
                if value & 0xffff == 0xffff || value >> 16 == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                // The controller always allocates all of its queues, whatever number the host requests.
                return Ok(self.current[id]);
            }
            POWER_MANAGEMENT if value & 0x1f != 0 => return Err(Status::INVALID_FIELD),
            INTERRUPT_VECTOR if value & 0xffff != 0 => return Err(Status::INVALID_FIELD),
            TEMPERATURE_THRESHOLD => composite_over(value)?,
            _ => {}
        }
        self.current[id] = value;
        Ok(0)
    }
}

/// Returns the feature's index. The controller has the features 01h to 0Bh except LBA ranges (03h).
fn known(c: &Command) -> Result<usize, Status> {
    match (c.dw(10) & 0xff) as usize {
        id @ (0x01 | 0x02 | 0x04..=0x0b) => Ok(id),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Checks that a threshold is the over-temperature threshold of the composite temperature, the only one that exists.
fn composite_over(value: u32) -> Result<(), Status> {
    if value & 0x003f_0000 == 0 { Ok(()) } else { Err(Status::INVALID_FIELD) }
}
