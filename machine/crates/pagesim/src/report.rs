// SPDX-License-Identifier: Apache-2.0
//! The results of a simulation, as they are written to a file.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::CpuStats;
use crate::drive::DriveStats;
use crate::latency::{Waits, WaitsSummary};
use crate::pages::Origin;
use crate::policy::Bookkeeping;
use crate::settings::{Settings, Time};
use crate::sim::Sim;
use crate::stats::{Prefetched, Series, jain};
use crate::tier::TierStats;

/// Parts of the run for which shares of the processor are reported (ASPF figure 9: 5 % and 10 %).
const SHARES: [(&str, u64); 4] = [("0.05", 5), ("0.1", 10), ("0.25", 25), ("0.5", 50)];

/// The end of the warm-up.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WarmUpReport {
    /// Number of accesses before it.
    pub accesses: u64,
    /// Simulated time before it.
    pub time_ns: u64,
}

/// Results. Times are ns. All results describe the run after the warm-up, if there was one; times count from the end of the
/// warm-up.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The warm-up; null if there was none.
    pub warm_up: Option<WarmUpReport>,
    /// Time from the start until the last process ended.
    pub time_ns: u64,
    /// Number of accesses in all traces.
    pub accesses: u64,
    /// Number of faults on pages that were out of DRAM.
    pub faults: u64,
    /// Number of accesses to pages whose prefetch was still under way.
    pub late: u64,
    /// Number of pages read from the drives.
    pub device_reads: u64,
    /// Number of pages written to the drives.
    pub device_writes: u64,
    /// Pages moved in both directions. Energy is proportional to this (ASPF IV-B3).
    pub pages_moved: u64,
    /// Number of pages that were needed again while they were being written.
    pub rescued: u64,
    /// Number of context switches.
    pub context_switches: u64,
    /// Processor time of all processes, including their waits for pages.
    pub cpu_ns: u64,
    /// The part of this time in which processes waited for pages.
    pub waited_ns: u64,
    /// `waited_ns` divided by `time_ns`.
    pub waiting_share: f64,
    /// How long accesses waited for their pages: faults, and accesses to pages that were on their way.
    pub latency: WaitsSummary,
    /// Time in which faults waited for a free frame.
    pub stalled_ns: u64,
    /// Time in which a CPU had no ready process, summed over all CPUs.
    pub idle_ns: u64,
    /// Jain's index of fairness, 1/n to 1 for n processes: of the processor times divided by weight, when the first process ends.
    pub jain: f64,
    /// Prefetched pages by origin.
    pub prefetch: BTreeMap<Origin, Prefetched>,
    /// Counts of each CPU, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuStats>,
    /// Counts of each drive, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveStats>,
    /// Counts of the compressed tier, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierStats>,
    /// Costs of the policy's own structures (ASPF IV-C).
    pub bookkeeping: Bookkeeping,
    /// Results of each process.
    pub processes: Vec<ProcessReport<'a>>,
    /// The configuration that was simulated.
    pub settings: &'a Settings,
}

/// Results of one process.
#[derive(Debug, Serialize)]
pub struct ProcessReport<'a> {
    /// Name of the process.
    pub name: &'a str,
    /// Time at which it ended; 0 if it ended in the warm-up.
    pub finished_ns: u64,
    /// Its processor time, including waits for pages.
    pub cpu_ns: u64,
    /// The part of this time in which it waited for pages.
    pub waited_ns: u64,
    /// `waited_ns` divided by the run's `time_ns`. The values of all processes add up to that of the run.
    pub waiting_share: f64,
    /// How long its accesses waited for their pages.
    pub latency: WaitsSummary,
    /// Longest time in which it was ready and did not run.
    pub longest_wait_ns: u64,
    /// Number of accesses in its trace.
    pub accesses: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of accesses that the cache did not serve.
    pub cache_misses: u64,
    /// Number of faults on pages that were out of DRAM.
    pub faults: u64,
    /// Number of accesses to pages whose prefetch was still under way.
    pub late: u64,
    /// Faults in the first, second and last third of a time slice (ASPF figure 1c).
    pub fault_parts: [u64; 3],
    /// Its share, 0 to 1, of all processes' processor time in the first part of the run (`0.05`: the first 5 %, and so on).
    pub cpu_share: BTreeMap<&'static str, f64>,
    /// Faults over time (ASPF figure 1b).
    pub timeline: &'a Series,
}

fn in_ns(time: Time) -> u64 {
    time / 1000
}

impl<'a> Report<'a> {
    /// Makes the report of a simulation that has ended.
    pub fn new(sim: &'a Sim) -> Report<'a> {
        let (core, bookkeeping) = (&sim.core, sim.bookkeeping());
        let (stats, settings) = (&core.stats, &core.settings);
        // Times count from the end of the warm-up.
        let end = core.now() - stats.since;
        let share = |waited: Time| waited as f64 / end.max(1) as f64;
        let sum = |of: fn(&crate::stats::ProcessStats) -> u64| stats.processes.iter().map(of).sum::<u64>();
        let until = |percent: u64| -> Vec<u64> {
            stats.cpu.iter().map(|series| series.until((u128::from(end) * u128::from(percent) / 100) as u64)).collect()
        };
        let shares: Vec<_> = SHARES.iter().map(|(name, percent)| (*name, until(*percent))).collect();
        let fair: Vec<f64> = stats
            .cpu_at_first_end
            .iter()
            .flatten()
            .enumerate()
            .filter(|(pid, _)| stats.processes[*pid].finished.is_none_or(|at| stats.has_begun_by(at)))
            .map(|(pid, time)| *time as f64 / core.sched.entity(pid).weight as f64)
            .collect();
        let processes = settings.processes.iter().zip(&stats.processes).zip(&stats.faults).enumerate();
        let waits = &stats.waits;
        let processes = processes.map(|(pid, ((process, found), timeline))| ProcessReport {
            name: &process.name,
            finished_ns: in_ns(found.finished.map_or(end, |at| at.saturating_sub(stats.since))),
            cpu_ns: in_ns(found.cpu),
            waited_ns: in_ns(found.waited),
            waiting_share: share(found.waited),
            latency: waits[pid].summary(),
            longest_wait_ns: in_ns(found.longest_wait),
            accesses: found.accesses,
            instructions: found.instructions,
            cache_misses: found.cache_misses,
            faults: found.faults,
            late: found.late,
            fault_parts: found.parts,
            cpu_share: shares
                .iter()
                .map(|(name, times)| (*name, times[pid] as f64 / times.iter().sum::<u64>().max(1) as f64))
                .collect(),
            timeline,
        });
        Report {
            warm_up: sim
                .warm_up
                .as_ref()
                .map(|warm_up| WarmUpReport { accesses: warm_up.accesses, time_ns: in_ns(stats.since) }),
            time_ns: in_ns(end),
            accesses: sum(|process| process.accesses),
            faults: sum(|process| process.faults),
            late: sum(|process| process.late),
            device_reads: stats.reads,
            device_writes: stats.writes,
            pages_moved: stats.reads + stats.writes,
            rescued: stats.rescued,
            context_switches: stats.switches,
            cpu_ns: in_ns(sum(|process| process.cpu)),
            waited_ns: in_ns(sum(|process| process.waited)),
            waiting_share: share(sum(|process| process.waited)),
            latency: Waits::of_all(waits).summary(),
            stalled_ns: in_ns(stats.stalled),
            idle_ns: in_ns(stats.idle),
            jain: jain(&fair),
            prefetch: stats.prefetches.clone(),
            cpus: Some(stats.cpus.clone()).filter(|cpus| cpus.len() > 1).unwrap_or_default(),
            drives: Some(core.drives()).filter(|drives| drives.len() > 1).unwrap_or_default(),
            tier: settings.tier.as_ref().map(|_| stats.tier),
            bookkeeping,
            processes: processes.collect(),
            settings,
        }
    }
}
