// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim import`: makes a stored trace from the text that valgrind's lackey prints.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use tempfile::NamedTempFile;
use trapless_pagesim::input::lackey::{self, Part};

use crate::count::Count;
use crate::files::temporary;
use crate::info;

/// Options of `trapless-pagesim import`.
#[derive(Args, Debug)]
pub struct Import {
    /// What `valgrind --tool=lackey --trace-mem=yes` has printed, plain or compressed by zstd.
    file: PathBuf,
    /// Where to write the trace; its totals go to FILE.json.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Leave out the first N accesses.
    #[arg(long, value_name = "N", default_value = "0")]
    skip: Count,
    /// Store at most N accesses.
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
}

/// Imports a trace.
///
/// # Errors
/// The text is not from lackey or is incomplete, or the trace cannot be written.
pub fn import(options: &Import) -> Result<()> {
    let cannot = || format!("cannot write {}", options.out.display());
    let to = temporary(&options.out)?;
    let part = Part { skip: options.skip.0, limit: options.limit.map_or(u64::MAX, |n| n.0) };
    lackey::import(&options.file, &options.out, to.as_file().try_clone().with_context(cannot)?, part)?;
    keep(to, &options.out)
}

/// Gives a complete trace its final name, and writes its summary into NAME.json beside it.
///
/// # Errors
/// The trace or its summary cannot be written.
pub fn keep(trace: NamedTempFile, out: &Path) -> Result<()> {
    // The summary of an older trace with this name must not stay beside the new trace.
    match std::fs::remove_file(info::name_beside(out)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot replace {}.json", out.display()))?
        }
        _ => {}
    }
    trace.persist(out).with_context(|| format!("cannot write {}", out.display()))?;
    info::beside(out)
}
