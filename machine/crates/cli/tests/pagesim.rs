// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim`: recording, and errors for bad input. Needs valgrind.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn pagesim(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).current_dir(dir).args(arguments).output().unwrap()
}

/// The one line that a failed command prints.
fn complaint(dir: &Path, arguments: &[&str]) -> String {
    let done = pagesim(dir, arguments);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), said.lines().count(), done.stdout.len()), (Some(2), 1, 0), "{arguments:?}: {said}");
    said
}

fn works(dir: &Path, arguments: &[&str]) -> String {
    let done = pagesim(dir, arguments);
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn sums(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_recording() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    // The program's own output is not changed.
    assert_eq!(works(dir, &["record", "--", "echo", "hello"]), "hello\n");
    let whole = sums(&dir.join("echo.trace.json"));
    let n = |of: &serde_json::Value, key: &str| of[key].as_u64().unwrap();
    assert_eq!(n(&whole, "accesses"), n(&whole, "fetches") + n(&whole, "loads") + n(&whole, "stores"));
    // At least the start of the C library. An instruction may lie in two lines.
    assert!(n(&whole, "instructions") > 50_000 && n(&whole, "fetches") >= n(&whole, "instructions"), "{whole}");
    assert!((20..2000).contains(&n(&whole, "footprint_pages")), "{whole}");
    let set = whole["working_set_pages"]["all"].as_u64().unwrap();
    assert!(set > 1 && set < n(&whole, "footprint_pages"), "{whole}");
    let info: serde_json::Value = serde_json::from_str(&works(dir, &["info", "--json", "echo.trace"])).unwrap();
    assert_eq!(info, whole);
    assert!(works(dir, &["info", "echo.trace"]).contains("valgrind tracer: echo hello\n"));

    // Record a part of it. A file with lackey's text must give the same part.
    works(dir, &["record", "--skip", "20k", "--limit", "10k", "--out", "part.trace", "--", "echo", "hello"]);
    let part = sums(&dir.join("part.trace.json"));
    assert!((10_000..10_010).contains(&n(&part, "accesses")), "{part}");
    let lackey =
        ["-q", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--log-file=text", "--", "echo", "hello"];
    assert!(Command::new("valgrind").current_dir(dir).args(lackey).status().unwrap().success());
    works(dir, &["import", "text", "--skip", "20k", "--limit", "10k", "--out", "same.trace"]);
    let mut same = sums(&dir.join("same.trace.json"));
    same["name"] = "part".into();
    assert_eq!(same, part);

    // A program that fails is recorded all the same; a program that runs on is ended.
    let done = pagesim(dir, &["record", "--", "false"]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && said.starts_with("trapless-pagesim: false ended with exit status: 1\n"), "{said}");
    works(dir, &["record", "--limit", "1M", "--", "yes"]);
    assert!(n(&sums(&dir.join("yes.trace.json")), "accesses") >= 1_000_000);
    // Accesses of a child are not recorded: this child makes millions of them.
    let child = "(i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done) & wait";
    works(dir, &["record", "--", "sh", "-c", child]);
    let alone = n(&sums(&dir.join("sh.trace.json")), "accesses");
    assert!(alone < 1_500_000, "{alone}");
    // A process that the program leaves behind does not delay the end: this one runs until the test has ended.
    let behind = format!("while [ -e {} ]; do sleep 0.1; done >/dev/null 2>&1 & echo done", dir.display());
    assert_eq!(works(dir, &["record", "--", "sh", "-c", &behind]), "done\n");
}

#[test]
fn an_interrupt_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut recording = Command::new(env!("CARGO_BIN_EXE_trapless-pagesim"))
        .current_dir(temporary.path())
        .args(["record", "--", "yes"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = recording.stdout.take().unwrap();
    output.read_exact(&mut [0; 2]).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &recording.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    // The program has ended as well; otherwise its output would never end.
    output.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(recording.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_recorded_or_read_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    std::fs::write(dir.join("text"), "I  00401000,3\nhello\n").unwrap();
    assert!(complaint(dir, &["record", "--", "no-such"]).contains("no-such: no such program"));
    assert!(complaint(dir, &["record", "--", "./text"]).contains("./text: no such program"));
    assert!(complaint(dir, &["record", "--out", "/nowhere/a.trace", "--", "true"]).contains("/nowhere/a.trace"));
    assert!(complaint(dir, &["record", "--skip", "1G", "--", "true"]).contains("true: has no memory access"));
    let alone = Command::new(env!("CARGO_BIN_EXE_trapless-pagesim"))
        .current_dir(dir)
        .env("PATH", dir)
        .args(["record", "--", "/bin/true"])
        .output()
        .unwrap();
    let said = String::from_utf8(alone.stderr).unwrap();
    assert!(alone.status.code() == Some(2) && said.contains("valgrind is not installed") && said.lines().count() == 1);

    assert!(complaint(dir, &["import", "/nowhere", "--out", "a.trace"]).contains("/nowhere"));
    assert!(complaint(dir, &["import", "text", "--out", "/nowhere/a.trace"]).contains("/nowhere/a.trace"));
    assert!(complaint(dir, &["import", "text", "--out", "a.trace"]).contains("text: line 2: "));
    assert!(complaint(dir, &["info", "text"]).contains("text: not a Trapless memory trace"));
    assert!(complaint(dir, &["info", "/nowhere"]).contains("/nowhere"));
    std::fs::write(dir.join("text"), "I  00401000,3\n").unwrap();
    works(dir, &["import", "text", "--out", "a.trace"]);
    let mode = std::fs::metadata(dir.join("a.trace")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let whole = std::fs::read(dir.join("a.trace")).unwrap();
    std::fs::write(dir.join("a.trace"), &whole[..whole.len() - 1]).unwrap();
    assert!(complaint(dir, &["info", "a.trace"]).contains("a.trace: cut short"));
    // Failed commands leave no files.
    let mut left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.trace", "a.trace.json", "text"]);
    for (arguments, says) in [
        (&["info", "a.trace", "--share", "1.5"][..], "1.5"),
        (&["info", "a.trace", "--space", "x"], "'x'"),
        (&["record", "--limit", "many", "--", "true"], "'many'"),
        (&["record"], "<CMD>"),
    ] {
        let done = pagesim(dir, arguments);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn the_help_names_every_policy() {
    let output = Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).args(["run", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for name in trapless_pagesim::policy::built_in().names() {
        assert!(text.contains(name), "{name}: {text}");
    }
}
