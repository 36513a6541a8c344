// SPDX-License-Identifier: Apache-2.0
//! Limits of memory for groups of processes. tests/sim.rs runs random simulations with groups.

mod common;

use common::{Playing, access};
use trapless_pagesim::input::{Kind, Source};
use trapless_pagesim::pages::Place;
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

/// Two processes in a memory of 100 frames. The first one is in the group `small`, which has the frame limit `limit`.
fn settings(limit: u32, order: &str) -> Settings {
    let text = format!(
        "policy = \"sync\"\n[cpu]\ncache_kib = 8\ncache_ways = 2\n[memory]\nframes = 100\nreserve = 0\n\
         replacement = \"{order}\"\n[[group]]\nname = \"small\"\nframes = {limit}\n\
         [[process]]\nname = \"A\"\ntrace = \"\"\ngroup = \"small\"\n[[process]]\nname = \"B\"\ntrace = \"\"\n"
    );
    toml::from_str(&text).unwrap()
}

fn run(settings: &Settings, rounds: usize, kind: Kind) -> Sim {
    let source = |pages: u64| {
        let round: Vec<_> = (0..pages).map(|page| access(page, 0, kind == Kind::Store, 1000)).collect();
        Box::new(Playing(round.repeat(rounds).into_iter())) as Box<dyn Source>
    };
    let mut sim = Sim::new(settings, vec![source(20), source(60)], &[vec![(0, 20)], vec![(0, 60)]]).unwrap();
    sim.run(&mut |_| ()).unwrap();
    sim.core.check().unwrap();
    sim
}

/// A has 20 pages and may hold 10, so LRU misses every page in each of five rounds. B has 60 pages and holds them all.
#[test]
fn a_group_evicts_its_own_pages() {
    let sim = run(&settings(10, "lru"), 5, Kind::Load);
    let faults: Vec<_> = sim.core.stats.processes.iter().map(|process| process.faults).collect();
    assert_eq!(faults, [100, 60]);
    let held = sim.core.pages.iter().filter(|(_, page)| page.owner == 0 && page.place != Place::Device).count();
    assert_eq!(held, 10);
    // With room for all of A's pages, each page is read once.
    let sim = run(&settings(20, "lru"), 5, Kind::Load);
    assert_eq!(sim.core.stats.reads, 80);
}

/// A page that is being written counts for the limit. The group gets its frame only when the write is over.
#[test]
fn pages_being_written_count() {
    for order in trapless_pagesim::replacement::BUILT_IN {
        let sim = run(&settings(10, order.name), 3, Kind::Store);
        let stats = &sim.core.stats;
        assert!(stats.writes > 0 && stats.stalled > 0, "{}", order.name);
        assert_eq!(stats.processes[1].faults, 60, "{}", order.name);
    }
}

#[test]
fn wrong_groups_are_refused() {
    let wrong = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings(10, "lru");
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    };
    let few = "group small: frames must be 4 (its processes, memory.reserve and 3) to 1000000000, not 3";
    assert_eq!(wrong(&|settings| settings.groups[0].frames = 3), few);
    let unknown = wrong(&|settings| settings.processes[1].group = Some("large".into()));
    assert_eq!(unknown, "process B: there is no [[group]] named large");
    let twice = wrong(&|settings| settings.groups.push(settings.groups[0].clone()));
    assert_eq!(twice, "group small: two groups have this name");
}
