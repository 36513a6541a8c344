// SPDX-License-Identifier: Apache-2.0
//! `trapless-machine trace`: shows what is in a memory access trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use trapless_trace::{Entry, Grain, Kind, Reader};

fn open(file: &Path) -> Result<Reader<BufReader<File>>> {
    let of = || format!("trace {}", file.display());
    Reader::new(BufReader::new(File::open(file).with_context(of)?)).with_context(of)
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Fetch => "fetch",
        Kind::Load => "load",
        Kind::Store => "store",
    }
}

fn mode(kernel: bool) -> &'static str {
    if kernel { "kernel" } else { "user" }
}

/// Turns a broken pipe into success: the reader of the output, such as `head`, may stop when it has seen enough.
fn written(done: io::Result<()>) -> Result<()> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to standard output"),
    }
}

/// Prints a trace's header, its totals and the blocks of each address space. An incomplete trace is an error.
///
/// # Errors
/// The file cannot be read, or is not a complete trace.
pub fn info(file: &Path) -> Result<()> {
    let mut reader = open(file)?;
    // The blocks of each address space and mode. A block has one bit for each kind of access to it.
    let mut blocks: BTreeMap<(u64, bool), BTreeMap<u64, u8>> = BTreeMap::new();
    let (mut first, mut last, mut longest) = (None, 0, 0);
    for entry in reader.by_ref() {
        let (at, ended) = match entry.with_context(|| format!("trace {}", file.display()))? {
            Entry::Run { kind, place, at, ended, .. } => {
                *blocks.entry((place.space, place.kernel)).or_default().entry(place.block).or_default() |=
                    1 << kind as u8;
                (at, ended)
            }
            Entry::Close { at, ended, .. } => (at, ended.into_iter().max().unwrap_or(0)),
        };
        first.get_or_insert(at.cycle);
        last = last.max(at.cycle);
        longest = longest.max(ended);
    }
    let (h, t) = (reader.header(), reader.totals());
    let what = if h.grain == Grain::Page { "page" } else { "line" };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut print = || -> io::Result<()> {
        writeln!(out, "grain: {what} ({} bytes)", 1u64 << h.grain.shift())?;
        writeln!(out, "accesses of: {}", if h.kernel { "user programs and the kernel" } else { "user programs" })?;
        writeln!(out, "profile: {}, {} harts, {} Hz", h.profile, h.harts, h.clock_hz)?;
        writeln!(out, "written by: {}", h.writer)?;
        writeln!(out, "cycles: {} to {last}", first.unwrap_or(0))?;
        writeln!(out, "entries: {}", t.entries)?;
        for (kind, n) in Kind::ALL.into_iter().zip(t.accesses) {
            let touched = blocks.values().flat_map(BTreeMap::values).filter(|by| *by >> kind as u8 & 1 != 0).count();
            writeln!(out, "{}: {n} accesses to {touched} {what}s", name(kind))?;
        }
        writeln!(out, "longest run: {longest} accesses")?;
        for ((space, kernel), blocks) in &blocks {
            let data = blocks.values().filter(|by| *by >> Kind::Load as u8 != 0).count();
            writeln!(out, "space {space:#x} {}: {} {what}s, {data} of data", mode(*kernel), blocks.len())?;
        }
        out.flush()
    };
    written(print())
}

/// Prints every entry on one line. The first line names the columns.
///
/// # Errors
/// Fails like [`info`].
pub fn dump(file: &Path) -> Result<()> {
    let reader = open(file)?;
    let shift = reader.header().grain.shift();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut done = writeln!(out, "hart what mode space address instructions cycle ended");
    for entry in reader {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                written(out.flush())?;
                return Err(e).with_context(|| format!("trace {}", file.display()));
            }
        };
        done = done.and_then(|()| match entry {
            Entry::Run { hart, kind, place, at, ended } => {
                let (address, what) = (place.block << shift, name(kind));
                write!(out, "{hart} {what} {} {:#x} {address:#x}", mode(place.kernel), place.space)?;
                writeln!(out, " {} {} {ended}", at.instructions, at.cycle)
            }
            Entry::Close { hart, at, ended: [f, l, s] } => {
                writeln!(out, "{hart} close - - - {} {} {f},{l},{s}", at.instructions, at.cycle)
            }
        });
        if done.is_err() {
            break;
        }
    }
    written(done.and_then(|()| out.flush()))
}
