// SPDX-License-Identifier: Apache-2.0
//! The table of devices: which device answers at each address, and how it is read and written.

use std::fmt;

use trapless_memory::{Cycle, Dma, MmioEffect, PhysAddr};

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Region {
    /// Offset of an access of `len` bytes at `at`, if the access is completely inside.
    #[inline]
    pub fn offset(&self, at: PhysAddr, len: u64) -> Option<u64> {
        let off = at.0.wrapping_sub(self.base);
        (off < self.size && len <= self.size - off).then_some(off)
    }

    fn overlaps(&self, other: &Region) -> bool {
        self.base < other.base.saturating_add(other.size) && other.base < self.base.saturating_add(self.size)
    }
}

/// A device. It sees the offset into its own range, the size, the value and the time of an access, memory through DMA, and its
/// interrupt line. It sees nothing else of the machine.
pub trait Device {
    /// Reads a register; undefined registers read as zero. The size is 1, 2, 4 or 8 bytes.
    fn read(&mut self, offset: u64, size: u32, now: Cycle) -> (u64, MmioEffect);

    /// Writes a register; writes to undefined registers do nothing. Bits of `value` above the size are undefined.
    fn write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect;

    /// Time of the next event of the device; [`Cycle::NEVER`] if it only answers accesses.
    fn next_event(&self) -> Cycle {
        Cycle::NEVER
    }

    /// Does what is due at `now`, the time of the next event. The event after it must be later.
    fn advance(&mut self, _now: Cycle, _dma: &mut dyn Dma) {}

    /// The level of the device's interrupt line.
    fn interrupt(&mut self) -> bool {
        false
    }

    /// The state of the device, for a checkpoint.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Continues from a state that [`Device::save`] returned; returns false if it is not a state of this device.
    fn restore(&mut self, state: &[u8]) -> bool {
        state.is_empty()
    }
}

/// Error: the range of a device overlaps another range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device {name} at {base:#x} to {last:#x} overlaps {other}: give it a free range")]
pub struct Overlap {
    name: &'static str,
    base: u64,
    last: u64,
    other: &'static str,
}

/// Whatever has a table of devices: a board.
pub trait Board: Sized {
    /// The board's table.
    fn table(&mut self) -> &mut Table<Self>;
}

/// Reads `size` bytes at an offset; `None` if nothing answers.
pub type Reader<B> = fn(&mut B, offset: u64, size: u32, now: Cycle) -> Option<(u64, MmioEffect)>;
/// Writes `size` bytes of a value at an offset; `None` if nothing answers.
pub type Writer<B> = fn(&mut B, offset: u64, size: u32, value: u64, now: Cycle) -> Option<MmioEffect>;

/// How a range is read and written.
enum Way<B> {
    /// A device that only the table owns, and the source of its interrupt line, if it has one.
    Own(Box<dyn Device>, Option<u32>),
    /// A device that other parts of the board know as well.
    Part(fn(&mut B) -> &mut dyn Device),
    /// Something that needs more of the board than a device does: the SMU, or drives behind PCIe.
    Ways(Reader<B>, Writer<B>),
}

struct Entry<B> {
    name: &'static str,
    region: Region,
    way: Way<B>,
}

/// All devices of a board by address. No range overlaps another one or RAM.
///
/// ```
/// use trapless_devices::{Board, Device, Region, Table};
/// use trapless_memory::{Cycle, MmioEffect, PhysAddr};
///
/// /// One register, which reads as the last value written.
/// #[derive(Default)]
/// struct Scratch(u64);
///
/// impl Device for Scratch {
///     fn read(&mut self, _offset: u64, _size: u32, _now: Cycle) -> (u64, MmioEffect) {
///         (self.0, MmioEffect::None)
///     }
///     fn write(&mut self, _offset: u64, _size: u32, value: u64, _now: Cycle) -> MmioEffect {
///         self.0 = value;
///         MmioEffect::None
///     }
/// }
///
/// struct Small(Table<Small>);
///
/// impl Board for Small {
///     fn table(&mut self) -> &mut Table<Small> {
///         &mut self.0
///     }
/// }
///
/// let mut table = Table::new(Region { base: 0x8000_0000, size: 0x1000 });
/// table.add("scratch", Region { base: 0x5000, size: 8 }, None, Scratch::default())?;
/// let wrong = table.add("more", Region { base: 0x5004, size: 8 }, None, Scratch::default()).unwrap_err();
/// assert_eq!(wrong.to_string(), "device more at 0x5004 to 0x500b overlaps scratch: give it a free range");
///
/// let mut board = Small(table);
/// Table::write(&mut board, PhysAddr(0x5000), 8, 7, Cycle(0));
/// assert_eq!(Table::read(&mut board, PhysAddr(0x5000), 8, Cycle(0)), Some((7, MmioEffect::None)));
/// assert_eq!(Table::read(&mut board, PhysAddr(0x6000), 8, Cycle(0)), None);
/// # Ok::<(), trapless_devices::Overlap>(())
/// ```
pub struct Table<B> {
    ram: Region,
    /// The devices, sorted by address.
    entries: Vec<Entry<B>>,
}

impl<B: Board> Table<B> {
    /// Creates an empty table of a board that has RAM at `ram`.
    pub fn new(ram: Region) -> Table<B> {
        Table { ram, entries: Vec::new() }
    }

    /// Adds a device that nothing else on the board needs to know. `interrupt` is the source of the interrupt controller to which
    /// the device's line is wired.
    ///
    /// # Errors
    /// The range overlaps that of another device, or RAM.
    pub fn add(
        &mut self,
        name: &'static str,
        region: Region,
        interrupt: Option<u32>,
        device: impl Device + 'static,
    ) -> Result<(), Overlap> {
        self.enter(name, region, Way::Own(Box::new(device), interrupt))
    }

    /// Adds a device that is part of the board.
    ///
    /// # Errors
    /// Fails like [`Table::add`].
    pub fn add_part(
        &mut self,
        name: &'static str,
        region: Region,
        part: fn(&mut B) -> &mut dyn Device,
    ) -> Result<(), Overlap> {
        self.enter(name, region, Way::Part(part))
    }

    /// Adds a range that the board itself reads and writes.
    ///
    /// # Errors
    /// Fails like [`Table::add`].
    pub fn add_ways(
        &mut self,
        name: &'static str,
        region: Region,
        reader: Reader<B>,
        writer: Writer<B>,
    ) -> Result<(), Overlap> {
        self.enter(name, region, Way::Ways(reader, writer))
    }

    fn enter(&mut self, name: &'static str, region: Region, way: Way<B>) -> Result<(), Overlap> {
        let others = self.entries.iter().map(|e| (e.name, &e.region)).chain([("RAM", &self.ram)]);
        if let Some((other, _)) = others.into_iter().find(|(_, other)| region.overlaps(other)) {
            let last = region.base.saturating_add(region.size.saturating_sub(1));
            return Err(Overlap { name, base: region.base, last, other });
        }
        let place = self.entries.partition_point(|e| e.region.base < region.base);
        self.entries.insert(place, Entry { name, region, way });
        Ok(())
    }

    /// Names and ranges, sorted by address.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, Region)> {
        self.entries.iter().map(|e| (e.name, e.region))
    }

    #[inline]
    fn find(&mut self, at: PhysAddr, size: u32) -> Option<(&mut Way<B>, u64)> {
        let place = self.entries.partition_point(|e| e.region.base <= at.0).checked_sub(1)?;
        let entry = &mut self.entries[place];
        let offset = entry.region.offset(at, size.into())?;
        Some((&mut entry.way, offset))
    }

    /// Reads `size` bytes at `at`; `None` if no device answers there.
    pub fn read(board: &mut B, at: PhysAddr, size: u32, now: Cycle) -> Option<(u64, MmioEffect)> {
        let (way, offset) = board.table().find(at, size)?;
        match way {
            Way::Own(device, _) => Some(device.read(offset, size, now)),
            Way::Part(part) => {
                let part = *part;
                Some(part(board).read(offset, size, now))
            }
            Way::Ways(reader, _) => {
                let reader = *reader;
                reader(board, offset, size, now)
            }
        }
    }

    /// Writes `size` bytes at `at`; `None` if no device answers there.
    pub fn write(board: &mut B, at: PhysAddr, size: u32, value: u64, now: Cycle) -> Option<MmioEffect> {
        let (way, offset) = board.table().find(at, size)?;
        match way {
            Way::Own(device, _) => Some(device.write(offset, size, value, now)),
            Way::Part(part) => {
                let part = *part;
                Some(part(board).write(offset, size, value, now))
            }
            Way::Ways(_, writer) => {
                let writer = *writer;
                writer(board, offset, size, value, now)
            }
        }
    }

    fn own(&self) -> impl Iterator<Item = &dyn Device> {
        self.entries.iter().filter_map(|e| if let Way::Own(device, _) = &e.way { Some(&**device) } else { None })
    }

    fn own_mut(&mut self) -> impl Iterator<Item = (&mut Box<dyn Device>, Option<u32>)> {
        self.entries.iter_mut().filter_map(|e| {
            if let Way::Own(device, interrupt) = &mut e.way { Some((device, *interrupt)) } else { None }
        })
    }

    /// Time of the next event of the devices that [`Table::add`] added.
    pub fn next_event(&self) -> Cycle {
        self.own().map(Device::next_event).min().unwrap_or(Cycle::NEVER)
    }

    /// Lets these devices do what is due at `at`, in the order of addresses.
    pub fn advance(&mut self, at: Cycle, dma: &mut dyn Dma) {
        for (device, _) in self.own_mut() {
            if device.next_event() <= at {
                device.advance(at, dma);
            }
        }
    }

    /// The interrupt lines of these devices, if they are wired: source and level.
    pub fn interrupts(&mut self) -> impl Iterator<Item = (u32, bool)> {
        self.own_mut().filter_map(|(device, source)| Some((source?, device.interrupt())))
    }

    /// The states of these devices.
    pub fn save(&self) -> Vec<Vec<u8>> {
        self.own().map(Device::save).collect()
    }

    /// Continues from the states that [`Table::save`] returned.
    ///
    /// # Errors
    /// A state does not fit its device; the error is the name of the device.
    pub fn restore(&mut self, states: &[Vec<u8>]) -> Result<(), &'static str> {
        let mut states = states.iter();
        for e in &mut self.entries {
            if let Way::Own(device, _) = &mut e.way
                && !states.next().is_some_and(|state| device.restore(state))
            {
                return Err(e.name);
            }
        }
        Ok(())
    }
}

impl<B> fmt::Debug for Table<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|e| (e.name, e.region))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAM: Region = Region { base: 0x8000_0000, size: 0x1000 };

    /// A device that counts accesses. Its line is high after the first write, and at cycle 10 it writes the count to memory.
    #[derive(Default)]
    struct Counter(u64, bool);

    impl Device for Counter {
        fn read(&mut self, offset: u64, _size: u32, _now: Cycle) -> (u64, MmioEffect) {
            self.0 += 1;
            (offset, MmioEffect::None)
        }

        fn write(&mut self, _offset: u64, _size: u32, _value: u64, _now: Cycle) -> MmioEffect {
            self.0 += 1;
            MmioEffect::Resync
        }

        fn next_event(&self) -> Cycle {
            if self.1 { Cycle::NEVER } else { Cycle(10) }
        }

        fn advance(&mut self, _now: Cycle, dma: &mut dyn Dma) {
            self.1 = dma.write(PhysAddr(RAM.base), &self.0.to_le_bytes()).is_ok();
        }

        fn interrupt(&mut self) -> bool {
            self.0 > 0
        }

        fn save(&self) -> Vec<u8> {
            self.0.to_le_bytes().to_vec()
        }

        fn restore(&mut self, state: &[u8]) -> bool {
            state.try_into().map(|bytes| self.0 = u64::from_le_bytes(bytes)).is_ok()
        }
    }

    struct Two {
        table: Table<Two>,
        part: Counter,
    }

    impl Board for Two {
        fn table(&mut self) -> &mut Table<Two> {
            &mut self.table
        }
    }

    fn two() -> Two {
        let mut table = Table::new(RAM);
        table.add("own", Region { base: 0x1000, size: 0x10 }, Some(7), Counter::default()).unwrap();
        table.add_part("part", Region { base: 0x1010, size: 0x10 }, |b: &mut Two| &mut b.part).unwrap();
        Two { table, part: Counter::default() }
    }

    #[test]
    fn an_overlap_is_refused_whoever_comes_first() {
        let mut b = two();
        let mut add = |base, size| b.table.add("new", Region { base, size }, None, Counter::default());
        for (base, size, other) in [
            (0xfff, 2, "own"),
            (0x1004, 4, "own"),
            (0, 0x2000, "own"),
            (0x101f, 1, "part"),
            (0x8000_0fff, 1, "RAM"),
            (0x7fff_fff8, 0x10, "RAM"),
        ] {
            let text = add(base, size).unwrap_err().to_string();
            let last = base + size - 1;
            assert_eq!(text, format!("device new at {base:#x} to {last:#x} overlaps {other}: give it a free range"));
        }
        add(0, 0x1000).unwrap();
        add(0x1020, 1).unwrap();
        add(0x8000_1000, u64::MAX - 0x8000_1000).unwrap();
    }

    #[test]
    fn accesses_reach_the_one_device_that_is_there() {
        let mut b = two();
        assert_eq!(Table::read(&mut b, PhysAddr(0x100c), 4, Cycle(0)), Some((0xc, MmioEffect::None)));
        assert_eq!(Table::read(&mut b, PhysAddr(0x1014), 4, Cycle(0)), Some((4, MmioEffect::None)));
        assert_eq!(Table::write(&mut b, PhysAddr(0x1018), 8, 0, Cycle(0)), Some(MmioEffect::Resync));
        assert_eq!(b.part.0, 2);
        for (at, size) in [(0, 1), (0xffc, 8), (0x100c, 8), (0x1020, 1), (RAM.base, 8), (u64::MAX, 1)] {
            assert_eq!(Table::read(&mut b, PhysAddr(at), size, Cycle(0)), None);
            assert_eq!(Table::write(&mut b, PhysAddr(at), size, 0, Cycle(0)), None);
        }
    }

    #[test]
    fn a_device_of_the_tables_own_has_memory_a_line_and_a_state() {
        let mut b = two();
        Table::write(&mut b, PhysAddr(0x1000), 4, 0, Cycle(0));
        assert_eq!(b.table.interrupts().collect::<Vec<_>>(), [(7, true)]);
        let mut ram = trapless_memory::Ram::new(PhysAddr(RAM.base), RAM.size).unwrap();
        assert_eq!(b.table.next_event(), Cycle(10));
        b.table.advance(Cycle(10), &mut ram);
        assert_eq!(ram.load::<8>(PhysAddr(RAM.base)), Some(1u64.to_le_bytes()));
        assert_eq!(b.table.next_event(), Cycle::NEVER);
        let mut other = two();
        other.table.restore(&b.table.save()).unwrap();
        assert_eq!(other.table.interrupts().collect::<Vec<_>>(), [(7, true)]);
        assert_eq!(other.table.restore(&[vec![1]]), Err("own"));
    }
}
