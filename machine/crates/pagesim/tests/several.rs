// SPDX-License-Identifier: Apache-2.0
//! Several CPUs: simulations by hand, and small random simulations that must keep the invariants.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{Program, access, json, loads, policies, programs, run, settings, sim};
use proptest::prelude::*;
use trapless_pagesim::replacement::BUILT_IN;
use trapless_pagesim::settings::{CacheOf, SchedulerKind, Settings, ms, us};
use trapless_pagesim::sim::Sim;

/// Policies that support several CPUs.
fn several() -> Vec<&'static str> {
    policies(|name| !name.starts_with("aspf"))
}

fn cpus(policy: &str, count: u32, processes: usize) -> Settings {
    settings(policy, &format!("[cpu]\ncount = {count}\n[memory]\nframes = 64"), processes)
}

/// Loads from one page, each after 1000 instructions.
fn busy(accesses: usize, page: u64) -> Program {
    loads(&vec![page; accesses])
}

fn ends_ns(sim: &Sim) -> Vec<u64> {
    sim.core.stats.processes.iter().map(|process| process.finished.unwrap() / 1000).collect()
}

/// Each process has its own CPU and one fault, at a different time: 1000 instructions, 3 us for the page, 50 ns. The run takes as
/// long as the longer process.
#[test]
fn two_processes_on_two_cpus_take_the_time_of_the_longer_one() {
    let late = [vec![access(0, 0, false, 20_000)], busy(9, 0)].concat();
    let sim = run(&cpus("sync", 2, 2), &[busy(10, 0), late], 1);
    assert_eq!(ends_ns(&sim), [10 * 1000 + 3050, 20_000 + 9 * 1000 + 3050]);
    assert_eq!(sim.core.now(), us(32.05));
    let stats = &sim.core.stats;
    assert_eq!((stats.switches, stats.idle), (0, us(32.05 - 13.05)));
    let found: Vec<_> = stats.cpus.iter().map(|cpu| (cpu.busy, cpu.idle, cpu.taken)).collect();
    assert_eq!(found, [(us(13.05), us(19.0), 0), (us(32.05), 0, 0)]);
    // On one CPU, processes only take turns after a slice of 3 ms. So they run one after the other, with a switch of 5 us between
    // them.
    let one = run(&cpus("sync", 1, 2), &[busy(10, 0), busy(10, 0)], 1);
    assert_eq!(one.core.now(), us(2.0 * 13.05 + 5.0));
}

/// Both processes fault at 1 us. The drive serves both faults at once, but the second page waits 1.28 us for the link.
#[test]
fn cpus_share_the_drive() {
    let sim = run(&cpus("sync", 2, 2), &[busy(1, 0), busy(1, 0)], 1);
    assert_eq!(ends_ns(&sim), [4050, 4050 + 1280]);
}

/// Two CPUs share four frames, and P1's pages evict P0's. Each loop of three pages would fit alone.
#[test]
fn cpus_share_dram() {
    let mut settings = cpus("sync", 2, 2);
    (settings.memory.frames, settings.memory.reserve) = (5, 0);
    (settings.cpu.cache_kib, settings.cpu.cache_ways) = (4, 1);
    let rounds = loads(&[0, 64, 128].repeat(20));
    let alone = run(&cpus_of(&settings, 1), std::slice::from_ref(&rounds), 200);
    assert_eq!(alone.core.stats.reads, 3);
    let both = run(&settings, &[rounds.clone(), rounds], 200);
    assert!(both.core.stats.reads > 20, "{}", both.core.stats.reads);
}

/// The same configuration with this number of processes.
fn cpus_of(settings: &Settings, processes: usize) -> Settings {
    let mut settings = settings.clone();
    settings.processes.truncate(processes);
    settings
}

/// P0 and P2 begin on CPU 0, P1 on CPU 1. P1 faults at once and ends at 3.05 us. Its CPU then takes P2, which begins at 8.05 us.
/// P0 faults at 50 us.
#[test]
fn an_idle_cpu_takes_a_ready_process() {
    let late = [vec![access(0, 0, false, 50_000)], busy(9, 0)].concat();
    let sim = run(&cpus("sync", 2, 3), &[late, vec![access(0, 0, false, 0)], busy(10, 0)], 1);
    assert_eq!(sim.core.stats.cpus.iter().map(|cpu| cpu.taken).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(ends_ns(&sim), [50_000 + 9 * 1000 + 3050, 3050, 8050 + 10 * 1000 + 3050]);
    assert_eq!(sim.core.stats.switches, 1);
}

/// Four equal processes with slices of 3 ms. Each of two CPUs runs two of them, as a single CPU with two processes does.
#[test]
fn each_cpu_has_its_own_turns() {
    let program = |_| busy(20_000, 0);
    let two = run(&cpus("sync", 1, 2), &(0..2).map(program).collect::<Vec<_>>(), 1);
    let four = run(&cpus("sync", 2, 4), &(0..4).map(program).collect::<Vec<_>>(), 1);
    // CPUs wait for each other on the drive's link. This moves the ends of slices a little.
    let switches = 2 * two.core.stats.switches - 2..=2 * two.core.stats.switches;
    assert!(switches.contains(&four.core.stats.switches), "{} {switches:?}", four.core.stats.switches);
    assert!(four.core.now().abs_diff(two.core.now()) < us(20.0), "{} {}", four.core.now(), two.core.now());
    let least = four.core.stats.processes.iter().map(|process| process.finished.unwrap()).min().unwrap();
    assert!(least > ms(36.0));
}

/// A page takes 50 us. P0 and P2 are on CPU 0 and sleep for their pages from 1 us and 7 us on. P1 is on CPU 1 and sleeps from 30
/// us to 80 us. P0's page arrives at 51 us, and P0 runs for 299 us from 56 us on. P2's page arrives at 57 us, when CPU 0 is busy
/// and CPU 1 is idle. So P2 wakes on CPU 1, after an access of P0 at 57.05 us, and begins at 62.05 us. It ends after 99 more
/// accesses.
#[test]
fn a_process_wakes_on_an_idle_cpu() {
    let mut settings = cpus("async", 2, 3);
    settings.device.latency_us = Some(50.0);
    let sim = run(&settings, &[busy(300, 0), vec![access(0, 0, false, 30_000)], busy(100, 0)], 1);
    assert_eq!(sim.core.stats.cpus.iter().map(|cpu| cpu.taken).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(ends_ns(&sim)[2], 62_050 + 50 + 99_000);
}

#[test]
fn a_policy_for_one_cpu_is_refused() {
    let refused = |settings: &Settings| sim(settings, &[], 1).err().unwrap().to_string();
    assert_eq!(refused(&cpus("aspf-star", 2, 1)), "policy aspf-star: supports only one CPU; set cpu.count to 1, not 2");
    assert_eq!(refused(&cpus("sync", 65, 1)), "cpu.count: 65 is not from 1 to 64");
    let mut none = cpus("sync", 2, 1);
    none.cpu.quantum_us = 0.0;
    assert_eq!(refused(&none), "cpu.quantum_us: 0 is not from 0.001 to 1000000");
}

/// Sixteen lines of a page: each is a miss of the cache, or one of eight is if a line has 512 bytes.
#[test]
fn a_longer_line_serves_its_neighbours() {
    let sweep: Vec<_> = (0..16).map(|line| access(3, line, false, 1000)).collect();
    for (bytes, misses) in [(64, 16), (512, 2), (4096, 1)] {
        let text = format!("[cpu]\nline_bytes = {bytes}\n[memory]\nframes = 64");
        let sim = run(&settings("sync", &text, 1), std::slice::from_ref(&sweep), 16);
        assert_eq!(sim.core.stats.processes[0].cache_misses, misses);
        assert_eq!(sim.core.now(), us(16.0 + 3.0 + 0.05 * misses as f64));
    }
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let choice = (prop::sample::select(several()), 0..BUILT_IN.len(), any::<bool>(), 6..40u32, 0..6u32);
    (choice, 1..5u32, 0.01..50.0f64, 1.8..60.0f64, any::<bool>(), any::<bool>()).prop_map(
        |((policy, replacement, eevdf, frames, reserve), count, quantum, latency, private, tier)| {
            let text = format!("[memory]\nframes = {}\nreserve = {reserve}", frames + reserve + 3);
            let tier = if tier { "\n[tier]\nkind = 'zswap'\nframes = 2\nclean = 'store'" } else { "" };
            let mut settings = settings(policy, &(text + tier), 6);
            settings.memory.replacement = Some(BUILT_IN[replacement].name.to_owned());
            settings.scheduler.kind = if eevdf { SchedulerKind::Eevdf } else { SchedulerKind::Cfs };
            settings.device.latency_us = Some(latency);
            (settings.cpu.count, settings.cpu.quantum_us) = (count, quantum);
            (settings.cpu.cache_kib, settings.cpu.cache_ways) = (8, 2);
            settings.cpu.cache = if private { CacheOf::Process } else { CacheOf::All };
            // Several tiers and processes need these frames.
            settings.memory.frames += 8;
            settings
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any programs on several CPUs: frames and pages are conserved; each process is in one place; its accesses are in the
    /// order of time; every access happens once; the time of each CPU adds up.
    #[test]
    fn any_simulation(mut settings in any_settings(), programs in programs(6)) {
        settings.processes.truncate(programs.len());
        let mut first = sim(&settings, &programs, 30).unwrap();
        let seen = Rc::new(RefCell::new(vec![(0, 0); programs.len()]));
        let watching = Rc::clone(&seen);
        first.core.watch = Some(Box::new(move |_, page, now| {
            let (accesses, last) = &mut watching.borrow_mut()[page.owner];
            assert!(now >= *last, "process {}: at {now} after {last}", page.owner);
            *accesses += 1;
            *last = now;
        }));
        while first.core.stats.processes.iter().any(|process| process.finished.is_none()) {
            first.turn().unwrap();
            prop_assert_eq!(first.core.check(), Ok(()));
        }
        first.core.watch = None;
        let (stats, end) = (&first.core.stats, first.core.now());
        for (pid, (program, found)) in programs.iter().zip(&stats.processes).enumerate() {
            prop_assert_eq!(found.accesses, program.len() as u64);
            prop_assert_eq!(found.cache_misses, seen.borrow()[pid].0);
            let instructions: u64 = program.iter().map(|step| step.instructions).sum();
            prop_assert_eq!(found.instructions, instructions);
            let work = instructions * 1000 + found.cache_misses * 50_000;
            prop_assert!(found.cpu >= work + found.waited && found.cpu <= work + found.waited + stats.stalled + stats.tier.work);
            // A process cannot have run longer than the time since the start.
            prop_assert!(found.cpu <= found.finished.unwrap() && found.finished.unwrap() <= end);
        }
        let mut all = (0, 0, 0, 0);
        for cpu in &stats.cpus {
            prop_assert_eq!(end, cpu.busy + cpu.idle + cpu.switches * us(5.0) + cpu.between_turns);
            all = (all.0 + cpu.busy, all.1 + cpu.idle, all.2 + cpu.switches, all.3 + cpu.between_turns);
        }
        let busy: u64 = stats.processes.iter().map(|process| process.cpu).sum();
        prop_assert_eq!(all, (busy, stats.idle, stats.switches, stats.tier.between_turns));
        let demanded: u64 = stats.processes.iter().map(|process| process.faults).sum();
        let ahead: u64 = stats.prefetches.values().map(|found| found.issued).sum();
        prop_assert_eq!(stats.reads + stats.tier.loaded, demanded + ahead);
        prop_assert_eq!(json(&first), json(&run(&settings, &programs, 30)));
    }

    /// A process that is alone runs the same on several CPUs as on one. The other CPUs are idle.
    #[test]
    fn a_process_alone_does_not_see_other_cpus(mut settings in any_settings(), programs in programs(1)) {
        settings.processes.truncate(1);
        let found: Vec<_> = [1, 3].into_iter().map(|count| {
            settings.cpu.count = count;
            let sim = run(&settings, &programs, 30);
            let stats = &sim.core.stats;
            let process = &stats.processes[0];
            (sim.core.now(), stats.reads, stats.writes, stats.switches, process.cpu, process.waited, stats.tier)
        }).collect();
        prop_assert_eq!(found[0], found[1]);
    }

    /// Processes share only the drive's link, and each has its own CPU. Each ends when it would end alone, except for the time of
    /// the other processes' pages on the link.
    #[test]
    fn processes_that_share_nothing_run_as_alone(programs in programs(4), quantum in 0.01..20.0f64) {
        let count = programs.len();
        let text = format!(
            "[cpu]\ncount = {count}\nquantum_us = {quantum}\ncache = 'process'\ncache_kib = 64\n[memory]\n\
             frames = 4000\n[device]\nahead = 'free'\nchannels = 64\nmb_per_s = 1000000.0"
        );
        let together = run(&settings("sync", &text, count), &programs, 30);
        for (pid, program) in programs.iter().enumerate() {
            let alone = run(&settings("sync", &text, 1), std::slice::from_ref(program), 30);
            let (found, expected) = (together.core.stats.processes[pid].finished.unwrap(), alone.core.now());
            // The link takes 4.1 ns for each page of another process.
            let most = us(0.0041) * together.core.stats.reads;
            prop_assert!(found >= expected && found <= expected + most, "{found} {expected}");
        }
    }
}
