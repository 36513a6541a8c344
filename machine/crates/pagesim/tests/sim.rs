// SPDX-License-Identifier: Apache-2.0
//! Whole simulations: some by hand, and small random ones that must keep the invariants.

mod common;

use common::{Playing, access};
use proptest::prelude::*;
use trapless_pagesim::input::Source;
use trapless_pagesim::policy::{self, OPTIMUM};
use trapless_pagesim::replacement::BUILT_IN;
use trapless_pagesim::report::Report;
use trapless_pagesim::settings::{Group, Memory, Process, SchedulerKind, Settings, ms, us};
use trapless_pagesim::sim::Sim;

/// A program: its accesses in order. Each is a load or store of a line of a page, with the number of instructions before it.
#[derive(Clone, Debug)]
struct Program(Vec<Access>);

#[derive(Clone, Copy, Debug)]
struct Access {
    page: u64,
    line: u64,
    store: bool,
    instructions: u64,
}

/// A source that plays a program.
fn playing(program: &Program) -> Box<dyn Source> {
    let step = |of: &Access| access(of.page, of.line, of.store, of.instructions);
    Box::new(Playing(program.0.iter().map(step).collect::<Vec<_>>().into_iter()))
}

/// Loads from the first lines of pages, each after 1000 instructions.
fn loads(pages: &[u64]) -> Program {
    let access = |page: &u64| Access { page: *page, line: 0, store: false, instructions: 1000 };
    Program(pages.iter().map(access).collect())
}

fn settings(policy: &str, frames: u32, processes: usize) -> Settings {
    let process = |n| Process {
        name: format!("P{n}"),
        trace: "".into(),
        nice: 0,
        intense: n == 0,
        scattered: 0,
        space: None,
        group: None,
    };
    let mut settings = Settings {
        preset: None,
        policy: policy.into(),
        cpu: Default::default(),
        memory: Memory { frames, dram_ns: 50.0, replacement: None, reserve: 0 },
        device: Default::default(),
        tier: None,
        scheduler: Default::default(),
        prefetch: Default::default(),
        aspf: Default::default(),
        foresight: Default::default(),
        own: Default::default(),
        record: Default::default(),
        groups: vec![],
        processes: (0..processes).map(process).collect(),
    };
    settings.cpu.instruction_ns = 1.0;
    settings
}

fn sim(settings: &Settings, programs: &[Program], mapped: u64) -> Sim {
    let sources = programs.iter().map(playing);
    Sim::new(settings, sources.collect(), &vec![vec![(0, mapped)]; programs.len()]).unwrap()
}

fn run(settings: &Settings, programs: &[Program], mapped: u64) -> Sim {
    let mut sim = sim(settings, programs, mapped);
    sim.run(&mut |_| ()).unwrap();
    sim
}

const DRAM_NS: u64 = 50;
const ULL_NS: u64 = 3000;

fn time_ns(sim: &Sim) -> u64 {
    sim.core.now() / 1000
}

/// One process, four frames, LRU. Pages 0 1 2 3 miss. The next access to 0 hits the CPU cache, which does not count as a use:
/// recency is that of DRAM accesses (ASPF IV-A). So 4 evicts 0. Then 0 misses and evicts 1, and 1 misses and evicts 2.
#[test]
fn synchronous_faults_by_hand() {
    let sim = run(&settings("sync", 4, 1), &[loads(&[0, 1, 2, 3, 0, 4, 0, 1])], 10);
    let faults = 7;
    assert_eq!((sim.core.stats.reads, sim.core.stats.processes[0].cache_misses), (faults, faults));
    assert_eq!(time_ns(&sim), 8 * 1000 + faults * (ULL_NS + DRAM_NS));
    assert_eq!(sim.core.stats.switches, 0);
}

/// A store makes its page dirty, even if the cache serves it. The access to page 4 evicts page 0. No frame is free, so it waits
/// for the write of page 0 (3 us), then for its own read. Clean pages leave at once.
#[test]
fn dirty_pages_are_written_before_their_frame_is_free() {
    let mut program = loads(&[0, 1, 2, 3, 0, 4, 5]);
    program.0[4].store = true;
    let sim = run(&settings("sync", 4, 1), &[program.clone()], 10);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes), (6, 1));
    assert_eq!(time_ns(&sim), 7 * 1000 + 6 * (ULL_NS + DRAM_NS) + ULL_NS);
    // With a frame kept free, the write is over before the frame is needed: 3 evicts 0.
    let mut reserve = settings("sync", 5, 1);
    reserve.memory.reserve = 1;
    let sim = run(&reserve, &[program], 10);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes, sim.core.stats.stalled), (6, 1, 0));
    assert_eq!(time_ns(&sim), 7 * 1000 + 6 * (ULL_NS + DRAM_NS));
}

/// Two processes with one fault each. Asynchronously, P0 faults at 1 us, the switch takes 5 us, and P1 faults at 7 us. P0's page
/// arrives at 4 us. The switch to P0 is over at 12 us, and P0 ends at 12.05 us. P1's page arrives at 10 us. The switch to P1 is
/// over at 17.05 us.
#[test]
fn asynchronous_faults_by_hand() {
    let sim = run(&settings("async", 8, 2), &[loads(&[0]), loads(&[0])], 10);
    let ends: Vec<_> = sim.core.stats.processes.iter().map(|process| process.finished.unwrap() / 1000).collect();
    assert_eq!(ends, [12_050, 17_100]);
    assert_eq!((sim.core.stats.switches, sim.core.stats.idle), (3, 0));
    // A single process waits, and is then switched to again.
    let sim = run(&settings("async", 8, 1), &[loads(&[0])], 10);
    assert_eq!((time_ns(&sim), sim.core.stats.idle), (1000 + ULL_NS + 5000 + DRAM_NS, us(3.0)));
}

/// Virt_prefetch, two pages, a dozen accesses: the fault on 0 also reads 1 and 2, the fault on 3 also reads 4 and 5, and so on.
/// Page 1 arrives 1.28 us after page 0 because of the link, while 1000 instructions and 50 ns pass. So it is 230 ns late. Page 2
/// is again 230 ns late.
#[test]
fn virtual_prefetch_by_hand() {
    let mut settings = settings("virt", 64, 1);
    settings.prefetch.pages = 2;
    let sim = run(&settings, &[loads(&(0..12).collect::<Vec<_>>())], 12);
    let stats = &sim.core.stats;
    assert_eq!((stats.reads, stats.processes[0].faults, stats.processes[0].late), (12, 4, 8));
    assert_eq!(time_ns(&sim), 12 * (1000 + DRAM_NS) + 4 * (ULL_NS + 2 * 230));
    let (_, prefetched) = stats.prefetches.iter().next().unwrap();
    assert_eq!((prefetched.issued, prefetched.useful, prefetched.useless), (8, 8, 0));
}

/// Agg_virtual: the drive carries a page in 1.28 us on each of eight channels. In 3 us it carries 18 pages, so parts have 16
/// pages.
#[test]
fn aggressive_prefetch_by_hand() {
    let sim = run(&settings("agg", 64, 1), &[loads(&[20, 16, 31, 32, 15])], 40);
    // 16 to 31, 32 to 39 (the end of the area), 0 to 15.
    assert_eq!((sim.core.stats.reads, sim.core.stats.processes[0].faults), (40, 3));
}

/// Three rounds over a sequence of pages that does not fit into DRAM. Each access faults, unless a set has brought its page.
#[test]
fn sets_save_faults() {
    let rounds: Vec<u64> = (0..3).flat_map(|_| (0..12).map(|page| page * 7)).collect();
    let faults = |policy| run(&settings(policy, 8, 1), &[loads(&rounds)], 100).core.stats.processes[0].faults;
    assert_eq!(faults("sync"), 36);
    assert!(faults("aspf-star") < 36);
}

/// Slices of 3 ms for two processes: ten turns of 3 ms each, and 5 us for each of 19 switches.
#[test]
fn turns_by_hand() {
    let busy = Program((0..29_990).map(|_| Access { page: 0, line: 0, store: false, instructions: 1000 }).collect());
    let sim = run(&settings("sync", 8, 2), &[busy.clone(), busy], 1);
    assert_eq!(sim.core.stats.switches, 19);
    assert_eq!(time_ns(&sim), 2 * (29_990_000 + ULL_NS + DRAM_NS) + 19 * 5000);
    let longest = sim.core.stats.processes.iter().map(|process| process.longest_wait).max().unwrap();
    assert!((ms(3.0)..ms(3.1)).contains(&longest));
}

/// With long latency and many processes, spinning is slow. The adaptive wait is about as fast as the better baseline at both
/// ends.
#[test]
fn adaptive_waits_follow_the_better_baseline() {
    let programs: Vec<_> = (0..8).map(|n| loads(&(0..400).map(|page| page * (n + 1)).collect::<Vec<_>>())).collect();
    let time = |policy, latency| {
        let mut settings = settings(policy, 100, programs.len());
        settings.device.latency_us = Some(latency);
        run(&settings, &programs, 5000).core.now() as f64
    };
    assert!(time("async", 3.0) > 1.1 * time("sync", 3.0));
    assert!(time("adaptive", 3.0) <= 1.01 * time("sync", 3.0));
    assert!(time("sync", 50.0) > 1.5 * time("async", 50.0));
    assert!(time("adaptive", 50.0) <= 1.05 * time("async", 50.0));
}

/// All policies that can be simulated.
fn policies() -> Vec<&'static str> {
    policy::built_in().names().filter(|name| *name != OPTIMUM).collect()
}

fn programs() -> impl Strategy<Value = Vec<Program>> {
    let access = (0..24u64, 0..3u64, any::<bool>(), 0..200_000u64)
        .prop_map(|(page, line, store, instructions)| Access { page, line, store, instructions });
    let row = prop_oneof![
        prop::collection::vec(access, 1..60),
        // A loop.
        (1..20u64, 1..6usize).prop_map(|(pages, rounds)| loads(&(0..pages).collect::<Vec<_>>().repeat(rounds)).0),
    ];
    prop::collection::vec(row.prop_map(Program), 1..5)
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let choice = (prop::sample::select(policies()), prop::sample::select(BUILT_IN), any::<bool>(), 4..40u32, 0..6u32);
    // Each process is in the first, the second or no group. Each group has some frames more than it needs.
    let groups = (prop::collection::vec(0..3usize, 4), prop::collection::vec(0..20u32, 2));
    (choice, 0..8u32, -5..6i8, 1.8..60.0f64, prop::option::of(groups)).prop_map(
        |((policy, order, eevdf, frames, reserve), pages, nice, latency, groups)| {
            let mut settings = settings(policy, frames + reserve + 3, 4);
            settings.memory.replacement = Some(order.name.into());
            settings.memory.reserve = reserve;
            settings.scheduler.kind = if eevdf { SchedulerKind::Eevdf } else { SchedulerKind::Cfs };
            settings.prefetch.pages = pages;
            settings.aspf.set_capacity = 2 + pages;
            settings.device.latency_us = Some(latency);
            settings.processes[1].nice = nice;
            settings.cpu.cache_kib = 8;
            settings.cpu.cache_ways = 2;
            if let Some((of, more)) = groups {
                let name = |group: usize| format!("G{group}");
                let limit = |(group, more)| Group { name: name(group), frames: 4 + reserve + 3 + more };
                settings.groups = more.into_iter().enumerate().map(limit).collect();
                for (process, group) in settings.processes.iter_mut().zip(of) {
                    process.group = (group < 2).then(|| name(group));
                }
            }
            settings
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any programs: frames are conserved and hold one page each; every access happens once; times add up; no process loses
    /// time; and running again gives the same bytes.
    #[test]
    fn any_simulation(mut settings in any_settings(), programs in programs()) {
        settings.processes.truncate(programs.len());
        let mut first = sim(&settings, &programs, 30);
        while first.core.stats.processes.iter().take(programs.len()).any(|process| process.finished.is_none()) {
            first.turn().unwrap();
            prop_assert_eq!(first.core.check(), Ok(()));
        }
        let stats = &first.core.stats;
        let mut busy = 0;
        for (pid, (program, found)) in programs.iter().zip(&stats.processes).enumerate() {
            prop_assert_eq!(found.accesses, program.0.len() as u64);
            let instructions: u64 = program.0.iter().map(|access| access.instructions).sum();
            prop_assert_eq!(found.instructions, instructions);
            // The time that a process ran is its work, its waits and stalls.
            let work = instructions * 1000 + found.cache_misses * 50_000;
            prop_assert!(found.cpu >= work + found.waited && found.cpu <= work + found.waited + stats.stalled);
            // Its virtual run time is this time by weight, except for processes that slept and were moved on, or that were
            // delayed and not yet repaid.
            if settings.policy == "sync" && settings.scheduler.kind == SchedulerKind::Cfs {
                let entity = first.core.sched.entity(pid);
                let exact = found.cpu as f64 * 1024.0 / entity.weight as f64;
                prop_assert!((entity.vruntime as f64 - exact).abs() <= 1.0 + program.0.len() as f64);
            }
            busy += found.cpu;
        }
        prop_assert_eq!(first.core.now(), busy + stats.idle + stats.switches * us(5.0));
        let demanded: u64 = stats.processes.iter().map(|process| process.faults).sum();
        let ahead: u64 = stats.prefetches.values().map(|found| found.issued).sum();
        prop_assert_eq!(stats.reads, demanded + ahead);
        for found in stats.prefetches.values() {
            prop_assert!(found.useful + found.useless <= found.issued);
        }
        let again = run(&settings, &programs, 30);
        let json = |sim: &Sim| serde_json::to_string(&Report::new(sim)).unwrap();
        prop_assert_eq!(json(&first), json(&again));
    }
}
