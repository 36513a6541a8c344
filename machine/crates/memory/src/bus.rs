// SPDX-License-Identifier: Apache-2.0
//! The traits by which devices reach memory.

use crate::PhysAddr;

/// Nothing answers at this address, or not in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bus error at {0:?}")]
pub struct BusError(pub PhysAddr);

/// What a device may do to guest memory. An access that is not wholly inside RAM does nothing and fails.
pub trait Dma {
    /// Fills `buf` from `at`.
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError>;

    /// Writes `data` to `at`.
    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError>;
}

/// What a device register access asks of the hart that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MmioEffect {
    /// Go on.
    #[default]
    None,
    /// A device changed its interrupts or its next event: end the quantum so that the machine sees it at once.
    Resync,
}
