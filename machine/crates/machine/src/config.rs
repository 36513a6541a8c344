// SPDX-License-Identifier: Apache-2.0
//! What a machine is made of, what it starts with, and how a run ends.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use trapless_attribution::SymbolFile;
use trapless_memory::Cycle;
use trapless_nvme::Fault;
use trapless_timing::{Profile, SsdParams};

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

/// Which cycles to attribute, and how.
#[derive(Clone, Debug)]
pub struct AttributionConfig {
    /// Files with symbols. Those of an ELF that is booted are known.
    pub symbols: Vec<SymbolFile>,
    /// Table of categories; none: the one for this repository's kernel.
    pub categories: Option<PathBuf>,
    /// From when on: the whole run, in regions of interest, from a moment on.
    pub from: DetailFrom,
    /// Most records of each kind.
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
    pub(crate) fn by_regions(self) -> bool {
        matches!(self, DetailFrom::Rois | DetailFrom::Roi(_))
    }

    /// Is it in regions with this number?
    pub(crate) fn in_region(self, number: u64) -> bool {
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
