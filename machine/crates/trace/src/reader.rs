// SPDX-License-Identifier: Apache-2.0
//! The reader of traces.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use crate::bytes::Bytes;
use crate::{CHUNK, Entry, Error, Grain, HARTS, Header, Kind, Last, MAGIC, Moment, Place, Totals, chunk, flag};

/// Iterates over the entries of a trace. Returns an error if the trace is damaged or cut short. The trace was complete only if
/// the iteration ends without an error.
pub struct Reader<R> {
    from: R,
    /// Number of bytes read so far, and the offset of the current chunk.
    offset: u64,
    chunk_at: u64,
    decompressor: zstd::bulk::Decompressor<'static>,
    header: Header,
    raw: Vec<u8>,
    used: usize,
    last: Vec<Last>,
    hart: u16,
    totals: Totals,
    done: bool,
}

impl<R: Read> Reader<R> {
    /// Opens a trace. `from` should be buffered.
    ///
    /// # Errors
    /// The file is not a trace, or has another version of the format.
    pub fn new(from: R) -> Result<Reader<R>, Error> {
        let header = Header {
            grain: Grain::Page,
            harts: 0,
            kernel: false,
            clock_hz: 0,
            profile: String::new(),
            writer: String::new(),
        };
        let mut reader = Reader {
            from,
            offset: 0,
            chunk_at: 0,
            decompressor: zstd::bulk::Decompressor::new()?,
            header,
            raw: Vec::new(),
            used: 0,
            last: Vec::new(),
            hart: 0,
            totals: Totals::default(),
            done: false,
        };
        let mut magic = MAGIC;
        if reader.fill(&mut magic)? < magic.len() || magic[..7] != MAGIC[..7] {
            return Err(Error::NotATrace);
        }
        if magic != MAGIC {
            return Err(Error::Version(magic[7]));
        }
        if reader.chunk()? != chunk::HEADER {
            return Err(reader.damaged("no header"));
        }
        reader.header = parse_header(&reader.raw).ok_or_else(|| reader.damaged("its header is not valid"))?;
        reader.used = reader.raw.len();
        reader.last = vec![Last::default(); usize::from(reader.header.harts)];
        Ok(reader)
    }

    /// Returns the header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the sums over the entries so far. After the end of the iteration they cover the whole trace.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged { at: self.chunk_at, what }
    }

    /// Fills the buffer, or reads to the end of the file. Returns the number of bytes read.
    fn fill(&mut self, mut buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = buffer.len();
        while !buffer.is_empty() {
            match self.from.read(buffer) {
                Ok(0) => break,
                Ok(n) => buffer = &mut buffer[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        let got = wanted - buffer.len();
        self.offset += got as u64;
        Ok(got)
    }

    fn fill_all(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.fill(buffer)? < buffer.len() { Err(Error::CutShort(self.offset)) } else { Ok(()) }
    }

    /// Reads a chunk into `raw` and returns its kind.
    fn chunk(&mut self) -> Result<u8, Error> {
        let (what, length) = self.chunk_head()?;
        self.chunk_body(length)?;
        Ok(what)
    }

    /// Reads the head of the next chunk: its kind and its compressed size in bytes.
    fn chunk_head(&mut self) -> Result<(u8, usize), Error> {
        self.chunk_at = self.offset;
        let mut head = [0; 5];
        self.fill_all(&mut head)?;
        let [what, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if !matches!(what, chunk::HEADER | chunk::ENTRIES | chunk::TOTALS) || length > chunk::COMPRESSED {
            return Err(self.damaged("there is no chunk here"));
        }
        Ok((what, length))
    }

    fn chunk_body(&mut self, length: usize) -> Result<(), Error> {
        let mut bytes = vec![0; length];
        self.fill_all(&mut bytes)?;
        self.raw = self.decompressor.decompress(&bytes, CHUNK).map_err(|_| self.damaged("its checksum is wrong"))?;
        self.used = 0;
        Ok(())
    }

    /// Reads the next entry. Returns `None` at the end of a complete trace.
    #[inline]
    fn read(&mut self) -> Result<Option<Entry>, Error> {
        while self.used == self.raw.len() {
            match self.chunk()? {
                chunk::ENTRIES => {}
                chunk::TOTALS => return self.end().map(|()| None),
                _ => return Err(self.damaged("a second header")),
            }
        }
        let mut bytes = Bytes(&self.raw[self.used..]);
        let entry = parse_entry(&mut bytes, &mut self.hart, &mut self.last);
        self.used = self.raw.len() - bytes.0.len();
        let entry = entry.ok_or_else(|| self.damaged("an entry is not valid"))?;
        self.totals.add(&entry);
        Ok(Some(entry))
    }

    fn end(&mut self) -> Result<(), Error> {
        if parse_totals(&self.raw) != Some(self.totals) {
            return Err(self.damaged("its totals do not match its entries"));
        }
        self.nothing_more()
    }

    fn nothing_more(&mut self) -> Result<(), Error> {
        if self.fill(&mut [0])? != 0 {
            return Err(self.damaged("there are bytes after its totals"));
        }
        Ok(())
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the sums at the end of a trace. This is fast because it skips the entries without checking them. Refuses a trace
    /// that is cut short. `from` should not be buffered.
    ///
    /// # Errors
    /// Fails like [`Reader::new`], or because the trace is not complete.
    pub fn skim(from: R) -> Result<Totals, Error> {
        let mut reader = Reader::new(from)?;
        let end = reader.from.seek(SeekFrom::End(0))?;
        loop {
            reader.from.seek(SeekFrom::Start(reader.offset))?;
            let (what, length) = reader.chunk_head()?;
            if what == chunk::TOTALS {
                reader.chunk_body(length)?;
                let totals = parse_totals(&reader.raw).ok_or_else(|| reader.damaged("its totals are not valid"))?;
                return reader.nothing_more().map(|()| totals);
            }
            reader.offset += length as u64;
            if reader.offset > end {
                return Err(Error::CutShort(end));
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Entry, Error>;

    #[inline]
    fn next(&mut self) -> Option<Result<Entry, Error>> {
        if self.done {
            return None;
        }
        let entry = self.read();
        self.done = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

fn parse_header(raw: &[u8]) -> Option<Header> {
    let mut bytes = Bytes(raw);
    let shift = u32::from(bytes.byte()?);
    let header = Header {
        grain: [Grain::Page, Grain::Line].into_iter().find(|g| g.shift() == shift)?,
        kernel: match bytes.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        },
        harts: Some(u16::from_le_bytes(bytes.array()?)).filter(|n| *n <= HARTS)?,
        clock_hz: u64::from_le_bytes(bytes.array()?),
        profile: bytes.text()?,
        writer: bytes.text()?,
    };
    bytes.0.is_empty().then_some(header)
}

fn parse_totals(raw: &[u8]) -> Option<Totals> {
    let mut bytes = Bytes(raw);
    let mut number = || bytes.array().map(u64::from_le_bytes);
    let totals = Totals { entries: number()?, accesses: [number()?, number()?, number()?] };
    bytes.0.is_empty().then_some(totals)
}

#[inline]
fn parse_entry(bytes: &mut Bytes<'_>, current: &mut u16, last: &mut [Last]) -> Option<Entry> {
    let flags = bytes.byte()?;
    if flags & flag::HART != 0 {
        *current = u16::try_from(bytes.number()?).ok()?;
    }
    let hart = *current;
    let last = last.get_mut(usize::from(hart))?;
    let place = match flags & flag::KIND {
        flag::CLOSE if flags & !(flag::KIND | flag::HART) != 0 => return None,
        flag::CLOSE => None,
        kind if flags & !(flag::KIND | flag::HART | flag::KERNEL | flag::SPACE) == 0 => {
            let kind = Kind::ALL[usize::from(kind)];
            if flags & flag::SPACE != 0 {
                last.space = bytes.number()?;
            }
            let block = &mut last.blocks[kind as usize];
            *block = block.wrapping_add(bytes.signed()?);
            Some((kind, Place { space: last.space, kernel: flags & flag::KERNEL != 0, block: *block }))
        }
        _ => return None,
    };
    last.at = Moment {
        instructions: last.at.instructions.wrapping_add(bytes.number()?),
        cycle: last.at.cycle.wrapping_add(bytes.number()?),
    };
    let at = last.at;
    Some(match place {
        Some((kind, place)) => Entry::Run { hart, kind, place, at, ended: bytes.number()? },
        None => Entry::Close { hart, at, ended: [bytes.number()?, bytes.number()?, bytes.number()?] },
    })
}
