// SPDX-License-Identifier: Apache-2.0
//! Damaged traces for the paging simulator. The reader must report an error, or return only what the trace really has.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

use trapless_pagesim::Error;
use trapless_pagesim::input::import::{Options, Part, Target, import};
use trapless_pagesim::input::{Recorded, Source, Which};
use trapless_trace::Totals;

use super::damage;
use crate::demand;
use crate::tape::Tape;

fn io(e: std::io::Error) -> String {
    e.to_string()
}

/// Checks that an error is one line that names the file.
pub fn refused(error: &Error, file: &Path) -> Result<(), String> {
    let text = error.to_string();
    demand(!text.contains('\n') && text.contains(&*file.to_string_lossy()), || {
        format!("the error is not one line that names the file: {text:?}")
    })
}

/// Output of lackey with accesses to a few lines. One text of four also has lines of other programs, and impossible addresses.
fn text(t: &mut Tape) -> Vec<u8> {
    let mut lines = String::new();
    let strange = t.below(4) == 0;
    for _ in 0..t.below(200) {
        let what = t.one(&["I ", " L", " S", " M"]);
        let _ = match t.below(if strange { 8 } else { 6 }) {
            6 => writeln!(lines, "{} {:08x},{}", t.one(&["==7==", "", "X "]), t.u64(), t.u64()),
            7 => writeln!(lines, "{what} {:08x},{}", t.number(0x40_0000, 1 << 16), t.number(1, 64)),
            _ => writeln!(lines, "{what} {:08x},{}", 0x40_0000 + t.below(512), 1 + t.below(64)),
        };
    }
    lines.into_bytes()
}

fn stored(folder: &Path, text: &[u8]) -> Result<(PathBuf, PathBuf, Result<Totals, Error>), String> {
    let (from, to) = (folder.join("text"), folder.join("trace"));
    std::fs::write(&from, text).map_err(io)?;
    let done = import(target(&from, &to, Part::ALL)?, Some("lackey"));
    Ok((from, to, done))
}

/// Target for the import of one file into a new one.
pub fn target(from: &Path, to: &Path, part: Part) -> Result<Target, String> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(to).map_err(io)?;
    Ok(Target { from: from.to_owned(), to: to.to_owned(), file, part, options: Options::default() })
}

/// Number of accesses in a stored trace, from its steps.
pub fn accesses(file: &Path) -> Result<u64, Error> {
    let mut source = Recorded::open(file, Which::default())?;
    let mut count = 0_u64;
    while let Some(step) = source.next()? {
        count = count.wrapping_add(1).wrapping_add(step.repeats);
    }
    Ok(source.tail().repeats.iter().fold(count, |sum, n| sum.wrapping_add(*n)))
}

/// Text must be refused, or stored unchanged.
pub fn lackey(t: &mut Tape) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(io)?;
    let mut bytes = text(t);
    if t.below(2) == 0 {
        damage(t, &mut bytes);
    }
    let (from, to, done) = stored(folder.path(), &bytes)?;
    match done {
        Err(error) => refused(&error, &from),
        Ok(totals) => {
            let (found, wanted) = (accesses(&to), totals.accesses.iter().sum::<u64>());
            demand(matches!(found, Ok(n) if n == wanted) || wanted == 0, || {
                format!("{wanted} accesses stored, read: {found:?}")
            })
        }
    }
}

/// Stored traces must be refused, or read to the end.
pub fn trace(t: &mut Tape) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(io)?;
    let (_, to, done) = stored(folder.path(), &text(t))?;
    if done.is_err() {
        return Ok(());
    }
    let mut bytes = std::fs::read(&to).map_err(io)?;
    damage(t, &mut bytes);
    std::fs::write(&to, &bytes).map_err(io)?;
    accesses(&to).map_or_else(|error| refused(&error, &to), |_| Ok(()))
}
