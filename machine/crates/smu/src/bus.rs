// SPDX-License-Identifier: Apache-2.0
//! The SMU's bus to memory and to the doorbells.

use trapless_memory::{BusError, Cycle, PhysAddr};

/// The SMU's port to the physical address space: RAM and, for doorbells, device registers.
///
/// The bus decides which addresses are legal. A write that fails may or may not have taken effect; the SMU must read to find
/// out (REQ: SMU-13). A failed write never takes effect later. Every access is one atomic step. Harts and devices see the
/// accesses in the order in which the SMU makes them (REQ: SMU-4).
pub trait SmuBus {
    /// Reads an aligned 64-bit little-endian value.
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError>;

    /// Writes an aligned 32-bit value to a doorbell.
    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError>;

    /// Writes `data` to `at`.
    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError>;

    /// Replaces the 64-bit value at `at` by `new` if it equals `old`. Returns `Ok(Ok(old))` if so, else `Ok(Err(value found))`.
    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError>;

    /// Returns the cycles that the accesses since the last call took in addition to the times of [`crate::SmuTiming`]. Only a bus
    /// that models memory returns more than 0; its SMU uses [`crate::SmuTiming::logic`]. The SMU continues after these cycles.
    fn took(&mut self) -> Cycle {
        Cycle(0)
    }

    /// Sets `bits` in the 64-bit value at `at` and returns the old value.
    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError>;
}
