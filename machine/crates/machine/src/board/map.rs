// SPDX-License-Identifier: Apache-2.0
//! The physical address map (spec/platform.md).

use trapless_devices::Region;
use trapless_memory::PhysAddr;

/// SiFive test finisher: power off and reset.
pub const FINISHER: Region = Region { base: 0x0010_0000, size: 0x1000 };
/// ACLINT MSWI and MTIMER in CLINT layout.
pub const ACLINT: Region = Region { base: 0x0200_0000, size: 0x1_0000 };
/// Platform-level interrupt controller.
pub const PLIC: Region = Region { base: 0x0c00_0000, size: 0x400_0000 };
/// The 16550 UART.
pub const UART: Region = Region { base: 0x1000_0000, size: 0x100 };
/// SMU registers.
pub const SMU: Region = Region { base: 0x1100_0000, size: 0x1_0000 };
/// PCIe ECAM of bus 0.
pub const PCIE_ECAM: Region = Region { base: 0x3000_0000, size: 0x10_0000 };
/// PCIe 32-bit memory window.
pub const PCIE_MMIO: Region = Region { base: 0x4000_0000, size: 0x4000_0000 };
/// First byte of RAM.
pub const RAM_BASE: PhysAddr = PhysAddr(0x8000_0000);

/// PLIC source of the UART.
pub const UART_IRQ: u32 = 10;
/// PLIC source of PCIe INTA; INTB to INTD follow.
pub const PCIE_INTA_IRQ: u32 = 32;
/// Highest PLIC source, for the device tree.
pub const PLIC_NDEV: u32 = 63;

/// PLIC source of interrupt pin `pin` (1 = INTA) of `device` on bus 0: the usual swizzle.
pub fn pcie_irq(device: u8, pin: u8) -> u32 {
    PCIE_INTA_IRQ + (u32::from(pin) - 1 + u32::from(device)) % 4
}
