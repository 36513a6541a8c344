// SPDX-License-Identifier: Apache-2.0
//! What a trace is: accesses, footprint, working set.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trapless_timing::{Cache, Line};

use super::distances::Distances;
use super::{Kind, PAGE_SHIFT, Source};
use crate::Error;

/// The CPU cache of ASPF, section IV-A: 8 MB, 16-way; its lines here are of 64 bytes.
const CACHE_WAYS: usize = 16;
const CACHE_SETS: usize = (8 << 20) / 64 / CACHE_WAYS;
/// Share of the accesses that the working set absorbs, by ASPF, section IV-A.
pub const SHARE: f64 = 0.99;

/// Sums over a trace. Counts are of accesses if nothing else is said.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Short name of the program.
    pub name: String,
    /// All.
    pub accesses: u64,
    /// Number of fetches of instructions.
    pub fetches: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Steps (runs of accesses to a line).
    pub steps: u64,
    /// Accesses that miss an 8 MB 16-way LRU cache of 64-byte lines; `None` if the trace does not tell lines apart.
    pub cache_misses: Option<u64>,
    /// Different pages of 4 KiB.
    pub footprint_pages: u64,
    /// The same in bytes.
    pub footprint_bytes: u64,
    /// Share of the accesses that a working set absorbs.
    pub share: f64,
    /// The fewest pages of LRU-managed DRAM that absorb the share of the accesses. The first access to a page is not
    /// counted: no size absorbs it.
    pub working_set_pages: Readings,
    /// The same where first accesses count as not absorbed. `None`: no size absorbs the share.
    pub working_set_pages_with_first: Readings,
    /// The fewest pages that get the share of the accesses that miss the CPU cache; `None` if the trace does not tell lines apart.
    pub hottest_pages: Option<u64>,
    /// Rows of adjacent pages, longest first.
    pub extents: Vec<Extent>,
}

/// A number of pages in two readings of "accesses".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Readings {
    /// Size that absorbs the share of all accesses.
    pub all: Option<u64>,
    /// Size that absorbs the share of the accesses that miss the CPU cache.
    pub cache_filtered: Option<u64>,
}

/// A row of adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Virtual address of the first.
    pub address: u64,
    /// How many.
    pub pages: u64,
}

/// Reads a trace to its end. `share` of the accesses (0 to 1) is what a working set absorbs.
///
/// The trace does not say where in between other streams' accesses the repeats of a run were; they count as absorbed by
/// any memory, as pages that a stream is in are among the last used ones but for rare cases.
///
/// # Errors
/// The trace cannot be read or is not whole.
pub fn summarise(source: &mut dyn Source, share: f64) -> Result<Summary, Error> {
    let (mut all, mut missing) = (Distances::default(), Distances::default());
    let mut cache: Option<Cache<(), u64>> = source.has_lines().then(|| Cache::new(CACHE_SETS, CACHE_WAYS));
    let (mut counts, mut steps, mut instructions, mut misses) = ([0u64; 3], 0, 0u64, 0);
    let mut heat: HashMap<u64, u64> = HashMap::new();
    while let Some(step) = source.next()? {
        steps += 1;
        instructions = instructions.wrapping_add(step.instructions);
        let count = &mut counts[step.kind as usize];
        *count = count.wrapping_add(1).wrapping_add(step.repeats);
        all.access(step.page());
        if let Some(cache) = &mut cache
            && cache.touch(Line(step.line)).is_none()
        {
            cache.insert(Line(step.line), ());
            misses += 1;
            missing.access(step.page());
            *heat.entry(step.page()).or_default() += 1;
        }
    }
    let tail = source.tail();
    counts.iter_mut().zip(tail.repeats).for_each(|(count, n)| *count = count.wrapping_add(n));
    let accesses = counts.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
    let repeats = accesses.wrapping_sub(steps);
    let part = |n: u64| (n as f64 * share).ceil() as u64;
    let readings = |wanted: fn(&Distances, u64) -> u64| Readings {
        all: all.fewest(part(wanted(&all, repeats)), repeats),
        cache_filtered: missing.fewest(part(wanted(&missing, 0)), 0),
    };
    let mut extents = extents(&all.sorted());
    extents.sort_by_key(|e| (Reverse(e.pages), e.address));
    Ok(Summary {
        name: source.name().to_owned(),
        accesses,
        fetches: counts[Kind::Fetch as usize],
        loads: counts[Kind::Load as usize],
        stores: counts[Kind::Store as usize],
        instructions: instructions.wrapping_add(tail.instructions),
        steps,
        cache_misses: cache.as_ref().map(|_| misses),
        hottest_pages: cache.map(|_| hottest(heat.into_values().collect(), part(misses))),
        footprint_pages: all.pages(),
        footprint_bytes: all.pages() << PAGE_SHIFT,
        share,
        working_set_pages: readings(|distances, repeats| distances.again() + repeats),
        working_set_pages_with_first: readings(|distances, repeats| distances.again() + repeats + distances.pages()),
        extents,
    })
}

/// How many of these numbers, the largest first, come to `wanted` together.
fn hottest(mut counts: Vec<u64>, wanted: u64) -> u64 {
    counts.sort_unstable_by_key(|&count| Reverse(count));
    let sums = counts.iter().scan(0, |sum, count| {
        let before = *sum;
        *sum += count;
        Some(before)
    });
    sums.take_while(|&before| before < wanted).count() as u64
}

/// Rows of adjacent pages in a rising list.
fn extents(pages: &[u64]) -> Vec<Extent> {
    pages
        .chunk_by(|a, b| a + 1 == *b)
        .map(|row| Extent { address: row[0] << PAGE_SHIFT, pages: row.len() as u64 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Step, Tail};

    /// Steps from a list.
    struct List(std::vec::IntoIter<Step>);

    impl Source for List {
        fn next(&mut self) -> Result<Option<Step>, Error> {
            Ok(self.0.next())
        }
        fn tail(&self) -> Tail {
            Tail { repeats: [5, 0, 1], instructions: 2 }
        }
        fn accesses(&self) -> Option<u64> {
            None
        }
        fn name(&self) -> &str {
            "list"
        }
    }

    #[test]
    fn sums_over_a_few_accesses() {
        let step = |line: u64, kind, repeats| Step { line, kind, instructions: 3, repeats };
        let mut steps = vec![step(7 << 6, Kind::Fetch, 0)];
        // Three rounds over pages 100 to 109, the second one to other lines; the third one hits the CPU cache.
        for line in [0, 1, 1] {
            steps.extend((100..110).map(|page| step(page << 6 | line, Kind::Store, 1)));
        }
        let sums = |share| summarise(&mut List(steps.clone().into_iter()), share).unwrap();
        let s = sums(0.5);
        assert_eq!((s.accesses, s.fetches, s.loads, s.stores), (67, 6, 0, 61));
        assert_eq!((s.steps, s.instructions, s.cache_misses), (31, 95, Some(21)));
        assert_eq!((s.footprint_pages, s.footprint_bytes, s.extents.len()), (11, 45056, 2));
        assert_eq!(s.extents[0], Extent { address: 100 << 12, pages: 10 });
        // 36 repeats are absorbed by whatever there is, twenty accesses by ten pages, eleven by none; behind the cache
        // there are ten and eleven.
        let readings = |all, cache_filtered| Readings { all, cache_filtered };
        assert_eq!(s.working_set_pages, readings(Some(1), Some(10)));
        assert_eq!(s.working_set_pages_with_first, readings(Some(1), None));
        assert_eq!(hottest(vec![1, 5, 1, 3], 8), 2);
        // Ten pages miss the cache twice, one once.
        assert_eq!((s.hottest_pages, sums(1.0).hottest_pages), (Some(6), Some(11)));
        assert_eq!(sums(0.75).working_set_pages, readings(Some(10), Some(10)));
        assert_eq!(sums(0.75).working_set_pages_with_first, readings(Some(10), None));
        assert_eq!(sums(0.4).working_set_pages_with_first, readings(Some(1), Some(10)));
        assert_eq!(sums(0.9).working_set_pages_with_first, readings(None, None));
    }
}
