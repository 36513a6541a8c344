// SPDX-License-Identifier: Apache-2.0
//! A bus without memory, for times when the unit needs none.

use trapless_memory::{BusError, PhysAddr};
use trapless_smu::SmuBus;

/// A bus on which every access fails.
pub struct Nowhere;

impl SmuBus for Nowhere {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        Err(BusError(at))
    }

    fn write_u32(&mut self, at: PhysAddr, _: u32) -> Result<(), BusError> {
        Err(BusError(at))
    }

    fn write_bytes(&mut self, at: PhysAddr, _: &[u8]) -> Result<(), BusError> {
        Err(BusError(at))
    }

    fn compare_exchange_u64(&mut self, at: PhysAddr, _: u64, _: u64) -> Result<Result<u64, u64>, BusError> {
        Err(BusError(at))
    }

    fn fetch_or_u64(&mut self, at: PhysAddr, _: u64) -> Result<u64, BusError> {
        Err(BusError(at))
    }
}
