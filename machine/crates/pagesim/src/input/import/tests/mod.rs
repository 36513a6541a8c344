// SPDX-License-Identifier: Apache-2.0
//! Imports traces that the tests write as each format's description says, and checks what is stored.

mod broken;
mod formats;
mod threads;
mod write;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trapless_trace::{Entry, Header, Kind, Reader};

use super::{FORMATS, Options, Part, Target, import};
use crate::Error;
use crate::input::{Recorded, Source, Which};

/// An access: hart, kind, whether the kernel made it, block, instructions of the hart before it.
type Access = (u16, Kind, bool, u64, u64);

/// Imports a file or folder. Returns the path of the stored trace.
fn imported(dir: &TempDir, from: &Path, format: Option<&str>, part: Part, options: Options) -> Result<PathBuf, Error> {
    let to = dir.path().join("stored.trace");
    let _ = std::fs::remove_file(&to);
    let file = File::options().read(true).write(true).create_new(true).open(&to).unwrap();
    let target = Target { from: from.to_owned(), to: to.clone(), file, part, options };
    import(target, format).map(|_| to)
}

/// Imports some bytes.
fn of(dir: &TempDir, bytes: impl AsRef<[u8]>, format: Option<&str>) -> Result<PathBuf, Error> {
    with(dir, bytes, format, Options::default())
}

fn with(dir: &TempDir, bytes: impl AsRef<[u8]>, format: Option<&str>, options: Options) -> Result<PathBuf, Error> {
    let from = dir.path().join("source");
    // Replacing a file may write it to the disk at once, which would take most of a test's time.
    let _ = std::fs::remove_file(&from);
    std::fs::write(&from, bytes).unwrap();
    imported(dir, &from, format, Part::ALL, options)
}

/// The runs in the order in which they begin: the first access of each, and its number of accesses.
fn runs(accesses: &[Access]) -> Vec<(Access, u64)> {
    let mut runs: Vec<(Access, u64)> = Vec::new();
    let mut open = std::collections::HashMap::new();
    for access in accesses {
        let (hart, kind, kernel, block, _) = *access;
        match open.get(&(hart, kind)) {
            Some(&(at, place)) if place == (kernel, block) => {
                let run: &mut (Access, u64) = &mut runs[at];
                run.1 += 1;
            }
            _ => {
                open.insert((hart, kind), (runs.len(), (kernel, block)));
                runs.push((*access, 1));
            }
        }
    }
    runs
}

/// The runs of a stored trace, and its header.
fn stored(path: &Path) -> (Vec<(Access, u64)>, Header) {
    let reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let header = reader.header().clone();
    let mut runs: Vec<(Access, u64)> = Vec::new();
    let mut open = std::collections::HashMap::new();
    let mut end = |runs: &mut Vec<(Access, u64)>, stream: (u16, Kind), count, new: Option<usize>| {
        let old = match new {
            Some(at) => open.insert(stream, at),
            None => open.remove(&stream),
        };
        assert_eq!(old.is_some(), count > 0);
        if let Some(at) = old {
            runs[at].1 = count;
        }
    };
    for entry in reader {
        match entry.unwrap() {
            Entry::Run { hart, kind, place, at, ended } => {
                assert!(place.space == 0 && hart < header.harts);
                let next = runs.len();
                end(&mut runs, (hart, kind), ended, Some(next));
                runs.push(((hart, kind, place.kernel, place.block, at.instructions), 0));
            }
            Entry::Close { hart, ended, .. } => {
                for (kind, count) in Kind::ALL.into_iter().zip(ended) {
                    end(&mut runs, (hart, kind), count, None);
                }
            }
        }
    }
    (runs, header)
}

/// What is wrong with a trace. Checks that it is one line that names the file.
fn complaint(found: Result<PathBuf, Error>) -> String {
    let text = found.expect_err("it should be refused").to_string();
    assert!(text.lines().count() == 1 && text.len() < 400, "{text}");
    text
}

/// Number of accesses that the simulator gets.
fn simulated(path: &Path) -> u64 {
    let mut source = Recorded::open(path, Which::default()).unwrap();
    let mut count = 0;
    while let Some(step) = source.next().unwrap() {
        count += 1 + step.repeats;
    }
    count + source.tail().repeats.iter().sum::<u64>()
}

#[test]
fn names_are_different_and_known() {
    let mut names = FORMATS.map(|format| format.name());
    names.sort_unstable();
    assert_eq!(names, ["champsim", "csv", "damon", "drmemtrace", "lackey", "oracle-general", "perf"]);
    let said = super::format("x").err().unwrap().to_string();
    assert!(names.iter().all(|name| said.contains(name)) && super::format("csv").is_ok(), "{said}");
}
