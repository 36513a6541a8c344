// SPDX-License-Identifier: Apache-2.0
//! Traces for the paging simulator, damaged: the reader says what is wrong, or what it says of the trace is so.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

use trapless_pagesim::Error;
use trapless_pagesim::input::lackey::{Part, import};
use trapless_pagesim::input::{Recorded, Source, Which};
use trapless_trace::Totals;

use super::damage;
use crate::demand;
use crate::tape::Tape;

fn io(e: std::io::Error) -> String {
    e.to_string()
}

/// An error is one line that names the file.
fn refused(error: &Error, file: &Path) -> Result<(), String> {
    let text = error.to_string();
    demand(!text.contains('\n') && text.contains(&*file.to_string_lossy()), || {
        format!("not a line with the file: {text:?}")
    })
}

/// What lackey prints, accesses to a few lines; of a program in four with other programs' lines and numbers that no address has.
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
    let done = import(&from, &to, File::create(&to).map_err(io)?, Part::ALL);
    Ok((from, to, done))
}

/// Accesses of a stored trace, by its steps.
fn accesses(file: &Path) -> Result<u64, Error> {
    let mut source = Recorded::open(file, Which::default())?;
    let mut count = 0_u64;
    while let Some(step) = source.next()? {
        count = count.wrapping_add(1).wrapping_add(step.repeats);
    }
    Ok(source.tail().repeats.iter().fold(count, |sum, n| sum.wrapping_add(*n)))
}

/// Text: refused, or stored as it is.
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

/// Stored traces: refused, or read to the end.
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
