// SPDX-License-Identifier: Apache-2.0
//! The devices that every board has, with the drives behind PCIe. The machine and the platform of the RTL both use them.

use serde::{Deserialize, Serialize};
use trapless_devices::{
    Aclint, Board, Finish, Finisher, Overlap, PciFunction, PciHost, PciIds, Plic, Table, Uart, UartState,
};
use trapless_memory::{BusError, ClockHz, Cycle, Dma, MmioEffect, PhysAddr};
use trapless_nvme::{CommandRecord, Controller, ControllerState};

use super::map;

/// PCI identifiers of the NVMe controllers, with QEMU's vendor number: they are not a vendor's product.
const NVME_IDS: PciIds = PciIds { vendor: 0x1b36, device: 0x0010, class: 0x01_0802, revision: 1 };

/// The result of [`Peripherals::save`]: everything except the drives' images.
#[derive(Serialize, Deserialize)]
pub struct PeripheralsState {
    aclint: Aclint,
    plic: Plic,
    uart: UartState,
    pci: PciHost,
    drives: Vec<ControllerState>,
}

/// Interrupt controllers, timer, console, power-off, PCIe host and drives.
pub struct Peripherals {
    /// Timer and software interrupts.
    pub aclint: Aclint,
    /// External interrupts.
    pub plic: Plic,
    /// Console.
    pub uart: Uart,
    finisher: Finisher,
    pci: PciHost,
    /// The drives; the first is device 1 of the bus.
    drives: Vec<Controller>,
}

impl Peripherals {
    /// Creates the devices for this number of `harts`.
    pub fn new(harts: usize, clock: ClockHz, timebase_hz: u64, drives: Vec<Controller>) -> Peripherals {
        let mut pci = PciHost::new(PhysAddr(map::PCIE_MMIO.base), map::PCIE_MMIO.size);
        for device in 1..=drives.len() {
            pci.add(device, PciFunction::endpoint(NVME_IDS, Controller::BAR_SIZE));
        }
        Peripherals {
            aclint: Aclint::new(harts, clock, timebase_hz),
            plic: Plic::new(2 * harts),
            uart: Uart::new(),
            finisher: Finisher::default(),
            pci,
            drives,
        }
    }

    /// Enters the devices into a board's table, one line each. A device that no other part of the board needs to know takes only
    /// its line here: `table.add("name", map::NAME, Some(map::NAME_IRQ), Name::new())?`.
    ///
    /// # Errors
    /// Two ranges overlap.
    pub fn register<B: Board + AsMut<Peripherals>>(table: &mut Table<B>) -> Result<(), Overlap> {
        table.add_part("finisher", map::FINISHER, |b| &mut b.as_mut().finisher)?;
        table.add_part("aclint", map::ACLINT, |b| &mut b.as_mut().aclint)?;
        table.add_part("plic", map::PLIC, |b| &mut b.as_mut().plic)?;
        table.add_part("uart", map::UART, |b| &mut b.as_mut().uart)?;
        table.add_part("pcie-config", map::PCIE_ECAM, |b| &mut b.as_mut().pci)
    }

    /// How the guest ended the run.
    pub fn finish(&self) -> Option<Finish> {
        self.finisher.asked()
    }

    /// The drives.
    pub fn drives(&self) -> &[Controller] {
        &self.drives
    }

    /// Finds the drive for an access at an offset into the PCIe memory window. Returns its number, the drive, and the register.
    pub fn drive_at(&mut self, offset: u64, size: u32) -> Option<(usize, &mut Controller, u64)> {
        let (device, register) = self.pci.route(PhysAddr(map::PCIE_MMIO.base + offset), size)?;
        let index = device.checked_sub(1)?;
        Some((index, self.drives.get_mut(index)?, register))
    }

    /// Reads a drive's register at an offset into the PCIe memory window.
    pub fn read_drive(&mut self, offset: u64, size: u32, now: Cycle) -> Option<(u64, MmioEffect)> {
        let (_, drive, register) = self.drive_at(offset, size)?;
        Some((drive.mmio_read(register, size, now), MmioEffect::None))
    }

    /// Time of the drives' next event.
    pub fn next_drive_event(&self) -> Cycle {
        self.drives.iter().map(Controller::next_event).min().unwrap_or(Cycle::NEVER)
    }

    /// Lets the drives do what is due at `at`. Calls `observe` at the end of each command, with the drive's number (from 0).
    pub fn advance_drives(&mut self, at: Cycle, memory: &mut dyn Dma, observe: &mut dyn FnMut(usize, &CommandRecord)) {
        for (index, drive) in self.drives.iter_mut().enumerate() {
            if drive.next_event() > at {
                continue;
            }
            let master = self.pci.function(index + 1).is_some_and(PciFunction::bus_master);
            drive.advance(at, &mut DriveDma { memory, master }, &mut |record| observe(index, record));
            if drive.is_removed() {
                self.pci.remove(index + 1);
            }
        }
    }

    /// Passes the devices' interrupts to the PLIC. `others` has source and level of the devices that are only in the table.
    pub fn route_interrupts(&mut self, others: impl Iterator<Item = (u32, bool)>) {
        for (index, drive) in self.drives.iter().enumerate() {
            self.pci.set_interrupt(index + 1, drive.irq_asserted());
        }
        for (line, level) in self.pci.lines().into_iter().enumerate() {
            self.plic.set_level(map::PCIE_INTA_IRQ + line as u32, level);
        }
        self.plic.set_level(map::UART_IRQ, self.uart.irq_asserted());
        others.for_each(|(source, level)| self.plic.set_level(source, level));
    }

    /// Returns the state of the devices.
    ///
    /// # Errors
    /// A drive's image was written to; the error is the number of the drive. Only writes in memory can be saved.
    pub fn save(&self) -> Result<PeripheralsState, usize> {
        let drives = self.drives.iter().enumerate().map(|(n, drive)| drive.save().ok_or(n + 1));
        Ok(PeripheralsState {
            aclint: self.aclint.clone(),
            plic: self.plic.clone(),
            uart: self.uart.save(),
            pci: self.pci.clone(),
            drives: drives.collect::<Result<_, _>>()?,
        })
    }

    /// Continues from a state.
    ///
    /// # Errors
    /// The state does not fit; the text says which part of it.
    pub fn restore(&mut self, state: PeripheralsState) -> Result<(), String> {
        if state.drives.len() != self.drives.len() {
            return Err(format!("was written with {} disks, unlike this machine", state.drives.len()));
        }
        for (n, (drive, saved)) in self.drives.iter_mut().zip(state.drives).enumerate() {
            drive.restore(saved).map_err(|what| format!("its disk {} {what}", n + 1))?;
        }
        (self.aclint, self.plic, self.pci) = (state.aclint, state.plic, state.pci);
        if self.uart.restore(state.uart) { Ok(()) } else { Err("the state of its console is not valid".into()) }
    }
}

/// A drive's access to memory: none until the guest sets Bus Master Enable.
struct DriveDma<'a> {
    memory: &'a mut dyn Dma,
    master: bool,
}

impl Dma for DriveDma<'_> {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        if self.master { self.memory.read(at, buf) } else { Err(BusError(at)) }
    }

    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        if self.master { self.memory.write(at, data) } else { Err(BusError(at)) }
    }
}
