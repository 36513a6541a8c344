// SPDX-License-Identifier: Apache-2.0
//! Everything but the harts: RAM, devices, drives, the SMU, and the wires between them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trapless_devices::{Aclint, Finish, Finisher, PciFunction, PciHost, PciIds, Plic, Uart, UartState};
use trapless_memory::{BusError, Cycle, Dma, MmioEffect, PhysAddr, Ram};
use trapless_nvme::{CommandRecord, Controller, ControllerState};
use trapless_riscv::Bus;
use trapless_smu::{Smu, SmuBus, SmuSink, SmuUnit};
use trapless_smu_regs::{PORT_BASE, PORT_ENTRY, PORT_STRIDE};
use trapless_timing::Line;

use crate::map;
use crate::report::DiskReads;
use crate::times::Times;

/// PCI identifiers of the NVMe controllers: QEMU's vendor number for things that are nobody's product.
const NVME_IDS: PciIds = PciIds { vendor: 0x1b36, device: 0x0010, class: 0x01_0802, revision: 1 };

/// First doorbell of a drive (NVMe PCIe transport, CAP.DSTRD = 0) and the distance from one queue's to the next's.
const DOORBELLS: u64 = 0x1000;
const DOORBELL_STRIDE: u64 = 8;

/// The submission queue whose doorbell is at this offset of a drive's registers.
pub fn doorbell_of(offset: u64) -> Option<u16> {
    let from = offset.checked_sub(DOORBELLS).filter(|from| from % DOORBELL_STRIDE == 0)?;
    u16::try_from(from / DOORBELL_STRIDE).ok()
}

/// A hart has written a register that may ask a device for something.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// Of a drive (the first is 0), at this offset of its registers.
    Drive(usize, u64, Cycle),
    /// Of the SMU, through this request port.
    Port(u64, Cycle),
}

/// What [`Board::save`] gives: everything but RAM and the drives' images.
#[derive(Serialize, Deserialize)]
pub struct BoardState {
    aclint: Aclint,
    plic: Plic,
    uart: UartState,
    pci: PciHost,
    smu: Option<Smu>,
    drives: Vec<ControllerState>,
    unit_queues: Vec<BTreeSet<u16>>,
}

/// RAM and devices.
pub struct Board {
    /// RAM.
    pub ram: Ram,
    /// Timer and software interrupts.
    pub aclint: Aclint,
    /// External interrupts.
    pub plic: Plic,
    /// Console.
    pub uart: Uart,
    /// Drives; the first is device 1 of the bus.
    pub drives: Vec<Controller>,
    /// The SMU, if the profile has one.
    pub smu: Option<Box<dyn SmuUnit>>,
    /// How the guest ended the run.
    pub finish: Option<Finish>,
    /// What was read of each drive.
    pub reads: Vec<DiskReads>,
    /// Submission queues of each drive whose doorbell the SMU rang last.
    unit_queues: Vec<BTreeSet<u16>>,
    pci: PciHost,
    finisher: Finisher,
    /// Requests that harts have made since the last look, if anybody looks.
    pub requests: Option<Vec<Asked>>,
    /// A hart has asked through a request port since somebody last cleared this.
    pub port_asked: bool,
}

impl Board {
    /// Puts the devices together.
    pub fn new(
        ram: Ram,
        aclint: Aclint,
        harts: usize,
        drives: Vec<Controller>,
        smu: Option<Box<dyn SmuUnit>>,
    ) -> Board {
        let mut pci = PciHost::new(PhysAddr(map::PCIE_MMIO.base), map::PCIE_MMIO.size);
        for device in 1..=drives.len() {
            pci.add(device, PciFunction::endpoint(NVME_IDS, Controller::BAR_SIZE));
        }
        Board {
            ram,
            aclint,
            plic: Plic::new(2 * harts),
            uart: Uart::new(),
            reads: vec![DiskReads::default(); drives.len()],
            unit_queues: vec![BTreeSet::new(); drives.len()],
            drives,
            smu,
            finish: None,
            pci,
            finisher: Finisher,
            requests: None,
            port_asked: false,
        }
    }

    /// All that devices and SMU know, to go on from elsewhere.
    ///
    /// # Errors
    /// The number of the drive whose image was written to: only writes in memory can be saved.
    pub fn save(&self) -> Result<BoardState, usize> {
        let drives = self.drives.iter().enumerate().map(|(n, drive)| drive.save().ok_or(n + 1));
        Ok(BoardState {
            aclint: self.aclint.clone(),
            plic: self.plic.clone(),
            uart: self.uart.save(),
            pci: self.pci.clone(),
            smu: self.smu.as_ref().and_then(|smu| smu.save()),
            drives: drives.collect::<Result<_, _>>()?,
            unit_queues: self.unit_queues.clone(),
        })
    }

    /// Goes on from a state.
    ///
    /// # Errors
    /// What does not fit.
    pub fn restore(&mut self, state: BoardState) -> Result<(), String> {
        if state.drives.len() != self.drives.len() {
            return Err(format!("has {} disks", state.drives.len()));
        }
        for (n, (drive, saved)) in self.drives.iter_mut().zip(state.drives).enumerate() {
            drive.restore(saved).map_err(|what| format!("its disk {} {what}", n + 1))?;
        }
        self.smu = match (state.smu, self.smu.as_ref().map(|smu| smu.config().clone())) {
            (None, None) => None,
            (Some(smu), Some(config)) => Some(Box::new(smu.with_times_of(config).ok_or("its SMU has other sizes")?)),
            (saved, _) => return Err(format!("has {} SMU", if saved.is_some() { "an" } else { "no" })),
        };
        (self.aclint, self.plic, self.pci) = (state.aclint, state.plic, state.pci);
        self.unit_queues = state.unit_queues;
        if self.uart.restore(state.uart) { Ok(()) } else { Err("its console is in no state".into()) }
    }

    /// When the next device event is due.
    pub fn next_event(&self) -> Cycle {
        let drives = self.drives.iter().map(|d| d.next_event());
        let smu = self.smu.as_ref().and_then(|smu| smu.next_event());
        drives.chain(smu).min().unwrap_or(Cycle::NEVER)
    }

    /// Does everything that is due at or before `now`, in the order of time: drives before the SMU at the same cycle,
    /// so that a poll sees what was just written. `times` hears of each access to memory.
    pub fn advance(
        &mut self,
        now: Cycle,
        times: &mut Times,
        observe: &mut dyn FnMut(usize, &CommandRecord),
        sink: &mut dyn SmuSink,
    ) {
        loop {
            let at = self.next_event();
            if at > now {
                break;
            }
            for (index, drive) in self.drives.iter_mut().enumerate() {
                if drive.next_event() > at {
                    continue;
                }
                let master = self.pci.function(index + 1).is_some_and(PciFunction::bus_master);
                let mut port = DriveDma { ram: &mut self.ram, master, times };
                let smu = &mut self.smu;
                let (reads, unit_queues) = (&mut self.reads[index], &self.unit_queues[index]);
                drive.advance(at, &mut port, &mut |record| {
                    reads.count(record, unit_queues.contains(&record.sqid));
                    if let Some(smu) = smu {
                        smu.completion_queue_written(record.completed);
                    }
                    observe(index, record);
                });
                if drive.is_removed() {
                    self.pci.remove(index + 1);
                }
            }
            if let Some(mut smu) = self.smu.take_if(|smu| smu.next_event().is_some_and(|next| next <= at)) {
                let Board { ram, pci, drives, unit_queues, .. } = self;
                let times = Some(times as &mut Times);
                let mut port = SmuPort { ram, pci, drives, unit_queues, times, now: at, line: None, took: 0 };
                smu.advance(at, &mut port, sink);
                self.smu = Some(smu);
            }
        }
    }

    /// Carries the devices' interrupts to the PLIC.
    pub fn route_interrupts(&mut self) {
        for (index, drive) in self.drives.iter().enumerate() {
            self.pci.set_interrupt(index + 1, drive.irq_asserted());
        }
        for (line, level) in self.pci.lines().into_iter().enumerate() {
            self.plic.set_level(map::PCIE_INTA_IRQ + line as u32, level);
        }
        self.plic.set_level(map::UART_IRQ, self.uart.irq_asserted());
    }
}

/// A drive's way to memory: closed until the guest sets Bus Master Enable.
struct DriveDma<'a> {
    ram: &'a mut Ram,
    master: bool,
    times: &'a mut Times,
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
        self.times.overwritten(at, data.len() as u64);
        Ok(())
    }
}

/// The SMU's way to memory and to the drives' doorbells.
struct SmuPort<'a> {
    ram: &'a mut Ram,
    pci: &'a PciHost,
    drives: &'a mut [Controller],
    unit_queues: &'a mut [BTreeSet<u16>],
    /// Absent during register accesses: what is reached then costs nothing more.
    times: Option<&'a mut Times>,
    now: Cycle,
    /// The line of the last access.
    line: Option<Line>,
    /// Cycles of the accesses since the SMU asked.
    took: u64,
}

impl SmuPort<'_> {
    fn touch(&mut self, write: bool, at: PhysAddr) {
        // A line that it has at hand costs nothing more.
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
        if crate::exchange_errors::on_read(at) {
            return Err(BusError(at));
        }
        self.ram.load::<8>(at).map(u64::from_le_bytes).ok_or(BusError(at))
    }

    fn took(&mut self) -> Cycle {
        self.line = None;
        Cycle(std::mem::take(&mut self.took))
    }

    fn write_u32(&mut self, at: PhysAddr, value: u32) -> Result<(), BusError> {
        let (device, offset) = self.pci.route(at, 4).ok_or(BusError(at))?;
        let index = device.checked_sub(1).ok_or(BusError(at))?;
        self.drives.get_mut(index).ok_or(BusError(at))?.mmio_write(offset, 4, value.into(), self.now);
        self.unit_queues[index].extend(doorbell_of(offset));
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
        if let Some(effect) = crate::exchange_errors::on_exchange(at) {
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

impl Bus for Board {
    fn ram(&mut self) -> &mut Ram {
        &mut self.ram
    }

    fn mmio_read(&mut self, at: PhysAddr, size: u8, now: Cycle) -> Result<(u64, MmioEffect), BusError> {
        let (len, wide) = (u64::from(size), u32::from(size));
        if let Some(off) = map::UART.offset(at, len) {
            return Ok((self.uart.mmio_read(off, wide), MmioEffect::Resync));
        }
        if let Some(off) = map::PLIC.offset(at, len) {
            return Ok((self.plic.mmio_read(off, wide), MmioEffect::Resync));
        }
        if let Some((device, off)) = self.pci.route(at, wide) {
            let drive = device.checked_sub(1).and_then(|i| self.drives.get_mut(i)).ok_or(BusError(at))?;
            return Ok((drive.mmio_read(off, wide, now), MmioEffect::None));
        }
        let value = if let Some(off) = map::ACLINT.offset(at, len) {
            self.aclint.mmio_read(off, wide, now)
        } else if let (Some(off), Some(smu)) = (map::SMU.offset(at, len), &self.smu) {
            smu.read(off, usize::from(size))
        } else if let Some(off) = map::PCIE_ECAM.offset(at, len) {
            self.pci.config_read(off, wide)
        } else if let Some(off) = map::FINISHER.offset(at, len) {
            self.finisher.mmio_read(off, wide)
        } else {
            return Err(BusError(at));
        };
        Ok((value, MmioEffect::None))
    }

    fn mmio_write(&mut self, at: PhysAddr, size: u8, value: u64, now: Cycle) -> Result<MmioEffect, BusError> {
        let (len, wide) = (u64::from(size), u32::from(size));
        if let Some((device, off)) = self.pci.route(at, wide) {
            let drive = device.checked_sub(1).and_then(|i| self.drives.get_mut(i)).ok_or(BusError(at))?;
            if let Some(requests) = &mut self.requests {
                requests.push(Asked::Drive(device - 1, off, now));
            }
            if let Some(queue) = doorbell_of(off) {
                self.unit_queues[device - 1].remove(&queue);
            }
            return Ok(drive.mmio_write(off, wide, value, now));
        }
        if let Some(off) = map::PLIC.offset(at, len) {
            return Ok(self.plic.mmio_write(off, wide, value));
        }
        if let Some(off) = map::UART.offset(at, len) {
            return Ok(self.uart.mmio_write(off, wide, value));
        }
        if let Some(off) = map::ACLINT.offset(at, len) {
            return Ok(self.aclint.mmio_write(off, wide, value, now));
        }
        if let Some(off) = map::SMU.offset(at, len)
            && let Some(mut smu) = self.smu.take()
        {
            let Board { ram, pci, drives, unit_queues, .. } = self;
            let mut port = SmuPort { ram, pci, drives, unit_queues, times: None, now, line: None, took: 0 };
            smu.mmio_write(off, usize::from(size), value, now, &mut port);
            self.smu = Some(smu);
            if let Some(port) = off.checked_sub(PORT_BASE).filter(|port| port % PORT_STRIDE == PORT_ENTRY) {
                self.port_asked = true;
                self.requests.iter_mut().for_each(|r| r.push(Asked::Port(port / PORT_STRIDE, now)));
            }
            return Ok(MmioEffect::Resync);
        }
        if let Some(off) = map::PCIE_ECAM.offset(at, len) {
            return Ok(self.pci.config_write(off, wide, value));
        }
        if let Some(off) = map::FINISHER.offset(at, len) {
            self.finish = self.finisher.mmio_write(off, wide, value).or(self.finish);
            return Ok(MmioEffect::Resync);
        }
        Err(BusError(at))
    }

    fn time(&mut self, now: Cycle) -> u64 {
        self.aclint.mtime(now)
    }
}

#[cfg(test)]
mod tests {
    use trapless_memory::ClockHz;

    use super::*;

    #[test]
    fn nothing_answers_that_is_not_in_the_list_of_devices() {
        let ram = Ram::new(map::RAM_BASE, 4096).unwrap();
        let mut board = Board::new(ram, Aclint::new(1, ClockHz(1), 1), 1, Vec::new(), None);
        for at in (0..map::RAM_BASE.0).step_by(0x1000).map(PhysAddr) {
            let listed = map::DEVICES.iter().any(|(_, region)| region.offset(at, 4).is_some());
            let answers = board.mmio_read(at, 4, Cycle(0)).is_ok();
            assert!(listed || !answers, "{at:?} answers and is in no list");
        }
    }
}
