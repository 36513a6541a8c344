// SPDX-License-Identifier: Apache-2.0
//! Reads the options of `--attribute`, and writes the files of an attribution.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use trapless_machine::{Attribution, AttributionConfig, Boot, DetailFrom};

use crate::args::Common;
use crate::files::{check_writable, folder};

/// Makes the configuration from the command line, and creates the folder. Returns `None` without `--attribute`.
///
/// # Errors
/// The folder cannot be created.
pub fn config(common: &Common, boot: &Boot) -> Result<Option<AttributionConfig>> {
    let Some(dir) = &common.attribute else { return Ok(None) };
    fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    check_writable(&dir.join("profile.json"))?;
    let usual = if matches!(boot, Boot::Elf { .. }) { DetailFrom::Start } else { DetailFrom::Rois };
    Ok(Some(AttributionConfig {
        symbols: common.symbols.clone(),
        categories: common.categories.clone(),
        from: common.attribute_from.unwrap_or(usual),
        limit: common.attribute_limit,
    }))
}

/// Writes profile.json, stacks.folded, faults.jsonl, misses.jsonl, frames.jsonl and trace.json.
///
/// # Errors
/// A file cannot be written.
pub fn write(dir: &Path, attribution: &Attribution) -> Result<()> {
    let report = attribution.report();
    file(dir, "profile.json", |out| {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)
    })?;
    file(dir, "stacks.folded", |out| attribution.write_stacks(out))?;
    file(dir, "faults.jsonl", |out| attribution.write_faults(out))?;
    file(dir, "misses.jsonl", |out| attribution.write_misses(out))?;
    file(dir, "frames.jsonl", |out| attribution.write_frames(out))?;
    file(dir, "trace.json", |out| attribution.write_trace(out))
}

/// Writes a file completely or not at all.
fn file(dir: &Path, name: &str, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let path = dir.join(name);
    let cannot = || format!("cannot write {}", path.display());
    let temporary = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder(&path))
        .with_context(cannot)?;
    let mut out = BufWriter::new(temporary);
    write(&mut out).with_context(cannot)?;
    out.into_inner().map_err(|e| e.into_error()).with_context(cannot)?.persist(&path).with_context(cannot)?;
    Ok(())
}
