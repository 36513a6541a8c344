// SPDX-License-Identifier: Apache-2.0
//! The full-system machine: harts, devices, SMU and SSD in one deterministic order of events.
//!
//! There is one host thread and one simulated clock. Harts run in turn for at most a quantum, never past the next device event.
//! Devices act at their own cycles, in the order of time. The same inputs always give the same cycles and the same bytes.
//!
//! Modules import one way: `config` and `error`; `cores`; `board`; `firmware`, `boot` and `terminal`; `watch`; `checkpoint`; `machine`.

mod board;
mod boot;
mod checkpoint;
mod config;
mod cores;
mod error;
mod firmware;
mod machine;
mod sbi;
mod terminal;
mod watch;

#[cfg(feature = "seeded-bugs")]
pub use board::exchange_errors;
pub use board::{DiskReads, Peripherals, PeripheralsState, Reads, devices, map};
pub use boot::{fdt, load, open_drives};
pub use config::{
    AttributionConfig, Boot, Console, DetailFrom, DiskConfig, DiskWrites, End, Engine, Limits, MachineConfig, Moment,
    NamespaceConfig,
};
pub use cores::{MissCounts, Misses};
pub use error::Error;
pub use machine::Machine;
pub use trapless_attribution::{Attribution, SymbolFile};
pub use trapless_devices::Region;
pub use trapless_nvme::Fault;
pub use trapless_riscv::Access;
pub use trapless_smu_rtl::Parameters as SmuRtlParameters;
pub use watch::{
    Asker, AtomicChecked, AtomicRequest, Debugger, Orders, Register, Report, Roi, Stop, TraceConfig, TraceFrom, View,
    WatchCounts, Watchpoint, Why,
};
