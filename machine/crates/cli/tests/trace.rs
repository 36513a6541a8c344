// SPDX-License-Identifier: Apache-2.0
//! Traces of programs with known accesses.

mod common;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use common::{assemble, machine, record, run, symbol};
use trapless_trace::{Entry, Header, Kind, Moment, Place, Reader};

/// The runs of a stream: place, time, number of accesses.
type Runs = Vec<(Place, Moment, u64)>;

fn read(file: &Path) -> (Header, Vec<Entry>) {
    let mut reader = Reader::new(BufReader::new(File::open(file).unwrap())).unwrap();
    let entries = reader.by_ref().collect::<Result<_, _>>().unwrap();
    (reader.header().clone(), entries)
}

fn runs(entries: &[Entry], hart: u16, kind: Kind) -> Runs {
    let mut runs = Runs::new();
    for e in entries {
        let ended = match *e {
            Entry::Run { hart: h, kind: k, ended, .. } if (h, k) == (hart, kind) => ended,
            Entry::Close { hart: h, ended, .. } if h == hart => ended[kind as usize],
            _ => continue,
        };
        if ended > 0 {
            runs.last_mut().unwrap().2 = ended;
        }
        if let Entry::Run { place, at, .. } = *e {
            runs.push((place, at, 0));
        }
    }
    runs
}

/// Turns runs of lines into runs of pages.
fn coarser(lines: &Runs) -> Runs {
    let mut pages = Runs::new();
    for &(place, at, n) in lines {
        let place = Place { block: place.block >> 6, ..place };
        match pages.last_mut() {
            Some(run) if run.0 == place => run.2 += n,
            _ => pages.push((place, at, n)),
        }
    }
    pages
}

#[test]
fn the_accesses_of_a_user_program() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, json) = (assemble("user", dir.path()), dir.path().join("record"));
    let base = ["elf", elf.to_str().unwrap(), "--harts", "1", "--json", json.to_str().unwrap()];
    assert_eq!(run(&base).status.code(), Some(0));
    let plain = record(&json);
    let trace = |options: &str| {
        let file = dir.path().join("trace");
        let done = run(&[&base[..], &["--trace", &format!("{}{options}", file.display())]].concat());
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert_eq!(record(&json), plain, "tracing changes nothing");
        read(&file)
    };

    let (header, lines) = trace(",grain=line");
    assert_eq!((header.harts, header.kernel, header.profile.as_str()), (1, false, "vc707"));
    let space = symbol(&elf, "root") >> 12;
    // Number of a virtual line.
    let line = |name: &str, offset: u64| (symbol(&elf, name) - 0x4000_0000 + offset) >> 6;
    let seen = |kind| {
        let runs = runs(&lines, 0, kind);
        assert!(runs.iter().all(|(place, ..)| place.space == space && !place.kernel));
        runs.into_iter().map(|(place, _, n)| (place.block, n)).collect::<Vec<_>>()
    };
    let misaligned = [(line("data", 4092), 1), (line("data", 4096), 1)];
    let loads =
        [&[(line("data", 0), 1)][..], &misaligned, &[(line("data", 64), 100), (line("data", 0x4000), 1)]].concat();
    assert_eq!(seen(Kind::Load), loads);
    assert_eq!(seen(Kind::Store), [(line("data", 8), 1), (line("data", 0x4000), 2), (line("tohost", 0), 1)]);
    let user = plain["instructions_by_mode"]["user"].as_u64().unwrap();
    let loops: u64 = seen(Kind::Fetch).iter().map(|(_, n)| n).sum();
    // An instruction that crosses the border of two lines is fetched from both.
    let (program, rest) = (symbol(&elf, "user"), symbol(&elf, "done") + 64);
    assert!((user..=user + (rest - program) / 64).contains(&loops), "{loops} of {user}");
    // The kernel's instructions come before and are counted as well.
    let first = runs(&lines, 0, Kind::Fetch)[0].1;
    assert_eq!(first.instructions, plain["instructions"].as_u64().unwrap() - user);
    let load = runs(&lines, 0, Kind::Load)[0].1;
    assert!(load.instructions - first.instructions < 8 && load.cycle > first.cycle);

    let (_, pages) = trace("");
    for kind in [Kind::Load, Kind::Store] {
        assert_eq!(coarser(&runs(&lines, 0, kind)), runs(&pages, 0, kind));
    }
    let (_, everything) = trace(",kernel,from=start");
    let of_user =
        |entries: &[Entry], kind| -> u64 { runs(entries, 0, kind).iter().filter(|r| !r.0.kernel).map(|r| r.2).sum() };
    for kind in Kind::ALL {
        assert_eq!(of_user(&everything, kind), of_user(&pages, kind));
    }
    let all: u64 = runs(&everything, 0, Kind::Fetch).iter().map(|r| r.2).sum();
    // The access to a CSR that does not exist traps: the instruction is traced, but does not retire.
    assert!(all - plain["instructions"].as_u64().unwrap() <= 1);
    // There is no region of interest.
    assert_eq!(trace(",from=roi").1, []);
}

#[test]
fn harts_and_detailed_timing() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, json, file) = (assemble("harts", dir.path()), dir.path().join("record"), dir.path().join("trace"));
    let base = ["elf", elf.to_str().unwrap(), "--harts", "4", "--json", json.to_str().unwrap()];
    let timings: [&[&str]; 2] = [&[], &["--profile", "server", "--detail", "start"]];
    for timing in timings {
        let command = [&base[..], timing].concat();
        assert_eq!(run(&command).status.code(), Some(0));
        let plain = record(&json);
        let mut fetched = None;
        for grain in ["page", "line"] {
            let to = format!("{},kernel,grain={grain}", file.display());
            assert_eq!(run(&[&command[..], &["--trace", &to]].concat()).status.code(), Some(0));
            assert_eq!(record(&json), plain, "tracing changes nothing");
            let entries = read(&file).1;
            let data = |hart| [Kind::Load, Kind::Store].map(|kind| runs(&entries, hart, kind));
            let data = [0, 1, 2, 3].map(data);
            if let Some(pages) = fetched.replace(data.clone()) {
                assert_eq!(data.map(|streams| streams.map(|runs| coarser(&runs))), pages);
            }
        }
        // Trace from the middle on: there the machine changes from the translator to the interpreter.
        let to = format!("{},kernel,from=instructions:60000", file.display());
        assert_eq!(run(&[&command[..], &["--trace", &to]].concat()).status.code(), Some(0));
        assert_eq!(record(&json), plain, "tracing changes nothing");
        let entries = read(&file).1;
        let begins: u64 = (0..4).map(|hart| runs(&entries, hart, Kind::Fetch)[0].1.instructions).sum();
        assert!((60_000..80_000).contains(&begins), "{begins}");
    }
}

#[test]
fn what_cannot_be_written_or_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, file) = (assemble("pass", dir.path()), dir.path().join("trace"));
    let (elf, path) = (elf.to_str().unwrap(), file.to_str().unwrap());
    let complaint = |arguments: &[&str]| {
        let done = run(arguments);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        said
    };
    assert!(complaint(&["elf", elf, "--trace", "/nowhere/trace"]).contains("/nowhere/trace"));
    // The disk becomes full in the middle of the trace. The shell's limit is in KiB.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} elf {elf} --trace {path},kernel,grain=line",
        machine().get_program().display()
    );
    let full = std::process::Command::new("bash").args(["-c", &limited]).output().unwrap();
    assert_eq!(full.status.code(), Some(0), "a small trace fits: {full:?}");

    let whole = std::fs::read(&file).unwrap();
    assert!(run(&["trace", "info", path]).status.success());
    for len in 0..whole.len() {
        std::fs::write(&file, &whole[..len]).unwrap();
        let mut reader = match Reader::new(&whole[..len]) {
            Ok(reader) => reader,
            Err(_) => continue,
        };
        assert!(reader.any(|e| e.is_err()), "{len} bytes of a trace are read as a complete one");
    }
    assert!(complaint(&["trace", "info", path]).contains("cut short"));
    assert!(complaint(&["trace", "dump", path]).contains("cut short"));
    std::fs::write(&file, "something else").unwrap();
    assert!(complaint(&["trace", "info", path]).contains("not a Trapless memory trace"));
    assert!(complaint(&["trace", "info", "/nowhere"]).contains("/nowhere"));
}
