// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim run`: runs one simulation.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use tempfile::NamedTempFile;
use trapless_pagesim::faults::{Log, is_packed};
use trapless_pagesim::input::{Extent, PAGE_SHIFT, Recorded, Scattered, Source, Which};
use trapless_pagesim::optimum;
use trapless_pagesim::policy::{OPTIMUM, Registry};
use trapless_pagesim::report::Report;
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

use crate::INTERRUPTED;
use crate::count::Count;
use crate::files::{check_writable, temporary, write_whole};
use crate::info::name_beside;

/// Options of `trapless-pagesim run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Configuration of the simulation, a TOML file (docs/reference/pagesim.md).
    config: PathBuf,
    /// Change a value of the configuration, for example memory.frames=4096 or process.0.nice=5; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write all results to this file (JSON).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a line for each access that waits for its page to this file. Its name must end in .csv, or in .csv.zst for
    /// compression.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Show the progress in a line every second, even if standard error is not a terminal.
    #[arg(long)]
    progress: bool,
}

/// Simulates with one of the known policies.
///
/// # Errors
/// The configuration or a trace is wrong, or the results cannot be written.
pub fn run(options: &Run, known: &Registry) -> Result<()> {
    if let Some(path) = &options.json {
        check_writable(path)?;
    }
    if let Some(path) = &options.faults {
        is_packed(path)?;
    }
    let settings = Settings::load(&options.config, &options.set)?;
    let policy = known.make(&settings).with_context(|| options.config.display().to_string())?;
    let (mut sources, mut mapped, mut total): (Vec<Box<dyn Source>>, _, _) = (vec![], vec![], 0);
    for process in &settings.processes {
        let trace = Recorded::open(&process.trace, Which { space: process.space, kernel: false })?;
        total += trace.accesses().unwrap_or(0);
        let ranges = extents(&process.trace)?;
        sources.push(match process.scattered {
            0 => Box::new(trace),
            row => Box::new(Scattered::new(trace, &ranges, row.into())),
        });
        mapped.push(ranges);
    }
    let log = options.faults.as_deref().map(|path| begin_log(path, &settings)).transpose()?;
    let (begin, terminal) = (Instant::now(), stderr().is_terminal());
    let (mut shown, mut turns) = (begin, 0_u64);
    let mut progress = |done: u64| {
        turns += 1;
        if (options.progress || terminal) && turns.is_multiple_of(64) && shown.elapsed() > Duration::from_secs(1) {
            shown = Instant::now();
            let left = begin.elapsed().as_secs_f64() * (total as f64 / done.max(1) as f64 - 1.0);
            let text = format!("{} of {} accesses, {left:.0} s left", Count(done), Count(total));
            let _ = if terminal { write!(stderr(), "\r{text}  ") } else { writeln!(stderr(), "{text}") };
        }
    };
    let sim = if settings.policy == OPTIMUM {
        optimum::run(&settings, sources, &mapped, &mut progress)?
    } else {
        let mut sim = Sim::with_policy(&settings, policy, sources, &mapped)?;
        let (log, file) = log.unzip();
        sim.log = log;
        sim.run(&mut progress)?;
        if let (Some(log), Some(file), Some(path)) = (sim.log.take(), file, &options.faults) {
            log.finish()?;
            file.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        sim
    };
    if terminal {
        eprint!("\r\x1b[K");
    }
    let report = Report::new(&sim);
    if let Some(path) = &options.json {
        write_whole(path, &serde_json::to_vec_pretty(&report).context("cannot write the results")?)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{:.6} s, {} accesses, {} faults, {} pages read, {} written, {} context switches, Jain {:.5} ({:.1} s, {:.1} M accesses a second)",
        report.time_ns as f64 / 1e9,
        Count(report.accesses),
        report.faults,
        report.device_reads,
        report.device_writes,
        report.context_switches,
        report.jain,
        seconds,
        sim.accesses() as f64 / 1e6 / seconds,
    )
    .context("cannot write to standard output")
}

/// Begins the log of faults. Returns it with its temporary file, which gets the final name when the log is complete. An interrupt
/// removes the file.
fn begin_log(path: &Path, settings: &Settings) -> Result<(Log, NamedTempFile)> {
    if settings.policy == OPTIMUM {
        bail!("--faults {}: policy optimum has no faults: leave --faults out", path.display());
    }
    let file = temporary(path)?;
    let twin = file.as_file().try_clone().with_context(|| format!("cannot write {}", path.display()))?;
    let log = Log::new(path, twin, settings)?;
    let partial = file.path().to_owned();
    ctrlc::set_handler(move || {
        let _ = std::fs::remove_file(&partial);
        std::process::exit(INTERRUPTED.into());
    })
    .context("cannot install the interrupt handler")?;
    Ok((log, file))
}

/// Reads the mapped ranges of virtual pages (first, count) from the trace's summary: all pages that the trace touches.
fn extents(trace: &Path) -> Result<Vec<(u64, u64)>> {
    #[derive(Deserialize)]
    struct Summary {
        extents: Vec<Extent>,
    }
    let path = name_beside(trace);
    let show = || format!("{} (the output of trapless-pagesim info --json)", path.display());
    let text = std::fs::read(&path).with_context(show)?;
    let summary: Summary = serde_json::from_slice(&text).with_context(show)?;
    Ok(summary.extents.iter().map(|extent| (extent.address >> PAGE_SHIFT, extent.pages)).collect())
}
