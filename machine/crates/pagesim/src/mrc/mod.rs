// SPDX-License-Identifier: Apache-2.0
//! Miss-ratio curves: how many requests miss in memories of many sizes, for several orders of replacement. One pass over the
//! requests gives all of them.
//!
//! A memory is a cache with a fixed number of pages. A request to a page in the cache is a hit ([`Replace::touch`]). Any other
//! request is a miss; if the cache is full, a victim leaves before the page enters. LRU does not need a cache for each size,
//! because stack distances give all sizes at once (Mattson et al., 1970). Every other order has one cache for each size.
//!
//! With [`Plan::sample`], only pages whose hash is below a threshold count, and sizes shrink by the same share. The method is
//! SHARDS (Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with SHARDS", FAST 2015); for orders other than
//! LRU it follows Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using Miniature Simulations", USENIX
//! ATC 2017. The difference between the expected number of requests in the sample and the actual number counts as hits in any
//! size (SHARDS-adj).

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

/// Name of the offline optimum among the policies. It keeps all requests in memory, 12 bytes each.
pub const MIN: &str = "min";
/// Number of requests in a batch. Each cache handles a batch before the next cache does.
const BATCH: usize = 4096;
/// All hashes are below this.
const HASHES: u64 = 1 << 24;
/// Page numbers are XORed with this before hashing. Otherwise, page 0 with its hash 0 would always be in the sample.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;
/// Largest size of a cache in pages.
pub const LARGEST: u64 = 1_000_000_000;

/// What to compute.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Orders of replacement by name, or [`MIN`].
    pub policies: Vec<String>,
    /// Sizes of the caches in pages.
    pub sizes: Vec<u64>,
    /// Share of the pages that count: above 0, at most 1.
    pub sample: f64,
}

/// The results.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Curves {
    /// Number of all requests.
    pub requests: u64,
    /// Number of requests to pages that count.
    pub sampled: u64,
    /// Number of different pages that count.
    pub pages: u64,
    /// Share of the pages that count.
    pub sample: f64,
    /// One curve for each policy.
    pub curves: Vec<Curve>,
}

/// The curve of one policy.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Curve {
    /// Name of the policy.
    pub policy: String,
    /// One point for each size.
    pub points: Vec<Point>,
}

/// The misses at one size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// Size in pages.
    pub size: u64,
    /// Number of requests that miss. With a sample, a rounded estimate for all requests.
    pub misses: u64,
    /// Share of all requests that miss, 0 to 1.
    pub miss_ratio: f64,
}

impl Plan {
    /// Checks that the plan can be computed.
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

    /// Pages whose hash is below this count.
    fn threshold(&self) -> u64 {
        (self.sample * HASHES as f64).round() as u64
    }
}

/// Finds the order of replacement with this name. Returns `None` for the offline optimum.
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

    /// Handles a request to a page. Returns whether it hits.
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

/// The way to count the misses of one policy.
enum Count {
    /// For all sizes at once, by stack distance.
    Lru(Distances),
    /// With one cache for each size.
    Caches(Vec<Cache>),
    /// At the end, when all requests are known.
    Min,
}

/// Counts the misses of a plan.
///
/// # Errors
/// The plan is wrong, or the requests cannot be read.
pub fn curves(requests: &mut dyn Requests, plan: &Plan, progress: &mut dyn FnMut(u64)) -> Result<Curves, Error> {
    plan.check()?;
    let threshold = plan.threshold();
    let sample = threshold as f64 / HASHES as f64;
    // The size of a cache for the sample that stands for a cache of this size for all pages.
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
    // SHARDS-adj: if the sample has too few requests, the missing ones would be to hot pages and would hit. If it has too many,
    // the surplus ones are hits as well.
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

/// Misses of caches that know the future. `hit` gets the result of each request.
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

/// Reports for each request whether it hits in one cache.
///
/// # Errors
/// No policy has this name, the size is out of range, or the requests cannot be read.
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
