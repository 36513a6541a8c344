// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim run`: a simulation of recorded programs, and errors for bad input. Needs valgrind.

use std::path::Path;
use std::process::{Command, Output};

const CONFIG: &str = r#"
policy = "sync"
[memory]
frames = 40
reserve = 0
[[process]]
name = "one"
trace = "echo.trace"
[[process]]
name = "other"
trace = "echo.trace"
intense = true
"#;

fn pagesim(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).current_dir(dir).args(arguments).output().unwrap()
}

fn complaint(dir: &Path, config: &str, arguments: &[&str]) -> String {
    std::fs::write(dir.join("config.toml"), config).unwrap();
    let done = pagesim(dir, &[&["run", "config.toml"], arguments].concat());
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), said.lines().count(), done.stdout.len()), (Some(2), 1, 0), "{config}: {said}");
    said
}

fn recorded() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert!(pagesim(dir.path(), &["record", "--out", "echo.trace", "--", "echo", "hello"]).status.success());
    std::fs::write(dir.path().join("config.toml"), CONFIG).unwrap();
    dir
}

#[test]
fn recorded_programs_are_simulated() {
    let temporary = recorded();
    let dir = temporary.path();
    let result = |name: &str, changes: &[&str]| -> (Vec<u8>, serde_json::Value) {
        let changes: Vec<_> = changes.iter().flat_map(|change| ["--set", *change]).collect();
        let done = pagesim(dir, &[&["run", "config.toml", "--json", name], &changes[..]].concat());
        assert!(done.status.success(), "{done:?}");
        let text = std::fs::read(dir.join(name)).unwrap();
        let json = serde_json::from_slice(&text).unwrap();
        (text, json)
    };
    let info: serde_json::Value =
        serde_json::from_slice(&pagesim(dir, &["info", "--json", "echo.trace"]).stdout).unwrap();
    let (text, sync) = result("sync.json", &[]);
    assert_eq!(result("again.json", &[]).0, text);
    for process in sync["processes"].as_array().unwrap() {
        assert_eq!(process["accesses"], info["accesses"]);
        assert_eq!(process["instructions"], info["instructions"]);
        assert!(process["faults"].as_u64() >= info["footprint_pages"].as_u64());
    }
    for policy in ["async", "virt", "agg", "aspf", "aspf-star", "adaptive", "foresight"] {
        let (_, found) = result("other.json", &[&format!("policy={policy}")]);
        assert_eq!(found["accesses"], sync["accesses"], "{policy}");
        assert_eq!(found["settings"]["policy"], policy);
    }
    let (_, slow) = result("slow.json", &["device.latency_us=30", "process.1.nice=5", "scheduler.kind=eevdf"]);
    assert!(slow["time_ns"].as_u64() > sync["time_ns"].as_u64());
}

#[test]
fn bad_input_is_named_in_one_line() {
    let temporary = recorded();
    let dir = temporary.path();
    let said = |from: &str, to: &str| {
        assert!(CONFIG.contains(from), "{from}");
        complaint(dir, &CONFIG.replace(from, to), &[])
    };
    assert!(said("frames = 40", "frames = 4").contains("config.toml: memory.frames: 4 is not from 5 to"));
    assert!(said("frames = 40", "frames = \"x\"").contains("memory.frames: invalid type: string"));
    assert!(said("reserve = 0", "resrve = 0").contains("config.toml: memory.resrve: unknown field"));
    assert!(said("\"sync\"", "\"fast\"").contains("config.toml: policy must be one of sync, async, "));
    assert!(said("intense = true", "nice = 20").contains("other: nice 20 is not from -20 to 19"));
    assert!(said("intense = true", "intense = ").contains("config.toml:"));
    assert!(said("[memory]", "[device]\ndrive = \"none\"\n[memory]").contains("none"));
    assert!(
        said("\"echo.trace\"\nintense", "\"gone.trace\"\nintense")
            .ends_with("gone.trace: No such file or directory (os error 2)\n")
    );
    let set = |change: &str| complaint(dir, CONFIG, &["--set", change]);
    assert!(set("memory.frames").contains("memory.frames: not KEY=VALUE"));
    assert!(set("process.7.nice=1").contains("process.7.nice=1: not KEY=VALUE"));
    assert!(set("device.latency_us=-1").contains("-1"));
    assert!(set("cpu.cache_kib=100").contains("cpu.cache_kib: 100 KiB"));
    let none = complaint(dir, CONFIG, &["--json", "no/where.json"]);
    assert!(none.contains("cannot write no/where.json"), "{none}");

    // A trace that is cut short, and a trace without its summary.
    let whole = std::fs::read(dir.join("echo.trace")).unwrap();
    std::fs::write(dir.join("echo.trace"), &whole[..whole.len() - 20]).unwrap();
    assert!(complaint(dir, CONFIG, &[]).contains("echo.trace"));
    std::fs::write(dir.join("echo.trace"), &whole).unwrap();
    std::fs::remove_file(dir.join("echo.trace.json")).unwrap();
    assert!(complaint(dir, CONFIG, &[]).contains("echo.trace.json"));
    let missing = pagesim(dir, &["run", "no.toml"]);
    assert!(String::from_utf8(missing.stderr).unwrap().contains("no.toml: No such file"));
}

/// Lines of a log, without its head.
fn lines(log: &[u8]) -> Vec<Vec<String>> {
    let text = String::from_utf8(log.to_vec()).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn faults_are_logged() {
    let temporary = recorded();
    let dir = temporary.path();
    let logged = |name: &str, changes: &[&str]| -> (Vec<u8>, serde_json::Value) {
        let changes: Vec<_> = changes.iter().flat_map(|change| ["--set", *change]).collect();
        let done =
            pagesim(dir, &[&["run", "config.toml", "--json", "found.json", "--faults", name], &changes[..]].concat());
        assert!(done.status.success(), "{done:?}");
        let json = serde_json::from_slice(&std::fs::read(dir.join("found.json")).unwrap()).unwrap();
        (std::fs::read(dir.join(name)).unwrap(), json)
    };
    let (plain, found) = logged("faults.csv", &["policy=virt"]);
    assert_eq!(lines(&plain).len() as u64, found["faults"].as_u64().unwrap() + found["late"].as_u64().unwrap());
    assert!(lines(&plain).iter().all(|line| line[1] == "one" || line[1] == "other"));
    let (packed, _) = logged("faults.csv.zst", &["policy=virt"]);
    assert!(packed.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) && packed.len() < plain.len() / 2);
    let (late, found) = logged("late.csv", &["policy=virt", "record.warm_up_accesses=20000"]);
    let start = found["warm_up"]["time_ns"].as_u64().unwrap();
    assert!(found["warm_up"]["accesses"].as_u64().unwrap() >= 20_000 && late.len() < plain.len());
    assert!(lines(&late).iter().all(|line| line[0].parse::<u64>().unwrap() >= start));
}

#[test]
fn a_log_that_cannot_be_is_named_in_one_line_and_leaves_nothing() {
    let temporary = recorded();
    let dir = temporary.path();
    let left = || {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = left();
    let said = |config: &str, name: &str, set: &str| complaint(dir, config, &["--faults", name, "--set", set]);
    assert!(said(CONFIG, "no/f.csv", "memory.frames=40").contains("cannot write no/f.csv"));
    assert!(
        said(CONFIG, "f.txt", "memory.frames=40")
            .contains("f.txt: the name of a log of faults must end in .csv or .csv.zst")
    );
    assert!(said(CONFIG, "f.csv", "policy=optimum").contains("--faults f.csv: policy optimum has no faults"));
    assert!(said(CONFIG, "f.csv", "process.1.name=one").contains("f.csv: two processes are named one"));
    assert!(
        said(CONFIG, "f.csv", "record.warm_up_accesses=1000000000000")
            .contains("record.warm_up_accesses: 1000000000000 leaves nothing to count: the run has ")
    );
    assert!(
        said(CONFIG, "f.csv", "record.warm_up_ms=1000000")
            .contains("record.warm_up_ms: 1000000 leaves nothing to count")
    );
    assert!(said(CONFIG, "f.csv", "record.warm_up_ms=-1").contains("record.warm_up_ms: -1 is not from 0 to"));
    // A trace that is cut: the run has begun when that is found out.
    let whole = std::fs::read(dir.join("echo.trace")).unwrap();
    std::fs::write(dir.join("echo.trace"), &whole[..whole.len() - 20]).unwrap();
    assert!(said(CONFIG, "f.csv", "memory.frames=40").contains("echo.trace"));
    assert_eq!(left(), before);
}
