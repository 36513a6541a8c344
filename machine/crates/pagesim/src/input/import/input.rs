// SPDX-License-Identifier: Apache-2.0
//! Reads the files that are imported: decompressed, as records or lines. Error messages give the place in the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use liblzma::stream::{CONCATENATED, Stream};

use super::{whole, zip};
use crate::Error;
use crate::error::At;

/// Number of bytes at a file's beginning that are used to find the format.
const HEAD: usize = 1 << 16;
/// No format has longer lines.
const LONGEST_LINE: usize = 1 << 16;
/// Sizes of buffers in bytes. Files are read with LARGE ones; if there are more than 16 files, with SMALL ones.
const LARGE: usize = 1 << 20;
const SMALL: usize = 1 << 18;
/// Memory limit of an xz decompressor. xz -9 needs 65 MiB.
const XZ_MEMORY: u64 = 1 << 28;
/// Largest number of files in a folder. Each has at least one thread, and a stored trace has at most this many threads.
const FILES: usize = trapless_trace::HARTS as usize;

/// First bytes of the formats that can be decompressed.
const ZSTD: &[u8] = &0xfd2f_b528_u32.to_le_bytes();
const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = b"\xfd7zXZ\0";
/// First bytes of an archive, and of an archive without entries.
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Formats that cannot be decompressed here: first bytes, name, and the command that decompresses them.
const OTHERS: [(&[u8], &str, &str); 3] = [
    (b"BZh", "bzip2", "bzip2 -dk"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy", "snzip -dk"),
];

/// Opens the files of a trace: the one at a path, or those of a DynamoRIO folder.
pub fn open(path: &Path) -> Result<Vec<Input>, Error> {
    if !path.is_dir() {
        return Ok(vec![Input::open(path, LARGE)?]);
    }
    let files = in_folder(path)?;
    if files.is_empty() {
        let what = "has no *.trace, *.trace.gz or *.trace.zip in it; DynamoRIO makes them from the files in raw/: \
                    drrun -t drmemtrace -indir FOLDER";
        return Err(whole(path, what.to_owned()));
    }
    if files.len() > FILES {
        return Err(whole(path, format!("{} trace files; a stored trace has at most {FILES} threads", files.len())));
    }
    let capacity = if files.len() > 16 { SMALL } else { LARGE };
    files.iter().map(|file| Input::open(file, capacity)).collect()
}

/// The traces of a folder, or of the folder `trace` in it, sorted by name.
fn in_folder(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let inner = path.join("trace");
    let folder = if inner.is_dir() { &inner } else { path };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(Error::io(folder))? {
        let entry = entry.map_err(Error::io(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if [".trace", ".memtrace"].iter().any(|end| name.ends_with(end) || name.contains(&format!("{end}."))) {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// A file that is read once, from its beginning, and decompressed if necessary.
pub struct Input {
    path: PathBuf,
    reader: Box<dyn Read>,
    compressed: bool,
    buffer: Vec<u8>,
    /// The part of the buffer that is not taken yet.
    from: usize,
    to: usize,
    /// Position of `from` in the decompressed file.
    offset: u64,
    /// Number of records or lines taken.
    taken: u64,
    ended: bool,
}

impl Input {
    fn open(path: &Path, capacity: usize) -> Result<Input, Error> {
        let (reader, compressed) = decompressed(path)?;
        let path = path.to_owned();
        Ok(Input {
            path,
            reader,
            compressed,
            buffer: vec![0; capacity],
            from: 0,
            to: 0,
            offset: 0,
            taken: 0,
            ended: false,
        })
    }

    /// Returns the file's first bytes without taking them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn head(&mut self) -> Result<&[u8], Error> {
        while self.to < HEAD && self.fill()? {}
        Ok(&self.buffer[..self.to.min(HEAD)])
    }

    /// Reads more bytes into the buffer, after those that are not taken yet. Returns whether there were more.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        while !self.ended && self.to < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.to += n;
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.compressed => {
                    let at = At::Byte(self.offset + self.to as u64);
                    let what = format!("cannot be decompressed beyond here ({error}); it is damaged or cut short");
                    return Err(Error::Import { path: self.path.clone(), at, what });
                }
                Err(error) => return Err(Error::io(&self.path)(error)),
            }
        }
        Ok(false)
    }

    /// Takes the next record of `N` bytes.
    ///
    /// # Errors
    /// The file ends in the middle of a record, or cannot be read.
    #[inline]
    pub fn record<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Error> {
        loop {
            if let Some(record) = self.buffer[self.from..self.to].first_chunk() {
                self.from += N;
                self.offset += N as u64;
                self.taken += 1;
                return Ok(Some(*record));
            }
            if !self.fill()? {
                break;
            }
        }
        if self.from == self.to {
            return Ok(None);
        }
        let what = format!("cut short: {} of a record's {N} bytes are here", self.to - self.from);
        Err(Error::Import { path: self.path.clone(), at: At::Record(self.taken + 1, self.offset), what })
    }

    /// Makes an error about the record of `N` bytes that was taken last.
    pub fn bad_record<const N: usize>(&self, what: impl Into<String>) -> Error {
        let at = At::Record(self.taken, self.offset.saturating_sub(N as u64));
        Error::Import { path: self.path.clone(), at, what: what.into() }
    }

    /// Takes the next line and returns it without its end.
    ///
    /// # Errors
    /// The file ends in the middle of a line, a line is too long, or the file cannot be read.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Error> {
        let mut seen = 0;
        let end = loop {
            match self.buffer[self.from + seen..self.to].iter().position(|b| *b == b'\n') {
                Some(at) if at + seen <= LONGEST_LINE => break seen + at,
                None if self.to - self.from <= LONGEST_LINE => seen = self.to - self.from,
                _ => {
                    self.taken += 1;
                    return Err(self.bad_line("longer than 65536 bytes; this is not text of this format"));
                }
            }
            if !self.fill()? {
                if self.from == self.to {
                    return Ok(None);
                }
                self.taken += 1;
                let what = "the file ends in the middle of this line; if the line is whole, end it with a line break";
                return Err(self.bad_line(what));
            }
        };
        let line = self.from..self.from + end;
        self.from += end + 1;
        self.offset += end as u64 + 1;
        self.taken += 1;
        let line = &self.buffer[line];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Makes an error about the line that was taken last.
    pub fn bad_line(&self, what: impl Into<String>) -> Error {
        Error::Import { path: self.path.clone(), at: At::Line(self.taken), what: what.into() }
    }

    /// Makes an error about the whole file.
    pub fn bad(&self, what: impl Into<String>) -> Error {
        whole(&self.path, what.into())
    }

    /// Takes the next bytes, as many as the buffer has. Returns none at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn bytes(&mut self) -> Result<&[u8], Error> {
        if self.from == self.to {
            self.fill()?;
        }
        let bytes = self.from..self.to;
        self.offset += bytes.len() as u64;
        self.from = self.to;
        Ok(&self.buffer[bytes])
    }
}

/// Opens a file and decompresses it if necessary. Returns its content, and whether it was compressed.
fn decompressed(path: &Path) -> Result<(Box<dyn Read>, bool), Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let mut plain = BufReader::with_capacity(SMALL, file);
    let head = plain.fill_buf().map_err(Error::io(path))?;
    let begins = |magic: &[u8]| head.starts_with(magic);
    if let Some((_, name, command)) = OTHERS.into_iter().find(|(magic, ..)| begins(magic)) {
        return Err(whole(path, format!("is compressed by {name}, which is not read; decompress it: {command} FILE")));
    }
    let (zstd, gzip, xz, zip) = (begins(ZSTD), begins(GZIP), begins(XZ), ZIP.into_iter().any(begins));
    let reader: Box<dyn Read> = if zstd {
        Box::new(zstd::Decoder::with_buffer(plain).map_err(Error::io(path))?)
    } else if gzip {
        Box::new(flate2::bufread::MultiGzDecoder::new(plain))
    } else if xz {
        let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED).map_err(io::Error::from);
        Box::new(liblzma::bufread::XzDecoder::new_stream(plain, stream.map_err(Error::io(path))?))
    } else if zip {
        Box::new(zip::Zip::open(plain.into_inner()).map_err(|e| whole(path, format!("its archive: {e}")))?)
    } else {
        return Ok((Box::new(plain), false));
    };
    Ok((reader, true))
}
