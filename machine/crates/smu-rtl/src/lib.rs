// SPDX-License-Identifier: Apache-2.0
//! The simulated RTL of the SMU (rtl/smu/rtl), for use in place of the reference model. rtl/smu/sim/build.py builds the library.
//!
//! One clock cycle of the unit is one cycle of the machine, with two exceptions: register accesses take no time of the machine,
//! and cycles in which nothing can happen are skipped.

mod axi;
mod dice;
mod error;
mod misses;
mod nowhere;
mod pins;
mod unit;

pub use axi::{Access, Memory};
pub use dice::Dice;
pub use error::RtlError;
pub use pins::Parameters;
pub use unit::RtlSmu;
