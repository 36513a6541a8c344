// SPDX-License-Identifier: Apache-2.0
//! Configuration of a machine and of a run, and how a run ends.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use trapless_attribution::SymbolFile;
use trapless_memory::Cycle;
use trapless_nvme::Fault;
use trapless_timing::{Profile, SsdParams};

/// Parts of a machine, and what it starts with.
pub struct MachineConfig {
    /// Sizes and times of the parts.
    pub profile: Profile,
    /// What runs first.
    pub boot: Boot,
    /// Drives in the order of their names in the guest.
    pub disks: Vec<DiskConfig>,
    /// Faults that the drives will have.
    pub faults: Vec<Fault>,
    /// How instructions are executed.
    pub engine: Engine,
    /// When timing is detailed.
    pub detail: DetailFrom,
    /// When to write a checkpoint, and to which folder; the run ends there.
    pub checkpoint: Option<(Moment, PathBuf)>,
    /// Which cycles to attribute to guest functions; none: attribute nothing.
    pub attribution: Option<AttributionConfig>,
}

/// Which cycles to attribute, and how.
#[derive(Clone, Debug)]
pub struct AttributionConfig {
    /// Files with symbols. The symbols of an ELF that is booted are added to these.
    pub symbols: Vec<SymbolFile>,
    /// Table of categories; none: the one for the kernel of this repository.
    pub categories: Option<PathBuf>,
    /// From when on to attribute cycles.
    pub from: DetailFrom,
    /// Maximum number of records of each kind.
    pub limit: usize,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The milestone with this number.
    Milestone(u64),
    /// The end of the window in which this number of instructions is reached.
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

/// When timing is detailed, with caches, TLBs, branch prediction and DRAM as the profile's `detail` says. Without it
/// instructions cost what their class costs, every access hits, and only page walks cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailFrom {
    /// Never.
    #[default]
    Never,
    /// From the first instruction on.
    Start,
    /// In all regions of interest.
    Rois,
    /// In regions of interest with this number.
    Roi(u64),
    /// From this moment on.
    Moment(Moment),
}

impl DetailFrom {
    /// Whether regions of interest begin and end it.
    pub(crate) fn by_regions(self) -> bool {
        matches!(self, DetailFrom::Rois | DetailFrom::Roi(_))
    }

    /// Whether it includes regions with this number.
    pub(crate) fn in_region(self, number: u64) -> bool {
        self == DetailFrom::Rois || self == DetailFrom::Roi(number)
    }
}

/// How instructions are executed. The guest cannot tell the difference: both take the same cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Instructions are interpreted one by one.
    Interpreter,
    /// Code that is executed often is translated to host code, where the host allows that.
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
        /// The initial RAM disk.
        initrd: Option<PathBuf>,
        /// Command line.
        append: String,
        /// Machine-mode firmware that replaces the built-in SBI.
        firmware: Option<PathBuf>,
    },
    /// A bare-metal ELF with a `tohost` symbol.
    Elf {
        /// The file.
        file: PathBuf,
    },
    /// A checkpoint of another machine.
    Checkpoint {
        /// The folder.
        dir: PathBuf,
    },
}

/// A drive.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// The kind of drive; `None`: as the profile says.
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
    /// Size of a logical block, 512 or 4096 bytes; `None`: the drive's.
    pub block_bytes: Option<u32>,
}

/// Where writes to a namespace go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWrites {
    /// They go to the file.
    ToFile,
    /// They fail: the namespace is read-only.
    Fail,
    /// Into memory; they are dropped at the end.
    InMemory,
}

/// Where the guest's console is connected.
pub struct Console {
    /// Takes what the guest prints.
    pub output: Box<dyn Write>,
    /// What somebody types. With it the machine waits for input when nothing else can happen; without it the run ends then.
    pub input: Option<Receiver<u8>>,
}

/// Limits that end a run.
pub struct Limits<'a> {
    /// Simulated time at which the run ends.
    pub max_cycle: Cycle,
    /// Longest window, after which the other limits are checked; `None`: the fastest choice.
    pub window: Option<Cycle>,
    /// A flag that ends the run; others may set it at any time.
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
    /// The run reached [`Limits::max_cycle`].
    MaxCycle,
    /// [`Limits::stop`] was set.
    Stopped,
    /// The checkpoint was written.
    Checkpoint,
}
