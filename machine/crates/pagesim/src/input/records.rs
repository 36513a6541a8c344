// SPDX-License-Identifier: Apache-2.0
//! Converts the records of this project's valgrind tool (machine/crates/cli/src/pagesim/tracer.c) into stored traces.
//!
//! A record has 8 bytes, little-endian. From bit 0: kind (2 bits: 0 fetch, 1 load, 2 store, 3 load and store), number of
//! instructions that follow before the next record (5 bits), bytes of the access minus one (9 bits), address (48 bits, signed).
//! The instructions that follow are fetched from the line of the last fetch.

use std::fs::File;
use std::path::Path;

use trapless_trace::{Kind, Totals};

use super::LINE_SHIFT;
use super::import::Part;
use super::import::lackey::Recorder;
use crate::Error;

/// Bytes of a record.
const RECORD: usize = 8;

/// Name of the tool in the header of a trace.
const TOOL: &str = "tracer";

/// Converts records piece by piece into a stored trace of lines.
pub struct Records {
    recorder: Recorder,
    /// The beginning of a record whose end has not arrived yet.
    partial: Vec<u8>,
    /// An address in the line of the last fetch.
    fetched: u64,
}

impl Records {
    /// Begins a trace, as [`Recorder::new`] does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(from: &Path, to: &Path, file: File, command: &str, part: Part) -> Result<Records, Error> {
        let recorder = Recorder::with_tool(TOOL, from, to, file, command, part)?;
        Ok(Records { recorder, partial: Vec::new(), fetched: 0 })
    }

    /// The trace so far.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Takes the next bytes, which may end anywhere. Ignores them once the trace is [full](Recorder::full).
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        if !self.partial.is_empty() {
            let missing = (RECORD - self.partial.len()).min(bytes.len());
            self.partial.extend(&bytes[..missing]);
            bytes = &bytes[missing..];
            if let Some(record) = self.partial.first_chunk() {
                let record = *record;
                self.partial.clear();
                self.take(u64::from_le_bytes(record))?;
            }
        }
        let (records, rest) = bytes.as_chunks::<RECORD>();
        for record in records {
            self.take(u64::from_le_bytes(*record))?;
        }
        self.partial.extend(rest);
        Ok(())
    }

    /// Completes the trace. Returns the totals of its content.
    ///
    /// # Errors
    /// The records ended in the middle of one or have no access, or the trace cannot be written.
    pub fn finish(self) -> Result<Totals, Error> {
        if !self.partial.is_empty() && !self.recorder.full() {
            return Err(self.recorder.cut());
        }
        self.recorder.finish()
    }

    #[inline]
    fn take(&mut self, record: u64) -> Result<(), Error> {
        let (more, size) = (record >> 2 & 0x1f, (record >> 7 & 0x1ff) + 1);
        let address = ((record as i64) >> 16) as u64;
        match record & 3 {
            0 => {
                self.make(&[Kind::Fetch], address, size)?;
                self.fetched = address.saturating_add(size - 1) >> LINE_SHIFT << LINE_SHIFT;
            }
            1 => self.make(&[Kind::Load], address, size)?,
            2 => self.make(&[Kind::Store], address, size)?,
            _ => self.make(&[Kind::Load, Kind::Store], address, size)?,
        }
        for _ in 0..more {
            self.make(&[Kind::Fetch], self.fetched, 1)?;
        }
        Ok(())
    }

    /// Stores accesses to one place, unless the trace is full.
    #[inline]
    fn make(&mut self, kinds: &[Kind], address: u64, size: u64) -> Result<(), Error> {
        if self.recorder.full() {
            return Ok(());
        }
        kinds.iter().try_for_each(|kind| self.recorder.access(*kind, address, size))
    }
}
