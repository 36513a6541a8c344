// SPDX-License-Identifier: Apache-2.0
//! Miss-ratio curves: how many requests miss in memories of many sizes, for several orders of replacement, in one pass.
//!
//! A memory of a size is a cache of that many pages: a request to a page in it is a hit ([`Replace::touch`]). Any other request
//! is a miss: if the cache is full a victim goes, then the page comes. LRU needs no cache for each size: stack distances give all
//! sizes at once (Mattson et al., 1970). Every other order has one cache for each size.
//!
//! With [`Plan::sample`], only pages whose hash is below a threshold count, and sizes shrink by the same share (SHARDS:
//! Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with SHARDS", FAST 2015; for the other orders as in
//! Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC 2017). The
//! difference between the requests that the sample should have and those that it has counts as hits in any size (SHARDS-adj).

mod numbers;
mod requests;

use trapless_timing::scatter;

pub use requests::{Grain, OracleGeneral, Requests, Stored};

use crate::Error;
use crate::input::distances::Distances;
use crate::optimum::min::{Backward, Min, Outcome};
use crate::pages::PageId;
use crate::replacement::{self, BUILT_IN, Registration, Replace, Room};
use numbers::Numbers;

/// The offline optimum's name among the policies; it keeps all requests in memory, 12 bytes each.
pub const MIN: &str = "min";
/// Requests that each cache takes in a row.
const BATCH: usize = 4096;
/// Hashes are below this.
const HASHES: u64 = 1 << 24;
/// What page numbers are changed by before they are hashed: the hash of 0 is 0, and page 0 would always be in the sample.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;
/// Most pages of a cache.
pub const LARGEST: u64 = 1_000_000_000;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Orders of replacement by name, or [`MIN`].
    pub policies: Vec<String>,
    /// Pages of the caches.
    pub sizes: Vec<u64>,
    /// The share of all pages that count, above 0 and up to 1.
    pub sample: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Curves {
    /// All requests.
    pub requests: u64,
    /// Those to pages that count.
    pub sampled: u64,
    /// Different pages among these.
    pub pages: u64,
    /// The share of all pages that count.
    pub sample: f64,
    /// One for each policy.
    pub curves: Vec<Curve>,
}

/// One policy's curve.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Curve {
    /// Its name.
    pub policy: String,
    /// One for each size.
    pub points: Vec<Point>,
}

/// One size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// Pages.
    pub size: u64,
    /// Requests that miss; of a sample, an estimate for all requests, rounded.
    pub misses: u64,
    /// Their share of all requests, 0 to 1.
    pub miss_ratio: f64,
}

impl Plan {
    /// Whether it can be done.
    ///
    /// # Errors
    /// No policy or size, an unknown policy, or a value out of range.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Settings(text));
        for name in &self.policies {
            order(name)?;
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=LARGEST).contains(*size)) {
            return wrong(format!("a size must be 1 to {LARGEST} pages, not {size}"));
        }
        if !(self.sample > 0.0 && self.sample <= 1.0) || self.threshold() == 0 {
            let least = 1.0 / HASHES as f64;
            return wrong(format!("the sampling rate must be {least:.1e} to 1, not {}", self.sample));
        }
        if self.policies.is_empty() || self.sizes.is_empty() {
            return wrong("at least one policy and one size are needed".into());
        }
        Ok(())
    }

    /// Pages with hashes below this count.
    fn threshold(&self) -> u64 {
        (self.sample * HASHES as f64).round() as u64
    }
}

/// The order of replacement of this name; none for the offline optimum.
fn order(name: &str) -> Result<Option<Registration>, Error> {
    if name == MIN {
        return Ok(None);
    }
    let known = || BUILT_IN.iter().map(|order| order.name).chain([MIN]).collect::<Vec<_>>().join(", ");
    let unknown = |_| Error::Settings(format!("policy must be one of {}, not {name}", known()));
    replacement::find(name).map(Some).map_err(unknown)
}

/// A cache of pages.
struct Cache {
    order: Box<dyn Replace>,
    size: usize,
    held: Vec<bool>,
    requests: u64,
    misses: u64,
}

impl Cache {
    fn new(order: Registration, size: u64) -> Cache {
        let mut order = (order.make)(Room { frames: size as usize, processes: 1 });
        order.enter(0, 0);
        Cache { order, size: size as usize, held: vec![], requests: 0, misses: 0 }
    }

    /// A request to a page; whether it hits.
    #[inline]
    fn request(&mut self, page: u32) -> bool {
        self.requests += 1;
        if self.held.get(page as usize).is_some_and(|held| *held) {
            self.order.touch(PageId(page), self.requests);
            return true;
        }
        self.miss(page);
        false
    }

    fn miss(&mut self, page: u32) {
        self.misses += 1;
        self.order.miss(PageId(page));
        if self.order.len() >= self.size
            && let Some(victim) = self.order.victim(&|_| true)
        {
            self.held[victim.0 as usize] = false;
        }
        if self.held.len() <= page as usize {
            self.held.resize(page as usize + 1, false);
        }
        self.held[page as usize] = true;
        self.order.insert(PageId(page), 0);
        self.order.first(PageId(page), self.requests);
    }
}

/// How one policy's misses are counted.
enum Count {
    /// At all sizes, by stack distance.
    Lru(Distances),
    /// One cache for each size.
    Caches(Vec<Cache>),
    /// When all requests are known.
    Min,
}

/// Counts the misses of a plan.
///
/// # Errors
/// The plan cannot be done, or the requests cannot be read.
pub fn curves(requests: &mut dyn Requests, plan: &Plan, progress: &mut dyn FnMut(u64)) -> Result<Curves, Error> {
    plan.check()?;
    let threshold = plan.threshold();
    let sample = threshold as f64 / HASHES as f64;
    // What a size is in the sample.
    let shrink = |size: u64| if threshold == HASHES { size } else { ((size as f64 * sample).round() as u64).max(1) };
    let mut counts = vec![];
    for name in &plan.policies {
        counts.push(match order(name)? {
            None => Count::Min,
            Some(order) if order.name == "lru" => Count::Lru(Distances::default()),
            Some(order) => Count::Caches(plan.sizes.iter().map(|size| Cache::new(order, shrink(*size))).collect()),
        });
    }
    let keep = counts.iter().any(|count| matches!(count, Count::Min));
    let (mut numbers, mut batch, mut string) = (Numbers::default(), Vec::with_capacity(BATCH), vec![]);
    let (mut all, mut sampled) = (0_u64, 0_u64);
    loop {
        let next = requests.next()?;
        if let Some(page) = next {
            all += 1;
            if threshold == HASHES || scatter(page ^ SALT) % HASHES < threshold {
                batch.push(numbers.of(page)?);
            }
        }
        if batch.len() == BATCH || next.is_none() {
            for count in &mut counts {
                match count {
                    Count::Lru(distances) => batch.iter().for_each(|page| distances.access(u64::from(*page))),
                    Count::Caches(caches) => {
                        for cache in caches {
                            for page in &batch {
                                cache.request(*page);
                            }
                        }
                    }
                    Count::Min => {}
                }
            }
            if keep {
                string.extend_from_slice(&batch);
            }
            sampled += batch.len() as u64;
            batch.clear();
            progress(all);
        }
        if next.is_none() {
            break;
        }
    }
    if all == 0 {
        return Err(Error::Empty { path: requests.path().to_owned() });
    }
    // SHARDS-adj: requests that the sample lacks are to pages that are used much, and hit; those too many likewise.
    let expected = if threshold == HASHES { sampled as f64 } else { all as f64 * sample };
    let point = |size: u64, misses: u64| {
        let hits = (sampled - misses) as f64 + (expected - sampled as f64);
        let miss_ratio = (1.0 - hits / expected).clamp(0.0, 1.0);
        Point { size, misses: (miss_ratio * all as f64).round() as u64, miss_ratio }
    };
    let mut curves = vec![];
    for (name, count) in plan.policies.iter().zip(counts) {
        let misses = match count {
            Count::Lru(distances) => lru(
                &distances,
                sampled,
                plan.sizes
                    .iter()
                    .map(|size| if threshold == HASHES { *size } else { (*size as f64 * sample).floor() as u64 }),
            ),
            Count::Caches(caches) => caches.iter().map(|cache| cache.misses).collect(),
            Count::Min => min(&string, plan.sizes.iter().map(|size| shrink(*size)), &mut |_| ()),
        };
        let points = plan.sizes.iter().zip(misses).map(|(size, misses)| point(*size, misses)).collect();
        curves.push(Curve { policy: name.clone(), points });
    }
    Ok(Curves { requests: all, sampled, pages: numbers.len() as u64, sample, curves })
}

/// Misses of LRU caches.
fn lru(distances: &Distances, requests: u64, sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let sums: Vec<u64> = distances
        .counts()
        .iter()
        .scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        })
        .collect();
    let hits = |size: u64| sums.get((size as usize).min(sums.len()).wrapping_sub(1)).copied().unwrap_or(0);
    sizes.map(|size| requests - hits(size)).collect()
}

/// Misses of caches that know the future; `hit` is told of each request.
fn min(string: &[u32], sizes: impl Iterator<Item = u64>, hit: &mut dyn FnMut(bool)) -> Vec<u64> {
    let mut backward = Backward::default();
    let mut next: Vec<_> =
        string.iter().enumerate().rev().map(|(before, page)| backward.next(*page, before as u64 + 1)).collect();
    next.reverse();
    let misses = |size: u64| {
        let mut cache = Min::new(size as usize);
        let mut misses = 0;
        for (page, next) in string.iter().zip(&next) {
            let missed = cache.access(*page, *next) != Outcome::Hit;
            misses += u64::from(missed);
            hit(!missed);
        }
        misses
    };
    sizes.map(misses).collect()
}

/// Says of each request whether it hits in one cache.
///
/// # Errors
/// There is no such policy, the size is out of range, or the requests cannot be read.
pub fn each(requests: &mut dyn Requests, policy: &str, size: u64, hit: &mut dyn FnMut(bool)) -> Result<(), Error> {
    Plan { policies: vec![policy.into()], sizes: vec![size], sample: 1.0 }.check()?;
    let mut numbers = Numbers::default();
    if let Some(order) = order(policy)? {
        let mut cache = Cache::new(order, size);
        while let Some(page) = requests.next()? {
            hit(cache.request(numbers.of(page)?));
        }
    } else {
        let mut string = vec![];
        while let Some(page) = requests.next()? {
            string.push(numbers.of(page)?);
        }
        min(&string, std::iter::once(size), hit);
    }
    if numbers.len() == 0 { Err(Error::Empty { path: requests.path().to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
