// SPDX-License-Identifier: Apache-2.0
//! How the SMU reaches memory and the doorbells.

use trapless_memory::{BusError, Cycle, PhysAddr};

/// The SMU's port to the physical address space: RAM and, for doorbells, device registers.
///
/// The bus decides which addresses are legal. A write that fails may have been done or not; only a read tells (REQ: SMU-13). It is
/// over in any case: nothing of it comes later. Every access is one atomic step that
/// harts and devices see in the order in which the SMU makes it (REQ: SMU-4).
pub trait SmuBus {
    /// Reads an aligned 64-bit little-endian value.
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError>;

    /// Writes an aligned 32-bit value: a doorbell.
    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError>;

    /// Writes `data` to `at`.
    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError>;

    /// Replaces the 64-bit value at `at` by `new` if it is `old`. `Ok(Ok(old))` when replaced, `Ok(Err(seen))` when not.
    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError>;

    /// Cycles that the accesses since the last call took beyond the times of [`crate::SmuTiming`]: what a bus says that
    /// models memory, whose SMU has the times without memory ([`crate::SmuTiming::logic`]). The SMU goes on after them.
    fn took(&mut self) -> Cycle {
        Cycle(0)
    }

    /// Sets `bits` in the 64-bit value at `at` and returns the value before.
    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError>;
}
