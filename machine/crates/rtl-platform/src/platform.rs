// SPDX-License-Identifier: Apache-2.0
//! RAM, devices and the wires between them.

use serde::{Deserialize, Serialize};
use trapless_devices::{Aclint, Finish, Finisher, PciFunction, PciHost, PciIds, Plic, Uart, UartState};
use trapless_machine::map;
use trapless_memory::{BusError, ClockHz, Cycle, Dma, PhysAddr, Ram};
use trapless_nvme::{CommandRecord, Controller, ControllerState};

/// As the machine's (machine/crates/machine, board.rs).
const NVME_IDS: PciIds = PciIds { vendor: 0x1b36, device: 0x0010, class: 0x01_0802, revision: 1 };

/// The interrupt lines of the hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// External interrupts: bit 0 to machine mode, bit 1 to supervisor mode.
    pub external: u8,
    /// Software interrupt.
    pub software: bool,
    /// Timer interrupt.
    pub timer: bool,
}

/// RAM and devices.
pub struct Platform {
    /// RAM, which the model shares.
    pub ram: Ram,
    /// Console.
    pub uart: Uart,
    /// How the guest ended the run.
    pub finish: Option<Finish>,
    /// Ranges that drives have written since the last look: the core's data cache may hold older bytes.
    pub written: Vec<(u64, u64)>,
    aclint: Aclint,
    plic: Plic,
    pci: PciHost,
    finisher: Finisher,
    drives: Vec<Controller>,
}

/// What a checkpoint has of the platform, beside RAM.
#[derive(Serialize, Deserialize)]
pub struct PlatformState {
    aclint: Aclint,
    plic: Plic,
    uart: UartState,
    pci: PciHost,
    drives: Vec<ControllerState>,
}

impl Platform {
    /// Puts the devices together, for one hart.
    pub fn new(ram: Ram, clock: ClockHz, timebase_hz: u64, drives: Vec<Controller>) -> Platform {
        let mut pci = PciHost::new(PhysAddr(map::PCIE_MMIO.base), map::PCIE_MMIO.size);
        for device in 1..=drives.len() {
            pci.add(device, PciFunction::endpoint(NVME_IDS, Controller::BAR_SIZE));
        }
        Platform {
            ram,
            uart: Uart::new(),
            finish: None,
            written: Vec::new(),
            aclint: Aclint::new(1, clock, timebase_hz),
            plic: Plic::new(2),
            pci,
            finisher: Finisher,
            drives,
        }
    }

    /// Reads a device register; an address where nothing answers reads as ones, as on PCIe.
    pub fn read(&mut self, at: u64, size: u32, now: Cycle) -> u64 {
        let (at, len) = (PhysAddr(at), u64::from(size));
        if let Some(off) = map::UART.offset(at, len) {
            self.uart.mmio_read(off, size)
        } else if let Some(off) = map::PLIC.offset(at, len) {
            self.plic.mmio_read(off, size)
        } else if let Some((device, off)) = self.pci.route(at, size) {
            self.drive(device).map_or(u64::MAX, |drive| drive.mmio_read(off, size, now))
        } else if let Some(off) = map::ACLINT.offset(at, len) {
            self.aclint.mmio_read(off, size, now)
        } else if let Some(off) = map::PCIE_ECAM.offset(at, len) {
            self.pci.config_read(off, size)
        } else if let Some(off) = map::FINISHER.offset(at, len) {
            self.finisher.mmio_read(off, size)
        } else {
            u64::MAX
        }
    }

    /// Writes a device register; where nothing answers nothing happens.
    pub fn write(&mut self, at: u64, size: u32, value: u64, now: Cycle) {
        let (at, len) = (PhysAddr(at), u64::from(size));
        let value = if size < 8 { value & ((1 << (8 * size)) - 1) } else { value };
        if let Some((device, off)) = self.pci.route(at, size) {
            if let Some(drive) = self.drive(device) {
                drive.mmio_write(off, size, value, now);
            }
        } else if let Some(off) = map::PLIC.offset(at, len) {
            self.plic.mmio_write(off, size, value);
        } else if let Some(off) = map::UART.offset(at, len) {
            self.uart.mmio_write(off, size, value);
        } else if let Some(off) = map::ACLINT.offset(at, len) {
            self.aclint.mmio_write(off, size, value, now);
        } else if let Some(off) = map::PCIE_ECAM.offset(at, len) {
            self.pci.config_write(off, size, value);
        } else if let Some(off) = map::FINISHER.offset(at, len) {
            self.finish = self.finisher.mmio_write(off, size, value).or(self.finish);
        }
    }

    fn drive(&mut self, device: usize) -> Option<&mut Controller> {
        device.checked_sub(1).and_then(|index| self.drives.get_mut(index))
    }

    /// When a device next does something by itself.
    pub fn next_event(&self, now: Cycle) -> Cycle {
        let drives = self.drives.iter().map(Controller::next_event);
        drives.chain([self.aclint.next_event(now)]).min().unwrap_or(Cycle::NEVER)
    }

    /// Does everything that is due at or before `now`, drives in the order of time; `observe` hears of each command's end.
    pub fn advance(&mut self, now: Cycle, observe: &mut dyn FnMut(&CommandRecord)) {
        loop {
            let at = self.drives.iter().map(Controller::next_event).min().unwrap_or(Cycle::NEVER);
            if at > now {
                break;
            }
            for (index, drive) in self.drives.iter_mut().enumerate() {
                if drive.next_event() > at {
                    continue;
                }
                let master = self.pci.function(index + 1).is_some_and(PciFunction::bus_master);
                let mut port = DriveDma { ram: &mut self.ram, master, written: &mut self.written };
                drive.advance(at, &mut port, observe);
                if drive.is_removed() {
                    self.pci.remove(index + 1);
                }
            }
        }
    }

    /// The interrupt lines at `now`.
    pub fn lines(&mut self, now: Cycle) -> Lines {
        for (index, drive) in self.drives.iter().enumerate() {
            self.pci.set_interrupt(index + 1, drive.irq_asserted());
        }
        for (line, level) in self.pci.lines().into_iter().enumerate() {
            self.plic.set_level(map::PCIE_INTA_IRQ + line as u32, level);
        }
        self.plic.set_level(map::UART_IRQ, self.uart.irq_asserted());
        let external = u8::from(self.plic.pending(0)) | u8::from(self.plic.pending(1)) << 1;
        Lines { external, software: self.aclint.msip(0), timer: self.aclint.mtip(0, now) }
    }

    /// All that devices know.
    ///
    /// # Errors
    /// The number of the drive whose image was written to: only writes in memory can be saved.
    pub fn save(&self) -> Result<PlatformState, usize> {
        let drives = self.drives.iter().enumerate().map(|(n, drive)| drive.save().ok_or(n + 1));
        Ok(PlatformState {
            aclint: self.aclint.clone(),
            plic: self.plic.clone(),
            uart: self.uart.save(),
            pci: self.pci.clone(),
            drives: drives.collect::<Result<_, _>>()?,
        })
    }

    /// Goes on from a state.
    ///
    /// # Errors
    /// What does not fit.
    pub fn restore(&mut self, state: PlatformState) -> Result<(), String> {
        if state.drives.len() != self.drives.len() {
            return Err(format!("has {} disks", state.drives.len()));
        }
        for (n, (drive, saved)) in self.drives.iter_mut().zip(state.drives).enumerate() {
            drive.restore(saved).map_err(|what| format!("its disk {} {what}", n + 1))?;
        }
        (self.aclint, self.plic, self.pci) = (state.aclint, state.plic, state.pci);
        if self.uart.restore(state.uart) { Ok(()) } else { Err("its console is in no state".into()) }
    }
}

/// A drive's way to memory: closed until the guest sets Bus Master Enable.
struct DriveDma<'a> {
    ram: &'a mut Ram,
    master: bool,
    written: &'a mut Vec<(u64, u64)>,
}

impl Dma for DriveDma<'_> {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        if self.master { Dma::read(self.ram, at, buf) } else { Err(BusError(at)) }
    }

    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        if !self.master {
            return Err(BusError(at));
        }
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
        Platform::new(ram, ClockHz(100_000_000), 10_000_000, Vec::new())
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
        assert_eq!(p.finish, Some(Finish::PowerOff));
    }

    #[test]
    fn where_nothing_answers_reads_as_ones() {
        assert_eq!(platform().read(0x2000_0000, 4, Cycle(0)), u64::MAX);
    }
}
