// SPDX-License-Identifier: Apache-2.0
//! A string of pages, which is the sequence of their uses. It is in a file, because it may be larger than memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use super::min::{Backward, Next};
use crate::pages::PageId;
use crate::settings::Time;

/// Bytes of a use in the file: page with its written bit, time, next use.
const BYTES: usize = 20;
/// Bytes that are read or written at once.
const BLOCK: usize = BYTES << 15;
/// The bit of a page's number that says whether the page is written.
const WRITTEN: u32 = 1 << 31;

/// A use of a page: successive accesses to it without an access to another page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub page: PageId,
    /// Whether the page is written before its next use begins.
    pub written: bool,
    /// Time at which the use begins.
    pub time: Time,
    pub next: Next,
}

impl Use {
    fn encode(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&(self.page.0 | if self.written { WRITTEN } else { 0 }).to_le_bytes());
        bytes[4..12].copy_from_slice(&self.time.to_le_bytes());
        bytes[12..].copy_from_slice(&self.next.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Use {
        let number = |from| bytes[from..from + 8].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let page = bytes[..4].iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
        let written = page & WRITTEN != 0;
        Use { page: PageId(page & !WRITTEN), written, time: number(4), next: Next(number(12)) }
    }
}

/// Records a string.
pub(super) struct Recorder {
    out: BufWriter<File>,
    uses: u64,
    last: Option<PageId>,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Begins a string in a temporary file without a name.
    pub fn new() -> io::Result<Recorder> {
        let out = BufWriter::with_capacity(BLOCK, tempfile::tempfile()?);
        Ok(Recorder { out, uses: 0, last: None, failed: None })
    }

    /// Adds an access. `written` says whether the page was written since its last use began. It is reset when a new use begins.
    pub fn access(&mut self, page: PageId, written: &mut bool, time: Time) {
        if self.last.replace(page) == Some(page) || self.failed.is_some() {
            return;
        }
        let mut bytes = [0; BYTES];
        Use { page, written: std::mem::take(written), time, next: Next(0) }.encode(&mut bytes);
        self.failed = self.out.write_all(&bytes).err();
        self.uses += 1;
    }

    /// Completes the string by adding the next uses. `written` says whether a page was written since its last use began.
    pub fn finish(self, written: &dyn Fn(PageId) -> bool) -> io::Result<PageString> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (mut backward, mut later) = (Backward::default(), Vec::<Option<bool>>::new());
        let (mut buffer, mut end) = (vec![0; BLOCK], self.uses * BYTES as u64);
        while end > 0 {
            let begin = (end - 1) / BLOCK as u64 * BLOCK as u64;
            let block = &mut buffer[..(end - begin) as usize];
            file.read_exact_at(block, begin)?;
            for (n, bytes) in block.chunks_exact_mut(BYTES).enumerate().rev() {
                let Use { page, written: before, time, .. } = Use::decode(bytes);
                if later.len() <= page.index() {
                    later.resize(page.index() + 1, None);
                }
                let after = later[page.index()].replace(before).unwrap_or_else(|| written(page));
                let next = backward.next(page.0, begin / BYTES as u64 + n as u64 + 1);
                Use { page, written: after, time, next }.encode(bytes);
            }
            file.write_all_at(block, begin)?;
            end = begin;
        }
        Ok(PageString { file, uses: self.uses })
    }
}

/// A complete string.
pub(super) struct PageString {
    file: File,
    uses: u64,
}

impl PageString {
    /// The uses from the beginning.
    pub fn uses(&self) -> impl Iterator<Item = io::Result<Use>> {
        let (mut buffer, total) = (vec![], self.uses * BYTES as u64);
        (0..self.uses).map(move |use_| {
            let at = use_ * BYTES as u64;
            let within = (at % BLOCK as u64) as usize;
            if within == 0 {
                buffer.resize((total - at).min(BLOCK as u64) as usize, 0);
                self.file.read_exact_at(&mut buffer, at)?;
            }
            Ok(Use::decode(&buffer[within..within + BYTES]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of pages 7, 8, 7, 9, 8. Page 7 is written in its first use and after its last one, page 8 between its two uses.
    #[test]
    fn next_uses_and_writes_by_hand() {
        let mut recorder = Recorder::new().unwrap();
        let accesses = [(7, false, 10), (7, true, 11), (8, false, 20), (7, true, 30), (9, false, 40), (8, true, 50)];
        for (page, mut written, time) in accesses {
            recorder.access(PageId(page), &mut written, time);
            assert_eq!(written, (page, time) == (7, 11), "reset unless it belongs to the use underway");
        }
        let uses: Vec<_> = recorder.finish(&|page| page == PageId(7)).unwrap().uses().map(Result::unwrap).collect();
        let found: Vec<_> = uses.iter().map(|of| (of.page.0, of.written, of.time, of.next.0)).collect();
        let never = |at| u64::MAX - at;
        let expected = [
            (7, true, 10, 3),
            (8, true, 20, 5),
            (7, true, 30, never(3)),
            (9, false, 40, never(4)),
            (8, false, 50, never(5)),
        ];
        assert_eq!(found, expected);
    }

    /// The string has several blocks, and the last one is not full.
    #[test]
    fn a_long_string_comes_back() {
        let mut recorder = Recorder::new().unwrap();
        let count = 3 * (BLOCK / BYTES) as u64 - 5;
        let page = |at| PageId((at % 1000) as u32);
        (0..count).for_each(|at| recorder.access(page(at), &mut false, 3 * at));
        let string = recorder.finish(&|_| false).unwrap();
        let mut uses = (0..).zip(string.uses());
        assert!(uses.by_ref().take(count as usize).all(|(at, found)| {
            let next = Next(if at + 1000 < count { at + 1001 } else { u64::MAX - at - 1 });
            found.unwrap() == Use { page: page(at), written: false, time: 3 * at, next }
        }));
        assert!(uses.next().is_none());
    }
}
