// SPDX-License-Identifier: Apache-2.0
//! Puts a machine together and loads what it starts with.

mod booted;
pub mod fdt;
pub mod load;
mod parts;

pub use booted::Booted;
pub use parts::{assemble, drives, open_drives, smu_config, smu_timing};
