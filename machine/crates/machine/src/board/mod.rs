// SPDX-License-Identifier: Apache-2.0
//! Everything except the harts: RAM, devices, drives, the SMU, and the wires between them.

mod answers;
#[cfg(feature = "seeded-bugs")]
pub mod exchange_errors;
pub mod map;
mod peripherals;
mod port;
mod reads;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trapless_devices::{Board as Decoder, Finish, Overlap, Region, Table};
use trapless_memory::{BusError, Cycle, Dma, MmioEffect, PhysAddr, Ram};
use trapless_nvme::{CommandRecord, Controller};
use trapless_riscv::Bus;
use trapless_smu::{Accept, Request, Smu, SmuSink, SmuTiming, SmuUnit, Source};
use trapless_smu_regs::{PORT_BASE, PORT_ENTRY, PORT_STRIDE};

use crate::cores::{Lines, Times};
pub use answers::Answers;
pub use peripherals::{Peripherals, PeripheralsState};
use port::SmuPort;
pub use port::doorbell_of;
pub use reads::{DiskReads, Reads};

/// Counters of the SMU by name.
pub type SmuCounters = BTreeMap<&'static str, u64>;

/// An access of a hart that may ask a device for something.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// A write to a drive: its number (the first is 0), the offset of the register, the time.
    Drive(usize, u64, Cycle),
    /// A write to a request port of the SMU: its number, the time.
    Port(u64, Cycle),
}

/// The result of [`Board::save`]: everything except RAM and the drives' images.
#[derive(Serialize, Deserialize)]
pub struct BoardState {
    peripherals: PeripheralsState,
    others: Vec<Vec<u8>>,
    smu: Option<Smu>,
    unit_queues: Vec<BTreeSet<u16>>,
}

/// RAM and devices.
pub struct Board {
    ram: Ram,
    table: Table<Board>,
    peripherals: Peripherals,
    /// The SMU, if the profile has one.
    smu: Option<Box<dyn SmuUnit>>,
    /// Counts of the reads of each drive.
    reads: Vec<DiskReads>,
    /// For each drive, the submission queues whose doorbell was last rung by the SMU.
    unit_queues: Vec<BTreeSet<u16>>,
    /// What harts have asked of devices since the last look; `None` if it is not recorded.
    asked: Option<Vec<Asked>>,
    /// Whether a hart has asked through a request port since the last look.
    port_asked: bool,
}

/// The machine's table of devices.
fn table(ram: Region, smu: bool) -> Result<Table<Board>, Overlap> {
    let mut table = Table::new(ram);
    Peripherals::register(&mut table)?;
    table.add_ways("pcie-memory", map::PCIE_MMIO, Board::read_drive, Board::write_drive)?;
    if smu {
        table.add_ways("smu", map::SMU, Board::read_smu, Board::write_smu)?;
    }
    Ok(table)
}

/// All devices of a machine with an SMU: name and range, by address.
///
/// # Errors
/// Two ranges overlap.
pub fn devices() -> Result<Vec<(&'static str, Region)>, Overlap> {
    Ok(table(Region { base: map::RAM_BASE.0, size: 0 }, true)?.list().collect())
}

impl Board {
    /// Creates the board from its devices.
    ///
    /// # Errors
    /// Two ranges overlap.
    pub fn new(ram: Ram, peripherals: Peripherals, smu: Option<Box<dyn SmuUnit>>) -> Result<Board, Overlap> {
        let drives = peripherals.drives().len();
        Ok(Board {
            table: table(Region { base: map::RAM_BASE.0, size: ram.size() }, smu.is_some())?,
            ram,
            peripherals,
            smu,
            reads: vec![DiskReads::default(); drives],
            unit_queues: vec![BTreeSet::new(); drives],
            asked: None,
            port_asked: false,
        })
    }

    /// RAM.
    pub fn memory(&self) -> &Ram {
        &self.ram
    }

    /// RAM, mutable.
    pub fn memory_mut(&mut self) -> &mut Ram {
        &mut self.ram
    }

    /// The devices that every board has.
    pub fn peripherals(&self) -> &Peripherals {
        &self.peripherals
    }

    /// The devices that every board has, mutable.
    pub fn peripherals_mut(&mut self) -> &mut Peripherals {
        &mut self.peripherals
    }

    /// How the guest ended the run.
    pub fn finish(&self) -> Option<Finish> {
        self.peripherals.finish()
    }

    /// Counts of the reads of each drive.
    pub fn reads(&self) -> &[DiskReads] {
        &self.reads
    }

    /// The error of a drive, if the host could not access its image.
    pub fn host_error(&self) -> Option<String> {
        self.peripherals.drives().iter().find_map(Controller::host_error).map(|e| e.to_string())
    }

    /// The SMU.
    pub fn smu(&self) -> Option<&dyn SmuUnit> {
        self.smu.as_deref()
    }

    /// Replaces the SMU.
    pub fn replace_smu(&mut self, smu: Box<dyn SmuUnit>) {
        self.smu = Some(smu);
    }

    /// Changes the times of the SMU from now on.
    pub fn set_smu_timing(&mut self, timing: SmuTiming) {
        if let Some(smu) = &mut self.smu {
            smu.set_timing(timing);
        }
    }

    /// The SMU's counters.
    pub fn smu_counters(&self) -> SmuCounters {
        self.smu.iter().flat_map(|smu| smu.counters()).collect()
    }

    /// Passes a walker's request to the SMU; `None` if there is no SMU.
    pub fn request(&mut self, now: Cycle, request: Request) -> Option<Accept> {
        Some(self.smu.as_mut()?.request(now, request))
    }

    /// Whether the SMU has not yet accepted the request of a hart.
    pub fn is_held(&self, hart: usize) -> bool {
        self.smu.as_ref().is_some_and(|smu| smu.is_held(Source::Walker(hart as u32)))
    }

    /// Tells the SMU that a hart does not wait any more.
    pub fn abandon(&mut self, hart: usize, id: u64) {
        if let Some(smu) = &mut self.smu {
            smu.abandon(hart as u32, id);
        }
    }

    /// Starts or stops recording what harts ask of devices. Returns what was recorded until now.
    pub fn keep_asked(&mut self, keep: bool) -> Vec<Asked> {
        std::mem::replace(&mut self.asked, keep.then(Vec::new)).unwrap_or_default()
    }

    /// Whether a hart has asked through a request port since the last look.
    pub fn take_port_asked(&mut self) -> bool {
        std::mem::take(&mut self.port_asked)
    }

    /// Returns the state of the devices and of the SMU, with which another board can continue.
    ///
    /// # Errors
    /// A drive's image was written to; the error is the number of the drive. Only writes in memory can be saved.
    pub fn save(&self) -> Result<BoardState, usize> {
        Ok(BoardState {
            peripherals: self.peripherals.save()?,
            others: self.table.save(),
            smu: self.smu.as_ref().and_then(|smu| smu.save()),
            unit_queues: self.unit_queues.clone(),
        })
    }

    /// Continues from a state.
    ///
    /// # Errors
    /// The state does not fit; the text says which part of it.
    pub fn restore(&mut self, state: BoardState) -> Result<(), String> {
        self.peripherals.restore(state.peripherals)?;
        self.smu = match (state.smu, self.smu.as_ref().map(|smu| smu.config().clone())) {
            (None, None) => None,
            (Some(smu), Some(config)) => Some(Box::new(smu.with_times_of(config).ok_or("its SMU has other sizes")?)),
            (saved, _) => return Err(format!("was written with {} SMU", if saved.is_some() { "an" } else { "no" })),
        };
        self.unit_queues = state.unit_queues;
        self.table.restore(&state.others).map_err(|name| format!("the state of its device {name} is not valid"))
    }

    /// Time of the next event of a device other than a timer.
    pub fn next_event(&self) -> Cycle {
        let smu = self.smu.as_ref().and_then(|smu| smu.next_event()).unwrap_or(Cycle::NEVER);
        self.peripherals.next_drive_event().min(smu).min(self.table.next_event())
    }

    /// Does everything that is due at or before `now`, in the order of time. At the same cycle drives come before the SMU,
    /// so that the SMU sees what was just written. Reports each access to memory to `times`.
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
            let Board { ram, table, peripherals, smu, reads, unit_queues, .. } = self;
            let memory = &mut TimedDma { ram, times };
            peripherals.advance_drives(at, memory, &mut |index, record| {
                reads[index].count(record, unit_queues[index].contains(&record.sqid));
                if let Some(smu) = smu.as_mut() {
                    smu.completion_queue_written(record.completed);
                }
                observe(index, record);
            });
            table.advance(at, memory);
            if let Some(smu) = smu.as_mut().filter(|smu| smu.next_event().is_some_and(|next| next <= at)) {
                let times = Some(&mut *times);
                let mut port = SmuPort { ram, peripherals, unit_queues, times, now: at, line: None, took: 0 };
                smu.advance(at, &mut port, sink);
            }
        }
    }

    /// Passes the devices' interrupts to the PLIC.
    pub fn route_interrupts(&mut self) {
        self.peripherals.route_interrupts(self.table.interrupts());
    }

    /// A hart's interrupt lines at `at`.
    pub fn lines(&self, hart: usize, at: Cycle) -> Lines {
        let Peripherals { plic, aclint, .. } = &self.peripherals;
        Lines {
            machine_external: plic.pending(2 * hart),
            supervisor_external: plic.pending(2 * hart + 1),
            machine_soft: aclint.msip(hart),
            machine_timer: aclint.mtip(hart, at),
        }
    }

    fn read_drive(&mut self, offset: u64, size: u32, now: Cycle) -> Option<(u64, MmioEffect)> {
        self.peripherals.read_drive(offset, size, now)
    }

    fn write_drive(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> Option<MmioEffect> {
        let (index, drive, register) = self.peripherals.drive_at(offset, size)?;
        if let Some(asked) = &mut self.asked {
            asked.push(Asked::Drive(index, register, now));
        }
        if let Some(queue) = doorbell_of(register) {
            self.unit_queues[index].remove(&queue);
        }
        Some(drive.mmio_write(register, size, value, now))
    }

    fn read_smu(&mut self, offset: u64, size: u32, _now: Cycle) -> Option<(u64, MmioEffect)> {
        Some((self.smu.as_ref()?.read(offset, size as usize), MmioEffect::None))
    }

    fn write_smu(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> Option<MmioEffect> {
        let Board { ram, peripherals, unit_queues, smu, .. } = self;
        let mut port = SmuPort { ram, peripherals, unit_queues, times: None, now, line: None, took: 0 };
        smu.as_mut()?.mmio_write(offset, size as usize, value, now, &mut port);
        if let Some(port) = offset.checked_sub(PORT_BASE).filter(|port| port % PORT_STRIDE == PORT_ENTRY) {
            self.port_asked = true;
            self.asked.iter_mut().for_each(|asked| asked.push(Asked::Port(port / PORT_STRIDE, now)));
        }
        Some(MmioEffect::Resync)
    }
}

/// Memory as devices reach it. Tells the caches what is overwritten.
struct TimedDma<'a> {
    ram: &'a mut Ram,
    times: &'a mut Times,
}

impl Dma for TimedDma<'_> {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        Dma::read(self.ram, at, buf)
    }

    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        Dma::write(self.ram, at, data)?;
        self.times.overwritten(at, data.len() as u64);
        Ok(())
    }
}

impl AsMut<Peripherals> for Board {
    fn as_mut(&mut self) -> &mut Peripherals {
        &mut self.peripherals
    }
}

impl Decoder for Board {
    fn table(&mut self) -> &mut Table<Board> {
        &mut self.table
    }
}

impl Bus for Board {
    fn ram(&mut self) -> &mut Ram {
        &mut self.ram
    }

    fn mmio_read(&mut self, at: PhysAddr, size: u8, now: Cycle) -> Result<(u64, MmioEffect), BusError> {
        Table::read(self, at, size.into(), now).ok_or(BusError(at))
    }

    fn mmio_write(&mut self, at: PhysAddr, size: u8, value: u64, now: Cycle) -> Result<MmioEffect, BusError> {
        Table::write(self, at, size.into(), value, now).ok_or(BusError(at))
    }

    fn time(&mut self, now: Cycle) -> u64 {
        self.peripherals.aclint.mtime(now)
    }
}

#[cfg(test)]
mod tests {
    use trapless_devices::Device;
    use trapless_memory::ClockHz;

    use super::*;

    /// A device like the one that CONTRIBUTING.md adds: its register reads as the number of writes to it. At the cycle that was
    /// written, the device stores that number in memory and raises its interrupt line.
    #[derive(Default)]
    struct Toy {
        writes: u64,
        due: Option<Cycle>,
        rung: bool,
    }

    impl Device for Toy {
        fn read(&mut self, _offset: u64, _size: u32, _now: Cycle) -> (u64, MmioEffect) {
            (self.writes, MmioEffect::None)
        }

        fn write(&mut self, _offset: u64, _size: u32, value: u64, _now: Cycle) -> MmioEffect {
            (self.writes, self.due, self.rung) = (self.writes + 1, Some(Cycle(value)), false);
            MmioEffect::Resync
        }

        fn next_event(&self) -> Cycle {
            self.due.unwrap_or(Cycle::NEVER)
        }

        fn advance(&mut self, _now: Cycle, dma: &mut dyn Dma) {
            self.due = None;
            self.rung = dma.write(map::RAM_BASE, &self.writes.to_le_bytes()).is_ok();
        }

        fn interrupt(&mut self) -> bool {
            self.rung
        }
    }

    const TOY: Region = Region { base: 0x1200_0000, size: 0x1000 };
    const TOY_IRQ: u32 = 11;

    fn board() -> Board {
        let ram = Ram::new(map::RAM_BASE, 4096).unwrap();
        Board::new(ram, Peripherals::new(1, ClockHz(1), 1, Vec::new()), None).unwrap()
    }

    #[test]
    fn a_device_is_a_file_and_a_line() {
        let mut board = board();
        board.table.add("toy", TOY, Some(TOY_IRQ), Toy::default()).unwrap();

        let at = PhysAddr(TOY.base);
        assert_eq!(board.mmio_write(at, 8, 50, Cycle(1)), Ok(MmioEffect::Resync));
        assert_eq!(board.mmio_read(at, 8, Cycle(2)), Ok((1, MmioEffect::None)));
        assert_eq!(board.next_event(), Cycle(50));
        let plic = &mut board.peripherals_mut().plic;
        plic.mmio_write(4 * u64::from(TOY_IRQ), 4, 1); // its priority
        plic.mmio_write(0x2080, 4, 1 << TOY_IRQ); // enable it for S-mode
        let times = &mut Times::new(1, 1, 0, 1);
        for (now, rung) in [(49, false), (50, true)] {
            board.advance(Cycle(now), times, &mut |_, _| (), &mut |_: trapless_smu::Answer| ());
            board.route_interrupts();
            assert_eq!(board.lines(0, Cycle(now)).supervisor_external, rung);
        }
        assert_eq!(board.memory().load::<8>(map::RAM_BASE), Some(1u64.to_le_bytes()));
        assert_eq!(board.next_event(), Cycle::NEVER);
    }

    #[test]
    fn a_device_in_the_place_of_another_is_an_error() {
        let wrong = board().table.add("toy", Region { base: map::UART.base + 8, ..TOY }, None, Toy::default());
        let text = crate::error::Error::from(wrong.unwrap_err()).to_string();
        assert_eq!(text, "device toy at 0x10000008 to 0x10001007 overlaps uart: give it a free range");
    }

    #[test]
    fn nothing_answers_that_is_not_in_the_list_of_devices() {
        let devices = devices().unwrap();
        let mut board = board();
        for at in (0..map::RAM_BASE.0).step_by(0x1000).map(PhysAddr) {
            let listed = devices.iter().any(|(_, region)| region.offset(at, 4).is_some());
            let answers = board.mmio_read(at, 4, Cycle(0)).is_ok();
            assert!(listed || !answers, "{at:?} answers, but no list has it");
        }
    }
}
