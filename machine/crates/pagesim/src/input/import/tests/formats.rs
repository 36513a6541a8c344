// SPDX-License-Identifier: Apache-2.0
//! Writes each format, imports it and compares.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::input::summarise;

const ONE_PAGE: Options = Options { columns: None, unit: None, instructions: None };

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

/// Addresses, mostly near each other.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0x40_0000..0x40_0400u64, 1 => 1..1u64 << 47]
}

#[test]
fn sizes_in_champsim_and_order_in_an_instruction() {
    let dir = tempfile::tempdir().unwrap();
    let bytes =
        [write::champsim(0x1000, &[0x5000, 0x2000], &[0x6000]), write::champsim(0x1004, &[], &[0x6001])].concat();
    let (found, header) = stored(&of(&dir, bytes, Some("champsim")).unwrap());
    let (f, l, s) = (Kind::Fetch, Kind::Load, Kind::Store);
    let expected = [
        ((0, f, false, 0x40, 0), 2),
        ((0, l, false, 0x140, 0), 1),
        ((0, l, false, 0x80, 0), 1),
        ((0, s, false, 0x180, 0), 2),
    ];
    assert_eq!(found, expected);
    assert_eq!((header.harts, header.kernel, &*header.profile), (1, false, "champsim"));
}

#[test]
fn objects_by_number_by_name_and_as_places() {
    let dir = tempfile::tempdir().unwrap();
    let requests = [(5, 512), (u64::MAX, 100_000), (6, 1), (u64::MAX, 1), (1 << 41, 1)];
    let (found, header) = stored(&of(&dir, write::oracle(&requests), None).unwrap());
    let pages: Vec<u64> = found.iter().map(|(access, _)| access.3).collect();
    assert_eq!((pages[0], pages[2], pages[1]), (5, 6, pages[3]));
    assert!(pages[1] >= 1 << 41 && pages[4] >= 1 << 41 && pages[1] != pages[4] && pages.iter().all(|p| *p < 1 << 42));
    assert_eq!((header.clock_hz, header.grain.shift()), (1, 12));

    // Object numbers are positions in units of 512 bytes.
    let options = || Options { unit: Some(512), instructions: Some(3), ..ONE_PAGE };
    let trace = with(&dir, write::oracle(&[(7, 512), (15, 4097), (8, 0)]), Some("oracle-general"), options()).unwrap();
    let load = |page, instructions| (0, Kind::Load, false, page, instructions);
    let expected = [load(0, 0), load(1, 3), load(2, 6), load(1, 9)];
    let found: Vec<Access> = stored(&trace).0.into_iter().map(|(access, _)| access).collect();
    assert_eq!(found, expected);
    let far = with(&dir, write::oracle(&[(1 << 60, 512)]), Some("oracle-general"), options());
    assert!(complaint(far).contains("record 1 at byte 0: object 1152921504606846976 times 512"));
    // libCacheSim writes -2 if the next request is unknown, and so does `mrc --objects`.
    let mut unknown = write::oracle(&[(7, 1)]);
    unknown[16..].copy_from_slice(&(-2_i64).to_le_bytes());
    assert_eq!(stored(&with(&dir, unknown, Some("oracle-general"), ONE_PAGE).unwrap()).0.len(), 1);
    let none = with(&dir, "page\n1\n", None, options());
    assert!(complaint(none).contains("--unit needs a column of objects"));
    let zero = with(&dir, "object\n1\n", None, Options { unit: Some(0), ..ONE_PAGE });
    assert!(complaint(zero).contains("--unit must be 1 or more"));
    let other = with(&dir, write::champsim(1, &[], &[]), Some("champsim"), options());
    assert!(complaint(other).contains("--unit means nothing for a trace of champsim"));

    let text = "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,28,512,x42\n1,5633899,read,8,x42\n";
    let found = stored(&of(&dir, text, None).unwrap()).0;
    assert_eq!(found[0].0, (0, Kind::Store, false, 42_932_745, 0));
    assert_eq!((found[1].0.1, found[1].1, found.len()), (Kind::Load, 2, 2));
}

#[test]
fn columns_of_csv() {
    let dir = tempfile::tempdir().unwrap();
    let text = "\u{feff}\"Time\"; \"Thread\" ;Op;Address;Size\r\n0.5;7;R;0x1000;8\r\n0.5;9;w;4159;2\r\n2;7;fetch;0x2000;4\r\n\n";
    let (found, header) = stored(&of(&dir, text, None).unwrap());
    let expected = [
        ((0, Kind::Load, false, 0x40, 0), 1),
        ((1, Kind::Store, false, 0x40, 0), 1),
        ((1, Kind::Store, false, 0x41, 1), 1),
        ((0, Kind::Fetch, false, 0x80, 1), 1),
    ];
    assert_eq!((&found[..], header.harts, header.grain.shift()), (&expected[..], 2, 6));

    let named = |columns: &str| Options { columns: Some(columns.to_owned()), ..ONE_PAGE };
    let pages = |text: &str, columns: &str| {
        let trace = with(&dir, text, None, named(columns))?;
        Ok::<_, Error>(stored(&trace).0.iter().map(|(access, _)| access.3).collect::<Vec<_>>())
    };
    assert_eq!(pages("1,x,5\n2,y,6\n", "time,-,page").unwrap(), [5, 6]);
    assert_eq!(pages("time,page\n1\t7\n2\t8\n", "time,page").unwrap(), [7, 8]);
    assert_eq!(pages("0x10\n", "page").unwrap(), [16]);
    let said = |text: &str, columns: &str| complaint(with(&dir, text, None, named(columns)));
    for (text, columns, says) in [
        ("1,2\n", "time,colour", "\"colour\" is not the name of a column; known are time, address"),
        ("1,2\n", "time,size", "exactly one column must be address, page or object"),
        ("1,2\n", "page,object", "exactly one column must be"),
        ("1,2,3\n", "time,page", "line 1: more than 2 fields"),
        ("1,2\n3\n", "time,page", "line 2: 1 fields, not 2"),
        ("2,2\n1,2\n", "time,page", "line 2: \"1\" is an earlier time"),
        ("nan,2\n", "time,page", "line 1: \"nan\" is not a time"),
        ("q,2\n", "kind,page", "line 1: \"q\" is not a known kind"),
        ("1,2,big\n", "time,page,size", "line 1: \"big\" is not a size"),
        ("1,t1\n", "page,thread", "line 1: \"t1\" is not the number of a thread"),
        ("5,0\n", "address,size", "line 1: a size of 0 bytes; it must be 1 to 65536"),
        ("5,65537\n", "address,size", "a size of 65537 bytes"),
        ("7ffe\n1\n", "address", "line 1: \"7ffe\" is not a number such as 4096 or 0x1000"),
        ("4503599627370496\n", "page", "line 1: page 4503599627370496 is beyond 2^52"),
        ("1,\n", "time,object", "line 1: \"\" is not a number"),
    ] {
        let found = said(text, columns);
        assert!(found.contains(says), "{text:?} {columns}: {found}");
    }
    // The last line of the address space.
    let top = format!("address,size\n{:#x},9\n", u64::MAX);
    assert_eq!(stored(&of(&dir, top, None).unwrap()).0.len(), 1);
}

#[test]
fn a_sample_of_perf() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = 0xffff_ffff_8177_5dda;
    let samples = [
        (5_000_000, 81, false, 0x7fd9_6bf9_6110, 0x1000),
        (5_000_001, 80, true, 0x2000, kernel),
        (5_000_001, 81, true, 0, 0x1000),
    ];
    let trace = of(&dir, write::perf(&samples), None).unwrap();
    let (found, header) = stored(&trace);
    let expected = [
        ((0, Kind::Fetch, false, 0x40, 0), 1),
        ((0, Kind::Load, false, 0x7fd9_6bf9_6110 >> 6, 0), 1),
        ((1, Kind::Fetch, true, kernel >> 6, 0), 1),
        ((1, Kind::Store, true, 0x80, 0), 1),
    ];
    assert_eq!(found, expected);
    assert_eq!((header.harts, header.kernel, header.clock_hz), (2, true, 1_000_000_000));
    assert!(header.writer.contains("perf (a sample, not all accesses): source"), "{}", header.writer);
    // The kernel's accesses are left out by default.
    assert_eq!(simulated(&trace), 2);
    for (text, says) in [
        (write::perf(&samples[1..2]), "all its accesses are the kernel's"),
        (write::perf(&samples[2..]), "has no memory access"),
        (write::perf(&samples[..1]) + "x 78/78 6.1: a-load: 10 10\n", "line 3: samples of two processes, 77 and 78"),
        (write::perf(&samples[..1]) + "x 77/78 6.1: page-faults: 10 10\n", "line 3: event \"page-faults\" is neither"),
        (write::perf(&samples[..1]) + "nonsense\n", "line 3: not a line of perf script"),
    ] {
        let said = complaint(of(&dir, text, Some("perf")));
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn counts_of_damon() {
    let dir = tempfile::tempdir().unwrap();
    let aggregations = [vec![(10, 2, 1), (20, 1, 2), (30, 5, 0)], vec![(11, 1, 1)]];
    for text in [write::damon_events(&aggregations), write::damon_report(&aggregations)] {
        let (found, header) = stored(&of(&dir, text, None).unwrap());
        let pages: Vec<(u64, u64)> = found.iter().map(|(access, count)| (access.3, *count)).collect();
        // Two rounds: the region with a count of one is in the second round.
        assert_eq!(pages, [(20, 1), (10, 1), (11, 1), (20, 1), (11, 1)]);
        assert_eq!((header.grain.shift(), header.harts), (12, 1));
        assert!(header.writer.contains("damon (a sample, not all accesses)"));
    }
    // Three rounds: the region with two passes is in the second and the third round.
    let found = stored(&of(&dir, write::damon_events(&[vec![(10, 1, 2), (20, 1, 3)]]), None).unwrap()).0;
    assert_eq!(found.iter().map(|(access, _)| access.3).collect::<Vec<_>>(), [20, 10, 20, 10, 20]);
    // Skipped accesses take no time. The import stops in a long aggregation when the limit is reached.
    let from = dir.path().join("source");
    let part = |skip, limit| {
        let found = imported(&dir, &from, None, Part { skip, limit }, ONE_PAGE).unwrap();
        stored(&found).0.iter().map(|(access, count)| (access.3, *count)).collect::<Vec<_>>()
    };
    std::fs::write(&from, write::damon_events(&[vec![(9, 1, (1 << 32) - 1)], vec![(1, 1, 1 << 31), (2, 1, 1 << 30)]]))
        .unwrap();
    assert_eq!(part((1 << 32) - 1, 4), [(1, 2), (2, 1), (1, 1)]);
    std::fs::remove_file(&from).unwrap();
    let event = |text: &str| format!("x 1 [000] 1.0: damon:damon_aggregated: target_id=1 nr_regions={text}\n");
    for (text, says) in [
        (event("2 4096-8192: 1 0"), "line 1: cut short: the last aggregation has 1 of 2 regions"),
        (event("2 4096-8192: 1 0") + &event("3 4096-8192: 1"), "line 2: another aggregation begins after 1 regions"),
        (event("0 4096-8192: 1 0"), "line 1: a region in an aggregation whose number of regions is 0"),
        (event("1 8192-4096: 1 0"), "line 1: not as the tracepoint damon_aggregated prints it"),
        (event("9999999 1-4096: 1 0"), "9999999 regions in an aggregation; 1048576 is the most"),
        (event("1 0-18446744073709551615: 1 0"), "line 1: 2^32 accesses or more in one"),
        (event("1 0-4096: 18446744073709551615 0"), "2^32 accesses or more"),
        (event("1 0-4096: 4294967296 0"), "2^32 accesses or more"),
        (
            event("1 0-4096: 1") + "x 1.0: damon_aggregated: target_id=2 nr_regions=1 0-4096: 1\n",
            "line 2: regions of two targets",
        ),
        (event("1 0-4096: 1") + "hello\n", "line 2: neither damo's report in raw form nor"),
        ("nr_regions: 2\n1000-2000 ( 4.000 KiB) 1 -1\n".to_owned(), "has 1 of 2 regions"),
        ("nr_regions: 1\n1000-2000 4.000 KiB 1 -1\n".to_owned(), "line 2: not a region"),
        ("nr_regions: x\n".to_owned(), "line 1: not a number of regions"),
        ("data source: a\nnr_regions: 1\n1000-2000 ( 4.000 KiB) 0 -1\n".to_owned(), "has no memory access"),
    ] {
        let said = complaint(of(&dir, &text, Some("damon")));
        assert!(said.contains(says), "{text}: {said}");
    }
}

proptest! {
    #[test]
    fn champsim_comes_back(
        instructions in prop::collection::vec(
            (address(), prop::collection::vec(address(), 0..=4), prop::collection::vec(address(), 0..=2)),
            1..60,
        ),
        xz: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes: Vec<u8> =
            instructions.iter().flat_map(|(ip, read, written)| write::champsim(*ip, read, written)).collect();
        bytes = if xz { write::xz(&bytes) } else { write::gzip(&bytes) };
        let mut expected = Vec::new();
        for (n, (ip, read, written)) in (0..).zip(&instructions) {
            expected.push((0, Kind::Fetch, false, ip >> 6, n));
            expected.extend(read.iter().map(|a| (0, Kind::Load, false, a >> 6, n)));
            expected.extend(written.iter().map(|a| (0, Kind::Store, false, a >> 6, n)));
        }
        let trace = of(&dir, bytes, Some("champsim")).unwrap();
        prop_assert_eq!(stored(&trace).0, runs(&expected));
        prop_assert_eq!(simulated(&trace), expected.len() as u64);
    }

    #[test]
    fn oracle_general_comes_back(
        requests in prop::collection::vec((0..30u64, any::<u32>()), 1..200),
        skip in 0..40u64,
        limit in 1..100u64,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("source");
        std::fs::write(&from, zstd::encode_all(&write::oracle(&requests)[..], 1).unwrap()).unwrap();
        let part = Part { skip, limit };
        let found = imported(&dir, &from, Some("oracle-general"), part, ONE_PAGE);
        let taken = requests.iter().skip(skip as usize).take(limit as usize);
        let expected: Vec<Access> = (0..).zip(taken).map(|(n, (object, _))| (0, Kind::Load, false, *object, n)).collect();
        match found {
            Ok(trace) => {
                prop_assert_eq!(stored(&trace).0, runs(&expected));
                let sums = summarise(&mut Recorded::open(&trace, Which::default()).unwrap(), 0.9).unwrap();
                prop_assert_eq!(sums.accesses, expected.len() as u64);
            }
            Err(error) => prop_assert!(expected.is_empty(), "{}", error),
        }
    }

    #[test]
    fn csv_comes_back(
        accesses in prop::collection::vec((0..5u64, kind(), address(), 1..200u64, any::<bool>()), 1..100),
        header: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut text = if header { "time,thread,kind,address,size\n".to_owned() } else { String::new() };
        let (mut harts, mut expected, mut done) = (Vec::new(), Vec::new(), [0; 5]);
        for (n, (thread, kind, address, size, hex)) in accesses.iter().enumerate() {
            let word = ["i", "LOAD", "store"][*kind as usize];
            let place = if *hex { format!("{address:#x}") } else { format!("{address}") };
            writeln!(text, "{n},{thread},{word},{place},{size}").unwrap();
            if !harts.contains(thread) {
                harts.push(*thread);
            }
            let hart = harts.iter().position(|t| t == thread).unwrap();
            for block in address / 64..=(address + size - 1) / 64 {
                expected.push((hart as u16, *kind, false, block, done[hart]));
                done[hart] += 1;
            }
        }
        let columns = (!header).then(|| "time,thread,kind,address,size".to_owned());
        let trace = with(&dir, &text, None, Options { columns, ..ONE_PAGE }).unwrap();
        let (found, about) = stored(&trace);
        prop_assert_eq!(found, runs(&expected));
        prop_assert_eq!(usize::from(about.harts), harts.len());
    }

    #[test]
    fn perf_comes_back(samples in prop::collection::vec((0..3u64, 80..83u64, any::<bool>(), address(), address()), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut now, mut harts, mut done, mut expected) = (0, Vec::new(), [0; 3], Vec::new());
        let mut timed = samples.clone();
        for (time, thread, store, address, ip) in &mut timed {
            now += *time;
            *time = now;
            if !harts.contains(thread) {
                harts.push(*thread);
            }
            let hart = harts.iter().position(|t| t == thread).unwrap();
            let kind = if *store { Kind::Store } else { Kind::Load };
            expected.push((hart as u16, Kind::Fetch, false, *ip >> 6, done[hart]));
            expected.push((hart as u16, kind, false, *address >> 6, done[hart]));
            done[hart] += 1;
        }
        prop_assert_eq!(stored(&of(&dir, write::perf(&timed), None).unwrap()).0, runs(&expected));
    }

    /// Each page of a region has as many accesses as the region's count. In each round, the pages are in rising order.
    #[test]
    fn damon_comes_back(
        aggregations in prop::collection::vec(prop::collection::vec((1..9u64, 1..9u64, 0..6u64), 1..8), 1..6),
        report: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut first = 100;
        let aggregations: Vec<Vec<_>> = aggregations
            .into_iter()
            .map(|regions| {
                let place = |(gap, pages, count)| {
                    first += gap + pages;
                    (first - pages, pages, count)
                };
                regions.into_iter().map(place).collect()
            })
            .collect();
        let text = if report { write::damon_report(&aggregations) } else { write::damon_events(&aggregations) };
        let all: u64 = aggregations.iter().flatten().map(|(_, pages, count)| pages * count).sum();
        match of(&dir, text, Some("damon")) {
            Err(error) => prop_assert!(all == 0, "{}", error),
            Ok(trace) => {
                prop_assert_eq!(simulated(&trace), all);
                let mut counts = std::collections::HashMap::new();
                stored(&trace).0.iter().for_each(|(access, n)| *counts.entry(access.3).or_insert(0) += n);
                for (first, pages, count) in aggregations.iter().flatten() {
                    for page in *first..first + pages {
                        prop_assert_eq!(counts.get(&page).copied().unwrap_or(0), *count, "page {}", page);
                    }
                }
            }
        }
    }
}
