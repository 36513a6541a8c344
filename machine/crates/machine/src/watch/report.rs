// SPDX-License-Identifier: Apache-2.0
//! stats.json: what a run measured.

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
    /// What was retired since `earlier`.
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

    /// All modes.
    pub fn total(&self) -> u64 {
        self.user + self.supervisor + self.machine
    }
}

/// A milestone (marker 0x7a5).
#[derive(Clone, Debug, Serialize)]
pub struct Milestone {
    /// Its number.
    pub number: u64,
    /// When, core cycles.
    pub cycle: u64,
    /// Instructions retired so far by all harts.
    pub instructions: u64,
    /// Host time since the start, seconds.
    pub host_seconds: f64,
    /// What was read of each disk so far.
    pub reads: Vec<DiskReads>,
    /// SMU counters so far.
    pub smu_counters: SmuCounters,
}

/// A disk as it was.
#[derive(Clone, Debug, Serialize)]
pub struct DiskRecord {
    /// Its drive, with all changes.
    pub ssd: SsdParams,
    /// Its namespaces.
    pub namespaces: Vec<NamespaceRecord>,
    /// What was read of it.
    pub reads: DiskReads,
}

/// A namespace as it was.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NamespaceRecord {
    /// Logical blocks.
    pub blocks: u64,
    /// Bytes of one.
    pub block_bytes: u32,
}

/// A fault and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct FaultCount {
    /// The fault as it was given on the command line.
    pub fault: String,
    /// Commands that it struck.
    pub struck: u64,
}

/// A region of interest. Regions do not overlap.
#[derive(Clone, Debug, Serialize)]
pub struct Roi {
    /// Its number: the program's, or the machine's own from 0 on.
    pub number: u64,
    /// Open because mappings were watched for it (marker 0x7a8), not by a program's own markers (0x7a1 and 0x7a2).
    pub automatic: bool,
    /// How many regions this is the sum of: 1, but for those after the first thousand, which are the last one.
    pub regions: u64,
    /// First core cycle.
    pub begin_cycle: u64,
    /// Last core cycle.
    pub end_cycle: u64,
    /// Simulated seconds.
    pub sim_seconds: f64,
    /// Host seconds.
    pub host_seconds: f64,
    /// Instructions retired in it by all harts.
    pub instructions: Instructions,
    /// The same by hart.
    pub instructions_by_hart: Vec<Instructions>,
    /// Cache, TLB and branch misses in it, if timing was detailed.
    pub misses: Option<Misses>,
    /// Watched mappings at its end, from when they were first watched. The newest ones singly, then the sum of the others.
    pub watch: Vec<WatchCounts>,
    /// Page faults of user accesses to watched mappings in the region, first touches or not.
    pub os_faults: u64,
    /// The same by what the walker found: `not_armed`, `permission`, ... (docs/reference/record.md).
    pub os_fault_causes: BTreeMap<&'static str, u64>,
    /// Time of these page faults, from the trap until an access to the page succeeds.
    pub os_fault: LatencySummary,
    /// Number of these page faults after which no access had succeeded when the region ended.
    pub os_faults_open: u64,
    /// Page faults of the kernel's own accesses to watched mappings in the region, for example in system calls.
    pub kernel_faults: u64,
    /// SMU counters, difference over the region.
    pub smu: SmuCounters,
    /// Reads that each disk completed in it.
    pub reads: Vec<DiskReads>,
    /// Blocks that the SMU read and installed in it for walkers, each once.
    pub hw_miss: MissSummary,
    /// The same for software request ports, from the write that asks to the answer.
    pub port_miss: MissSummary,
    /// NVMe reads of all queues, doorbell to completion entry.
    pub nvme_read: LatencySummary,
}

impl Roi {
    /// Takes in a later region. What the recorder measured is of both already.
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

/// What was measured while no region of interest was open. Its fields are those of [`Roi`].
#[derive(Clone, Debug, Serialize)]
pub struct Outside {
    /// Page faults of user accesses to watched mappings.
    pub os_faults: u64,
    /// The same by what the walker found.
    pub os_fault_causes: BTreeMap<&'static str, u64>,
    /// The same, from the trap until an access succeeds; those that were open when a region began are left out.
    pub os_fault: LatencySummary,
    /// Page faults of the kernel's own accesses to watched mappings.
    pub kernel_faults: u64,
    /// Blocks that the SMU read and installed for walkers.
    pub hw_miss: MissSummary,
    /// The same for software request ports.
    pub port_miss: MissSummary,
    /// NVMe reads of all queues.
    pub nvme_read: LatencySummary,
}

/// What a run measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this form.
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
    /// The most memory of the host that the program had, guest memory that was used included, bytes; 0: unknown.
    pub host_peak_bytes: u64,
    /// Instructions retired by all harts.
    pub instructions: u64,
    /// The same by mode.
    pub instructions_by_mode: Instructions,
    /// Million instructions a host second.
    pub mips: f64,
    /// Cache, TLB and branch misses, if timing was detailed at the end.
    pub misses: Option<Misses>,
    /// Milestones.
    pub milestones: Vec<Milestone>,
    /// Regions of interest.
    pub rois: Vec<Roi>,
    /// What was measured outside of all of them.
    pub outside: Outside,
    /// Markers that were ignored: milestones that were too many, watches that were too many or too large.
    pub marks_ignored: u64,
    /// All watched mappings. The newest ones singly, then the sum of the others.
    pub watch: Vec<WatchCounts>,
    /// SMU counters over the whole run.
    pub smu_counters: SmuCounters,
    /// The faults put into drives.
    pub faults: Vec<FaultCount>,
    /// Requests for pages in atomic context, if they were looked for (`--check-atomic`).
    pub atomic: Option<AtomicChecked>,
}

/// The most memory that this process had so far, bytes, as Linux counts it (proc(5), VmHWM).
pub fn host_peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
