// SPDX-License-Identifier: Apache-2.0
//! Small programs for whole simulations.

// Each test uses only some of these functions.
#![allow(dead_code)]

use proptest::prelude::*;
use trapless_pagesim::Error;
use trapless_pagesim::input::{Kind, Source, Step, Tail};
use trapless_pagesim::policy::{self, OPTIMUM};
use trapless_pagesim::report::Report;
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

/// The accesses of a program, in order.
pub type Program = Vec<Step>;

/// A source that plays a program.
pub struct Playing(pub std::vec::IntoIter<Step>);

impl Source for Playing {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        Ok(self.0.next())
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

/// An access to a line of a page after some instructions.
pub fn access(page: u64, line: u64, store: bool, instructions: u64) -> Step {
    let kind = if store { Kind::Store } else { Kind::Load };
    Step { line: page * 64 + line, kind, instructions, repeats: 0 }
}

/// Loads from the first lines of pages, each after 1000 instructions.
pub fn loads(pages: &[u64]) -> Program {
    pages.iter().map(|page| access(*page, 0, false, 1000)).collect()
}

/// A configuration with these keys before its processes. Instructions take 1 ns.
pub fn settings(policy: &str, text: &str, processes: usize) -> Settings {
    let process = |n| format!("[[process]]\nname = 'P{n}'\ntrace = ''\nintense = {}\n", n == 0);
    let processes: String = (0..processes).map(process).collect();
    let mut settings: Settings = toml::from_str(&format!("policy = '{policy}'\n{text}\n{processes}")).unwrap();
    settings.cpu.instruction_ns = 1.0;
    settings
}

/// A simulation of programs, each of which has this many pages mapped.
pub fn sim(settings: &Settings, programs: &[Program], mapped: u64) -> Result<Sim, Error> {
    let sources = programs.iter().map(|program| Box::new(Playing(program.clone().into_iter())) as Box<dyn Source>);
    Sim::new(settings, sources.collect(), &vec![vec![(0, mapped)]; programs.len()])
}

/// Runs such a simulation and returns it.
pub fn run(settings: &Settings, programs: &[Program], mapped: u64) -> Sim {
    let mut sim = sim(settings, programs, mapped).unwrap();
    sim.run(&mut |_| ()).unwrap();
    sim
}

/// The report of a simulation.
pub fn json(sim: &Sim) -> String {
    serde_json::to_string(&Report::new(sim)).unwrap()
}

/// Policies that can be simulated and for which `name` returns true.
pub fn policies(name: impl Fn(&str) -> bool) -> Vec<&'static str> {
    policy::built_in().names().filter(|known| *known != OPTIMUM && name(known)).collect()
}

/// Some programs of up to 24 pages.
pub fn programs(most: usize) -> impl Strategy<Value = Vec<Program>> {
    let any = (0..24u64, 0..3u64, any::<bool>(), 0..200_000u64)
        .prop_map(|(page, line, store, instructions)| access(page, line, store, instructions));
    let row = prop_oneof![
        prop::collection::vec(any, 1..60),
        // A loop.
        (1..20u64, 1..6usize).prop_map(|(pages, rounds)| loads(&(0..pages).collect::<Vec<_>>().repeat(rounds))),
    ];
    prop::collection::vec(row, 1..=most)
}
