// SPDX-License-Identifier: Apache-2.0
//! The devices of the platform: interrupt controllers, timer, UART, power-off and the PCIe host.
//!
//! A [`Device`] sees the offset into its own range, the size, the value and the time of an access, memory through DMA, and its
//! interrupt line. Every access succeeds: reads of undefined registers return zero, and writes to them do nothing. A board
//! keeps its devices in a [`Table`], by address.

mod aclint;
mod finisher;
mod pci;
mod plic;
mod table;
mod uart;

pub use aclint::Aclint;
pub use finisher::{Finish, Finisher};
pub use pci::{PciFunction, PciHost, PciIds};
pub use plic::Plic;
pub use table::{Board, Device, Overlap, Reader, Region, Table, Writer};
pub use uart::{Uart, UartState};
