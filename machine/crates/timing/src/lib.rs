// SPDX-License-Identifier: Apache-2.0
//! Profiles: what a machine is made of and how long everything takes, and the timing model of the SSD.

mod profile;
mod ssd;

pub use profile::{CoreCosts, MachineParams, Profile, ProfileError, SmuParams, SsdParams};
pub use ssd::{SsdOp, SsdTiming};
