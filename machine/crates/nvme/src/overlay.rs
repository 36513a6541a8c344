// SPDX-License-Identifier: Apache-2.0
//! A snapshot: written data stays in memory and covers a base that does not change.

use std::collections::BTreeMap;

use crate::backend::{Backend, BackendError, Written};

const PAGE: u64 = 4096;

/// Data written over a base. Zeroed pages are kept as ranges, so that discarding a large disk is cheap.
pub struct Overlay<B> {
    base: B,
    /// Written pages, by number. These pages take precedence over `zeroed`.
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    /// Disjoint ranges of pages that read as zero: from the first page number to the one after the last.
    zeroed: BTreeMap<u64, u64>,
}

impl<B: Backend> Overlay<B> {
    /// Creates an overlay without written data.
    pub fn new(base: B) -> Overlay<B> {
        Overlay { base, pages: BTreeMap::new(), zeroed: BTreeMap::new() }
    }

    fn is_zeroed(&self, page: u64) -> bool {
        self.zeroed.range(..=page).next_back().is_some_and(|(_, &end)| page < end)
    }

    /// Returns a page for writing. Copies its current contents into memory first.
    fn page_mut(&mut self, number: u64) -> Result<&mut [u8; PAGE as usize], BackendError> {
        if !self.pages.contains_key(&number) {
            let mut page = Box::new([0; PAGE as usize]);
            if !self.is_zeroed(number) {
                self.base.read(number * PAGE, &mut page[..])?;
            }
            self.pages.insert(number, page);
        }
        Ok(self.pages.entry(number).or_insert_with(|| Box::new([0; PAGE as usize])))
    }

    /// Marks whole pages as zero.
    fn zero_pages(&mut self, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let gone: Vec<u64> = self.pages.range(first..end).map(|(&number, _)| number).collect();
        for number in gone {
            self.pages.remove(&number);
        }
        // Merge the ranges that overlap or touch the new range.
        let (mut low, mut high) = (first, end);
        while let Some((&start, &stop)) = self.zeroed.range(..=high).next_back().filter(|(_, stop)| **stop >= low) {
            self.zeroed.remove(&start);
            (low, high) = (low.min(start), high.max(stop));
        }
        self.zeroed.insert(low, high);
    }
}

/// Splits `[offset, offset + len)` at page boundaries. Each piece is a page number, offset in the page, offset in the range and
/// length.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let at = offset + done;
            let within = at % PAGE;
            let n = (PAGE - within).min(len - done);
            let piece = (at / PAGE, within as usize, done as usize, n as usize);
            done += n;
            piece
        })
    })
}

impl<B: Backend> Backend for Overlay<B> {
    fn size(&self) -> u64 {
        self.base.size()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn written(&self) -> Option<Written> {
        let pages = self.pages.iter().map(|(number, page)| (*number, page.to_vec())).collect();
        Some(Written { pages, zeroed: self.zeroed.clone() })
    }

    fn set_written(&mut self, written: Written) -> bool {
        let pages: Option<BTreeMap<_, _>> = written
            .pages
            .into_iter()
            .map(|(number, page)| Some((number, page.into_boxed_slice().try_into().ok()?)))
            .collect();
        let Some(pages) = pages else { return false };
        (self.pages, self.zeroed) = (pages, written.zeroed);
        true
    }

    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError> {
        for (number, within, at, n) in pieces(offset, buf.len() as u64) {
            let to = &mut buf[at..at + n];
            if let Some(page) = self.pages.get(&number) {
                to.copy_from_slice(&page[within..within + n]);
            } else if self.is_zeroed(number) {
                to.fill(0);
            } else {
                self.base.read(offset + at as u64, to)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError> {
        for (number, within, at, n) in pieces(offset, data.len() as u64) {
            self.page_mut(number)?[within..within + n].copy_from_slice(&data[at..at + n]);
        }
        Ok(())
    }

    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError> {
        let end = offset + len;
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        if first > last {
            // The range lies inside one page.
            return self.write(offset, &vec![0; len as usize]);
        }
        self.write(offset, &vec![0; (first * PAGE - offset) as usize])?;
        self.write(last * PAGE, &vec![0; (end - last * PAGE) as usize])?;
        self.zero_pages(first, last);
        Ok(())
    }
}
