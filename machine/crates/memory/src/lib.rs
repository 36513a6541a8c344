// SPDX-License-Identifier: Apache-2.0
//! Units, guest RAM and the traits by which harts and devices reach it.
//!
//! All other crates express time in [`Cycle`]s of the core clock and places in memory as [`PhysAddr`]s.

mod bus;
mod paging;
mod ram;
mod units;

pub use bus::{BusError, Dma, MmioEffect};
pub use paging::Paging;
pub use ram::{PAGE_SHIFT, PAGE_SIZE, Ram, RamError};
pub use units::{ClockHz, Cycle, PhysAddr, Picos};
