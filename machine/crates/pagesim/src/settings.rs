// SPDX-License-Identifier: Apache-2.0
//! The configuration of a simulation, which is a TOML file. A default is the value of ASPF, section IV-A, if the paper has one.

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

/// A point in simulated time, or a length of time, in picoseconds.
pub type Time = u64;

/// Ticks of [`Time`] per second.
pub const TICKS: u64 = 1_000_000_000_000;

/// Converts nanoseconds.
pub fn ns(ns: f64) -> Time {
    (ns * 1e3).round() as Time
}

/// Converts microseconds.
pub fn us(us: f64) -> Time {
    ns(us * 1e3)
}

/// Converts milliseconds.
pub fn ms(ms: f64) -> Time {
    us(ms * 1e3)
}

/// The configuration of one simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The policy for page faults, by name ([`crate::policy::built_in`]).
    pub policy: String,
    /// The named set of values that fills in what the configuration does not set.
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
    /// The scheduler of processes.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Prefetching.
    #[serde(default)]
    pub prefetch: Prefetch,
    /// Settings of A-SPF.
    #[serde(default)]
    pub aspf: Aspf,
    /// Settings of foresight, this project's own policy.
    #[serde(default)]
    pub foresight: Foresight,
    /// Values for a policy from outside this crate. The simulator does not use them.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub own: Table,
    /// What to record.
    #[serde(default)]
    pub record: Record,
    /// Groups of processes with limits of memory.
    #[serde(default, rename = "group", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The programs to simulate.
    #[serde(rename = "process")]
    pub processes: Vec<Process>,
}

/// Processor and cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cpu {
    /// Time of an instruction whose accesses the cache serves, ns.
    pub instruction_ns: f64,
    /// Size of the cache, KiB. The number of sets, which is the size divided by `cache_ways` and by `line_bytes`, must be a power
    /// of two.
    pub cache_kib: u64,
    /// Number of ways of the cache.
    pub cache_ways: u64,
    /// Size of a line of the cache, bytes: a power of two from 64 to 4096. A longer line stands for a prefetcher of the
    /// processor, which brings neighbouring lines with the missing one.
    #[serde(skip_serializing_if = "is_a_line")]
    pub line_bytes: u64,
    /// Whether processes share the cache.
    pub cache: CacheOf,
    /// Time of a switch from the running process to another one, us.
    pub context_switch_us: f64,
    /// Time that the kernel itself works for a fault, us.
    pub fault_us: f64,
    /// Number of CPUs. They share DRAM, the drives and, with `cache = "all"`, the cache.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u32,
    /// With several CPUs: how far a CPU may be simulated ahead of another one, us. One CPU sees the actions of another late or
    /// early by at most this time.
    #[serde(skip_serializing_if = "is_one_us")]
    pub quantum_us: f64,
}

fn is_a_line(bytes: &u64) -> bool {
    *bytes == 64
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
            line_bytes: 64,
            cache: CacheOf::All,
            context_switch_us: 5.0,
            fault_us: 0.0,
            count: 1,
            quantum_us: 1.0,
        }
    }
}

/// The processes that share a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOf {
    /// All processes share one cache. The lines of a page leave it with the page.
    All,
    /// Each process has its own cache, and the lines of an evicted page stay: as if a cache had filtered each trace beforehand.
    Process,
}

/// DRAM.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Size in pages of 4 KiB.
    pub frames: u32,
    /// Time of an access that misses the cache, ns.
    #[serde(default = "dram_ns")]
    pub dram_ns: f64,
    /// Order of replacement, which chooses the page to evict, by name ([`crate::replacement::BUILT_IN`]). If absent, the policy's
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// Number of frames to keep free by evicting early.
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
    /// Number of commands in service at a time, in place of the drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Data rate in 10^6 bytes per second, in place of the drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// How prefetches and writes, for which no process waits, share the drive with the reads of faults.
    pub ahead: Ahead,
    /// Number of equal drives, each with its own commands.
    #[serde(skip_serializing_if = "is_one")]
    pub drives: u32,
    /// With several drives: number of adjacent pages on one drive, before the next drive follows. 256 is a cluster of Linux's
    /// swap areas (`SWAPFILE_CLUSTER`). Linux fills swap areas of equal priority in turn, cluster by cluster.
    #[serde(skip_serializing_if = "is_cluster")]
    pub stripe_pages: u32,
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Number of pages in a cluster.
const CLUSTER: u32 = 256;

fn is_cluster(pages: &u32) -> bool {
    *pages == CLUSTER
}

/// How prefetches and writes share the drive with the reads of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ahead {
    /// All commands are served in their order.
    Queued,
    /// Reads of faults only wait for each other. Prefetches and writes wait for all commands.
    BehindDemand,
    /// Prefetches and writes take the time of an idle drive and delay nothing.
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
    /// The parameters of the drive, with the changes from the configuration.
    ///
    /// # Errors
    /// No drive has this name, or a value is out of range.
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

/// The scheduler. Defaults come from ASPF IV-A, and from Linux 5.7 on one processor where the paper gives none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// The kind of scheduler.
    pub kind: SchedulerKind,
    /// CFS: period in which every process runs once, ms (`sched_latency`).
    pub latency_ms: f64,
    /// CFS: length of the shortest slice, ms (`sched_min_granularity`). EEVDF: length of every slice, ms (`base_slice`).
    pub min_granularity_ms: f64,
    /// CFS: lead in virtual run time that a waking process needs to preempt the running one, ms.
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

/// Prefetching.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prefetch {
    /// Number of pages to read with a missing one (ASPF figure 8: 4 unless said otherwise).
    pub pages: u32,
    /// Linux: the largest window is 2^`page_cluster` pages (`page-cluster`).
    pub page_cluster: u32,
}

impl Default for Prefetch {
    fn default() -> Prefetch {
        Prefetch { pages: 4, page_cluster: 3 }
    }
}

/// Settings of foresight.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// Length of a slice, as a multiple of the scheduler's.
    pub slices: f64,
    /// Number of reads under way at a time before a process runs.
    pub depth: u32,
    /// Largest number of pages to read at a fault.
    pub pages: u32,
}

impl Default for Foresight {
    fn default() -> Foresight {
        Foresight { slices: 4.0, depth: 4, pages: 8 }
    }
}

/// What to record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Length of the windows in which faults over time are counted, ms (ASPF figure 1b: 33). It doubles if there would be more
    /// than 4096 windows.
    pub window_ms: f64,
    /// Warm-up: results begin after this many accesses of all processes. 0: no warm-up.
    pub warm_up_accesses: u64,
    /// Warm-up: results begin at this simulated time, ms. 0: no warm-up. At most one of the two warm-ups may be set.
    pub warm_up_ms: f64,
}

impl Default for Record {
    fn default() -> Record {
        Record { window_ms: 33.0, warm_up_accesses: 0, warm_up_ms: 0.0 }
    }
}

/// A group of processes with a common limit of frames (`memory.max` of Linux's control groups).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name that processes use to join it.
    pub name: String,
    /// Largest number of frames that the group holds.
    pub frames: u32,
}

/// A program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Name of the process in results.
    pub name: String,
    /// Path of its trace.
    pub trace: PathBuf,
    /// Nice value, -20 to 19.
    #[serde(default)]
    pub nice: i8,
    /// Whether it is memory-intensive according to a profile of earlier runs. A-SPF uses this label.
    #[serde(default)]
    pub intense: bool,
    /// For experiments: the process's pages change places at random, in rows of this many adjacent pages that stay together. 0:
    /// no page changes its place. 1: each page moves alone, so that neighbours in the address space mean nothing.
    #[serde(default)]
    pub scattered: u32,
    /// The address space to use, for a trace that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<u64>,
    /// Name of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Settings {
    /// Reads a file and changes single values (`memory.frames=100`, `process.0.nice=5`). Paths of traces and of policies in
    /// Python are relative to the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is wrong. The error is one line that names the file or the change, and the key.
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

    /// The number of a process's group: 0 if it names none, otherwise the position of the group in the configuration, from 1 on.
    pub fn group_of(&self, pid: Pid) -> usize {
        let named = |name: &String| self.groups.iter().position(|group| group.name == *name);
        self.processes[pid].group.as_ref().and_then(named).map_or(0, |place| place + 1)
    }

    /// Checks the groups and the processes that name them.
    fn check_groups(&self) -> Result<(), Error> {
        for (place, group) in self.groups.iter().enumerate() {
            if self.groups[..place].iter().any(|other| other.name == group.name) {
                return Err(Error::Settings(format!("group {}: two groups have this name", group.name)));
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

    /// Checks that all values are in range.
    ///
    /// # Errors
    /// A value is out of range. The error names the first such key, its value and the range.
    pub fn check(&self) -> Result<(), Error> {
        let line = self.cpu.line_bytes.max(1);
        let sets = self.cpu.cache_kib * 1024 / line / self.cpu.cache_ways.max(1);
        // One frame for the page that each process waits for, the reserve, and three frames whose pages can be evicted.
        let least = self.processes.len() as f64 + f64::from(self.memory.reserve) + 3.0;
        let checks = [
            ("process", self.processes.len() as f64, 1.0, 1000.0),
            ("cpu.instruction_ns", self.cpu.instruction_ns, 0.0, 1e6),
            ("cpu.line_bytes", self.cpu.line_bytes as f64, 64.0, 4096.0),
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
                "record: both warm_up_accesses and warm_up_ms are set: leave one of them out".into(),
            ));
        }
        if !line.is_power_of_two() {
            return Err(Error::Settings(format!("cpu.line_bytes: {line} is not a power of two")));
        }
        if !sets.is_power_of_two() || sets * self.cpu.cache_ways * line != self.cpu.cache_kib * 1024 {
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

/// Sets one value. Numbers in the key name elements of arrays.
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
