// SPDX-License-Identifier: Apache-2.0
//! The full-system machine: harts, devices, SMU and SSD in one deterministic order of events.
//!
//! One host thread, one simulated clock. Harts run in turn for at most a quantum, never past the next device event;
//! devices act at their own cycles, in the order of time. The same inputs give the same cycles and the same bytes.

mod assemble;
mod atomic;
mod attribute;
mod board;
mod checkpoint;
mod debug;
mod error;
#[cfg(feature = "seeded-bugs")]
pub mod exchange_errors;
pub mod fdt;
mod firmware;
mod frames;
pub mod load;
mod machine;
pub mod map;
mod misses;
mod recorder;
mod regions;
mod report;
mod sbi;
mod slots;
mod stats;
mod times;
mod tracer;
mod walk_cache;
mod watches;
mod watching;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

pub use assemble::open_drives;
pub use atomic::{Asker, AtomicChecked, AtomicRequest};
pub use attribute::AttributionConfig;
pub use debug::{Debugger, Orders, Register, Stop, View, Watchpoint, Why};
pub use error::Error;
pub use machine::Machine;
pub use map::{DEVICES, Region};
pub use report::{DiskReads, Reads, Report, Roi};
pub use times::{MissCounts, Misses};
pub use tracer::{TraceConfig, TraceFrom};
pub use trapless_attribution::{Attribution, SymbolFile};
use trapless_memory::Cycle;
pub use trapless_nvme::Fault;
pub use trapless_riscv::Access;
pub use trapless_smu_rtl::Parameters as SmuRtlParameters;
use trapless_timing::{Profile, SsdParams};
pub use watches::WatchCounts;

/// What a machine is made of and starts with.
pub struct MachineConfig {
    /// Sizes and times.
    pub profile: Profile,
    /// What runs first.
    pub boot: Boot,
    /// Drives in the order of their names in the guest.
    pub disks: Vec<DiskConfig>,
    /// Faults of drives.
    pub faults: Vec<Fault>,
    /// How instructions are executed.
    pub engine: Engine,
    /// When timing is detailed.
    pub detail: DetailFrom,
    /// When to write a checkpoint, and where; the run ends there.
    pub checkpoint: Option<(Moment, PathBuf)>,
    /// Which cycles to attribute to guest functions, and how.
    pub attribution: Option<AttributionConfig>,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The milestone with this number.
    Milestone(u64),
    /// The end of the window in which so many instructions are retired.
    Instructions(u64),
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let moment = text.split_once(':').and_then(|(what, n)| {
            let n = n.parse().ok()?;
            match what {
                "milestone" => Some(Moment::Milestone(n)),
                "instructions" => Some(Moment::Instructions(n)),
                _ => None,
            }
        });
        moment.ok_or_else(|| "should be milestone:N or instructions:N".to_owned())
    }
}

/// When timing is detailed: caches, TLBs, branch prediction and DRAM as the profile's `detail` says. Otherwise instructions
/// cost what their class costs, every access hits, and only page walks cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailFrom {
    /// Never.
    #[default]
    Never,
    /// From the first instruction on.
    Start,
    /// In regions of interest.
    Rois,
    /// In those with this number.
    Roi(u64),
    /// From this moment on.
    Moment(Moment),
}

impl DetailFrom {
    /// Do regions of interest begin and end it?
    fn by_regions(self) -> bool {
        matches!(self, DetailFrom::Rois | DetailFrom::Roi(_))
    }

    /// Is it in regions with this number?
    fn in_region(self, number: u64) -> bool {
        self == DetailFrom::Rois || self == DetailFrom::Roi(number)
    }
}

/// How instructions are executed. The guest cannot tell: both take the same cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// One by one.
    Interpreter,
    /// What is executed often is translated to code of the host, where the host can do that.
    #[default]
    Translator,
}

impl std::str::FromStr for DetailFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<DetailFrom, String> {
        match text {
            "start" => Ok(DetailFrom::Start),
            "roi" => Ok(DetailFrom::Rois),
            _ => match text.strip_prefix("roi:").map(str::parse) {
                Some(Ok(number)) => Ok(DetailFrom::Roi(number)),
                _ => text
                    .parse()
                    .map(DetailFrom::Moment)
                    .map_err(|_| "should be start, roi, roi:N, milestone:N or instructions:N".to_owned()),
            },
        }
    }
}

/// What runs first.
#[derive(Clone, Debug)]
pub enum Boot {
    /// A Linux kernel, started by the built-in SBI or by firmware.
    Linux {
        /// The Image.
        kernel: PathBuf,
        /// Initial RAM disk.
        initrd: Option<PathBuf>,
        /// Command line.
        append: String,
        /// Machine-mode firmware instead of the built-in SBI.
        firmware: Option<PathBuf>,
    },
    /// A bare-metal ELF with a `tohost` symbol.
    Elf {
        /// The file.
        file: PathBuf,
    },
    /// What another machine was doing when it wrote a checkpoint.
    Checkpoint {
        /// The folder.
        dir: PathBuf,
    },
}

/// A drive.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// What it is; `None`: as the profile says.
    pub ssd: Option<SsdParams>,
    /// Its namespaces, 1 to 64.
    pub namespaces: Vec<NamespaceConfig>,
}

impl DiskConfig {
    /// A drive as the profile says, with one namespace.
    pub fn new(path: impl Into<PathBuf>, writes: DiskWrites) -> DiskConfig {
        DiskConfig { ssd: None, namespaces: vec![NamespaceConfig { path: path.into(), writes, block_bytes: None }] }
    }
}

/// A namespace of a drive.
#[derive(Clone, Debug)]
pub struct NamespaceConfig {
    /// The image.
    pub path: PathBuf,
    /// Where writes go.
    pub writes: DiskWrites,
    /// Its logical block, 512 or 4096 bytes; `None`: the drive's.
    pub block_bytes: Option<u32>,
}

/// Where writes to a namespace go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWrites {
    /// To the file.
    ToFile,
    /// Nowhere: the namespace is read-only.
    Fail,
    /// Into memory, dropped at the end.
    InMemory,
}

/// Where the guest's console is connected.
pub struct Console {
    /// Takes what the guest prints.
    pub output: Box<dyn Write>,
    /// What somebody types; with it the machine waits for input instead of ending when nothing else can happen.
    pub input: Option<Receiver<u8>>,
}

/// When to stop a run that does not stop by itself.
pub struct Limits<'a> {
    /// Simulated time.
    pub max_cycle: Cycle,
    /// Longest stretch without a look at the other limits; `None`: what is fastest.
    pub window: Option<Cycle>,
    /// Raised from outside.
    pub stop: &'a AtomicBool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest powered off.
    PowerOff,
    /// The guest asked for a reset.
    Reset,
    /// The guest reported a failure through the finisher.
    Failed(u16),
    /// The program reported its exit status through `tohost`.
    ToHost(u8),
    /// [`Limits::max_cycle`].
    MaxCycle,
    /// [`Limits::stop`].
    Stopped,
    /// The checkpoint is written.
    Checkpoint,
}
