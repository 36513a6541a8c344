// SPDX-License-Identifier: Apache-2.0
//! Profiles (parts and times of a machine) and timing models: caches, memory, TLBs, SSD.

mod cache;
mod detail;
mod dram;
mod drive;
mod error;
mod flash;
mod hierarchy;
mod profile;
mod rules;
mod shape;
mod source;
mod ssd;
mod store_buffer;
mod tlb;

pub use cache::{Cache, LINE_SHIFT, Line};
pub use detail::{CacheParams, Detail, DramParams, PredictorParams, TlbParams};
pub use dram::{Dram, DramTiming};
pub use drive::{FlashParams, Latency, SsdParams};
pub use error::{FileKind, FileName, ProfileError};
pub use hierarchy::{Answer, Granted, Hierarchy, HierarchyConfig, Level, Loss, Lost, Want};
pub use profile::{CoreCosts, MachineParams, Profile, SmuParams};
pub use shape::scatter;
pub use ssd::{SsdOp, SsdState, SsdTiming};
pub use store_buffer::StoreBuffer;
pub use tlb::{Side, Thread, Tlb, TlbConfig};
