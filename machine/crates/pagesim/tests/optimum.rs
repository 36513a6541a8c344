// SPDX-License-Identifier: Apache-2.0
//! The offline optimum: by hand, and against what every policy does.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use trapless_pagesim::Error;
use trapless_pagesim::input::{Kind, Source, Step, Tail};
use trapless_pagesim::optimum::{self, min};
use trapless_pagesim::policy::{self, OPTIMUM};
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

/// A page, and whether it is stored to; 1000 instructions before.
type Access = (u64, bool);

struct Playing(std::vec::IntoIter<Access>);

impl Source for Playing {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        Ok(self.0.next().map(|(page, store)| Step {
            line: page * 64,
            kind: if store { Kind::Store } else { Kind::Load },
            instructions: 1000,
            repeats: 0,
        }))
    }

    fn tail(&self) -> Tail {
        Tail::default()
    }

    fn accesses(&self) -> Option<u64> {
        None
    }

    fn name(&self) -> &str {
        "a program"
    }
}

fn settings(policy: &str, frames: u32, processes: usize) -> Settings {
    let process = |n| format!("[[process]]\nname = \"P{n}\"\ntrace = \"\"\nintense = {}\n", n == 0);
    let processes: String = (0..processes).map(process).collect();
    // A cache of 64 lines in one set, so that pages are used again beyond it.
    let text = format!(
        "policy = \"sync\"\n[cpu]\ncache_kib = 4\ncache_ways = 64\ninstruction_ns = 1.0\n[memory]\nframes = {frames}\nreserve = 0\n{processes}"
    );
    let mut settings: Settings = toml::from_str(&text).unwrap();
    settings.policy = policy.into();
    settings
}

fn sources(programs: &[Vec<Access>]) -> Vec<Box<dyn Source>> {
    programs.iter().map(|program| Box::new(Playing(program.clone().into_iter())) as Box<dyn Source>).collect()
}

fn optimum(settings: &Settings, programs: &[Vec<Access>]) -> Sim {
    optimum::run(settings, sources(programs), &vec![vec![(0, 100)]; programs.len()], &mut |_| ()).unwrap()
}

/// Loads of pages 1 to 5, enough frames. All reads are asked for at once; the first one takes 3 us, each further one has the
/// link for 1.28 us more:
///
/// | page | needed, us, without waits | with those before | there | waits |
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

/// The same with four frames, a store to page 1 and then another 5, which the cache serves. Page 1 has to go for 5. From 4.05 us
/// on, as page 2 is used, it is written, which takes until 7.05; 5 is there 3 us later, needed at 7.89.
#[test]
fn a_frame_is_free_when_its_page_is_written() {
    let accesses = [(1, true), (2, false), (3, false), (4, false), (5, false), (5, false)];
    let sim = optimum(&settings("optimum", 4, 1), &[accesses.to_vec()]);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes), (5, 1));
    assert_eq!(sim.core.now(), 10_050_000 + 50_000 + 1_000_000);
    // Not stored to, it is free at 4.05: 5 is behind the others on the link, there at 8.12.
    let loads = accesses.map(|(page, _)| (page, false));
    let sim = optimum(&settings("optimum", 4, 1), &[loads.to_vec()]);
    assert_eq!((sim.core.stats.reads, sim.core.stats.writes), (5, 0));
    assert_eq!(sim.core.now(), 8_120_000 + 50_000 + 1_000_000);
}

/// Pages 1 to 5 twice, four frames, 4.05 us for each use. MIN gives up 4 for 5 and then 1 for 4, six reads; but 4 is in use until
/// 5 is needed. Reading ahead gives up 1 for 5 as soon as 2 is used, 2 for 1 as soon as 3 is used, and so on: all reads are done
/// long before they are needed, and nothing is waited for.
#[test]
fn time_is_not_that_of_the_fewest_reads() {
    let loads: Vec<_> = (1..6).chain(1..6).map(|page| (page, false)).collect();
    let mut settings = settings("optimum", 4, 1);
    settings.cpu.instruction_ns = 4.0;
    // A cache that serves no page twice.
    settings.cpu.cache_ways = 1;
    let spread: Vec<_> = loads.iter().map(|(page, store)| (page * 64, *store)).collect();
    let sim = optimum::run(&settings, sources(&[spread]), &[vec![(0, 1000)]], &mut |_| ()).unwrap();
    assert_eq!((sim.core.stats.reads, sim.core.stats.processes[0].waited), (6, 0));
    assert_eq!(sim.core.now(), 10 * 4_050_000);
}

/// Two processes: the second one runs when the first has ended. What each waits for is its own; the context switch stays.
#[test]
fn processes_end_later_by_all_waits_before() {
    let sim = optimum(&settings("optimum", 8, 2), &[vec![(1, false)], vec![(1, false)]]);
    let stats = &sim.core.stats;
    let ends: Vec<_> = stats.processes.iter().map(|process| process.finished.unwrap()).collect();
    // 1 us, its page is there at 3 us, 50 ns; 5 us, 1 us, 50 ns.
    assert_eq!(ends, [3_050_000, 9_100_000]);
    assert_eq!(stats.processes.iter().map(|process| process.waited).collect::<Vec<_>>(), [2_000_000, 0]);
    assert_eq!((sim.core.now(), stats.cpu_at_first_end.as_deref()), (9_100_000, Some(&[3_050_000, 0][..])));
}

/// A row of pages again and again, one more than fit: LRU keeps none of them in time, MIN all but one or two a round.
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

/// All policies that simulate.
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

    /// Of the string of pages that a run really has, MIN reads no more than the run; and the optimum's reads are those of MIN,
    /// every page at least once.
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
