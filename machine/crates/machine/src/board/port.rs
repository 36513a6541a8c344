// SPDX-License-Identifier: Apache-2.0
//! How the SMU accesses memory and the drives.

use std::collections::BTreeSet;

use trapless_memory::{BusError, Cycle, Dma, PhysAddr, Ram};
use trapless_smu::SmuBus;
use trapless_timing::Line;

use super::map;
use super::peripherals::Peripherals;
use crate::cores::Times;

/// Offset of a drive's first doorbell (NVMe PCIe transport, CAP.DSTRD = 0). Each queue pair has two doorbells.
const DOORBELLS: u64 = 0x1000;
const DOORBELL_STRIDE: u64 = 8;

/// Number of the submission queue whose doorbell is at this offset into a drive's registers.
pub fn doorbell_of(offset: u64) -> Option<u16> {
    let from = offset.checked_sub(DOORBELLS).filter(|from| from.is_multiple_of(DOORBELL_STRIDE))?;
    u16::try_from(from / DOORBELL_STRIDE).ok()
}

/// The SMU's access to memory and to the drives' doorbells.
pub struct SmuPort<'a> {
    pub ram: &'a mut Ram,
    pub peripherals: &'a mut Peripherals,
    pub unit_queues: &'a mut [BTreeSet<u16>],
    /// Detailed timing. None while a register is accessed: memory accesses then take no additional time.
    pub times: Option<&'a mut Times>,
    pub now: Cycle,
    /// Cache line of the last access.
    pub line: Option<Line>,
    /// Cycles of the accesses since the SMU last asked for this number.
    pub took: u64,
}

impl SmuPort<'_> {
    fn touch(&mut self, write: bool, at: PhysAddr) {
        // Another read of the same line takes no additional time.
        if self.line.replace(Line::of(at)) != Some(Line::of(at)) || write {
            let begun = self.now + Cycle(self.took);
            self.took += self.times.as_mut().map_or(0, |times| times.reached_by_smu(write, at, begun));
        }
    }
}

impl SmuBus for SmuPort<'_> {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        self.touch(false, at);
        #[cfg(feature = "seeded-bugs")]
        if super::exchange_errors::on_read(at) {
            return Err(BusError(at));
        }
        self.ram.load::<8>(at).map(u64::from_le_bytes).ok_or(BusError(at))
    }

    fn took(&mut self) -> Cycle {
        self.line = None;
        Cycle(std::mem::take(&mut self.took))
    }

    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError> {
        let offset = map::PCIE_MMIO.offset(at, 4).ok_or(BusError(at))?;
        let (index, drive, register) = self.peripherals.drive_at(offset, 4).ok_or(BusError(at))?;
        drive.mmio_write(register, 4, value.into(), self.now);
        self.unit_queues[index].extend(doorbell_of(register));
        Ok(())
    }

    fn write_bytes(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        self.touch(true, at);
        Dma::write(self.ram, at, data)
    }

    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, new: u64) -> Result<Result<u64, u64>, BusError> {
        self.touch(true, at);
        let seen = self.read_u64(at)?;
        if seen != old {
            return Ok(Err(seen));
        }
        #[cfg(feature = "seeded-bugs")]
        if let Some(effect) = super::exchange_errors::on_exchange(at) {
            if effect {
                self.ram.store(at, new.to_le_bytes()).ok_or(BusError(at))?;
            }
            return Err(BusError(at));
        }
        self.ram.store(at, new.to_le_bytes()).ok_or(BusError(at))?;
        Ok(Ok(seen))
    }

    fn fetch_or_u64(&mut self, at: PhysAddr, bits: u64) -> Result<u64, BusError> {
        self.touch(true, at);
        let seen = self.read_u64(at)?;
        self.ram.store(at, (seen | bits).to_le_bytes()).ok_or(BusError(at))?;
        Ok(seen)
    }
}
