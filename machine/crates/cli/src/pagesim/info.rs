// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim info`: shows what is in a trace; also writes the summary file beside each new trace.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use trapless_pagesim::input::{Recorded, SHARE, Summary, Which, summarise};

use crate::count::Count;
use crate::files::write_whole;

/// Options of `trapless-pagesim info`.
#[derive(Args, Debug)]
pub struct Info {
    /// The trace.
    file: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// A number above 0, at most 1. The working set is the smallest memory in which this part of all accesses hits; the
    /// hottest pages are the fewest pages that get this part of all accesses.
    #[arg(long, default_value_t = SHARE, value_parser = share)]
    share: f64,
    /// For traces of the machine: the address space, given as the page number of its root page table.
    #[arg(long, value_name = "NUMBER", value_parser = space)]
    space: Option<u64>,
    /// For traces of the machine: use the kernel's accesses in this address space as well.
    #[arg(long)]
    kernel: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err(format!("{text} is not above 0 and at most 1")) }
}

fn space(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    number.map_err(|_| format!("'{text}' is not a number such as 0x81234"))
}

/// Prints what is in a trace. An incomplete trace is an error.
///
/// # Errors
/// The file cannot be read, is not a complete trace, or has several address spaces and none was chosen.
pub fn info(options: &Info) -> Result<()> {
    let mut source = Recorded::open(&options.file, Which { space: options.space, kernel: options.kernel })?;
    let summary = summarise(&mut source, options.share)?;
    let text = if options.json { json(&summary)? } else { text(&summary, &source).into_bytes() };
    match io::stdout().lock().write_all(&text) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to standard output"),
    }
}

/// Summary of a new trace.
pub struct Sums {
    json: Vec<u8>,
    text: String,
}

impl Sums {
    /// Reads the trace in `file`, which will be renamed to `out`.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn of(file: &Path, out: &Path) -> Result<Sums> {
        let mut source = Recorded::open(file, Which::default())?;
        let mut summary = summarise(&mut source, SHARE)?;
        summary.name = out.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Sums { json: json(&summary)?, text: text(&summary, &source) })
    }

    /// Writes the summary to FILE.json beside the trace and prints it. This replaces the summary of an older trace.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn beside(&self, out: &Path) -> Result<()> {
        write_whole(&name_beside(out), &self.json)?;
        eprint!("{}", self.text);
        Ok(())
    }
}

/// Path of a trace's summary.
pub fn name_beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

fn json(summary: &Summary) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(summary)?;
    text.push(b'\n');
    Ok(text)
}

fn text(s: &Summary, source: &Recorded) -> String {
    let mib = |pages: u64| format!("{pages} pages ({:.1} MiB)", pages as f64 / 256.0);
    let set = |pages: Option<u64>| pages.map_or_else(|| "none".to_owned(), mib);
    let mut lines = vec![
        format!("written by: {}", source.header().writer),
        format!("accesses: {} (fetches {}, loads {}, stores {})", s.accesses, s.fetches, s.loads, s.stores),
        format!("instructions: {}", s.instructions),
        format!("steps: {} ({:.2} accesses each)", s.steps, s.accesses as f64 / s.steps as f64),
        format!("footprint: {} in {} extents", mib(s.footprint_pages), s.extents.len()),
    ];
    let largest = s.extents.iter().take(5).map(|e| format!("{:#x} {}", e.address, Count(e.pages)));
    lines.push(format!("largest extents (address, pages): {}", largest.collect::<Vec<_>>().join(", ")));
    let (set99, first) = (s.working_set_pages, s.working_set_pages_with_first);
    let percent = s.share * 100.0;
    lines.push(format!(
        "working set, {percent} % of all accesses: {}; with first ones: {}",
        set(set99.all),
        set(first.all)
    ));
    if let Some(misses) = s.cache_misses {
        lines.push(format!("accesses that miss 8 MB of CPU cache: {misses}"));
        let (set99, first) = (set(set99.cache_filtered), set(first.cache_filtered));
        lines.push(format!("working set, {percent} % of these: {set99}; with first ones: {first}"));
        lines.push(format!("fewest pages that get {percent} % of these: {}", set(s.hottest_pages)));
    }
    lines.join("\n") + "\n"
}
