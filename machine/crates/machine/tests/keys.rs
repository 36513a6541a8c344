// SPDX-License-Identifier: Apache-2.0
//! Every key of every profile and drive has an effect: changing it changes a figure that a run measures.
//!
//! The keys come from the profile's types, so a new key without effect is found.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{build, build_image, disk, run};
use serde_json::Value;
use trapless_machine::{Boot, DetailFrom, DiskConfig, DiskWrites, Engine};
use trapless_timing::{Profile, SsdParams};

/// Keys that change no figure, with the reason.
const LABELS: [(&str, &str); 2] =
    [("name", "what the record calls the profile"), ("ssd.name", "what the record calls the drive")];

/// Settings of all runs, unless they change the same key: two cores of two threads where the profile has such cores, and the
/// memory and block sizes of the program.
const ALWAYS: [&str; 3] = ["machine.harts=4", "machine.memory_bytes=1073741824", "ssd.block_bytes=512"];

/// Settings with which a key has an effect. Without them it has none, because the profile lacks what the key is about.
const CONDITIONS: [(&str, &[&str]); 15] = [
    ("machine.thread_turn_cycles", &["machine.threads_per_core=2"]),
    // It is a part of the time of every command, which is short on some drives.
    ("ssd.fetch_us", &["ssd.read_us=20.0", "ssd.write_us=20.0", "ssd.flush_us=20.0"]),
    ("ssd.latency", &["ssd.read_shape=[[0, 1], [1, 3]]"]),
    ("ssd.read_shape", &["ssd.latency=shape", "ssd.write_shape=[[0, 1], [1, 3]]"]),
    ("ssd.write_shape", &["ssd.latency=shape", "ssd.read_shape=[[0, 1], [1, 3]]"]),
    ("ssd.seed", &["ssd.latency=shape", "ssd.read_shape=[[0, 1], [1, 3]]"]),
    ("ssd.flash.erase_us", &["ssd.flash.erase_every=1"]),
    ("detail.caches.l2_ways", &["detail.caches.l2_kib=256"]),
    ("detail.caches.l2_cycles", &["detail.caches.l2_kib=256"]),
    ("detail.caches.last_ways", &["detail.caches.last_kib=4096"]),
    ("detail.caches.last_cycles", &["detail.caches.last_kib=4096"]),
    ("detail.dram.row_kib", &["detail.dram.activate_ns=50"]),
    ("detail.dram.banks", &["detail.dram.activate_ns=50"]),
    ("detail.tlb.second_ways", &["detail.tlb.second_entries=64"]),
    ("detail.tlb.second_cycles", &["detail.tlb.second_entries=64"]),
];

/// Values to try for keys that profiles need not have.
const ABSENT: [(&str, &str); 3] = [
    ("smu.first_look_cycles", "1000"),
    ("ssd.read_shape", "[[0, 1], [1, 2]]"),
    ("ssd.write_shape", "[[0, 1], [1, 2]]"),
];

/// What runs: the program for all keys, with and without detailed timing, and the program for the SBI.
struct Programs {
    all: PathBuf,
    sbi: PathBuf,
    disk: PathBuf,
}

impl Programs {
    fn build(dir: &Path) -> Programs {
        Programs { all: build("keys", dir), sbi: build_image("sbi", dir), disk: disk(dir) }
    }

    /// Runs a program and returns the figures.
    fn figures(&self, profile: &Profile, program: Program, engine: Engine) -> String {
        let kernel = self.sbi.clone();
        let (boot, detail) = match program {
            Program::All => (Boot::Elf { file: self.all.clone() }, DetailFrom::Never),
            Program::AllDetailed => (Boot::Elf { file: self.all.clone() }, DetailFrom::Start),
            Program::Sbi => {
                (Boot::Linux { kernel, initrd: None, append: String::new(), firmware: None }, DetailFrom::Never)
            }
        };
        let disks = vec![DiskConfig::new(self.disk.clone(), DiskWrites::InMemory)];
        let (end, machine) = run(boot, profile.clone(), engine, detail, disks);
        let mut record = serde_json::to_value(machine.report(&end)).unwrap();
        only_figures(&mut record);
        record.to_string()
    }
}

/// Which of the programs runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Program {
    All,
    AllDetailed,
    Sbi,
}

impl Program {
    /// The program that depends on a key.
    fn of(key: &str) -> Program {
        match key {
            "machine.sbi_call_cycles" => Program::Sbi,
            _ if key.starts_with("detail.") => Program::AllDetailed,
            _ => Program::All,
        }
    }
}

/// Removes from the record what repeats its input and what depends on the host.
fn only_figures(record: &mut Value) {
    match record {
        Value::Object(fields) => {
            fields.retain(|key, _| !["profile", "disks", "mips"].contains(&key.as_str()) && !key.starts_with("host_"));
            fields.values_mut().for_each(only_figures);
        }
        Value::Array(items) => items.iter_mut().for_each(only_figures),
        _ => {}
    }
}

/// The keys of a section (`""`: of the profile) according to the types: the error for an unknown key lists them all.
fn keys_of(profile: &str, section: &str, given: &[String]) -> Vec<String> {
    let prefix = if section.is_empty() { String::new() } else { format!("{section}.") };
    let mut changes = given.to_vec();
    changes.push(format!("{prefix}no_such_key=1"));
    let answer = Profile::load(profile, &changes).unwrap_err().to_string();
    let (_, list) = answer.split_once("(there are ").unwrap_or_else(|| panic!("no list of keys: {answer}"));
    list.trim_end_matches(')').split(", ").map(|key| format!("{prefix}{key}")).collect()
}

/// All keys of a profile with these changes, and their values; `None`: the profile may have the key, but does not.
fn keys(name: &str, given: &[String]) -> BTreeMap<String, Option<Value>> {
    let profile = serde_json::to_value(Profile::load(name, given).unwrap()).unwrap();
    let mut found = BTreeMap::new();
    let mut sections = vec![String::new()];
    while let Some(section) = sections.pop() {
        for key in keys_of(name, &section, given) {
            match profile.pointer(&format!("/{}", key.replace('.', "/"))) {
                Some(Value::Object(_)) => sections.push(key),
                value => drop(found.insert(key, value.cloned())),
            }
        }
    }
    found
}

/// Other values for a key, in TOML. Some may not be valid.
fn others(key: &str, value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Bool(on)) => vec![(!on).to_string()],
        Some(Value::Number(n)) if n.is_u64() => {
            let n = n.as_u64().unwrap();
            [2 * n, n / 2, n / 4, n / 16, n >> 10, 8 * n, n / 8, 0, 1, n + 1, 1024, 10_000]
                .map(|n| n.to_string())
                .into()
        }
        Some(Value::Number(n)) => {
            let n = n.as_f64().unwrap();
            [2.0 * n, n / 2.0, 1.0, 1000.0].map(|n| format!("{n:?}")).into()
        }
        Some(Value::String(_)) => ["shape", "constant", "sv57", "sv48", "sv39"].map(String::from).into(),
        _ => ABSENT.iter().filter(|(absent, _)| *absent == key).map(|(_, value)| (*value).to_owned()).collect(),
    }
}

/// A profile with changes, its keys, and the figures of its runs.
struct Subject<'a> {
    name: &'a str,
    given: Vec<String>,
    programs: &'a Programs,
    measured: BTreeMap<(Vec<String>, Program), String>,
}

impl Subject<'_> {
    /// Checks that changing a key changes a figure, alone or with the settings that make the key matter.
    fn acts(&mut self, key: &str, value: Option<&Value>) -> Result<(), String> {
        let mut always: Vec<String> = ALWAYS.iter().map(|s| (*s).to_owned()).collect();
        always.retain(|change| !change.starts_with(&format!("{key}=")));
        let alone = self.changes_a_figure(key, value, &always);
        let Some((_, condition)) = CONDITIONS.iter().find(|(conditioned, _)| *conditioned == key) else { return alone };
        always.extend(condition.iter().map(|s| (*s).to_owned()));
        alone.or_else(|_| self.changes_a_figure(key, value, &always))
    }

    /// Checks the same with the settings `beside`; also that both engines agree, for keys that matter to them.
    fn changes_a_figure(&mut self, key: &str, value: Option<&Value>, beside: &[String]) -> Result<(), String> {
        let given = [&self.given[..], beside].concat();
        let program = Program::of(key);
        let run = |given: &[String], engine| {
            Profile::load(self.name, given).map(|profile| self.programs.figures(&profile, program, engine))
        };
        let known = (given.clone(), program);
        let before = match self.measured.get(&known) {
            Some(figures) => figures.clone(),
            None => run(&given, Engine::Translator).map_err(|e| format!("{key}: {e}"))?,
        };
        self.measured.insert(known, before.clone());
        let whole = before.contains(r#""end":"ToHost(0)""#) || before.contains(r#""end":"PowerOff""#);
        if !whole && beside.len() >= ALWAYS.len() {
            return Err(format!("{key}: the program does not end"));
        }
        let mut tried = Vec::new();
        for other in others(key, value) {
            let mut changes = given.clone();
            changes.push(format!("{key}={other}"));
            let Ok(figures) = run(&changes, Engine::Translator) else { continue };
            if figures != before {
                if key.starts_with("core.") && run(&changes, Engine::Interpreter).ok() != Some(figures) {
                    return Err(format!("{key}={other}: the engines differ"));
                }
                return Ok(());
            }
            tried.push(other);
        }
        Err(format!("{}: {key}: no figure changes with {}", given.join(" "), tried.join(", ")))
    }
}

/// Tries all keys of a profile that have a prefix, and returns what is wrong.
fn wrong(name: &str, given: &[&str], prefix: &str, programs: &Programs) -> Vec<String> {
    let given: Vec<String> = given.iter().map(|s| (*s).to_owned()).collect();
    let keys = keys(name, &given);
    let mut subject = Subject { name, given, programs, measured: BTreeMap::new() };
    let tested = keys.iter().filter(|(key, _)| key.starts_with(prefix) && LABELS.iter().all(|(label, _)| label != key));
    tested
        // Sections that a profile may lack are tested with the profiles that have them.
        .filter(|(key, value)| value.is_some() || !["detail", "ssd.flash"].contains(&key.as_str()))
        .filter_map(|(key, value)| subject.acts(key, value.as_ref()).err())
        .map(|problem| format!("{name} {problem}"))
        .collect()
}

#[test]
fn every_key_of_every_profile_changes_a_figure() {
    let dir = tempfile::tempdir().unwrap();
    let programs = Programs::build(dir.path());
    let problems: Vec<String> =
        Profile::BUILT_IN.iter().flat_map(|(name, _)| wrong(name, &[], "", &programs)).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_key_of_every_drive_changes_a_figure() {
    let dir = tempfile::tempdir().unwrap();
    let programs = Programs::build(dir.path());
    let problems: Vec<String> = SsdParams::BUILT_IN
        .iter()
        .flat_map(|(drive, _)| wrong("vc707", &[&format!("ssd={drive}")], "ssd.", &programs))
        .collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
