// SPDX-License-Identifier: Apache-2.0
//! The SMU's RTL (rtl/smu/rtl), simulated by a library that rtl/smu/sim/build.py makes, in the place of the reference model.
//!
//! One clock cycle of the unit is one cycle of the machine, except that register accesses take none of the machine's time and
//! that cycles in which nothing can happen are skipped.

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
