// SPDX-License-Identifier: Apache-2.0
//! The results of a simulation: latencies, the share of waiting, the log of faults, the warm-up. Also checks that the page about
//! the report lists every key.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use common::{Playing, access};
use proptest::prelude::*;
use serde_json::Value;
use trapless_pagesim::faults::{HEAD, Log};
use trapless_pagesim::input::{Source, Step};
use trapless_pagesim::latency::Latency;
use trapless_pagesim::optimum;
use trapless_pagesim::policy::{self, OPTIMUM};
use trapless_pagesim::report::Report;
use trapless_pagesim::settings::{Settings, us};
use trapless_pagesim::sim::Sim;
use trapless_pagesim::stats::{Prefetched, Series, Stats};

/// Page, whether the access is a store, instructions before it, number of repeats.
type Access = (u64, bool, u64, u64);

/// A source that plays a program.
fn playing(program: &[Access]) -> Box<dyn Source> {
    let step =
        |&(page, store, instructions, repeats): &Access| Step { repeats, ..access(page, 0, store, instructions) };
    Box::new(Playing(program.iter().map(step).collect::<Vec<_>>().into_iter()))
}

/// Loads from pages, each after 1000 instructions of 1 ns.
fn loads(pages: impl IntoIterator<Item = u64>) -> Vec<Access> {
    pages.into_iter().map(|page| (page, false, 1000, 0)).collect()
}

fn settings(policy: &str, frames: u32, processes: usize, more: &str) -> Settings {
    let list: String = (0..processes).map(|n| format!("[[process]]\nname = 'P{n}'\ntrace = ''\n")).collect();
    let text = format!(
        "policy = '{policy}'\n[memory]\nframes = {frames}\nreserve = 0\n[cpu]\ninstruction_ns = 1\ncache_kib = 8\n\
         cache_ways = 2\n{more}\n{list}"
    );
    toml::from_str(&text).unwrap()
}

fn sim(settings: &Settings, programs: &[Vec<Access>]) -> Sim {
    let sources = programs.iter().map(|program| playing(program));
    Sim::new(settings, sources.collect(), &vec![vec![(0, 1000)]; programs.len()]).unwrap()
}

fn run(settings: &Settings, programs: &[Vec<Access>]) -> Sim {
    let mut sim = sim(settings, programs);
    sim.run(&mut |_| ()).unwrap();
    sim
}

/// Runs a simulation and returns its log as text.
fn logged(settings: &Settings, programs: &[Vec<Access>]) -> (Sim, String) {
    let mut file: File = tempfile::tempfile().unwrap();
    let mut sim = sim(settings, programs);
    sim.log = Some(Log::new(Path::new("faults.csv"), file.try_clone().unwrap(), settings).unwrap());
    sim.run(&mut |_| ()).unwrap();
    sim.log.take().unwrap().finish().unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    (sim, text.strip_prefix(&format!("{HEAD}\n")).unwrap().to_owned())
}

fn json(sim: &Sim) -> Value {
    serde_json::to_value(Report::new(sim)).unwrap()
}

/// Count, mean, median and longest time.
fn numbers(summary: &Value) -> [Option<f64>; 4] {
    ["count", "mean_ns", "p50_ns", "max_ns"].map(|key| summary[key].as_f64())
}

/// The two processes of `asynchronous_faults_by_hand` (sim.rs). P0 faults at 1 us; its page arrives at 4 us, and it continues at
/// 12 us. P1 faults at 7 us; its page arrives at 10 us, and it continues at 17.05 us.
#[test]
fn asynchronous_latencies_by_hand() {
    let (sim, log) = logged(&settings("async", 8, 2, ""), &[loads([0]), loads([0])]);
    assert_eq!(log, "1000,P0,0,demand,demand,3000,11000,,,1\n7000,P1,0,demand,demand,3000,10050,,,1\n");
    let report = json(&sim);
    assert_eq!(numbers(&report["latency"]["until_page"]), [2.0, 3000.0, 3000.0, 3000.0].map(Some));
    let [count, mean, p50, max] = numbers(&report["latency"]["until_run"]).map(Option::unwrap);
    assert_eq!((count, mean, max), (2.0, 10_525.0, 11_000.0));
    assert!((10_050.0..=10_150.0).contains(&p50), "{p50}");
    assert_eq!(numbers(&report["processes"][1]["latency"]["until_run"])[3], Some(10_050.0));
    assert_eq!((&report["waiting_share"], &report["warm_up"]), (&Value::from(0.0), &Value::Null));
}

/// As in `virtual_prefetch_by_hand` (sim.rs): of 12 pages, four fault. The two pages after each of these are 230 ns late.
#[test]
fn late_prefetches_wait_as_well() {
    let (sim, log) = logged(&settings("virt", 64, 1, "[prefetch]\npages = 2"), &[loads(0..12)]);
    let lines: Vec<_> = log.lines().take(4).collect();
    assert_eq!(
        lines,
        [
            "1000,P0,0,demand,demand,3000,3000,,,1",
            "5050,P0,1,late,neighbour,230,230,,,1",
            "6330,P0,2,late,neighbour,230,230,,,1",
            "7610,P0,3,demand,demand,3000,3000,,,1"
        ]
    );
    let report = json(&sim);
    let waited = 4.0 * 3000.0 + 8.0 * 230.0;
    assert_eq!(numbers(&report["latency"]["until_page"]), [12.0, waited / 12.0, 230.0, 3000.0].map(Some));
    assert_eq!((&report["latency"]["until_run"], &report["late"]), (&report["latency"]["until_page"], &8.into()));
    let share = report["waiting_share"].as_f64().unwrap();
    assert!((share - waited / (waited + 12.0 * 1050.0)).abs() < 1e-6);
    assert_eq!(report["processes"][0]["waiting_share"], report["waiting_share"]);
}

/// Four frames. Page 4 evicts page 0, which is dirty. So it waits 3 us for the write and 3 us for its read. Page 1 is clean and
/// leaves at once.
#[test]
fn the_log_names_what_had_to_go() {
    let mut program = loads([0, 1, 2, 3, 4, 5]);
    program[0].1 = true;
    let (_, log) = logged(&settings("sync", 4, 1, ""), &[program]);
    let lines: Vec<_> = log.lines().skip(4).collect();
    let at = 4 * 4050 + 1000;
    let next = at + 6050 + 1000;
    assert_eq!(
        lines,
        [format!("{at},P0,4,demand,demand,6000,6000,P0,0,1"), format!("{next},P0,5,demand,demand,3000,3000,P0,1,1")]
    );
}

/// The warm-up has 5 of 12 loads. The other 7 are faults of 4.05 us each. Times count from the end of the warm-up.
#[test]
fn a_warm_up_by_hand() {
    for more in ["[record]\nwarm_up_accesses = 5", "[record]\nwarm_up_ms = 0.02021"] {
        let settings = settings("sync", 64, 1, more);
        let (sim, log) = logged(&settings, &[loads(0..12)]);
        let report = json(&sim);
        assert_eq!(report["warm_up"], serde_json::json!({"accesses": 5, "time_ns": 20_250}));
        assert_eq!(
            (&report["accesses"], &report["faults"], &report["device_reads"]),
            (&7.into(), &7.into(), &7.into())
        );
        let time = 7 * 4050;
        assert_eq!((&report["time_ns"], &report["cpu_ns"]), (&time.into(), &time.into()));
        let process = &report["processes"][0];
        assert_eq!((&process["finished_ns"], &process["cpu_share"]["0.5"]), (&time.into(), &1.0.into()));
        assert_eq!(process["timeline"]["counts"], serde_json::json!([7]));
        assert_eq!(report["latency"]["until_page"]["count"], 7);
        assert_eq!(log.lines().count(), 7);
        assert!(log.starts_with("21250,P0,5,"), "the log has times from the start of the run: {log}");
    }
}

/// A fault whose wait spans the end of the warm-up counts in the warm-up. Its latency counts in neither part.
#[test]
fn a_wait_across_the_end_of_the_warm_up() {
    let (sim, log) = logged(&settings("sync", 64, 1, "[record]\nwarm_up_ms = 0.002"), &[loads([0, 1])]);
    let warm_up = sim.warm_up.as_ref().unwrap();
    let (before, after) = (&warm_up.stats.processes[0], &sim.core.stats.processes[0]);
    // The warm-up ends 1 us into the first wait.
    assert_eq!((before.faults, before.waited, after.faults, after.waited), (1, 1_000_000, 1, 5_000_000));
    assert_eq!((before.cache_misses, after.cache_misses), (0, 2));
    assert_eq!((warm_up.stats.waits[0].page.count(), sim.core.stats.waits[0].page.count()), (0, 1));
    assert_eq!(log, "5050,P0,1,demand,demand,3000,3000,,,1\n");
}

/// The processes of `processes_end_later_by_all_waits_before` (optimum.rs). The first one is the warm-up.
#[test]
fn the_optimum_has_a_warm_up() {
    let settings = settings(OPTIMUM, 8, 2, "[record]\nwarm_up_accesses = 1");
    let programs = [loads([1]), loads([1])];
    let sources = programs.iter().map(|program| playing(program));
    let sim = optimum::run(&settings, sources.collect(), &[vec![(0, 9)], vec![(0, 9)]], &mut |_| ()).unwrap();
    let stats = &sim.core.stats;
    assert_eq!((stats.since, sim.core.now(), stats.reads), (3_050_000, 9_100_000, 1));
    let processes: Vec<_> =
        stats.processes.iter().map(|found| (found.finished.unwrap(), found.cpu, found.waited)).collect();
    assert_eq!(processes, [(3_050_000, 0, 0), (9_100_000, 1_050_000, 0)]);
    assert_eq!(stats.cpu_at_first_end.as_deref(), Some(&[0, 1_050_000][..]));
    assert_eq!((json(&sim)["time_ns"].as_u64(), json(&sim)["jain"].as_f64()), (Some(6050), Some(1.0)));
}

#[test]
fn a_warm_up_leaves_something_to_count() {
    let said = |more: &str| {
        let mut sim = sim(&settings("sync", 64, 1, &format!("[record]\n{more}")), &[loads(0..4)]);
        sim.run(&mut |_| ()).err().map(|e| e.to_string())
    };
    assert_eq!(said("warm_up_accesses = 3"), None);
    for accesses in [4, 5, u64::MAX >> 1] {
        let wrong = format!("record.warm_up_accesses: {accesses} leaves nothing to count: the run has 4 accesses");
        assert_eq!(said(&format!("warm_up_accesses = {accesses}")), Some(wrong));
    }
    let wrong = "record.warm_up_ms: 20 leaves nothing to count: the run takes 0.0162 ms";
    assert_eq!(said("warm_up_ms = 20"), Some(wrong.to_owned()));
    let both = settings("sync", 64, 1, "[record]\nwarm_up_ms = 1\nwarm_up_accesses = 1").check();
    assert!(both.unwrap_err().to_string().contains("leave one of them out"));
}

/// Counts of which those of the warm-up and those after it add up to the whole.
fn additive(stats: &Stats) -> Vec<u64> {
    let of = |series: &[Series]| series.iter().map(|one| one.counts.iter().sum()).collect::<Vec<u64>>();
    let mut sums = vec![stats.reads, stats.writes, stats.rescued, stats.switches, stats.stalled];
    for found in &stats.processes {
        sums.extend([found.accesses, found.instructions, found.cache_misses, found.faults, found.late]);
        sums.push(found.waited);
        sums.extend(found.parts);
    }
    sums.extend(of(&stats.faults));
    sums
}

/// Times of CPUs. They are divided at the end of the warm-up.
fn divided(stats: &Stats) -> Vec<u64> {
    let series = stats.cpu.iter().map(|one| one.counts.iter().sum());
    stats.processes.iter().map(|found| found.cpu).chain(series).chain([stats.idle]).collect()
}

fn programs() -> impl Strategy<Value = Vec<Vec<Access>>> {
    let any = prop::collection::vec((0..24u64, any::<bool>(), 0..200_000u64, 0..3u64), 1..60);
    let row = (1..20u64, 1..6usize).prop_map(|(pages, rounds)| loads((0..pages).collect::<Vec<_>>().repeat(rounds)));
    prop::collection::vec(prop_oneof![any, row], 1..5)
}

fn any_settings() -> impl Strategy<Value = String> {
    let policies: Vec<_> = policy::built_in().names().filter(|name| *name != OPTIMUM).collect();
    (prop::sample::select(policies), 7..40u32, 1.8..60.0f64, any::<bool>(), 1..4u32).prop_map(
        |(policy, frames, latency, eevdf, cpus)| {
            let kind = if eevdf { "eevdf" } else { "cfs" };
            let cpu = if cpus > 1 && !policy.starts_with("aspf") { format!("count = {cpus}\n") } else { String::new() };
            format!("{policy} {frames} {cpu}[device]\nlatency_us = {latency}\n[scheduler]\nkind = '{kind}'\n")
        },
    )
}

fn chosen(text: &str, processes: usize, more: &str) -> Settings {
    let words: Vec<_> = text.splitn(3, ' ').collect();
    settings(words[0], words[1].parse().unwrap(), processes, &format!("{}{more}", words[2]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A warm-up does not change the run. Its counts and those after it add up to those of a run without a warm-up.
    #[test]
    fn a_warm_up_takes_its_part(
        text in any_settings(), programs in programs(), accesses in any::<bool>(), part in 0.0..1.0f64,
    ) {
        let whole = run(&chosen(&text, programs.len(), ""), &programs);
        let length = if accesses { whole.accesses() as f64 * part } else { whole.core.now() as f64 / 1e9 * part };
        let record = if accesses { format!("accesses = {}", length as u64) } else { format!("ms = {length:?}") };
        let settings = chosen(&text, programs.len(), &format!("[record]\nwarm_up_{record}\n"));
        let mut cut = sim(&settings, &programs);
        if let Err(wrong) = cut.run(&mut |_| ()) {
            // The warm-up would end after the last access.
            prop_assert!(!accesses || length as u64 + 3 > whole.accesses());
            prop_assert!(wrong.to_string().contains("leaves nothing to count"), "{wrong}");
            return Ok(());
        }
        prop_assert_eq!(cut.core.now(), whole.core.now());
        let Some(warm_up) = &cut.warm_up else {
            let least = if accesses { 1.0 } else { 1e-9 };
            prop_assert!(length < least);
            return Ok(());
        };
        let (before, after) = (&warm_up.stats, &cut.core.stats);
        if accesses {
            prop_assert!(warm_up.accesses >= length as u64 && warm_up.accesses <= length as u64 + 3);
        } else {
            prop_assert!(after.since as f64 >= length * 1e9 - 1.0);
        }
        let both: Vec<_> = additive(before).iter().zip(additive(after)).map(|(a, b)| a + b).collect();
        prop_assert_eq!(both, additive(&whole.core.stats));
        // Another CPU may be ahead or behind by 300 us: a step of 200 us, a page and a quantum.
        let skew = if settings.cpu.count > 1 { us(300.0) } else { 0 };
        for ((before, after), whole) in divided(before).iter().zip(divided(after)).zip(divided(&whole.core.stats)) {
            prop_assert!((before + after).abs_diff(whole) <= u64::from(settings.cpu.count) * skew);
        }
        let mut prefetches: BTreeMap<_, Prefetched> = before.prefetches.clone();
        for (origin, found) in &after.prefetches {
            let sum = prefetches.entry(*origin).or_default();
            (sum.issued, sum.useful) = (sum.issued + found.issued, sum.useful + found.useful);
            sum.useless += found.useless;
        }
        prop_assert_eq!(&prefetches, &whole.core.stats.prefetches);
        for (pid, found) in after.processes.iter().enumerate() {
            prop_assert_eq!(found.finished, whole.core.stats.processes[pid].finished);
            let count = |stats: &Stats| stats.waits[pid].process.count();
            prop_assert_eq!(count(after), found.faults + found.late);
            // A wait that spans the end of the warm-up is in neither part.
            let neither = count(&whole.core.stats) - count(before) - count(after);
            prop_assert!(neither <= 1);
        }
        let (part, all) = (json(&cut), json(&whole));
        let time = |report: &Value, key: &str| report[key].as_u64().unwrap();
        prop_assert!(time(&part, "time_ns").abs_diff(time(&all, "time_ns") - after.since / 1000) <= 1);
        prop_assert!(part["bookkeeping"]["operations"].as_u64() <= all["bookkeeping"]["operations"].as_u64());
    }

    /// The log has one line for each wait that the report counts, with the same times. Writing it changes nothing.
    #[test]
    fn the_log_is_what_is_counted(text in any_settings(), programs in programs()) {
        let settings = chosen(&text, programs.len(), "");
        let (found, log) = logged(&settings, &programs);
        prop_assert_eq!(json(&found), json(&run(&settings, &programs)));
        let mut latencies = vec![(Latency::default(), Latency::default()); programs.len()];
        let mut kinds = vec![BTreeMap::<String, u64>::new(); programs.len()];
        for line in log.lines() {
            let fields: Vec<_> = line.split(',').collect();
            prop_assert_eq!(fields.len(), HEAD.split(',').count());
            let pid: usize = fields[1][1..].parse().unwrap();
            *kinds[pid].entry(fields[3].to_owned()).or_default() += 1;
            prop_assert_eq!(fields[3] == "demand", fields[4] == "demand");
            prop_assert!(programs[pid].iter().any(|access| access.0.to_string() == fields[2]));
            let [at, waited, resumed] = [0, 5, 6].map(|n| fields[n].parse::<u64>().unwrap());
            prop_assert!(waited <= resumed && at + resumed <= found.core.now() / 1000);
            latencies[pid].0.add(waited * 1000);
            latencies[pid].1.add(resumed * 1000);
        }
        for (pid, process) in found.core.stats.processes.iter().enumerate() {
            let count = |kind| kinds[pid].get(kind).copied().unwrap_or(0);
            prop_assert_eq!((count("demand"), count("late")), (process.faults, process.late));
            let waits = &found.core.stats.waits[pid];
            for (mine, its) in [(&latencies[pid].0, &waits.page), (&latencies[pid].1, &waits.process)] {
                let (mine, its) = (mine.summary(), its.summary());
                prop_assert_eq!((mine.p50_ns, mine.p999_ns, mine.max_ns), (its.p50_ns, its.p999_ns, its.max_ns));
            }
        }
    }
}

/// The names in the first column of a section's tables.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section =
        page.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_else(|| panic!("{heading}"));
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('|'));
    rows.flat_map(|(names, _)| names.split(", ").map(|name| name.trim().trim_matches('`').to_owned())).collect()
}

#[test]
fn the_documentation_lists_every_key() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/pagesim-report.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let report = json(&run(&settings("virt", 64, 1, ""), &[loads(0..12)]));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(listed(&page, "The run"), keys(&report));
    assert_eq!(listed(&page, "Each process"), keys(&report["processes"][0]));
    assert_eq!(listed(&page, "Latencies"), keys(&report["latency"]["until_page"]));
    assert_eq!(listed(&page, "The log of faults"), HEAD.split(',').map(str::to_owned).collect());
}
