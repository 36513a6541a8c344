// SPDX-License-Identifier: Apache-2.0
//! Reads the files of a zip archive as one file. DynamoRIO keeps a thread's trace this way, with one file for each chunk of it.
//!
//! Sizes come from the archive's directory (APPNOTE.TXT 4.3.12), which is at the archive's end. Large sizes use zip64 (4.5.3).
//! Checksums are verified.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

/// Bytes of the end record, of its longest comment, and of the record that locates the end record of zip64.
const END: usize = 22;
const COMMENT: usize = 0xffff;
const LOCATOR: usize = 20;
/// Fixed bytes of a directory entry, and of the header of a file.
const ENTRY: usize = 46;
const HEAD: u64 = 30;
/// Largest size of a directory in bytes: a million chunks.
const DIRECTORY: u64 = 1 << 26;

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn two(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 2).map_or(0, |b| u64::from(u16::from_le_bytes([b[0], b[1]])))
}

fn four(bytes: &[u8], at: usize) -> u64 {
    two(bytes, at) | two(bytes, at + 2) << 16
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    four(bytes, at) | four(bytes, at + 4) << 32
}

/// A file in the archive.
struct Entry {
    /// Position of its header.
    at: u64,
    deflated: bool,
    compressed: u64,
    size: u64,
    sum: u64,
}

/// A range of bytes of a file.
struct Span {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Span {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// The file that is being read.
struct Current {
    body: Box<dyn Read>,
    left: u64,
    sum: u64,
    crc: Crc,
}

/// The files of an archive, read as one.
pub struct Zip {
    file: Arc<File>,
    entries: std::vec::IntoIter<Entry>,
    current: Option<Current>,
}

impl Zip {
    /// Reads the directory.
    pub fn open(file: File) -> io::Result<Zip> {
        let length = file.metadata()?.len();
        let tail_length = length.min((END + COMMENT + LOCATOR) as u64);
        let mut tail = vec![0; tail_length as usize];
        file.read_exact_at(&mut tail, length - tail_length)?;
        let is_end = |at: &usize| tail[*at..].starts_with(b"PK\x05\x06");
        let end = (END..=tail.len()).rev().map(|behind| behind - END).find(is_end);
        let end = end.ok_or_else(|| bad("it has no directory at its end: it is cut short"))?;
        let (mut size, mut at) = (four(&tail, end + 12), four(&tail, end + 16));
        if let Some(locator) = end.checked_sub(LOCATOR)
            && tail[locator..].starts_with(b"PK\x06\x07")
        {
            let mut large = [0; 56];
            file.read_exact_at(&mut large, eight(&tail, locator + 8))?;
            if !large.starts_with(b"PK\x06\x06") {
                return Err(bad("its zip64 end record is not where it should be"));
            }
            (size, at) = (eight(&large, 40), eight(&large, 48));
        }
        if size > DIRECTORY || at.checked_add(size).is_none_or(|end| end > length) {
            return Err(bad("its directory is larger than the archive, or than 64 MiB"));
        }
        let mut directory = vec![0; size as usize];
        file.read_exact_at(&mut directory, at)?;
        let entries = entries(&directory, length)?.into_iter();
        Ok(Zip { file: Arc::new(file), entries, current: None })
    }

    fn next(&mut self) -> io::Result<Option<Current>> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let mut head = [0; HEAD as usize];
        self.file.read_exact_at(&mut head, entry.at)?;
        if !head.starts_with(b"PK\x03\x04") {
            return Err(bad("a file is not where its directory says"));
        }
        let at = entry.at + HEAD + two(&head, 26) + two(&head, 28);
        let span = Span { file: Arc::clone(&self.file), at, end: at + entry.compressed };
        let body: Box<dyn Read> =
            if entry.deflated { Box::new(DeflateDecoder::new(BufReader::new(span))) } else { Box::new(span) };
        Ok(Some(Current { body, left: entry.size, sum: entry.sum, crc: Crc::new() }))
    }
}

/// The files of a directory, in the directory's order.
fn entries(mut directory: &[u8], length: u64) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    while !directory.is_empty() {
        if directory.len() < ENTRY || !directory.starts_with(b"PK\x01\x02") {
            return Err(bad("its directory is damaged"));
        }
        let (name, extra, comment) = (two(directory, 28), two(directory, 30), two(directory, 32));
        let (fixed, rest) = directory.split_at(ENTRY);
        let (variable, rest) = rest
            .split_at_checked((name + extra + comment) as usize)
            .ok_or_else(|| bad("its directory is cut short"))?;
        directory = rest;
        let [mut size, mut compressed, mut at] = [four(fixed, 24), four(fixed, 20), four(fixed, 42)];
        enlarge(&variable[name as usize..(name + extra) as usize], [&mut size, &mut compressed, &mut at])?;
        if two(fixed, 8) & 1 != 0 {
            return Err(bad("a file in it is encrypted"));
        }
        let deflated = match two(fixed, 10) {
            0 => false,
            8 => true,
            _ => return Err(bad("a file in it is neither stored nor deflated; pack it anew with zip")),
        };
        if at.checked_add(compressed).is_none_or(|end| end > length) || !deflated && compressed != size {
            return Err(bad("a file's size in its directory is wrong"));
        }
        entries.push(Entry { at, deflated, compressed, size, sum: four(fixed, 16) });
    }
    Ok(entries)
}

/// Takes the numbers that do not fit into four bytes from an entry's zip64 field.
fn enlarge(mut extra: &[u8], numbers: [&mut u64; 3]) -> io::Result<()> {
    let mut large: &[u8] = &[];
    while let Some((head, rest)) = extra.split_first_chunk::<4>() {
        let length = two(head, 2) as usize;
        let (field, rest) = rest.split_at_checked(length).ok_or_else(|| bad("an extra field is cut short"))?;
        if two(head, 0) == 1 {
            large = field;
        }
        extra = rest;
    }
    for number in numbers {
        if *number == 0xffff_ffff {
            let (first, rest) = large.split_first_chunk::<8>().ok_or_else(|| bad("a zip64 field is cut short"))?;
            (*number, large) = (u64::from_le_bytes(*first), rest);
        }
    }
    Ok(())
}

impl Read for Zip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(current) = &mut self.current else {
                self.current = self.next()?;
                if self.current.is_none() {
                    return Ok(0);
                }
                continue;
            };
            let n = current.body.read(buffer)?;
            if n as u64 > current.left {
                return Err(bad("a file in it is longer than its directory says"));
            }
            if n > 0 || buffer.is_empty() {
                current.left -= n as u64;
                current.crc.update(&buffer[..n]);
                return Ok(n);
            }
            if current.left != 0 {
                return Err(bad("a file in it is shorter than its directory says"));
            }
            if u64::from(current.crc.sum()) != current.sum {
                return Err(bad("a file's check sum is wrong"));
            }
            self.current = None;
        }
    }
}
