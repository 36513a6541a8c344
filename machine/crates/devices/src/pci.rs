// SPDX-License-Identifier: Apache-2.0
//! A PCIe host with one bus: ECAM configuration space, memory window, INTx (PCI Express Base Specification, PCI Local
//! Bus Specification 3.0). All functions are root complex integrated endpoints with one memory BAR.

use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;
use trapless_memory::{Cycle, MmioEffect, PhysAddr};

use crate::table::Device;

/// Identification of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIds {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Class code: base class, subclass, programming interface.
    pub class: u32,
    /// Revision ID.
    pub revision: u8,
}

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const BAR0: usize = 0x10;
const SUBSYSTEM: usize = 0x2c;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;
const INTERRUPT_PIN: usize = 0x3d;
const PCIE_CAP: usize = 0x40;

const COMMAND_MEMORY: u8 = 1 << 1;
const COMMAND_MASTER: u8 = 1 << 2;
const COMMAND_INTX_DISABLE: u8 = 1 << 2; // of the upper byte
const STATUS_INTERRUPT: u8 = 1 << 3;
const STATUS_CAPABILITIES: u8 = 1 << 4;

/// Header and capabilities; the extended space above reads zero.
const CONFIG_BYTES: usize = 256;

/// One function's configuration space.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PciFunction {
    #[serde(with = "BigArray")]
    config: [u8; CONFIG_BYTES],
    /// Bits that software may write, in each byte of `config`.
    #[serde(with = "BigArray")]
    writable: [u8; CONFIG_BYTES],
    bar_size: u64,
    interrupt: bool,
}

impl PciFunction {
    /// Creates an endpoint with INTA and a 64-bit memory BAR 0 of `bar_size` bytes: a power of two, at least 4 KiB; other sizes
    /// are rounded up.
    pub fn endpoint(ids: PciIds, bar_size: u64) -> PciFunction {
        let mut f = PciFunction::bare(ids);
        f.bar_size = bar_size.max(4096).next_power_of_two();
        f.config[BAR0] = 0x4; // memory, 64-bit, not prefetchable
        f.writable[BAR0..BAR0 + 8].copy_from_slice(&(!(f.bar_size - 1)).to_le_bytes());
        f.writable[COMMAND] = COMMAND_MEMORY | COMMAND_MASTER | 0x40; // 0x40: parity error response
        f.writable[COMMAND + 1] = 0x01 | COMMAND_INTX_DISABLE; // 0x01: SERR# enable
        f.writable[INTERRUPT_LINE] = 0xff;
        f.config[INTERRUPT_PIN] = 1;
        f.config[STATUS] = STATUS_CAPABILITIES;
        f.config[CAPABILITIES] = PCIE_CAP as u8;
        // PCI Express capability, version 2, root complex integrated endpoint. This type has no link registers.
        f.config[PCIE_CAP] = 0x10;
        f.config[PCIE_CAP + 2] = 0x92;
        f.config[PCIE_CAP + 5] = 0x80; // device capabilities: role-based error reporting; payload 128 bytes
        f.writable[PCIE_CAP + 8] = 0xff; // device control
        f.writable[PCIE_CAP + 9] = 0x7f;
        f
    }

    /// Creates the host bridge's own function, which has identifiers only.
    fn bare(ids: PciIds) -> PciFunction {
        let mut config = [0; CONFIG_BYTES];
        config[0..2].copy_from_slice(&ids.vendor.to_le_bytes());
        config[2..4].copy_from_slice(&ids.device.to_le_bytes());
        config[8] = ids.revision;
        config[9..12].copy_from_slice(&ids.class.to_le_bytes()[..3]);
        config[SUBSYSTEM..SUBSYSTEM + 2].copy_from_slice(&ids.vendor.to_le_bytes());
        config[SUBSYSTEM + 2..SUBSYSTEM + 4].copy_from_slice(&ids.device.to_le_bytes());
        PciFunction { config, writable: [0; CONFIG_BYTES], bar_size: 0, interrupt: false }
    }

    /// Address in BAR 0, if the function has that BAR.
    fn bar(&self) -> Option<u64> {
        let mut low = [0; 8];
        low.copy_from_slice(&self.config[BAR0..BAR0 + 8]);
        (self.bar_size > 0).then(|| u64::from_le_bytes(low) & !0xf)
    }

    /// Memory Space Enable.
    pub fn memory_enabled(&self) -> bool {
        self.config[COMMAND] & COMMAND_MEMORY != 0
    }

    /// Bus Master Enable: without it the function may not touch memory.
    pub fn bus_master(&self) -> bool {
        self.config[COMMAND] & COMMAND_MASTER != 0
    }

    /// Level of the INTx pin, which Interrupt Disable forces low.
    fn pin(&self) -> bool {
        self.interrupt && self.config[COMMAND + 1] & COMMAND_INTX_DISABLE == 0
    }

    fn read(&self, register: usize, size: usize) -> u64 {
        let mut value = [0; 8];
        for (to, at) in value.iter_mut().zip(register..register + size) {
            *to = self.config.get(at).copied().unwrap_or(0);
        }
        if self.interrupt && (register..register + size).contains(&STATUS) {
            value[STATUS - register] |= STATUS_INTERRUPT;
        }
        u64::from_le_bytes(value)
    }

    fn write(&mut self, register: usize, size: usize, value: u64) {
        for (from, at) in value.to_le_bytes().into_iter().zip(register..register + size) {
            if let (Some(byte), Some(mask)) = (self.config.get_mut(at), self.writable.get(at)) {
                *byte = (*byte & !mask) | (from & mask);
            }
        }
    }
}

/// Number of devices on a bus.
pub const PCI_DEVICES: usize = 32;

/// The host bridge and its bus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PciHost {
    window_base: u64,
    window_size: u64,
    functions: [Option<Box<PciFunction>>; PCI_DEVICES],
    /// Devices that no longer answer in configuration space, a bit each.
    removed: u32,
}

impl PciHost {
    /// Bytes of ECAM for one bus.
    pub const ECAM_SIZE: u64 = 0x10_0000;

    /// Creates a bus with only the bridge (device 0). In the window, PCI addresses equal processor addresses.
    pub fn new(window_base: PhysAddr, window_size: u64) -> PciHost {
        let mut functions = [const { None }; PCI_DEVICES];
        // Red Hat's identifiers of a generic PCIe host, which QEMU's virtual machines have.
        let bridge = PciIds { vendor: 0x1b36, device: 0x0008, class: 0x06_0000, revision: 0 };
        functions[0] = Some(Box::new(PciFunction::bare(bridge)));
        PciHost { window_base: window_base.0, window_size, functions, removed: 0 }
    }

    /// Puts a function at `device`, function 0. A number above 31 is ignored.
    pub fn add(&mut self, device: usize, function: PciFunction) {
        if let Some(slot) = self.functions.get_mut(device) {
            *slot = Some(Box::new(function));
        }
    }

    /// Removes a device from its slot: configuration space reads as all ones. The bridge still routes accesses to its BAR; the
    /// device itself must answer those with all ones.
    pub fn remove(&mut self, device: usize) {
        self.removed |= 1_u32.checked_shl(device as u32).unwrap_or(0);
        self.set_interrupt(device, false);
    }

    fn is_removed(&self, device: usize) -> bool {
        self.removed >> device & 1 != 0
    }

    /// The function at `device`.
    pub fn function(&self, device: usize) -> Option<&PciFunction> {
        self.functions.get(device)?.as_deref()
    }

    /// Reads configuration space; all ones where there is no function.
    pub fn config_read(&self, offset: u64, size: u32) -> u64 {
        let (device, register) = locate(offset);
        let size = size.clamp(1, 8) as usize;
        match device.filter(|&d| !self.is_removed(d)).and_then(|d| self.function(d)) {
            Some(f) => f.read(register, size),
            None => u64::MAX >> (64 - 8 * size),
        }
    }

    /// Writes configuration space.
    pub fn config_write(&mut self, offset: u64, size: u32, value: u64) -> MmioEffect {
        let (device, register) = locate(offset);
        match device.filter(|&d| !self.is_removed(d)).and_then(|d| self.functions[d].as_deref_mut()) {
            Some(f) => {
                f.write(register, size.clamp(1, 8) as usize, value);
                MmioEffect::Resync
            }
            None => MmioEffect::None,
        }
    }

    /// The device whose BAR contains the whole access to the memory window, and the offset into the BAR. If BARs overlap, the
    /// lowest device answers.
    pub fn route(&self, at: PhysAddr, size: u32) -> Option<(usize, u64)> {
        if at.0.wrapping_sub(self.window_base) >= self.window_size {
            return None;
        }
        self.functions.iter().enumerate().find_map(|(device, f)| {
            let f = f.as_deref().filter(|f| f.memory_enabled())?;
            let offset = at.0.checked_sub(f.bar()?)?;
            (offset < f.bar_size && u64::from(size) <= f.bar_size - offset).then_some((device, offset))
        })
    }

    /// Sets the interrupt of a device.
    pub fn set_interrupt(&mut self, device: usize, asserted: bool) {
        if let Some(f) = self.functions.get_mut(device).and_then(Option::as_deref_mut) {
            f.interrupt = asserted;
        }
    }

    /// Levels of the host's inputs INTA to INTD. INTA of device `d` is wired to input `d mod 4`.
    pub fn lines(&self) -> [bool; 4] {
        let mut lines = [false; 4];
        for (device, f) in self.functions.iter().enumerate() {
            lines[device % 4] |= f.as_deref().is_some_and(PciFunction::pin);
        }
        lines
    }
}

/// The host's configuration space (ECAM). [`PciHost::route`] finds the memory windows behind it.
impl Device for PciHost {
    fn read(&mut self, offset: u64, size: u32, _now: Cycle) -> (u64, MmioEffect) {
        (self.config_read(offset, size), MmioEffect::None)
    }

    fn write(&mut self, offset: u64, size: u32, value: u64, _now: Cycle) -> MmioEffect {
        self.config_write(offset, size, value)
    }
}

/// Device and register of an ECAM offset; no device if the function number is not 0 or the bus does not exist.
fn locate(offset: u64) -> (Option<usize>, usize) {
    let device = (offset >> 15) as usize;
    let function = offset >> 12 & 7;
    ((function == 0 && device < PCI_DEVICES).then_some(device), (offset & 0xfff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 0x4000_0000;
    const IDS: PciIds = PciIds { vendor: 0x1b36, device: 0x0010, class: 0x01_0802, revision: 2 };

    fn register(device: u64, register: usize) -> u64 {
        device << 15 | register as u64
    }

    /// A host with an endpoint of 16 KiB as device 1; its BAR is at the second megabyte of the window.
    fn host() -> PciHost {
        let mut h = PciHost::new(PhysAddr(WINDOW), 0x4000_0000);
        h.add(1, PciFunction::endpoint(IDS, 0x4000));
        h.config_write(register(1, BAR0), 4, WINDOW + 0x10_0000);
        h
    }

    #[test]
    fn absent_functions_read_all_ones() {
        let mut h = host();
        assert_eq!(h.config_read(register(2, 0), 4), 0xffff_ffff);
        assert_eq!(h.config_read(register(1, 0) | 1 << 12, 2), 0xffff, "no function 1");
        assert_eq!(h.config_read(1 << 20, 4), 0xffff_ffff, "no bus 1");
        h.config_write(register(2, 4), 4, 0xffff_ffff);
        h.config_write(u64::MAX, 8, 0);
    }

    #[test]
    fn a_removed_device_reads_all_ones_and_keeps_its_addresses() {
        let mut h = host();
        h.config_write(register(1, COMMAND), 2, 2);
        h.set_interrupt(1, true);
        h.remove(1);
        h.remove(99); // nobody there
        assert_eq!(h.config_read(register(1, 0), 4), 0xffff_ffff);
        h.config_write(register(1, COMMAND), 2, 0);
        assert_eq!(h.route(PhysAddr(WINDOW + 0x10_0000), 4), Some((1, 0)));
        assert_eq!(h.lines(), [false; 4]);
    }

    #[test]
    fn the_header_says_what_the_function_is() {
        let h = host();
        assert_eq!(h.config_read(register(1, 0), 4), 0x0010_1b36);
        assert_eq!(h.config_read(register(1, 8), 4), 0x0108_0202);
        assert_eq!(h.config_read(register(1, INTERRUPT_PIN), 1), 1);
        let cap = h.config_read(register(1, CAPABILITIES), 1);
        assert_eq!(h.config_read(register(1, cap as usize), 4), 0x0092_0010);
        assert_eq!(h.config_read(register(1, 0x100), 4), 0, "no extended capabilities");
        assert_eq!(h.config_read(register(0, 8), 4) >> 8, 0x06_0000);
    }

    #[test]
    fn sizing_a_bar_gives_its_size_and_type() {
        let mut h = host();
        h.config_write(register(1, BAR0), 4, 0xffff_ffff);
        h.config_write(register(1, BAR0 + 4), 4, 0xffff_ffff);
        assert_eq!(h.config_read(register(1, BAR0), 4), 0xffff_c004);
        assert_eq!(h.config_read(register(1, BAR0 + 4), 4), 0xffff_ffff);
        h.config_write(register(1, BAR0 + 8), 4, 0xffff_ffff);
        assert_eq!(h.config_read(register(1, BAR0 + 8), 4), 0, "there is one BAR");
    }

    #[test]
    fn memory_is_routed_only_while_enabled_and_inside_the_bar() {
        let mut h = host();
        let bar = WINDOW + 0x10_0000;
        assert_eq!(h.route(PhysAddr(bar), 4), None);
        h.config_write(register(1, COMMAND), 2, 2);
        assert_eq!(h.route(PhysAddr(bar), 4), Some((1, 0)));
        assert_eq!(h.route(PhysAddr(bar + 0x3ffc), 4), Some((1, 0x3ffc)));
        assert_eq!(h.route(PhysAddr(bar + 0x3ffc), 8), None);
        assert_eq!(h.route(PhysAddr(bar - 1), 1), None);
        assert_eq!(h.route(PhysAddr(WINDOW - 4), 4), None);
        assert_eq!(h.route(PhysAddr(u64::MAX), 8), None);
        h.config_write(register(1, BAR0), 4, 0x8000_0000);
        assert_eq!(h.route(PhysAddr(0x8000_0000), 4), None, "outside the window");
    }

    #[test]
    fn bus_mastering_is_the_hosts_to_allow() {
        let mut h = host();
        assert!(!h.function(1).unwrap().bus_master());
        h.config_write(register(1, COMMAND), 2, 6);
        assert!(h.function(1).unwrap().bus_master());
    }

    #[test]
    fn interrupts_show_in_status_and_on_the_swizzled_line() {
        let mut h = host();
        h.set_interrupt(1, true);
        h.set_interrupt(9, true); // nobody there
        assert_eq!(h.lines(), [false, true, false, false]);
        assert_ne!(h.config_read(register(1, COMMAND), 4) & 1 << 19, 0);
        h.config_write(register(1, COMMAND), 2, 0x400);
        assert_eq!(h.lines(), [false; 4]);
        assert_ne!(h.config_read(register(1, STATUS), 2) & 1 << 3, 0);
    }
}
