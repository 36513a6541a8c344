// SPDX-License-Identifier: Apache-2.0
//! The devices of the platform: interrupt controllers, timer, UART, power-off and the PCIe host.
//!
//! A device sees the offset into its own range, the size, the value and the time of an access, and nothing else. No
//! access is refused: what the hardware does not define reads zero and writes nothing.

mod aclint;
mod finisher;
mod pci;
mod plic;
mod uart;

pub use aclint::Aclint;
pub use finisher::{Finish, Finisher};
pub use pci::{PciFunction, PciHost, PciIds};
pub use plic::Plic;
pub use uart::{Uart, UartState};
