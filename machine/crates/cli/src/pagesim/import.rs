// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim import`: stores traces of other programs in the project's format.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValue;
use tempfile::NamedTempFile;
use trapless_pagesim::input::import::{self, FORMATS, Options, Part, Target};

use crate::count::Count;
use crate::files::temporary;
use crate::info;

/// Options of `trapless-pagesim import`.
#[derive(Args, Debug)]
pub struct Import {
    /// The trace of another program, plain or compressed with zstd, gzip, xz or zip. For drmemtrace, it may be a folder.
    file: PathBuf,
    /// File for the trace. Its totals go to FILE.json.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The format, if it cannot be detected from the file.
    #[arg(long, value_name = "NAME", value_parser = FORMATS.map(|f| PossibleValue::new(f.name()).help(f.about())))]
    format: Option<String>,
    /// Leave out the first N accesses.
    #[arg(long, value_name = "N", default_value = "0")]
    skip: Count,
    /// Store at most N accesses.
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
    /// For csv: the names of the columns in their order, if the file has no first line that names them. A name is time, address,
    /// page, object, kind, size or thread; `-` leaves a column out.
    #[arg(long, value_name = "A,B,...")]
    columns: Option<String>,
    /// For objects: their numbers are positions in units of BYTES, and an access touches each page that the object's size
    /// reaches. Without this option, an object is one page.
    #[arg(long, value_name = "BYTES")]
    unit: Option<u64>,
    /// For formats without instructions: count N instructions for each access (default 1).
    #[arg(long, value_name = "N")]
    instructions: Option<Count>,
}

/// Imports a trace.
///
/// # Errors
/// The trace is not in the format or is incomplete, or the new trace cannot be written.
pub fn import(options: &Import) -> Result<()> {
    let cannot = || format!("cannot write {}", options.out.display());
    let to = temporary(&options.out)?;
    let target = Target {
        from: options.file.clone(),
        to: options.out.clone(),
        file: to.as_file().try_clone().with_context(cannot)?,
        part: Part { skip: options.skip.0, limit: options.limit.map_or(u64::MAX, |n| n.0) },
        options: Options {
            columns: options.columns.clone(),
            unit: options.unit,
            instructions: options.instructions.map(|n| n.0),
        },
    };
    import::import(target, options.format.as_deref())?;
    keep(to, &options.out)
}

/// Gives a complete trace its final name, and writes its summary into NAME.json beside it.
///
/// # Errors
/// The trace or its summary cannot be written.
pub fn keep(trace: NamedTempFile, out: &Path) -> Result<()> {
    let sums = info::Sums::of(trace.path(), out)?;
    // The summary of an older trace with this name must not stay beside the new trace.
    match std::fs::remove_file(info::name_beside(out)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot replace {}.json", out.display()))?
        }
        _ => {}
    }
    trace.persist(out).with_context(|| format!("cannot write {}", out.display()))?;
    sums.beside(out)
}
