// SPDX-License-Identifier: Apache-2.0
//! Converts the traces of other programs into stored ones. A format is a file here that implements [`Format`], and an entry in
//! [`FORMATS`].

mod champsim;
mod csv;
mod damon;
mod drmemtrace;
mod input;
pub mod lackey;
mod oracle;
mod pages;
mod perf;
mod sink;
mod text;
mod zip;

use std::fs::File;
use std::path::{Path, PathBuf};

use trapless_trace::Totals;

use crate::Error;

pub use input::Input;
pub use sink::Sink;

/// All formats. Detection tries them in this order: those with the clearest marks come first.
pub static FORMATS: [&dyn Format; 7] = [
    &drmemtrace::Drmemtrace,
    &lackey::Lackey,
    &damon::Damon,
    &perf::Perf,
    &csv::Csv,
    &oracle::OracleGeneral,
    &champsim::ChampSim,
];

/// A format of traces.
pub trait Format: Sync {
    /// The name for `--format`.
    fn name(&self) -> &'static str;

    /// A description of a few words for the help.
    fn about(&self) -> &'static str;

    /// The options of [`Options`] that this format takes.
    fn takes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a file is in this format, judged by its first bytes (64 KiB, or all of a shorter file).
    fn detects(&self, head: &[u8]) -> bool;

    /// Stores a trace. Only a format of [folders](Format::folders) gets more than one input.
    ///
    /// # Errors
    /// An input is not in this format or incomplete, or the trace cannot be written.
    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error>;

    /// Whether a trace may be a folder of several files.
    fn folders(&self) -> bool {
        false
    }
}

/// The part of a program's accesses that is stored.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Number of accesses to skip at the beginning.
    pub skip: u64,
    /// Largest number of accesses to store. The last instruction is stored whole, so there may be a few more.
    pub limit: u64,
}

impl Part {
    /// All accesses.
    pub const ALL: Part = Part { skip: 0, limit: u64::MAX };
}

/// Options that only some formats take.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of a CSV file's columns, separated by commas. They replace those of its first line.
    pub columns: Option<String>,
    /// Bytes of a unit: object numbers are positions in units, and sizes count. `None`: an object is one page.
    pub unit: Option<u64>,
    /// Instructions to count for each access of a trace that has no instructions; 1 if absent.
    pub instructions: Option<u64>,
}

impl Options {
    /// Names of the options that are given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("columns", self.columns.is_some()),
            ("unit", self.unit.is_some()),
            ("instructions", self.instructions.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Where a trace goes, and which part of it is stored.
#[derive(Debug)]
pub struct Target {
    /// The origin of the trace, for messages and the trace's header.
    pub from: PathBuf,
    /// The name that the trace will get, for messages.
    pub to: PathBuf,
    /// An empty file that can be read and written. It will get the name `to`.
    pub file: File,
    /// Which part is stored.
    pub part: Part,
    /// Options that only some formats take.
    pub options: Options,
}

/// Finds the format with this name.
///
/// # Errors
/// There is no such format. The message lists all formats.
pub fn format(name: &str) -> Result<&'static dyn Format, Error> {
    let found = FORMATS.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| Error::Settings(format!("'{name}' is not a format of traces; the formats are {}", names())))
}

/// The names of all formats.
fn names() -> String {
    FORMATS.map(Format::name).join(", ")
}

/// Converts a trace of another program into a stored one. Detects the format if `named` does not give it.
///
/// # Errors
/// The format is unclear, the input is not in this format or incomplete, or the trace cannot be written.
pub fn import(target: Target, named: Option<&str>) -> Result<Totals, Error> {
    let named = match (named, &target.options.columns) {
        (None, Some(_)) => Some("csv"),
        _ => named,
    };
    let named = named.map(format).transpose()?;
    let mut inputs = input::open(&target.from)?;
    let format = match named {
        Some(format) => format,
        None => detect(&target.from, &mut inputs)?,
    };
    if target.from.is_dir() && !format.folders() {
        return Err(whole(&target.from, format!("is a folder; traces of {} are files", format.name())));
    }
    if let Some(unknown) = target.options.given().find(|option| !format.takes().contains(option)) {
        return Err(Error::Settings(format!("--{unknown} means nothing for a trace of {}", format.name())));
    }
    format.import(inputs, target)
}

/// Detects the format of the first file.
fn detect(from: &Path, inputs: &mut [Input]) -> Result<&'static dyn Format, Error> {
    let head = inputs.first_mut().map(Input::head).transpose()?.unwrap_or_default();
    if head.is_empty() {
        return Err(whole(from, "is empty".to_owned()));
    }
    let found = FORMATS.into_iter().find(|format| format.detects(head));
    found.ok_or_else(|| whole(from, format!("its content does not tell its format; give --format: {}", names())))
}

/// Makes an error about a whole file.
fn whole(path: &Path, what: String) -> Error {
    Error::Import { path: path.to_owned(), at: crate::error::At::Whole, what }
}

/// Returns the input of a format whose traces are single files.
fn only(inputs: Vec<Input>, target: &Target) -> Result<Input, Error> {
    let input = inputs.into_iter().next();
    input.ok_or_else(|| whole(&target.from, "has no trace in it".to_owned()))
}

#[cfg(test)]
mod tests;
