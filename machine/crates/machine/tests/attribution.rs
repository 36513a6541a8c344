// SPDX-License-Identifier: Apache-2.0
//! Attribution of bare-metal programs: every cycle and instruction is counted once, and the guest does not notice it.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use common::{build, disk};
use serde_json::{Value, json};
use trapless_machine::{
    AttributionConfig, Boot, Console, DetailFrom, DiskConfig, DiskWrites, End, Engine, Limits, Machine, MachineConfig,
};
use trapless_memory::Cycle;
use trapless_timing::Profile;

/// Runs a program to its end. `from`: from when on cycles are attributed.
fn run(program: &Path, profile: &str, detail: DetailFrom, from: Option<DetailFrom>, dir: &Path) -> Machine {
    let attribution = from.map(|from| AttributionConfig { symbols: vec![], categories: None, from, limit: 10_000 });
    let changes = if profile == "server" { vec!["machine.harts=4".to_owned()] } else { vec![] };
    let config = MachineConfig {
        profile: Profile::load(profile, &changes).unwrap(),
        boot: Boot::Elf { file: program.to_owned() },
        disks: vec![DiskConfig::new(disk(dir), DiskWrites::Fail)],
        faults: Vec::new(),
        engine: Engine::default(),
        detail,
        checkpoint: None,
        attribution,
    };
    let mut machine = Machine::new(config, Console { output: Box::new(std::io::sink()), input: None }).unwrap();
    let limits = Limits { max_cycle: Cycle(2_000_000_000), window: None, stop: &AtomicBool::new(false) };
    assert_eq!(machine.run(&limits).unwrap(), End::ToHost(0));
    machine
}

fn profile_of(machine: &Machine) -> Value {
    serde_json::to_value(machine.attribution().unwrap().report()).unwrap()
}

fn built(program: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = build(program, dir.path());
    (dir, file)
}

#[test]
fn a_known_tree_of_calls_is_counted_to_the_instruction() {
    let (dir, file) = built("calls");
    let machine = run(&file, "vc707", DetailFrom::Never, Some(DetailFrom::Start), dir.path());
    let profile = profile_of(&machine);
    let functions = profile["functions"].as_array().unwrap();
    let line = |name: &str| functions.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let counts = |name: &str| {
        let f = line(name);
        ["calls", "instructions", "inclusive_instructions"].map(|key| f[key].as_u64().unwrap())
    };
    assert_eq!(counts("leaf"), [13, 13 * 11, 13 * 11]);
    assert_eq!(counts("middle"), [6, 6 * 7, 6 * (7 + 2 * 11)]);
    assert_eq!(counts("tail"), [1, 2, 2], "a function that it jumps to replaces it");
    assert_eq!(counts("down"), [6, 5 * 8 + 2, 5 * 8 + 2], "recursion counts once");
    assert_eq!(counts("spin"), [1, 202, 202]);
    // The jump over a frame turns the frame that jumped into `landing`, until it returns to its caller.
    assert_eq!(counts("away"), [1, 4, 4 + 5 + 3]);
    assert_eq!(counts("jumper"), [1, 5, 5]);
    assert_eq!(counts("landing"), [1, 3, 3]);
    assert_eq!(counts("trap_entry")[0], 1);
    assert_eq!(line("main")["calls"], 4, "one for each hart");
    // Everything is counted once.
    let report = machine.report(&End::ToHost(0));
    let sum = |key: &str| functions.iter().map(|f| f[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("instructions"), report.instructions);
    let harts = profile["harts"].as_array().unwrap();
    assert_eq!(sum("cycles"), harts.iter().map(|h| h["total"]["cycles"].as_u64().unwrap()).sum::<u64>());
    for (hart, state) in harts.iter().zip(machine.harts()) {
        assert_eq!(hart["total"]["instructions"], state.retired.iter().sum::<u64>());
        assert!(hart["total"]["cycles"].as_u64().unwrap() >= state.cycle.0);
    }
    assert_eq!(harts[0]["total"]["cycles"], machine.harts()[0].cycle.0);
}

#[test]
fn the_guest_notices_nothing() {
    for (program, profile, detail) in [
        ("calls", "vc707", DetailFrom::Never),
        ("four_harts", "vc707", DetailFrom::Never),
        ("four_harts", "server", DetailFrom::Start),
    ] {
        let (dir, file) = built(program);
        let told = |from| {
            let machine = run(&file, profile, detail, from, dir.path());
            let report = machine.report(&End::ToHost(0));
            let harts: Vec<_> = machine.harts().iter().map(|h| (h.cycle, h.retired, h.x)).collect();
            (report.sim_cycles, report.instructions, harts, report.misses, report.smu_counters)
        };
        let without = told(None);
        assert_eq!(without, told(Some(DetailFrom::Start)), "{program} on {profile}");
        assert_eq!(without, told(Some(DetailFrom::Rois)), "{program} on {profile}, in regions");
    }
}

#[test]
fn a_region_has_its_own_instructions_and_misses() {
    let (dir, file) = built("four_harts");
    let machine = run(&file, "server", DetailFrom::Start, Some(DetailFrom::Start), dir.path());
    let (profile, report) = (profile_of(&machine), machine.report(&End::ToHost(0)));
    let (misses, functions) = (report.misses.unwrap(), profile["functions"].as_array().unwrap());
    let sum = |kind: &str| functions.iter().filter_map(|f| f["misses"][kind].as_u64()).sum::<u64>();
    for (kind, user, kernel) in [
        ("l1i", misses.user.l1i, misses.kernel.l1i),
        ("l1d", misses.user.l1d, misses.kernel.l1d),
        ("dtlb", misses.user.dtlb, misses.kernel.dtlb),
        ("walks", misses.user.walks, misses.kernel.walks),
        ("branches", misses.user.branches, misses.kernel.branches),
    ] {
        assert!(user + kernel > 0 && sum(kind) == user + kernel, "{kind}: {} of {}", sum(kind), user + kernel);
    }

    let (dir, file) = built("calls");
    let machine = run(&file, "vc707", DetailFrom::Never, Some(DetailFrom::Rois), dir.path());
    let (profile, report) = (profile_of(&machine), machine.report(&End::ToHost(0)));
    assert_eq!(profile["windows"].as_array().unwrap().len(), 1);
    assert_eq!(profile["windows"][0]["region"], 1);
    let functions = profile["functions"].as_array().unwrap();
    let instructions = functions.iter().map(|f| f["instructions"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(instructions, report.rois[0].instructions.total());
}

/// Checks that slices of one track lie beside or within each other. Returns the number of events.
fn check_trace(trace: &Value) -> usize {
    let mut open: std::collections::BTreeMap<(u64, u64), Vec<(u64, u64)>> = Default::default();
    let events = trace["traceEvents"].as_array().unwrap();
    let nanos = |v: &Value| (v.as_f64().unwrap() * 1000.0).round() as u64;
    for event in events.iter().filter(|e| e["ph"] == "X") {
        let stack = open.entry((event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())).or_default();
        let (from, to) = (nanos(&event["ts"]), nanos(&event["ts"]) + nanos(&event["dur"]));
        while stack.last().is_some_and(|(_, end)| *end <= from) {
            stack.pop();
        }
        assert!(
            stack.last().is_none_or(|(begin, end)| *begin <= from && to <= *end),
            "{event} does not lie in {stack:?}"
        );
        stack.push((from, to));
    }
    events.len()
}

#[test]
fn the_timeline_is_well_formed_and_has_every_miss() {
    let (dir, file) = built("four_harts");
    let machine = run(&file, "vc707", DetailFrom::Never, Some(DetailFrom::Start), dir.path());
    let attribution = machine.attribution().unwrap();
    let mut text = Vec::new();
    attribution.write_trace(&mut text).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    assert!(check_trace(&trace) > 100);
    let named = |name: &str| trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["name"] == name).count();
    let mut lines = Vec::new();
    attribution.write_misses(&mut lines).unwrap();
    let misses = String::from_utf8(lines).unwrap().lines().count();
    assert!(misses > 60 && named("miss") == misses, "{misses}");
    let installed = machine.report(&End::ToHost(0)).smu_counters["installed"];
    assert_eq!(named("read"), installed as usize);
    // No software adopts the pages; 200 frames were given.
    let mut lines = Vec::new();
    attribution.write_frames(&mut lines).unwrap();
    let frames: Vec<Value> =
        String::from_utf8(lines).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let (first, last) = (&frames[0], &frames[frames.len() - 1]);
    assert!(frames.len() > 50 && named("unsynced") == frames.len(), "{}", frames.len());
    assert!(frames.is_sorted_by_key(|f| f["cycle"].as_u64()) && frames.is_sorted_by_key(|f| f["unsynced"].as_u64()));
    assert!(first["ring"].is_null() && first["unsynced"] == 0, "{first}");
    assert_eq!((&last["ring"], &last["unsynced"]), (&json!(200 - installed), &json!(installed)));
    assert!(frames.iter().all(|f| f["adopted"] == 0) && frames.iter().any(|f| f["requests"] == 1));
    let mut folded = Vec::new();
    attribution.write_stacks(&mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let spent: u64 = folded.lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let harts = profile_of(&machine)["harts"].as_array().unwrap().clone();
    assert_eq!(spent, harts.iter().map(|h| h["total"]["cycles"].as_u64().unwrap()).sum::<u64>());
    assert!(folded.contains("[walk in hardware] "));
}
