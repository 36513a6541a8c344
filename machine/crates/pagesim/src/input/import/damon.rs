// SPDX-License-Identifier: Apache-2.0
//! Samples of Linux's DAMON: the text of `damo report access --raw_form`, or lines of the tracepoint damon:damon_aggregated from
//! `perf script` or trace_pipe.
//!
//! DAMON looks at one page of each region in each sampling interval, and assumes that all pages of a region are used alike. So an
//! access count of n says that each page of the region was used in n sampling intervals of an aggregation. The import stores this
//! as follows. An aggregation has as many rounds as its largest count. A region with count n takes part in n rounds, evenly
//! spread. In each of these, each page of the region gets one load, in rising order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trapless_trace::{Grain, Kind, Totals};

use super::sink::About;
use super::text::{decimal, hexadecimal, is_remark, shown, words};
use super::{Format, Input, Sink, Target, only};
use crate::Error;

/// Name of the tracepoint with the colon that follows it.
const EVENT: &[u8] = b"damon_aggregated:";
/// Other events of DAMON. Their lines are ignored.
const OTHER_EVENTS: [&[u8]; 2] = [b"damon_monitor_intervals_tune:", b"damos_before_apply:"];
/// Beginnings of lines in damo's report that do not describe regions.
const HEADS: [&[u8]; 5] =
    [b"base_time_absolute:", b"data source:", b"monitoring_start:", b"monitoring_end:", b"monitoring_duration:"];
/// Largest number of regions in an aggregation.
const REGIONS: u64 = 1 << 20;
/// An aggregation must have fewer accesses than this.
const ACCESSES: u64 = 1 << 32;

/// The format.
pub struct Damon;

/// The pages from `first` to `last`, each used `count` times in an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    first: u64,
    last: u64,
    count: u64,
}

/// Makes a region from its first address, the address after its last one, and its count.
fn region(start: u64, end: u64, count: u64) -> Option<Region> {
    (start < end).then(|| Region { first: start >> Grain::Page.shift(), last: (end - 1) >> Grain::Page.shift(), count })
}

/// Reads two numbers with a dash between them.
fn range(word: &[u8], number: fn(&[u8]) -> Option<u64>) -> Option<(u64, u64)> {
    let dash = word.iter().position(|b| *b == b'-')?;
    Some((number(&word[..dash])?, number(&word[dash + 1..])?))
}

/// Finds a text in a line.
fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    line.windows(what.len()).position(|part| part == what)
}

/// Reads target, number of regions and region from a line of the tracepoint: `target_id=T nr_regions=N START-END: COUNT [AGE]`.
fn aggregated(text: &[u8]) -> Option<(u64, u64, Region)> {
    let mut words = words(text);
    let target = decimal(words.next()?.strip_prefix(b"target_id=")?)?;
    let regions = decimal(words.next()?.strip_prefix(b"nr_regions=")?)?;
    let (start, end) = range(words.next()?.strip_suffix(b":")?, decimal)?;
    Some((target, regions, region(start, end, decimal(words.next()?)?)?))
}

/// Reads a region from damo's report: `START-END (SIZE) COUNT AGE`.
fn reported(line: &[u8]) -> Option<Region> {
    let (start, end) = range(words(line).next()?, hexadecimal)?;
    let behind = line.iter().position(|b| *b == b')')? + 1;
    region(start, end, decimal(words(&line[behind..]).next()?)?)
}

/// State between lines.
#[derive(Default)]
struct Reading {
    target: Option<u64>,
    /// Number of regions that the aggregation has and that were not read yet.
    missing: u64,
    regions: Vec<Region>,
}

impl Format for Damon {
    fn name(&self) -> &'static str {
        "damon"
    }

    fn about(&self) -> &'static str {
        "damo report access --raw_form, or lines of damon:damon_aggregated (a sample of the accesses)"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["instructions"]
    }

    fn detects(&self, head: &[u8]) -> bool {
        let mut lines = head.split(|b| *b == b'\n').filter(|line| !is_remark(line)).take(2);
        lines.any(|line| find(line, EVENT).is_some() || HEADS[..4].iter().any(|mark| line.starts_with(mark)))
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let note = " (a sample, not all accesses)";
        let mut sink = Sink::new(target, &About { format: self.name(), grain: Grain::Page, clock_hz: 0, note })?;
        let mut reading = Reading::default();
        while !sink.full()
            && let Some(line) = input.line()?
        {
            if let Err(what) = reading.line(line) {
                return Err(input.bad_line(what));
            }
            if reading.missing == 0 && !reading.regions.is_empty() {
                play(&reading.regions, &mut sink)?.map_err(|what| input.bad_line(what))?;
                reading.regions.clear();
            }
        }
        if reading.missing > 0 {
            let (found, all) = (reading.regions.len() as u64, reading.regions.len() as u64 + reading.missing);
            return Err(input.bad_line(format!("cut short: the last aggregation has {found} of {all} regions")));
        }
        sink.finish()
    }
}

impl Reading {
    /// Takes a line. The error says what is wrong with it.
    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        if is_remark(line) {
            return Ok(());
        }
        if let Some(at) = find(line, EVENT) {
            let wrong = || format!("not as the tracepoint damon_aggregated prints it: {}", shown(&line[at..]));
            let (target, regions, region) = aggregated(&line[at + EVENT.len()..]).ok_or_else(wrong)?;
            self.target(target)?;
            if self.missing == 0 {
                self.begin(regions)?;
            } else if self.regions.len() as u64 + self.missing != regions {
                let found = self.regions.len();
                return Err(format!(
                    "another aggregation begins after {found} regions of the one before: events were lost; \
                     record with larger buffers"
                ));
            }
            return self.region(region);
        }
        if self.missing > 0 {
            let wrong = || format!("not a region, START-END (SIZE) COUNT AGE: {}", shown(line));
            return self.region(reported(line).ok_or_else(wrong)?);
        }
        if let Some(text) = line.strip_prefix(b"nr_regions:") {
            return self
                .begin(decimal(text.trim_ascii()).ok_or_else(|| format!("not a number of regions: {}", shown(line)))?);
        }
        if let Some(text) = line.strip_prefix(b"target_id:") {
            // If a process has no target, damo writes None.
            return decimal(text.trim_ascii()).map_or(Ok(()), |target| self.target(target));
        }
        if HEADS.iter().any(|head| line.starts_with(head))
            || OTHER_EVENTS.iter().any(|event| find(line, event).is_some())
        {
            return Ok(());
        }
        Err(format!("neither damo's report in raw form nor the tracepoint damon_aggregated: {}", shown(line)))
    }

    fn target(&mut self, target: u64) -> Result<(), String> {
        let first = *self.target.get_or_insert(target);
        if first == target {
            return Ok(());
        }
        Err(format!("regions of two targets, {first} and {target}; keep only the lines of one target"))
    }

    fn begin(&mut self, regions: u64) -> Result<(), String> {
        if regions > REGIONS {
            return Err(format!("{regions} regions in an aggregation; {REGIONS} is the most"));
        }
        self.missing = regions;
        Ok(())
    }

    fn region(&mut self, region: Region) -> Result<(), String> {
        if self.missing == 0 {
            return Err("a region in an aggregation whose number of regions is 0".to_owned());
        }
        self.missing -= 1;
        self.regions.push(region);
        Ok(())
    }
}

/// Stores the accesses of an aggregation. The inner error says why there are too many.
fn play(regions: &[Region], sink: &mut Sink) -> Result<Result<(), String>, Error> {
    let used: Vec<Region> = regions.iter().filter(|region| region.count > 0).copied().collect();
    let rounds = used.iter().map(|region| region.count).max().unwrap_or(0);
    let all = used.iter().try_fold(0u64, |sum, r| sum.checked_add((r.last - r.first + 1).checked_mul(r.count)?));
    let Some(all) = all.filter(|all| *all < ACCESSES) else {
        return Ok(Err("2^32 accesses or more in one aggregation: are its addresses and counts right?".to_owned()));
    };
    if sink.leaves_out(all) {
        return Ok(Ok(()));
    }
    // If a region has the count c, its n-th pass is in the round (from 0) in which the share n/c of all rounds is complete.
    let pass = |at: usize, n: u64| Reverse(((rounds * n).div_ceil(used[at].count) - 1, at, n));
    let mut next: BinaryHeap<_> = (0..used.len()).map(|at| pass(at, 1)).collect();
    while let Some(Reverse((_, at, n))) = next.pop() {
        for page in used[at].first..=used[at].last {
            if sink.full() {
                return Ok(Ok(()));
            }
            sink.alone(Kind::Load, page)?;
        }
        if n < used[at].count {
            next.push(pass(at, n + 1));
        }
    }
    Ok(Ok(()))
}
