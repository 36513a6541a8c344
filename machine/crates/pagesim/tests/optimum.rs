// SPDX-License-Identifier: Apache-2.0
//! The offline optimum: computed by hand, and compared with every policy.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{Playing, access};
use proptest::prelude::*;
use trapless_pagesim::input::Source;
use trapless_pagesim::optimum::{self, min};
use trapless_pagesim::policy::{self, OPTIMUM};
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

/// A page, and whether the access is a store. 1000 instructions come before each access.
type Access = (u64, bool);

/// A source that plays a program. Each access follows 1000 instructions.
fn playing(program: &[Access]) -> Box<dyn Source> {
    let steps = program.iter().map(|&(page, store)| access(page, 0, store, 1000));
    Box::new(Playing(steps.collect::<Vec<_>>().into_iter()))
}

fn settings(policy: &str, frames: u32, processes: usize) -> Settings {
    let process = |n| format!("[[process]]\nname = \"P{n}\"\ntrace = \"\"\nintense = {}\n", n == 0);
    let processes: String = (0..processes).map(process).collect();
    // The cache has 64 lines in one set, so that it does not serve all uses of a page.
    let text = format!(
        "policy = \"sync\"\n[cpu]\ncache_kib = 4\ncache_ways = 64\ninstruction_ns = 1.0\n[memory]\nframes = {frames}\nreserve = 0\n{processes}"
    );
    let mut settings: Settings = toml::from_str(&text).unwrap();
    settings.policy = policy.into();
    settings
}

fn sources(programs: &[Vec<Access>]) -> Vec<Box<dyn Source>> {
    programs.iter().map(|program| playing(program)).collect()
}

fn optimum(settings: &Settings, programs: &[Vec<Access>]) -> Sim {
    optimum::run(settings, sources(programs), &vec![vec![(0, 100)]; programs.len()], &mut |_| ()).unwrap()
}

/// Loads of pages 1 to 5 with enough frames. All reads start at once. The first one takes 3 us; each further one takes the link
/// for another 1.28 us. All times are in us:
///
/// | page | needed, if nothing waits | needed, after earlier waits | read | waits |
/// | --- | --- | --- | --- | --- |
/// | 1 | 1 | 1 | 3 | 2 |
/// | 2 | 2.05 | 4.05 | 4.28 | 0.23 |
/// | 3 | 3.1 | 5.33 | 5.56 | 0.23 |
/// | 4 | 4.15 | 6.61 | 6.84 | 0.23 |
/// | 5 | 5.2 | 7.89 | 8.12 | 0.23 |
#[test]
fn perfect_prefetch_by_hand() {
    let loads: Vec<_> = (1..6).map(|page| (page, false)).collect();
    let sim = optimum(&settings("optimum", 8, 1), &[loads]);
    let found = &sim.core.stats.processes[0];
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes, found.faults, found.late), (5, 0, 0, 5));
    assert_eq!((sim.core.now(), found.waited, found.cpu), (8_170_000, 2_920_000, 8_170_000));
    assert_eq!(found.finished, Some(8_170_000));
}

/// The same with four frames, a store to page 1, and a second access to page 5, which the cache serves. Page 1 must be
/// evicted for page 5. It is written from 4.05 us, when page 2 is used, to 7.05 us. Page 5 is read 3 us later; it is needed
/// at 7.89 us.
#[test]
fn a_frame_is_free_when_its_page_is_written() {
    let accesses = [(1, true), (2, false), (3, false), (4, false), (5, false), (5, false)];
    let sim = optimum(&settings("optimum", 4, 1), &[accesses.to_vec()]);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes), (5, 1));
    assert_eq!(sim.core.now(), 10_050_000 + 50_000 + 1_000_000);
    // If page 1 is not stored to, its frame is free at 4.05 us. Page 5 waits for the others on the link, and is read at 8.12 us.
    let loads = accesses.map(|(page, _)| (page, false));
    let sim = optimum(&settings("optimum", 4, 1), &[loads.to_vec()]);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes), (5, 0));
    assert_eq!(sim.core.now(), 8_120_000 + 50_000 + 1_000_000);
}

/// Pages 1 to 5 twice, four frames, 4.05 us for each use. MIN evicts page 4 for 5, and then 1 for 4: six reads. But page 4
/// is in use until page 5 is needed. With reading ahead, page 1 is evicted for 5 as soon as 2 is used, page 2 for 1 as soon
/// as 3 is used, and so on. All pages are read long before they are needed, so no process waits.
#[test]
fn time_is_not_that_of_the_fewest_reads() {
    let loads: Vec<_> = (1..6).chain(1..6).map(|page| (page, false)).collect();
    let mut settings = settings("optimum", 4, 1);
    settings.cpu.instruction_ns = 4.0;
    // This cache serves no page twice.
    settings.cpu.cache_ways = 1;
    let spread: Vec<_> = loads.iter().map(|(page, store)| (page * 64, *store)).collect();
    let sim = optimum::run(&settings, sources(&[spread]), &[vec![(0, 1000)]], &mut |_| ()).unwrap();
    assert_eq!((sim.core.stats.reads, sim.core.stats.processes[0].waited), (6, 0));
    assert_eq!(sim.core.now(), 10 * 4_050_000);
}

/// Two processes: the second one runs when the first one has ended. Each waits only for its own pages. A context switch comes
/// between them.
#[test]
fn processes_end_later_by_all_waits_before() {
    let sim = optimum(&settings("optimum", 8, 2), &[vec![(1, false)], vec![(1, false)]]);
    let stats = &sim.core.stats;
    let ends: Vec<_> = stats.processes.iter().map(|process| process.finished.unwrap()).collect();
    // First process: runs 1 us, its page is read at 3 us, runs 50 ns. Then a switch of 5 us; second process: 1 us and 50 ns.
    assert_eq!(ends, [3_050_000, 9_100_000]);
    assert_eq!(stats.processes.iter().map(|process| process.waited).collect::<Vec<_>>(), [2_000_000, 0]);
    assert_eq!((sim.core.now(), stats.cpu_at_first_end.as_deref()), (9_100_000, Some(&[3_050_000, 0][..])));
}

/// The same sequence of pages in each round, with one page more than the memory holds. LRU misses all of them; MIN misses one or
/// two in each round.
#[test]
fn it_reads_less_and_waits_less_than_lru() {
    let rows: Vec<_> = (0..20).flat_map(|_| (0..100).map(|page| (page, page % 3 == 0))).collect();
    let found = optimum(&settings("optimum", 99, 1), std::slice::from_ref(&rows));
    let settings = settings("sync", 99, 1);
    let mut lru = Sim::new(&settings, sources(&[rows]), &[vec![(0, 100)]]).unwrap();
    lru.run(&mut |_| ()).unwrap();
    assert_eq!(lru.core.stats.reads, 2000);
    assert_eq!(found.core.stats.reads, 100 + 19);
    assert!(found.core.now() < lru.core.now() / 3);
}

/// All policies that can be simulated.
fn policies() -> Vec<&'static str> {
    policy::built_in().names().filter(|name| *name != OPTIMUM).collect()
}

fn programs() -> impl Strategy<Value = Vec<Vec<Access>>> {
    let any = prop::collection::vec((0..100_u64, any::<bool>()), 1..200);
    let rows = (0..40_u64, 1..4_u64, 1..30_usize, 1..6_usize).prop_map(|(first, stride, pages, rounds)| {
        let row: Vec<_> =
            (first..).step_by(stride as usize).take(pages).map(|page| (page % 100, page % 5 == 0)).collect();
        row.repeat(rounds)
    });
    prop::collection::vec(prop_oneof![any, rows], 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For the string of pages that a run has used, MIN needs no more reads than the run. The optimum reads every page at least
    /// once, and its time is the processor's time and the context switches.
    #[test]
    fn belady_is_never_beaten(
        policy in prop::sample::select(policies()), frames in 4..60_u32, reserve in 0..8_u32, programs in programs(),
    ) {
        let mut settings = settings(policy, frames + reserve + 3, programs.len());
        settings.memory.reserve = reserve;
        let mapped = vec![vec![(0, 100)]; programs.len()];
        let mut sim = Sim::new(&settings, sources(&programs), &mapped).unwrap();
        let string = Rc::new(RefCell::new(vec![]));
        let watching = Rc::clone(&string);
        sim.core.watch = Some(Box::new(move |page, _, _| watching.borrow_mut().push(page.0)));
        sim.run(&mut |_| ()).unwrap();
        let string = string.borrow();
        prop_assert!(min::reads(&string, settings.memory.frames as usize) <= sim.core.stats.reads);

        let best = optimum(&settings, &programs);
        let used: std::collections::BTreeSet<_> =
            programs.iter().enumerate().flat_map(|(pid, program)| program.iter().map(move |(page, _)| (pid, *page))).collect();
        prop_assert!(best.core.stats.reads >= used.len() as u64);
        let waited: u64 = best.core.stats.processes.iter().map(|process| process.waited).sum();
        let cpu: u64 = best.core.stats.processes.iter().map(|process| process.cpu).sum();
        prop_assert_eq!(best.core.now(), cpu + best.core.stats.switches * 5_000_000);
        prop_assert!(waited > 0);
    }
}
