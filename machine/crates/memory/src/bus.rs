// SPDX-License-Identifier: Apache-2.0
//! The traits by which devices reach memory.

use crate::PhysAddr;

/// No memory or device answers at this address, or none accepts this kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bus error at {0:?}")]
pub struct BusError(pub PhysAddr);

/// What a device may do to guest memory. An access that is not completely inside RAM fails and has no effect.
pub trait Dma {
    /// Reads from `at` until `buf` is full.
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError>;

    /// Writes `data` to `at`.
    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError>;
}

/// What an access to a device register asks of the hart that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MmioEffect {
    /// Continue.
    #[default]
    None,
    /// A device changed its interrupts or its next event: end the quantum so that the machine sees it at once.
    Resync,
}
