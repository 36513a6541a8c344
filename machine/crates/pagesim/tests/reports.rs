// SPDX-License-Identifier: Apache-2.0
//! Simulations of one CPU, one drive and no tier give the same reports as before there could be more. Compares with recorded
//! reports.

mod common;

use common::Program;
use serde_json::Value;
use trapless_pagesim::input::{Kind, Step};
use trapless_pagesim::settings::Settings;

/// The recorded reports of all [`simulations`].
const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports.json");

/// Numbers that look random.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A program with runs of neighbouring pages, jumps, and loads and stores of a few lines of each page.
fn program(draws: &mut Draws, pages: u64) -> Program {
    let mut page = 0;
    (0..600)
        .map(|_| {
            page = if draws.below(4) == 0 { draws.below(pages) } else { (page + 1) % pages };
            let kind = if draws.below(3) == 0 { Kind::Store } else { Kind::Load };
            Step { line: page * 64 + draws.below(2), kind, instructions: draws.below(60_000), repeats: draws.below(3) }
        })
        .collect()
}

/// The simulations: name, configuration and programs of each.
fn simulations() -> Vec<(String, Settings, Vec<Program>)> {
    let policies = "sync async virt agg aspf aspf-star readahead-cluster readahead-vma leap adaptive foresight";
    let mut found = vec![];
    for (n, policy) in policies.split(' ').enumerate() {
        let mut draws = Draws(n as u64);
        let replacement = ["lru", "two-lists", "virtual-time"][n % 3];
        let scheduler = ["cfs", "eevdf"][n / 2 % 2];
        let (cache, ahead) = (["all", "process"][n / 3 % 2], ["queued", "behind-demand", "free"][n / 2 % 3]);
        let count = 2 + n % 3;
        let processes: String = (0..count)
            .map(|p| format!("[[process]]\nname = 'P{p}'\ntrace = ''\nnice = {}\nintense = {}\n", p as i64 - 1, p == 0))
            .collect();
        let text = format!(
            "policy = '{policy}'\n[cpu]\ninstruction_ns = 1.0\ncache_kib = 8\ncache_ways = 2\ncache = '{cache}'\nfault_us = 0.5\n\
             [memory]\nframes = {}\nreserve = {}\nreplacement = '{replacement}'\n[scheduler]\nkind = '{scheduler}'\n\
             [device]\nahead = '{ahead}'\nlatency_us = {}.5\n[aspf]\nset_capacity = 8\nfull_set = 'replace'\n\
             sets_span_turns = false\nrebuilt = 'any-intense'\naccessed = 'since-read'\n{processes}",
            30 + 3 * n,
            n % 5,
            2 + 3 * n,
        );
        let programs = (0..count).map(|_| program(&mut draws, 40)).collect();
        found.push((format!("{policy}, {replacement}, {scheduler}"), toml::from_str(&text).unwrap(), programs));
    }
    found
}

fn report(settings: &Settings, programs: &[Program]) -> Value {
    let mut report: Value = serde_json::from_str(&common::json(&common::run(settings, programs, 40))).unwrap();
    report.as_object_mut().unwrap().remove("settings");
    report
}

/// Compares a report with a record, and returns the differences. The report may have more than the record.
fn missing(record: &Value, report: &Value, at: &str) -> Vec<String> {
    match (record, report) {
        (Value::Object(record), Value::Object(report)) => record
            .iter()
            .flat_map(|(key, value)| missing(value, report.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}")))
            .collect(),
        (Value::Array(record), Value::Array(report)) if record.len() == report.len() => record
            .iter()
            .zip(report)
            .enumerate()
            .flat_map(|(n, (record, report))| missing(record, report, &format!("{at}.{n}")))
            .collect(),
        _ if record == report => vec![],
        _ => vec![format!("{at}: {record} before, {report} now")],
    }
}

#[test]
fn reports_are_what_they_were() {
    let records: Value = serde_json::from_str(&std::fs::read_to_string(RECORDS).unwrap()).unwrap();
    let simulations = simulations();
    assert_eq!(records.as_object().unwrap().len(), simulations.len());
    for (name, settings, programs) in simulations {
        let found = missing(&records[&name], &report(&settings, &programs), &name);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
#[ignore = "writes the records anew, for a change that is meant to change results"]
fn write_the_records() {
    let reports: serde_json::Map<_, _> =
        simulations().into_iter().map(|(name, settings, programs)| (name, report(&settings, &programs))).collect();
    std::fs::write(RECORDS, serde_json::to_string_pretty(&reports).unwrap() + "\n").unwrap();
}
