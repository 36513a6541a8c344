// SPDX-License-Identifier: Apache-2.0
//! Summarises a trace: accesses, footprint, working set.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trapless_timing::{Cache, Line};

use super::distances::Distances;
use super::{Kind, PAGE_SHIFT, Source};
use crate::Error;

/// The CPU cache of ASPF, section IV-A: 8 MB, 16-way. Lines have 64 bytes here.
const CACHE_WAYS: usize = 16;
const CACHE_SETS: usize = (8 << 20) / 64 / CACHE_WAYS;
/// Share of the accesses that must hit in the working set, from ASPF, section IV-A.
pub const SHARE: f64 = 0.99;

/// Sums over a trace. Numbers count accesses unless their description says otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Short name of the program.
    pub name: String,
    /// All accesses.
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
    /// Footprint in bytes.
    pub footprint_bytes: u64,
    /// Share of the accesses that must hit in the working set.
    pub share: f64,
    /// The smallest LRU memory, in pages, in which this share of the accesses hits. The first access to each page is not counted,
    /// because it misses in any memory.
    pub working_set_pages: Readings,
    /// The same, but first accesses count as misses. `None`: the share is not reached with any size.
    pub working_set_pages_with_first: Readings,
    /// Least number of pages that together get this share of the accesses that miss the CPU cache. `None` if the trace has no
    /// lines.
    pub hottest_pages: Option<u64>,
    /// Ranges of adjacent pages, longest first.
    pub extents: Vec<Extent>,
}

/// A number of pages, for two meanings of "accesses".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Readings {
    /// Size for the share of all accesses.
    pub all: Option<u64>,
    /// Size for the share of the accesses that miss the CPU cache.
    pub cache_filtered: Option<u64>,
}

/// A range of adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Virtual address of the first page.
    pub address: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Reads a trace to its end. `share` (0 to 1) is the share of the accesses that must hit in a working set.
///
/// The trace does not say between which accesses of other streams a run's repeats were made. Repeats count as hits in a memory of
/// any size: with rare exceptions, the pages that the three streams are in are among those used last.
///
/// # Errors
/// The trace cannot be read or is incomplete.
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

/// How many of these numbers it takes to reach the sum `wanted`, if the largest ones are taken first.
fn hottest(mut counts: Vec<u64>, wanted: u64) -> u64 {
    counts.sort_unstable_by_key(|&count| Reverse(count));
    let sums = counts.iter().scan(0, |sum, count| {
        let before = *sum;
        *sum += count;
        Some(before)
    });
    sums.take_while(|&before| before < wanted).count() as u64
}

/// Ranges of adjacent pages in a rising list.
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

    /// A source that gives the steps of a list.
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
        // Three rounds over pages 100 to 109. The second round accesses other lines; the third one hits the CPU cache.
        for line in [0, 1, 1] {
            steps.extend((100..110).map(|page| step(page << 6 | line, Kind::Store, 1)));
        }
        let sums = |share| summarise(&mut List(steps.clone().into_iter()), share).unwrap();
        let s = sums(0.5);
        assert_eq!((s.accesses, s.fetches, s.loads, s.stores), (67, 6, 0, 61));
        assert_eq!((s.steps, s.instructions, s.cache_misses), (31, 95, Some(21)));
        assert_eq!((s.footprint_pages, s.footprint_bytes, s.extents.len()), (11, 45056, 2));
        assert_eq!(s.extents[0], Extent { address: 100 << 12, pages: 10 });
        // 36 repeats hit in any memory, twenty accesses hit in ten pages, and eleven never hit. Behind the cache, ten accesses
        // hit in ten pages, and eleven never hit.
        let readings = |all, cache_filtered| Readings { all, cache_filtered };
        assert_eq!(s.working_set_pages, readings(Some(1), Some(10)));
        assert_eq!(s.working_set_pages_with_first, readings(Some(1), None));
        assert_eq!(hottest(vec![1, 5, 1, 3], 8), 2);
        // Ten pages miss the cache twice, one page once.
        assert_eq!((s.hottest_pages, sums(1.0).hottest_pages), (Some(6), Some(11)));
        assert_eq!(sums(0.75).working_set_pages, readings(Some(10), Some(10)));
        assert_eq!(sums(0.75).working_set_pages_with_first, readings(Some(10), None));
        assert_eq!(sums(0.4).working_set_pages_with_first, readings(Some(1), Some(10)));
        assert_eq!(sums(0.9).working_set_pages_with_first, readings(None, None));
    }
}
