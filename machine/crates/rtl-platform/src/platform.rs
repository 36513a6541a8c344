// SPDX-License-Identifier: Apache-2.0
//! RAM, devices and the wires between them.

use serde::{Deserialize, Serialize};
use trapless_devices::{Board, Finish, Overlap, Region, Table, Uart};
use trapless_machine::{Peripherals, PeripheralsState, map};
use trapless_memory::{BusError, ClockHz, Cycle, Dma, MmioEffect, PhysAddr, Ram};
use trapless_nvme::{CommandRecord, Controller};

/// The interrupt lines of the hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// External interrupts: bit 0 for machine mode, bit 1 for supervisor mode.
    pub external: u8,
    /// Software interrupt.
    pub software: bool,
    /// Timer interrupt.
    pub timer: bool,
}

/// RAM and devices.
pub struct Platform {
    /// RAM, shared with the model.
    pub ram: Ram,
    /// Ranges that drives have written and of which the model has not been informed: the core's data cache may hold older bytes.
    pub written: Vec<(u64, u64)>,
    peripherals: Peripherals,
    table: Table<Platform>,
}

/// The part of a checkpoint that belongs to the platform, without RAM.
#[derive(Serialize, Deserialize)]
pub struct PlatformState {
    peripherals: PeripheralsState,
    others: Vec<Vec<u8>>,
}

impl Board for Platform {
    fn table(&mut self) -> &mut Table<Platform> {
        &mut self.table
    }
}

impl AsMut<Peripherals> for Platform {
    fn as_mut(&mut self) -> &mut Peripherals {
        &mut self.peripherals
    }
}

impl Platform {
    /// Creates the devices, for one hart.
    ///
    /// # Errors
    /// Two devices' ranges overlap.
    pub fn new(ram: Ram, clock: ClockHz, timebase_hz: u64, drives: Vec<Controller>) -> Result<Platform, Overlap> {
        let mut table = Table::new(Region { base: map::RAM_BASE.0, size: ram.size() });
        Peripherals::register(&mut table)?;
        table.add_ways("pcie-memory", map::PCIE_MMIO, Platform::read_drive, Platform::write_drive)?;
        let peripherals = Peripherals::new(1, clock, timebase_hz, drives);
        Ok(Platform { ram, written: Vec::new(), peripherals, table })
    }

    /// The console.
    pub fn uart(&mut self) -> &mut Uart {
        &mut self.peripherals.uart
    }

    /// How the guest ended the run.
    pub fn finish(&self) -> Option<Finish> {
        self.peripherals.finish()
    }

    /// Reads a device register. Where nothing answers, all bits read as one, as on PCIe.
    pub fn read(&mut self, at: u64, size: u32, now: Cycle) -> u64 {
        Table::read(self, PhysAddr(at), size, now).map_or(u64::MAX, |(value, _)| value)
    }

    /// Writes a device register. Where nothing answers, nothing happens.
    pub fn write(&mut self, at: u64, size: u32, value: u64, now: Cycle) {
        let value = if size < 8 { value & ((1 << (8 * size)) - 1) } else { value };
        Table::write(self, PhysAddr(at), size, value, now);
    }

    fn read_drive(&mut self, offset: u64, size: u32, now: Cycle) -> Option<(u64, MmioEffect)> {
        self.peripherals.read_drive(offset, size, now)
    }

    fn write_drive(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> Option<MmioEffect> {
        let (_, drive, register) = self.peripherals.drive_at(offset, size)?;
        Some(drive.mmio_write(register, size, value, now))
    }

    /// Time of the next event of a drive, or of a device that is only in `table`, not in `peripherals`.
    fn next_device_event(&self) -> Cycle {
        self.peripherals.next_drive_event().min(self.table.next_event())
    }

    /// Time of the next event of a device.
    pub fn next_event(&self, now: Cycle) -> Cycle {
        self.next_device_event().min(self.peripherals.aclint.next_event(now))
    }

    /// Does everything that is due at or before `now`, in the order of time. Calls `observe` at the end of each drive's command.
    pub fn advance(&mut self, now: Cycle, observe: &mut dyn FnMut(&CommandRecord)) {
        loop {
            let at = self.next_device_event();
            if at > now {
                break;
            }
            let mut memory = NotedDma { ram: &mut self.ram, written: &mut self.written };
            self.peripherals.advance_drives(at, &mut memory, &mut |_, record| observe(record));
            self.table.advance(at, &mut memory);
        }
    }

    /// The interrupt lines at `now`.
    pub fn lines(&mut self, now: Cycle) -> Lines {
        self.peripherals.route_interrupts(self.table.interrupts());
        let Peripherals { plic, aclint, .. } = &self.peripherals;
        let external = u8::from(plic.pending(0)) | u8::from(plic.pending(1)) << 1;
        Lines { external, software: aclint.msip(0), timer: aclint.mtip(0, now) }
    }

    /// Returns the state of the devices.
    ///
    /// # Errors
    /// A drive's image was written to; the error is the number of the drive. Only writes in memory can be saved.
    pub fn save(&self) -> Result<PlatformState, usize> {
        Ok(PlatformState { peripherals: self.peripherals.save()?, others: self.table.save() })
    }

    /// Continues from a state.
    ///
    /// # Errors
    /// The state does not fit; the text says which part of it.
    pub fn restore(&mut self, state: PlatformState) -> Result<(), String> {
        self.peripherals.restore(state.peripherals)?;
        self.table.restore(&state.others).map_err(|name| format!("the state of its device {name} is not valid"))
    }
}

/// Memory as devices reach it. Notes what they write.
struct NotedDma<'a> {
    ram: &'a mut Ram,
    written: &'a mut Vec<(u64, u64)>,
}

impl Dma for NotedDma<'_> {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        Dma::read(self.ram, at, buf)
    }

    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        Dma::write(self.ram, at, data)?;
        self.written.push((at.0, data.len() as u64));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform() -> Platform {
        let ram = Ram::new(map::RAM_BASE, 1 << 20).unwrap();
        Platform::new(ram, ClockHz(100_000_000), 10_000_000, Vec::new()).unwrap()
    }

    #[test]
    fn the_timer_line_rises_at_its_event() {
        let mut p = platform();
        p.write(map::ACLINT.base + 0x4000, 8, 7, Cycle(3));
        let at = p.next_event(Cycle(3));
        assert_eq!(at, Cycle(70));
        assert!(!p.lines(Cycle(69)).timer);
        assert!(p.lines(at).timer);
    }

    #[test]
    fn narrow_writes_bring_no_other_lanes_bytes() {
        let mut p = platform();
        p.write(map::FINISHER.base, 4, 0xdead_0000_5555, Cycle(0));
        assert_eq!(p.finish(), Some(Finish::PowerOff));
    }

    #[test]
    fn where_nothing_answers_reads_as_ones() {
        assert_eq!(platform().read(0x2000_0000, 4, Cycle(0)), u64::MAX);
    }
}
