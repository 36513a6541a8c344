// SPDX-License-Identifier: Apache-2.0
//! stats.json: the measurements of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use trapless_timing::{Profile, SsdParams};

use super::atomic::AtomicChecked;
use super::stats::{LatencySummary, MissSummary};
use super::watches::WatchCounts;
use crate::board::{DiskReads, SmuCounters};
use crate::cores::Misses;

/// Instructions retired, by privilege mode.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Instructions {
    /// U-mode.
    pub user: u64,
    /// S-mode.
    pub supervisor: u64,
    /// M-mode.
    pub machine: u64,
}

impl Instructions {
    /// The instructions since `earlier`.
    pub fn since(&self, earlier: &Instructions) -> Instructions {
        Instructions {
            user: self.user - earlier.user,
            supervisor: self.supervisor - earlier.supervisor,
            machine: self.machine - earlier.machine,
        }
    }

    /// Sums over several harts.
    pub fn sum(harts: impl Iterator<Item = Instructions>) -> Instructions {
        harts.fold(Instructions::default(), |sum, h| Instructions {
            user: sum.user + h.user,
            supervisor: sum.supervisor + h.supervisor,
            machine: sum.machine + h.machine,
        })
    }

    /// The sum of all modes.
    pub fn total(&self) -> u64 {
        self.user + self.supervisor + self.machine
    }
}

/// A milestone (marker 0x7a5).
#[derive(Clone, Debug, Serialize)]
pub struct Milestone {
    /// Number of the milestone.
    pub number: u64,
    /// Time in core cycles.
    pub cycle: u64,
    /// Instructions retired so far by all harts.
    pub instructions: u64,
    /// Host time since the start, seconds.
    pub host_seconds: f64,
    /// Reads of each disk so far.
    pub reads: Vec<DiskReads>,
    /// SMU counters so far.
    pub smu_counters: SmuCounters,
}

/// Record of a disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskRecord {
    /// Its kind of drive, with all changes.
    pub ssd: SsdParams,
    /// Its namespaces.
    pub namespaces: Vec<NamespaceRecord>,
    /// Counts of its reads.
    pub reads: DiskReads,
}

/// Record of a namespace.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NamespaceRecord {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Bytes of a logical block.
    pub block_bytes: u32,
}

/// A fault of a drive and its effect.
#[derive(Clone, Debug, Serialize)]
pub struct FaultCount {
    /// The fault as it was given on the command line.
    pub fault: String,
    /// Number of commands that the fault affected.
    pub struck: u64,
}

/// A region of interest. Regions do not overlap.
#[derive(Clone, Debug, Serialize)]
pub struct Roi {
    /// Number of the region: given by the program, or counted by the machine from 0 on.
    pub number: u64,
    /// Whether the region was open because mappings were watched (marker 0x7a8), not because of markers 0x7a1 and 0x7a2.
    pub automatic: bool,
    /// How many regions are summed up in this one: 1, except in the last one, which holds all regions after the first thousand.
    pub regions: u64,
    /// First core cycle.
    pub begin_cycle: u64,
    /// Last core cycle.
    pub end_cycle: u64,
    /// Simulated seconds.
    pub sim_seconds: f64,
    /// Host seconds.
    pub host_seconds: f64,
    /// Instructions retired by all harts.
    pub instructions: Instructions,
    /// Instructions retired by each hart.
    pub instructions_by_hart: Vec<Instructions>,
    /// Cache, TLB and branch misses, if timing was detailed.
    pub misses: Option<Misses>,
    /// Watched mappings at its end, with counts since they were first watched: the newest singly, then the sum of the others.
    pub watch: Vec<WatchCounts>,
    /// Page faults of user accesses to watched mappings in the region, first touches or not.
    pub os_faults: u64,
    /// Number of these page faults by what the walker found: `not_armed`, `permission`, ... (docs/reference/record.md).
    pub os_fault_causes: BTreeMap<&'static str, u64>,
    /// Time of these page faults, from the trap until an access to the page succeeds.
    pub os_fault: LatencySummary,
    /// Number of these page faults after which no access had succeeded when the region ended.
    pub os_faults_open: u64,
    /// Page faults of the kernel's own accesses to watched mappings in the region, for example in system calls.
    pub kernel_faults: u64,
    /// SMU counters: increase over the region.
    pub smu: SmuCounters,
    /// Reads of each disk that were completed in the region.
    pub reads: Vec<DiskReads>,
    /// Blocks that the SMU read and installed for walkers, each counted once.
    pub hw_miss: MissSummary,
    /// Blocks read for software request ports, from the write that asks to the answer.
    pub port_miss: MissSummary,
    /// NVMe reads of all queues, from doorbell to completion entry.
    pub nvme_read: LatencySummary,
}

impl Roi {
    /// Adds a later region. What the recorder measured already includes both.
    pub fn add(&mut self, later: Roi) {
        let mut smu = std::mem::take(&mut self.smu);
        later.smu.iter().for_each(|(name, count)| *smu.entry(name).or_default() += count);
        *self = Roi {
            number: self.number,
            automatic: self.automatic,
            regions: self.regions + 1,
            begin_cycle: self.begin_cycle,
            sim_seconds: self.sim_seconds + later.sim_seconds,
            host_seconds: self.host_seconds + later.host_seconds,
            instructions: Instructions::sum([self.instructions, later.instructions].into_iter()),
            instructions_by_hart: self
                .instructions_by_hart
                .iter()
                .zip(&later.instructions_by_hart)
                .map(|(a, b)| Instructions::sum([*a, *b].into_iter()))
                .collect(),
            misses: [self.misses, later.misses].into_iter().flatten().reduce(|a, b| a.and(&b)),
            smu,
            reads: self.reads.iter().zip(&later.reads).map(|(a, b)| a.and(b)).collect(),
            ..later
        };
    }
}

/// Measurements while no region of interest was open. The fields are those of [`Roi`].
#[derive(Clone, Debug, Serialize)]
pub struct Outside {
    /// Page faults of user accesses to watched mappings.
    pub os_faults: u64,
    /// Number of these page faults by what the walker found.
    pub os_fault_causes: BTreeMap<&'static str, u64>,
    /// Time of these page faults, from the trap until an access succeeds. Faults that were open when a region began are left out.
    pub os_fault: LatencySummary,
    /// Page faults of the kernel's own accesses to watched mappings.
    pub kernel_faults: u64,
    /// Blocks that the SMU read and installed for walkers.
    pub hw_miss: MissSummary,
    /// Blocks that the SMU read and installed for software request ports.
    pub port_miss: MissSummary,
    /// NVMe reads of all queues.
    pub nvme_read: LatencySummary,
}

/// Measurements of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the record's format.
    pub schema: u32,
    /// How the run ended.
    pub end: String,
    /// The profile, with all changes.
    pub profile: Profile,
    /// The disks, in the order of `--disk`.
    pub disks: Vec<DiskRecord>,
    /// Simulated core cycles.
    pub sim_cycles: u64,
    /// Simulated seconds.
    pub sim_seconds: f64,
    /// Host seconds.
    pub host_seconds: f64,
    /// Maximum memory of the host that the program used, including guest memory in use, in bytes; 0 if unknown.
    pub host_peak_bytes: u64,
    /// Instructions retired by all harts.
    pub instructions: u64,
    /// Instructions retired by all harts, by mode.
    pub instructions_by_mode: Instructions,
    /// Million instructions per second of host time.
    pub mips: f64,
    /// Cache, TLB and branch misses, if timing was detailed at the end.
    pub misses: Option<Misses>,
    /// Milestones.
    pub milestones: Vec<Milestone>,
    /// Regions of interest.
    pub rois: Vec<Roi>,
    /// Measurements outside all regions of interest.
    pub outside: Outside,
    /// Number of ignored markers: too many milestones, too many or too large watches.
    pub marks_ignored: u64,
    /// All watched mappings: the newest singly, then the sum of the others.
    pub watch: Vec<WatchCounts>,
    /// SMU counters over the whole run.
    pub smu_counters: SmuCounters,
    /// Faults of the drives.
    pub faults: Vec<FaultCount>,
    /// Requests for pages in atomic context, if they were checked (`--check-atomic`).
    pub atomic: Option<AtomicChecked>,
}

/// Maximum memory that this process has used so far, in bytes, as Linux counts it (proc(5), VmHWM).
pub fn host_peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
