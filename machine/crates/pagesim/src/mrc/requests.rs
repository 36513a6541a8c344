// SPDX-License-Identifier: Apache-2.0
//! Reads the requests for miss-ratio curves.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::input::{Recorded, Source, Which};

/// Bytes of a record of an oracleGeneral file.
const RECORD: usize = 24;
/// Bytes read at once.
const BUFFER: usize = 1 << 20;

/// A sequence of requests to pages.
pub trait Requests {
    /// The page of the next request; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or is incomplete.
    fn next(&mut self) -> Result<Option<u64>, Error>;

    /// Path of the file.
    fn path(&self) -> &Path;
}

/// The unit of a stored trace that counts as a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// 4 KiB.
    Page,
    /// 64 bytes.
    Line,
}

/// A stored trace (docs/reference/trace-format.md). A request is a step: a run of accesses of one stream to one line.
pub struct Stored {
    path: PathBuf,
    source: Recorded,
    grain: Grain,
}

impl Stored {
    /// Opens a trace.
    ///
    /// # Errors
    /// The file has no complete trace, or the trace has no lines although `grain` asks for them.
    pub fn open(path: &Path, which: Which, grain: Grain) -> Result<Stored, Error> {
        let source = Recorded::open(path, which)?;
        if grain == Grain::Line && !source.has_lines() {
            return Err(Error::Settings(format!("{}: a trace of pages, which has no lines", path.display())));
        }
        Ok(Stored { path: path.to_owned(), source, grain })
    }
}

impl Requests for Stored {
    #[inline]
    fn next(&mut self) -> Result<Option<u64>, Error> {
        let step = self.source.next()?;
        Ok(step.map(|step| if self.grain == Grain::Page { step.page() } else { step.line }))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// libCacheSim's oracleGeneral format: packed little-endian records of time (u32), object (u64), size (u32) and next access
/// (i64). Each request is to one object, whatever its size.
pub struct OracleGeneral<R> {
    path: PathBuf,
    reader: BufReader<R>,
    records: u64,
}

impl OracleGeneral<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<OracleGeneral<File>, Error> {
        Ok(OracleGeneral::new(path, File::open(path).map_err(Error::io(path))?))
    }
}

impl<R: Read> OracleGeneral<R> {
    /// Reads from any source. Messages use `path`.
    pub fn new(path: &Path, reader: R) -> OracleGeneral<R> {
        OracleGeneral { path: path.to_owned(), reader: BufReader::with_capacity(BUFFER, reader), records: 0 }
    }
}

impl<R: Read> Requests for OracleGeneral<R> {
    fn next(&mut self) -> Result<Option<u64>, Error> {
        let mut record = [0; RECORD];
        let mut got = 0;
        while got < RECORD {
            match self.reader.read(&mut record[got..]) {
                Ok(0) if got == 0 => return Ok(None),
                Ok(0) => {
                    return Err(Error::Settings(format!(
                        "{}: byte {}: {got} bytes of a record of {RECORD}; the file is cut off, or not in oracleGeneral format",
                        self.path.display(),
                        self.records * RECORD as u64,
                    )));
                }
                Ok(n) => got += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path)(e)),
            }
        }
        self.records += 1;
        Ok(record[4..12].try_into().ok().map(u64::from_le_bytes))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
