// SPDX-License-Identifier: Apache-2.0

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::optimum::min as offline;

struct List(std::vec::IntoIter<u64>);

impl Requests for List {
    fn next(&mut self) -> Result<Option<u64>, Error> {
        Ok(self.0.next())
    }

    fn path(&self) -> &Path {
        Path::new("list")
    }
}

fn plan(policies: &[&str], sizes: &[u64], sample: f64) -> Plan {
    Plan { policies: policies.iter().map(|name| (*name).into()).collect(), sizes: sizes.to_vec(), sample }
}

fn run(pages: &[u64], plan: &Plan) -> Curves {
    curves(&mut List(Vec::from(pages).into_iter()), plan, &mut |_| ()).unwrap()
}

fn misses(curves: &Curves) -> Vec<Vec<u64>> {
    curves.curves.iter().map(|curve| curve.points.iter().map(|point| point.misses).collect()).collect()
}

/// Pages 1 2 3 1 4 1 2, by hand. LRU with two pages: only the last 1 hits. With three pages, both later 1s hit; with four, 2 hits
/// as well. FIFO with three pages: the first later 1 hits, then 4 evicts page 1.
#[test]
fn a_few_requests_by_hand() {
    let found = run(&[1, 2, 3, 1, 4, 1, 2], &plan(&["lru", "fifo", "min"], &[1, 2, 3, 4, 100], 1.0));
    assert_eq!(misses(&found), [[7, 6, 5, 4, 4], [7, 6, 6, 4, 4], [7, 5, 4, 4, 4]]);
    assert_eq!((found.requests, found.sampled, found.pages), (7, 7, 4));
    assert!((found.curves[0].points[2].miss_ratio - 5.0 / 7.0).abs() < 1e-12);
}

#[test]
fn wrong_plans_are_refused() {
    let wrong = |plan: Plan| plan.check().unwrap_err().to_string();
    assert!(wrong(plan(&["lur"], &[1], 1.0)).starts_with("policy must be one of lru, fifo,"));
    assert_eq!(wrong(plan(&["lru"], &[0], 1.0)), "a size must be 1 to 1000000000 pages, not 0");
    for rate in [0.0, -1.0, 1.5, f64::NAN, 1e-9] {
        assert!(wrong(plan(&["lru"], &[1], rate)).starts_with("the sampling rate must be"), "{rate}");
    }
    assert!(wrong(plan(&[], &[1], 1.0)).starts_with("at least one"));
    let empty = curves(&mut List(vec![].into_iter()), &plan(&["lru"], &[1], 1.0), &mut |_| ());
    assert_eq!(empty.unwrap_err().to_string(), "list: has no memory access");
}

#[test]
fn records_of_oracle_general_files() {
    let mut bytes = vec![];
    for object in [7_u64, u64::MAX, 7] {
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        bytes.extend_from_slice(&object.to_le_bytes());
        bytes.extend_from_slice(&4096_u32.to_le_bytes());
        bytes.extend_from_slice(&(-1_i64).to_le_bytes());
    }
    let path = Path::new("a file");
    let mut requests = OracleGeneral::new(path, &bytes[..]);
    let found: Vec<_> = std::iter::from_fn(|| requests.next().unwrap()).collect();
    assert_eq!(found, [7, u64::MAX, 7]);
    let mut cut = OracleGeneral::new(path, &bytes[..50]);
    assert!(cut.next().is_ok() && cut.next().is_ok());
    assert!(cut.next().unwrap_err().to_string().starts_with("a file: byte 48: 2 bytes of a record of 24"));
}

/// Pages of several kinds: some are used often, some form a loop, and some are used once.
fn mixed(requests: u64, pages: u64) -> Vec<u64> {
    let page = |n: u64| match scatter(n) % 4 {
        0 => n % pages,
        1 => scatter(n * 3) % 50,
        _ => scatter(scatter(n) % (1 + scatter(n * 7) % pages)) % pages,
    };
    (0..requests).map(page).collect()
}

/// A tenth of the pages gives nearly the same curve: within 0.03 at each size.
#[test]
fn a_sample_is_close() {
    let pages = mixed(400_000, 20_000);
    let (names, sizes) = (["lru", "fifo", "arc", "s3-fifo", "min"], [500, 1000, 2000, 5000, 10_000]);
    let exact = run(&pages, &plan(&names, &sizes, 1.0));
    let sampled = run(&pages, &plan(&names, &sizes, 0.1));
    assert!((30_000..50_000).contains(&sampled.sampled), "{}", sampled.sampled);
    for (a, b) in exact.curves.iter().zip(&sampled.curves) {
        for (a, b) in a.points.iter().zip(&b.points) {
            assert!((a.miss_ratio - b.miss_ratio).abs() < 0.03, "{a:?} {b:?}");
        }
    }
}

proptest! {
    /// Four checks: LRU by stack distance equals LRU in a cache. MIN is never beaten. The results of single requests add up to
    /// the curve. The number of batches does not matter.
    #[test]
    fn curves_agree_with_each_other(
        pages in prop::collection::vec(prop_oneof![0..8u64, 0..200u64], 1..9000),
        sizes in prop::collection::vec(1..120u64, 1..4),
    ) {
        let names: Vec<_> = BUILT_IN.iter().map(|order| order.name).chain([MIN]).collect();
        let found = run(&pages, &plan(&names, &sizes, 1.0));
        let all = misses(&found);
        let string: Vec<_> = pages.iter().map(|page| *page as u32).collect();
        for (name, counts) in names.iter().zip(&all) {
            for (size, count) in sizes.iter().zip(counts) {
                let (mut hits, mut requests) = (0, 0);
                each(&mut List(pages.clone().into_iter()), name, *size, &mut |hit| {
                    hits += u64::from(hit);
                    requests += 1;
                }).unwrap();
                prop_assert_eq!((requests, requests - hits), (pages.len() as u64, *count), "{} {}", name, size);
                prop_assert!(offline::reads(&string, *size as usize) <= *count);
            }
        }
    }
}
