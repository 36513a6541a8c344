// SPDX-License-Identifier: Apache-2.0
//! What a simulation is made of: a TOML file, whose defaults are the paper's (ASPF IV-A).

mod presets;
mod tier;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use trapless_timing::SsdParams;

use crate::Error;
use crate::pages::Pid;
pub use crate::policy::Aspf;
use crate::policy::PYTHON;
use crate::replacement;
pub use tier::{Clean, Ratio, Tier, TierKind};

/// A point in simulated time, or a length of it: picoseconds.
pub type Time = u64;

/// Ticks of [`Time`] in a second.
pub const TICKS: u64 = 1_000_000_000_000;

/// Nanoseconds as time.
pub fn ns(ns: f64) -> Time {
    (ns * 1e3).round() as Time
}

/// Microseconds as time.
pub fn us(us: f64) -> Time {
    ns(us * 1e3)
}

/// Milliseconds as time.
pub fn ms(ms: f64) -> Time {
    us(ms * 1e3)
}

/// One simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What to do about faults: the name of a policy ([`crate::policy::built_in`]).
    pub policy: String,
    /// The set of values that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Processor and its cache.
    #[serde(default)]
    pub cpu: Cpu,
    /// DRAM.
    pub memory: Memory,
    /// The drive.
    #[serde(default)]
    pub device: Device,
    /// Compressed memory before the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Who runs when.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Reading ahead.
    #[serde(default)]
    pub prefetch: Prefetch,
    /// A-SPF.
    #[serde(default)]
    pub aspf: Aspf,
    /// Our own policy.
    #[serde(default)]
    pub foresight: Foresight,
    /// Values of a policy from outside this crate, which looks at none of them.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub own: Table,
    /// What is recorded.
    #[serde(default)]
    pub record: Record,
    /// Groups of programs with limits of memory.
    #[serde(default, rename = "group", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The programs.
    #[serde(rename = "process")]
    pub processes: Vec<Process>,
}

/// Processor and cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cpu {
    /// An instruction whose accesses the cache serves, ns.
    pub instruction_ns: f64,
    /// The cache, KiB: a power of two times `cache_ways`.
    pub cache_kib: u64,
    /// Its ways.
    pub cache_ways: u64,
    /// Whose it is.
    pub cache: CacheOf,
    /// From the running process to another one, us.
    pub context_switch_us: f64,
    /// The kernel's own work for a fault, us.
    pub fault_us: f64,
    /// Number of CPUs. They share DRAM, the drives and, with `cache = "all"`, the cache.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u32,
    /// Several CPUs: how far one is simulated ahead of another, us. What one does to another is seen so much late or early.
    #[serde(skip_serializing_if = "is_one_us")]
    pub quantum_us: f64,
}

fn is_one_us(us: &f64) -> bool {
    *us == 1.0
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            instruction_ns: 0.25,
            cache_kib: 8192,
            cache_ways: 16,
            cache: CacheOf::All,
            context_switch_us: 5.0,
            fault_us: 0.0,
            count: 1,
            quantum_us: 1.0,
        }
    }
}

/// Whose a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOf {
    /// All processes share one, and a page's lines leave it with the page.
    All,
    /// Each process has its own, and a page's lines stay: as if each trace had been filtered by a cache beforehand.
    Process,
}

/// DRAM.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its size, pages of 4 KiB.
    pub frames: u32,
    /// An access that misses the cache, ns.
    #[serde(default = "dram_ns")]
    pub dram_ns: f64,
    /// Which page has to go, if not as the policy has it: the name of an order ([`crate::replacement::BUILT_IN`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// Frames kept free by evicting before they are wanted.
    #[serde(default = "reserve")]
    pub reserve: u32,
}

fn reserve() -> u32 {
    32
}

fn dram_ns() -> f64 {
    50.0
}

/// The drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    /// A built-in drive or a file (`machine/profiles/ssd`).
    pub drive: String,
    /// Latency of a read and of a write, us, in place of the drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// Commands in service at a time, in place of the drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Data rate, 10^6 bytes a second, in place of the drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// How commands that nobody waits for, reads ahead and writes, share the drive with those of faults.
    pub ahead: Ahead,
    /// Number of equal drives, each with its own commands.
    #[serde(skip_serializing_if = "is_one")]
    pub drives: u32,
    /// Several drives: so many pages lie together on one, the next ones on the next drive. 256 is a cluster of Linux's swap areas
    /// (`SWAPFILE_CLUSTER`), which it fills in turn if their priorities are equal.
    #[serde(skip_serializing_if = "is_cluster")]
    pub stripe_pages: u32,
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Pages of a cluster.
const CLUSTER: u32 = 256;

fn is_cluster(pages: &u32) -> bool {
    *pages == CLUSTER
}

/// How reads ahead and writes share the drive with the reads of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ahead {
    /// All commands are served in their order.
    Queued,
    /// Reads of faults wait for each other alone; the others wait for all.
    BehindDemand,
    /// They take the idle drive's latency, and are in nobody's way.
    Free,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            drive: "ull".into(),
            latency_us: None,
            channels: None,
            mb_per_s: None,
            ahead: Ahead::Queued,
            drives: 1,
            stripe_pages: CLUSTER,
        }
    }
}

impl Device {
    /// The drive with its changes.
    ///
    /// # Errors
    /// There is no such drive, or a value is out of range.
    pub fn params(&self) -> Result<SsdParams, Error> {
        let wrong = |e: &dyn std::fmt::Display| Error::Settings(format!("device: {e}"));
        let mut params = SsdParams::load(&self.drive).map_err(|e| wrong(&e))?;
        if let Some(us) = self.latency_us {
            (params.read_us, params.write_us) = (us, us);
        }
        params.channels = self.channels.unwrap_or(params.channels);
        params.mb_per_s = self.mb_per_s.unwrap_or(params.mb_per_s);
        params.check(&self.drive).map_err(|e| wrong(&e))?;
        Ok(params)
    }
}

/// Who runs when. Defaults: ASPF IV-A, and Linux 5.7 on one processor for what it does not say.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Which.
    pub kind: SchedulerKind,
    /// CFS: every process runs once in so long, ms (`sched_latency`).
    pub latency_ms: f64,
    /// CFS: the shortest slice; EEVDF: the slice, ms (`sched_min_granularity`, `base_slice`).
    pub min_granularity_ms: f64,
    /// CFS: how far behind a process that wakes must be to take the processor at once, ms.
    pub wakeup_granularity_ms: f64,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        let kind = SchedulerKind::Cfs;
        Scheduler { kind, latency_ms: 6.0, min_granularity_ms: 0.75, wakeup_granularity_ms: 1.0 }
    }
}

/// The schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// Completely fair scheduler, Linux until 6.5.
    Cfs,
    /// Earliest eligible virtual deadline first, Linux from 6.6 on.
    Eevdf,
}

/// Reading ahead.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prefetch {
    /// Pages read with the one that is missing (ASPF figure 8: 4 unless said otherwise).
    pub pages: u32,
    /// Linux: the largest window is 2 to this many pages (`page-cluster`).
    pub page_cluster: u32,
}

impl Default for Prefetch {
    fn default() -> Prefetch {
        Prefetch { pages: 4, page_cluster: 3 }
    }
}

/// Our own policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// Longest time slice, as a multiple of the scheduler's.
    pub slices: f64,
    /// Number of reads that are under way at a time before a process runs.
    pub depth: u32,
    /// Most pages that are read at a fault.
    pub pages: u32,
}

impl Default for Foresight {
    fn default() -> Foresight {
        Foresight { slices: 4.0, depth: 4, pages: 8 }
    }
}

/// What is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Faults over time are counted by so long, ms (ASPF figure 1b: 33); doubled when there are too many.
    pub window_ms: f64,
    /// Warm-up: what is reported begins after so many accesses of all processes; 0: at once.
    pub warm_up_accesses: u64,
    /// The same by simulated time, ms.
    pub warm_up_ms: f64,
}

impl Default for Record {
    fn default() -> Record {
        Record { window_ms: 33.0, warm_up_accesses: 0, warm_up_ms: 0.0 }
    }
}

/// Processes that together hold no more than a number of frames (`memory.max` of Linux's control groups).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What its processes call it.
    pub name: String,
    /// The most frames that they hold.
    pub frames: u32,
}

/// A program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Name of the process in results.
    pub name: String,
    /// Its trace.
    pub trace: PathBuf,
    /// From -20 to 19.
    #[serde(default)]
    pub nice: i8,
    /// Memory-intensive, as profiled beforehand (A-SPF).
    #[serde(default)]
    pub intense: bool,
    /// Pages that stay together while rows of so many change places at random; 0: all pages stay where they are. With 1, neighbours
    /// in address space tell nothing (an experiment).
    #[serde(default)]
    pub scattered: u32,
    /// The address space of a trace that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<u64>,
    /// The group that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Settings {
    /// Reads a file and changes single values (`memory.frames=100`, `process.0.nice=5`). Traces and policies in Python are looked for
    /// beside the file.
    ///
    /// # Errors
    /// One line that names the file or change, and the key.
    pub fn load(path: &Path, changes: &[String]) -> Result<Settings, Error> {
        let wrong = |e: &dyn std::fmt::Display| Error::Settings(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| Error::Io { path: path.into(), error })?;
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| wrong(&e.message().replace('\n', " ")))?;
        for change in changes {
            set(&mut table, change).ok_or_else(|| {
                Error::Settings(format!("{change}: not KEY=VALUE of a known key, like memory.frames=4096"))
            })?;
        }
        presets::fill_in(&mut table).map_err(|e| wrong(&e))?;
        let mut settings: Settings = serde_path_to_error::deserialize(Value::Table(table))
            .map_err(|e| wrong(&format!("{}: {}", e.path(), e.inner().message().lines().next().unwrap_or_default())))?;
        if let Some(folder) = path.parent() {
            for process in &mut settings.processes {
                process.trace = folder.join(&process.trace);
            }
            if let Some(file) = settings.policy.strip_prefix(PYTHON) {
                settings.policy = format!("{PYTHON}{}", folder.join(file).display());
            }
        }
        settings.check().map_err(|e| wrong(&e))?;
        Ok(settings)
    }

    /// The number of a process's group: 0 if it names none, else the group's place in the configuration, from 1 on.
    pub fn group_of(&self, pid: Pid) -> usize {
        let named = |name: &String| self.groups.iter().position(|group| group.name == *name);
        self.processes[pid].group.as_ref().and_then(named).map_or(0, |place| place + 1)
    }

    /// Whether the groups and those that name one fit together.
    fn check_groups(&self) -> Result<(), Error> {
        for (place, group) in self.groups.iter().enumerate() {
            if self.groups[..place].iter().any(|other| other.name == group.name) {
                return Err(Error::Settings(format!("group {}: there are two of this name", group.name)));
            }
            let members = self.processes.iter().filter(|process| process.group.as_ref() == Some(&group.name)).count();
            let fewest = members as u64 + u64::from(self.memory.reserve) + 3;
            if !(fewest..=1_000_000_000).contains(&group.frames.into()) {
                return Err(Error::Settings(format!(
                    "group {}: frames must be {fewest} (its processes, memory.reserve and 3) to 1000000000, not {}",
                    group.name, group.frames
                )));
            }
        }
        for process in &self.processes {
            if let Some(name) = &process.group
                && !self.groups.iter().any(|group| group.name == *name)
            {
                return Err(Error::Settings(format!("process {}: there is no [[group]] named {name}", process.name)));
            }
        }
        Ok(())
    }

    /// Whether all values are in range.
    ///
    /// # Errors
    /// The first key that is not, its value and the range.
    pub fn check(&self) -> Result<(), Error> {
        let sets = self.cpu.cache_kib * 1024 / 64 / self.cpu.cache_ways.max(1);
        // One for each process's page, and some to evict.
        let least = self.processes.len() as f64 + f64::from(self.memory.reserve) + 3.0;
        let checks = [
            ("process", self.processes.len() as f64, 1.0, 1000.0),
            ("cpu.instruction_ns", self.cpu.instruction_ns, 0.0, 1e6),
            ("cpu.cache_ways", self.cpu.cache_ways as f64, 1.0, 64.0),
            ("cpu.context_switch_us", self.cpu.context_switch_us, 0.0, 1e6),
            ("cpu.fault_us", self.cpu.fault_us, 0.0, 1e6),
            ("cpu.count", self.cpu.count.into(), 1.0, 64.0),
            ("cpu.quantum_us", self.cpu.quantum_us, 1e-3, 1e6),
            ("memory.frames", self.memory.frames.into(), least, 1e9),
            ("device.drives", self.device.drives.into(), 1.0, 64.0),
            ("device.stripe_pages", self.device.stripe_pages.into(), 1.0, 1e6),
            ("memory.dram_ns", self.memory.dram_ns, 0.0, 1e6),
            ("scheduler.latency_ms", self.scheduler.latency_ms, 1e-3, 1e6),
            ("scheduler.min_granularity_ms", self.scheduler.min_granularity_ms, 1e-3, 1e6),
            ("scheduler.wakeup_granularity_ms", self.scheduler.wakeup_granularity_ms, 0.0, 1e6),
            ("prefetch.pages", self.prefetch.pages.into(), 0.0, 4096.0),
            ("prefetch.page_cluster", self.prefetch.page_cluster.into(), 0.0, 10.0),
            ("aspf.set_capacity", self.aspf.set_capacity.into(), 2.0, 65_535.0),
            ("aspf.min_accuracy", self.aspf.min_accuracy, 0.0, 1.0),
            ("aspf.reconstruct_depth", self.aspf.reconstruct_depth.into(), 1.0, 1024.0),
            ("aspf.window_ms", self.aspf.window_ms, 1e-3, 1e6),
            ("foresight.slices", self.foresight.slices, 1.0, 1000.0),
            ("foresight.depth", self.foresight.depth.into(), 1.0, 1024.0),
            ("record.window_ms", self.record.window_ms, 1e-3, 1e6),
            ("record.warm_up_ms", self.record.warm_up_ms, 0.0, 1e9),
        ];
        for (key, value, low, high) in checks {
            if !(low..=high).contains(&value) {
                return Err(Error::Settings(format!("{key}: {value} is not from {low} to {high}")));
            }
        }
        if self.record.warm_up_accesses > 0 && self.record.warm_up_ms > 0.0 {
            return Err(Error::Settings(
                "record: warm_up_accesses and warm_up_ms are given: leave one of them out".into(),
            ));
        }
        if !sets.is_power_of_two() || sets * self.cpu.cache_ways * 64 != self.cpu.cache_kib * 1024 {
            return Err(Error::Settings(format!(
                "cpu.cache_kib: {} KiB in {} ways: the number of sets must be a power of two",
                self.cpu.cache_kib, self.cpu.cache_ways
            )));
        }
        for process in &self.processes {
            if !(-20..=19).contains(&process.nice) {
                return Err(Error::Settings(format!("{}: nice {} is not from -20 to 19", process.name, process.nice)));
            }
        }
        if let Some(name) = &self.memory.replacement {
            replacement::find(name).map_err(|e| Error::Settings(format!("memory.{e}")))?;
        }
        self.check_groups()?;
        if let Some(tier) = &self.tier {
            tier.check(f64::from(self.memory.frames) - least)?;
            if !self.groups.is_empty() {
                return Err(Error::Settings(
                    "tier: does not work with groups, because their limits do not count its frames: leave out one of the two".into(),
                ));
            }
        }
        self.device.params().map(|_| ())
    }
}

/// Sets one value by the names of its key; numbers name elements of arrays.
fn set(table: &mut Table, change: &str) -> Option<()> {
    let (key, value) = change.split_once('=')?;
    let value = value.parse().unwrap_or_else(|_| Value::String(value.into()));
    let mut names = key.split('.').peekable();
    let mut at: &mut Value = table.entry(names.next()?).or_insert_with(|| Value::Table(Table::new()));
    for name in names {
        at = match at {
            Value::Table(table) => table.entry(name).or_insert_with(|| Value::Table(Table::new())),
            Value::Array(array) => array.get_mut(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    *at = value;
    Some(())
}
