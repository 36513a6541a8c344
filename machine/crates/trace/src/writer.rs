// SPDX-License-Identifier: Apache-2.0
//! The writer of traces.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::bytes::{put, put_signed};
use crate::{CHUNK, Entry, Header, Kind, Last, MAGIC, Moment, Place, Totals, chunk, flag};

/// Compression level of zstd: its default, between speed and size.
const LEVEL: i32 = 3;
/// Largest size of an entry in bytes: its flags and seven numbers.
const LONGEST: usize = 1 + 7 * 10;
/// Largest size of a name in the header, in bytes.
const LONGEST_NAME: usize = 1 << 10;
/// Bytes moved at once.
const BLOCK: u64 = 1 << 20;

/// The current run of a stream.
#[derive(Clone, Copy)]
struct Open {
    place: Place,
    count: u64,
}

/// Writes a trace into a file. The file is a complete trace only after [`Writer::finish`].
///
/// ```
/// use std::io::{BufReader, Seek};
/// use trapless_trace::{Grain, Header, Kind, Moment, Place, Reader, Writer};
///
/// let mut file = tempfile::tempfile()?;
/// let header = Header {
///     grain: Grain::Page,
///     harts: 1,
///     kernel: false,
///     clock_hz: 100_000_000,
///     profile: "vc707".into(),
///     writer: "example 1".into(),
/// };
/// let mut writer = Writer::new(file.try_clone()?, header)?;
/// let place = Place { space: 0, kernel: false, block: 0x10 };
/// writer.moves(0, Kind::Load, place, Moment { instructions: 5, cycle: 9 })?;
/// // A second load of the same page is only counted.
/// assert!(writer.stays(0, Kind::Load, place));
/// writer.close(0, Moment { instructions: 8, cycle: 20 })?;
/// assert_eq!(writer.finish()?.accesses[Kind::Load as usize], 2);
///
/// file.rewind()?;
/// let entries = Reader::new(BufReader::new(file))?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(entries.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    file: File,
    header: Header,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    /// The current runs, by hart and kind.
    open: Vec<[Option<Open>; 3]>,
    last: Vec<Last>,
    hart: u16,
    totals: Totals,
    /// Bytes of the file before its entries.
    header_end: u64,
}

impl Writer {
    /// Begins a trace in an empty file.
    ///
    /// # Errors
    /// The file cannot be written.
    ///
    /// # Panics
    /// Panics if the header has more than [`crate::HARTS`] harts, or names of more than 1024 bytes.
    pub fn new(file: File, header: Header) -> io::Result<Writer> {
        assert!(header.harts <= crate::HARTS, "too many harts");
        assert!(header.profile.len().max(header.writer.len()) <= LONGEST_NAME, "name too long");
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        let harts = usize::from(header.harts);
        let mut writer = Writer {
            file,
            header,
            compressor,
            raw: Vec::with_capacity(CHUNK),
            open: vec![[None; 3]; harts],
            last: vec![Last::default(); harts],
            hart: 0,
            totals: Totals::default(),
            header_end: 0,
        };
        writer.begin()?;
        Ok(writer)
    }

    /// Returns the header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Deletes everything written so far and begins the trace again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn restart(&mut self) -> io::Result<()> {
        self.raw.clear();
        self.open.fill([None; 3]);
        self.last.fill(Last::default());
        self.hart = 0;
        self.totals = Totals::default();
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.begin()
    }

    fn begin(&mut self) -> io::Result<()> {
        self.file.write_all(&MAGIC)?;
        let raw = self.header_bytes();
        self.chunk(chunk::HEADER, &raw)?;
        self.header_end = self.file.stream_position()?;
        Ok(())
    }

    fn header_bytes(&self) -> Vec<u8> {
        let h = &self.header;
        let mut raw = vec![h.grain.shift() as u8, u8::from(h.kernel)];
        raw.extend(h.harts.to_le_bytes());
        raw.extend(h.clock_hz.to_le_bytes());
        for text in [&h.profile, &h.writer] {
            raw.extend((text.len() as u16).to_le_bytes());
            raw.extend(text.as_bytes());
        }
        raw
    }

    /// Counts an access if the stream's run is in this place. Otherwise returns false; the caller then calls [`Writer::moves`].
    #[inline]
    pub fn stays(&mut self, hart: u16, kind: Kind, place: Place) -> bool {
        match &mut self.open[usize::from(hart)][kind as usize] {
            Some(open) if open.place == place => {
                open.count += 1;
                true
            }
            _ => false,
        }
    }

    /// Ends the run of a stream and begins a run in another place, with one access.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn moves(&mut self, hart: u16, kind: Kind, place: Place, at: Moment) -> io::Result<()> {
        let open = &mut self.open[usize::from(hart)][kind as usize];
        let ended = open.replace(Open { place, count: 1 }).map_or(0, |run| run.count);
        self.entry(&Entry::Run { hart, kind, place, at, ended })
    }

    /// Ends all runs of a hart.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(&mut self, hart: u16, at: Moment) -> io::Result<()> {
        let open = std::mem::take(&mut self.open[usize::from(hart)]);
        if open.iter().all(Option::is_none) {
            return Ok(());
        }
        self.entry(&Entry::Close { hart, at, ended: open.map(|run| run.map_or(0, |run| run.count)) })
    }

    /// Completes the trace as [`Writer::finish`] does, and corrects the header where it could not be known at the beginning: the
    /// number of harts, and whether there are accesses of the kernel. The file must be readable.
    ///
    /// # Errors
    /// The file cannot be written or read.
    ///
    /// # Panics
    /// Panics if `harts` exceeds the number in the header so far.
    pub fn finish_as(mut self, harts: u16, kernel: bool) -> io::Result<Totals> {
        assert!(harts <= self.header.harts, "more harts than before");
        for hart in 0..self.header.harts {
            self.close(hart, self.last[usize::from(hart)].at)?;
        }
        self.flush()?;
        (self.header.harts, self.header.kernel) = (harts, kernel);
        let raw = self.header_bytes();
        let header = chunk_bytes(&mut self.compressor, chunk::HEADER, &raw)?;
        let (begin, end) = (MAGIC.len() as u64, self.file.stream_position()?);
        move_bytes(&self.file, self.header_end..end, begin + header.len() as u64, BLOCK)?;
        self.file.write_all_at(&header, begin)?;
        let end = end - self.header_end + begin + header.len() as u64;
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end))?;
        self.finish()
    }

    /// Completes the trace. Ends the runs that are not closed at the time of their hart's last entry.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<Totals> {
        for hart in 0..self.header.harts {
            self.close(hart, self.last[usize::from(hart)].at)?;
        }
        self.flush()?;
        let mut raw = self.totals.entries.to_le_bytes().to_vec();
        self.totals.accesses.iter().for_each(|n| raw.extend(n.to_le_bytes()));
        self.chunk(chunk::TOTALS, &raw)?;
        Ok(self.totals)
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.totals.add(entry);
        let (hart, at) = match entry {
            Entry::Run { hart, at, .. } | Entry::Close { hart, at, .. } => (*hart, *at),
        };
        let last = &mut self.last[usize::from(hart)];
        let mut flags = if hart == self.hart { 0 } else { flag::HART };
        flags |= match entry {
            Entry::Run { kind, place, .. } => {
                let space = if place.space == last.space { 0 } else { flag::SPACE };
                *kind as u8 | space | if place.kernel { flag::KERNEL } else { 0 }
            }
            Entry::Close { .. } => flag::CLOSE,
        };
        let raw = &mut self.raw;
        raw.push(flags);
        if flags & flag::HART != 0 {
            put(raw, hart.into());
        }
        if let Entry::Run { kind, place, .. } = entry {
            if flags & flag::SPACE != 0 {
                put(raw, place.space);
                last.space = place.space;
            }
            let block = &mut last.blocks[*kind as usize];
            put_signed(raw, place.block.wrapping_sub(*block));
            *block = place.block;
        }
        put(raw, at.instructions.wrapping_sub(last.at.instructions));
        put(raw, at.cycle.wrapping_sub(last.at.cycle));
        match entry {
            Entry::Run { ended, .. } => put(raw, *ended),
            Entry::Close { ended, .. } => ended.iter().for_each(|n| put(raw, *n)),
        }
        last.at = at;
        self.hart = hart;
        if self.raw.len() > CHUNK - LONGEST { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let raw = std::mem::take(&mut self.raw);
        if !raw.is_empty() {
            self.chunk(chunk::ENTRIES, &raw)?;
        }
        self.raw = raw;
        self.raw.clear();
        Ok(())
    }

    fn chunk(&mut self, what: u8, raw: &[u8]) -> io::Result<()> {
        let bytes = chunk_bytes(&mut self.compressor, what, raw)?;
        self.file.write_all(&bytes)
    }
}

fn chunk_bytes(compressor: &mut zstd::bulk::Compressor<'static>, what: u8, raw: &[u8]) -> io::Result<Vec<u8>> {
    let bytes = compressor.compress(raw)?;
    let mut chunk = vec![what];
    chunk.extend((bytes.len() as u32).to_le_bytes());
    chunk.extend(bytes);
    Ok(chunk)
}

/// Moves a range of bytes in a file, one block at a time. The new place may overlap the old one.
pub fn move_bytes(file: &File, from: Range<u64>, to: u64, block: u64) -> io::Result<()> {
    let blocks = (from.end - from.start).div_ceil(block);
    let mut buffer = Vec::new();
    for n in 0..if from.start == to { 0 } else { blocks } {
        // The order is such that no block is overwritten before it is read.
        let at = from.start + block * if to < from.start { n } else { blocks - 1 - n };
        buffer.resize((from.end - at).min(block) as usize, 0);
        file.read_exact_at(&mut buffer, at)?;
        file.write_all_at(&buffer, to + (at - from.start))?;
    }
    Ok(())
}
