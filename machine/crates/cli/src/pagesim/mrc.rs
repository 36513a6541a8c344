// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim mrc`: miss-ratio curves.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use trapless_pagesim::input::Which;
use trapless_pagesim::mrc::{self, Curves, Grain, LARGEST, OracleGeneral, Plan, Requests, Stored};
use trapless_pagesim::replacement::BUILT_IN;

use crate::count::Count;
use crate::files::{check_writable, temporary, write_whole};

/// Largest number of sizes.
const MOST_SIZES: usize = 10_000;

/// Options of `trapless-pagesim mrc`.
#[derive(Args, Debug)]
#[command(after_help = policies())]
pub struct Mrc {
    /// Traces of this project, or oracleGeneral files. Each gives its own curves.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Orders of replacement, separated by commas. The list of all is below.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "lru,fifo,clock,arc,s3-fifo")]
    policy: Vec<String>,
    /// Sizes of memory in pages: a list such as 100,200, or LOW:HIGH:STEPS for STEPS sizes from LOW to HIGH, with the same ratio
    /// between neighbours.
    #[arg(long, value_name = "SIZES", default_value = "64:65536:11", value_parser = sizes)]
    sizes: Sizes,
    /// Count only the requests to this share of the pages, above 0 and up to 1 (SHARDS).
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    sample: f64,
    /// What counts as a page: `page` (4 KiB), or `line` (64 bytes; only for traces of lines).
    #[arg(long, value_enum, default_value_t = GrainName::Page)]
    grain: GrainName,
    /// Format of the files: `trace` (of this project), `oracle-general` (libCacheSim's), or `auto`: oracle-general if the file's
    /// name contains oracleGeneral, otherwise trace.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Write the table to this file (CSV). It goes to standard output if neither this nor --json is given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write all results to this file (JSON).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a line for each request: 1 if it hits, otherwise 0. Needs one trace, one policy and one size, and no other output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "json", "sample"])]
    requests: Option<PathBuf>,
    /// Write the requests of one trace as an oracleGeneral file for other tools. Nothing is computed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "json", "sample", "requests"])]
    objects: Option<PathBuf>,
}

/// Sizes of caches, sorted.
#[derive(Clone, Debug)]
struct Sizes(Vec<u64>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GrainName {
    Page,
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Auto,
    Trace,
    OracleGeneral,
}

/// The results of one trace.
#[derive(Serialize)]
struct Traced {
    trace: String,
    #[serde(flatten)]
    found: Curves,
}

/// The end of the help text.
fn policies() -> String {
    let names: Vec<_> = BUILT_IN.iter().map(|order| order.name).chain([mrc::MIN]).collect();
    format!("Policies: {}", names.join(", "))
}

fn sizes(text: &str) -> Result<Sizes, String> {
    let number = |text: &str| match text.parse() {
        Ok(n @ 1..=LARGEST) => Ok(n),
        _ => Err(format!("'{text}' is not a number from 1 to {LARGEST}")),
    };
    let parts: Vec<_> = text.split(':').collect();
    let found: BTreeSet<u64> = match parts[..] {
        [list] => list.split(',').map(number).collect::<Result<_, _>>()?,
        [low, high, steps] => {
            let (low, high, steps) = (number(low)?, number(high)?, number(steps)?);
            if low > high || steps > MOST_SIZES as u64 || (steps == 1 && low < high) {
                return Err(format!("LOW must not exceed HIGH, and STEPS must be 2 to {MOST_SIZES}"));
            }
            let ratio = (high as f64 / low as f64).powf(1.0 / (steps - 1).max(1) as f64);
            let size = |step| (low as f64 * ratio.powi(step as i32)).round() as u64;
            (0..steps).map(size).map(|size| size.clamp(low, high)).collect()
        }
        _ => return Err("neither a list such as 100,200 nor LOW:HIGH:STEPS such as 64:65536:11".into()),
    };
    if found.len() > MOST_SIZES {
        return Err(format!("more than {MOST_SIZES} sizes"));
    }
    Ok(Sizes(found.into_iter().collect()))
}

fn open(path: &Path, options: &Mrc) -> Result<Box<dyn Requests>> {
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().contains("oracleGeneral"));
    let grain = if options.grain == GrainName::Line { Grain::Line } else { Grain::Page };
    Ok(if options.format == Format::OracleGeneral || (options.format == Format::Auto && named) {
        Box::new(OracleGeneral::open(path)?)
    } else {
        Box::new(Stored::open(path, Which::default(), grain)?)
    })
}

/// Computes curves, or writes the results of single requests.
///
/// # Errors
/// An option or a trace is wrong, or the results cannot be written.
pub fn mrc(options: &Mrc) -> Result<()> {
    let plan = Plan { policies: options.policy.clone(), sizes: options.sizes.0.clone(), sample: options.sample };
    plan.check()?;
    if let Some(out) = &options.requests {
        return each(options, out);
    }
    if let Some(out) = &options.objects {
        return objects(options, out);
    }
    for path in [&options.out, &options.json].into_iter().flatten() {
        check_writable(path)?;
    }
    let mut results = vec![];
    for trace in &options.traces {
        let mut progress = Progress::new(trace);
        let found = mrc::curves(&mut *open(trace, options)?, &plan, &mut |done| progress.show(done))?;
        progress.end();
        results.push(Traced { trace: trace.display().to_string(), found });
    }
    if let Some(path) = &options.json {
        let mut text = serde_json::to_vec_pretty(&results).context("cannot write the results")?;
        text.push(b'\n');
        write_whole(path, &text)?;
    }
    let table = csv(&results);
    match &options.out {
        Some(path) => write_whole(path, table.as_bytes()),
        None if options.json.is_some() => Ok(()),
        None => match io::stdout().lock().write_all(table.as_bytes()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done.context("standard output"),
        },
    }
}

/// Writes one line for each request.
fn each(options: &Mrc, out: &Path) -> Result<()> {
    let ([trace], [policy], [size]) = (&options.traces[..], &options.policy[..], &options.sizes.0[..]) else {
        bail!("--requests needs one trace, one --policy and one of --sizes");
    };
    let mut requests = open(trace, options)?;
    write(out, &mut |to| {
        let mut written = Ok(());
        let mut hit = |hit| {
            if written.is_ok() {
                written = to.write_all(if hit { b"1\n" } else { b"0\n" });
            }
        };
        mrc::each(&mut *requests, policy, *size, &mut hit)?;
        written.with_context(|| format!("cannot write {}", out.display()))
    })
}

/// Writes the requests as an oracleGeneral file.
fn objects(options: &Mrc, out: &Path) -> Result<()> {
    let [trace] = &options.traces[..] else { bail!("--objects needs one trace") };
    let mut requests = open(trace, options)?;
    write(out, &mut |to| {
        let mut time = 0_u32;
        while let Some(page) = requests.next()? {
            let mut record = [0; 24];
            record[..4].copy_from_slice(&time.to_le_bytes());
            record[4..12].copy_from_slice(&page.to_le_bytes());
            record[12..16].copy_from_slice(&1_u32.to_le_bytes());
            // The next access is unknown, which libCacheSim writes as -2.
            record[16..].copy_from_slice(&(-2_i64).to_le_bytes());
            to.write_all(&record).with_context(|| format!("cannot write {}", out.display()))?;
            time = time.saturating_add(1);
        }
        Ok(())
    })
}

/// Writes a complete file or none.
fn write(out: &Path, what: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", out.display());
    let file = temporary(out)?;
    let mut to = BufWriter::new(file.as_file());
    what(&mut to)?;
    to.flush().with_context(cannot)?;
    drop(to);
    file.persist(out).with_context(cannot)?;
    Ok(())
}

fn csv(results: &[Traced]) -> String {
    let mut text = String::from("trace,policy,size_pages,requests,misses,miss_ratio\n");
    for Traced { trace, found } in results {
        // A name with a comma, a quote or a line end must be quoted.
        let quoted = trace.contains(['"', ',', '\n', '\r']);
        let trace = if quoted { format!("\"{}\"", trace.replace('"', "\"\"")) } else { trace.clone() };
        for curve in &found.curves {
            for point in &curve.points {
                let (requests, policy) = (found.requests, &curve.policy);
                text +=
                    &format!("{trace},{policy},{},{requests},{},{:.6}\n", point.size, point.misses, point.miss_ratio);
            }
        }
    }
    text
}

/// Shows the progress on a terminal.
struct Progress<'a> {
    trace: &'a Path,
    shown: Instant,
    terminal: bool,
}

impl Progress<'_> {
    fn new(trace: &Path) -> Progress<'_> {
        Progress { trace, shown: Instant::now(), terminal: stderr().is_terminal() }
    }

    fn show(&mut self, done: u64) {
        if self.terminal && self.shown.elapsed() > Duration::from_secs(1) {
            self.shown = Instant::now();
            let _ = write!(stderr(), "\r{}: {} requests  ", self.trace.display(), Count(done));
        }
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_steps_of_sizes() {
        assert_eq!(sizes("100,7,7").unwrap().0, [7, 100]);
        assert_eq!(sizes("64:65536:11").unwrap().0, (6..17).map(|n| 1 << n).collect::<Vec<_>>());
        assert_eq!(sizes("5:5:1").unwrap().0, [5]);
        assert_eq!(sizes("1:4:100").unwrap().0, [1, 2, 3, 4]);
        for wrong in ["", "0", "a", "1,,2", "2:1:3", "1:2", "1:9:1", "1:9:10001", "1:9:0", "1:1000000001:2", "-1"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }
}
