// SPDX-License-Identifier: Apache-2.0
//! A program whose pages are moved to other addresses. They are used in the same order as before, but have other neighbours.

use trapless_timing::scatter;

use super::{LINE_SHIFT, PAGE_SHIFT, Source, Step, Tail};
use crate::Error;

/// Exchanges the program's pages at random, but in the same way in each run. Adjacent pages of a row stay together.
pub struct Scattered<S> {
    source: S,
    /// First virtual page number of each mapped range, and the number of mapped pages before the range.
    ranges: Vec<(u64, usize)>,
    /// The new place of each page. Pages and places are ranks among the mapped pages.
    places: Vec<u64>,
    /// The last page looked up, and its place.
    last: (u64, u64),
}

impl<S: Source> Scattered<S> {
    /// `mapped` has the ranges of virtual page numbers (first, count) that the program accesses, in any order. Each range is cut
    /// into rows of `row` pages (at least 1), and the rows change places. A rest that is shorter than a row stays where it is.
    pub fn new(source: S, mapped: &[(u64, u64)], row: u64) -> Scattered<S> {
        let mut sorted = mapped.to_vec();
        sorted.sort_unstable();
        let (mut ranges, mut places, mut rows) = (vec![], vec![], vec![]);
        for (first, count) in sorted {
            ranges.push((first, places.len()));
            rows.extend((0..count / row).map(|n| (first + n * row, places.len() + (n * row) as usize)));
            places.extend(first..first + count);
        }
        let mut targets: Vec<u64> = rows.iter().map(|(first, _)| *first).collect();
        targets.sort_by_cached_key(|&first| scatter(first));
        for ((_, at), target) in rows.iter().zip(targets) {
            places[*at..*at + row as usize].iter_mut().zip(target..).for_each(|(place, to)| *place = to);
        }
        Scattered { source, ranges, places, last: (u64::MAX, u64::MAX) }
    }

    fn place(&mut self, page: u64) -> u64 {
        if page != self.last.0 {
            let range = self.ranges.partition_point(|range| range.0 <= page).checked_sub(1).map(|at| self.ranges[at]);
            let place = range.and_then(|(first, before)| self.places.get(before + (page - first) as usize));
            self.last = (page, place.copied().unwrap_or(page));
        }
        self.last.1
    }
}

impl<S: Source> Source for Scattered<S> {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        const SHIFT: u32 = PAGE_SHIFT - LINE_SHIFT;
        let step = self.source.next()?;
        Ok(step.map(|step| Step { line: self.place(step.page()) << SHIFT | step.line & ((1 << SHIFT) - 1), ..step }))
    }

    fn tail(&self) -> Tail {
        self.source.tail()
    }

    fn accesses(&self) -> Option<u64> {
        self.source.accesses()
    }

    fn has_lines(&self) -> bool {
        self.source.has_lines()
    }

    fn name(&self) -> &str {
        self.source.name()
    }
}
