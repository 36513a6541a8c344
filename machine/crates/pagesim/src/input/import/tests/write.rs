// SPDX-License-Identifier: Apache-2.0
//! Writers of the formats, for tests.

use std::fmt::Write as _;
use std::io::Write;

/// A record of DynamoRIO.
pub fn record(kind: u16, size: u16, value: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
}

/// The first records of a thread's file, as in version 7 for x86-64.
pub fn head(thread: u64) -> Vec<u8> {
    let records = [
        (25, 0, 7),
        (28, 12, 7),
        (28, 9, 0xe40),
        (22, 4, thread),
        (24, 4, 77),
        (28, 10, 64),
        (28, 20, 1000),
        (28, 18, 4096),
    ];
    records.into_iter().flat_map(|(kind, size, value)| record(kind, size, value)).collect()
}

/// The last records of a thread's file.
pub fn foot(thread: u64) -> Vec<u8> {
    [record(23, 4, thread), record(26, 0, 0)].concat()
}

/// A record of ChampSim.
pub fn champsim(ip: u64, read: &[u64], written: &[u64]) -> Vec<u8> {
    let mut bytes = ip.to_le_bytes().to_vec();
    bytes.extend([1, 0, 9, 9, 8, 8, 8, 8]);
    let slots = |n: usize, of: &[u64]| {
        (0..n).flat_map(|at| of.get(at).copied().unwrap_or(0).to_le_bytes()).collect::<Vec<u8>>()
    };
    bytes.extend(slots(2, written));
    bytes.extend(slots(4, read));
    assert_eq!(bytes.len(), 64);
    bytes
}

/// Requests for objects with their sizes in the format oracleGeneral, each with the object's next request.
pub fn oracle(requests: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (object, size)) in requests.iter().enumerate() {
        let next = requests[at + 1..].iter().position(|(other, _)| other == object);
        let next = next.map_or(-1, |behind| (at + 2 + behind) as i64);
        bytes.extend((at as u32 / 3).to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

/// Loads and stores as perf script prints them. A sample is time in microseconds, thread, whether it is a store, address, ip.
pub fn perf(samples: &[(u64, u64, bool, u64, u64)]) -> String {
    let mut text = "# captured on: some day\n".to_owned();
    for (time, thread, store, address, ip) in samples {
        let event = if *store { "cpu/mem-stores/P" } else { "cpu/mem-loads,ldlat=30/P" };
        let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
        writeln!(text, "    my prog  77/{thread:<5} {seconds:5}.{rest:06}: {event:>20}:     {address:x}     {ip:x}")
            .unwrap();
    }
    text
}

/// Aggregations of regions (first page, pages, count) as perf script prints the tracepoint's lines.
pub fn damon_events(aggregations: &[Vec<(u64, u64, u64)>]) -> String {
    let mut text = String::new();
    for (at, regions) in aggregations.iter().enumerate() {
        for (first, pages, count) in regions {
            let (n, start, end) = (regions.len(), first * 4096, (first + pages) * 4096);
            let event = "damon:damon_aggregated: target_id=18446623435582458880";
            let head = format!("       kdamond.0  4452 [000] 82820.{at:06}: {event} nr_regions={n}");
            writeln!(text, "{head} {start}-{end}: {count} 3").unwrap();
        }
    }
    text
}

/// The same aggregations as damo reports them.
pub fn damon_report(aggregations: &[Vec<(u64, u64, u64)>]) -> String {
    let mut text = "base_time_absolute: 8 m 59.809 s\ndata source: unknown\n\n".to_owned();
    for regions in aggregations {
        text += "monitoring_start:                0 ns\nmonitoring_end:            104.599 ms\n";
        text += "monitoring_duration:       104.599 ms\ntarget_id: 18446623438842320000\n";
        writeln!(text, "nr_regions: {}\n# start_addr     end_addr        length  nr_accesses   age", regions.len())
            .unwrap();
        for (first, pages, count) in regions {
            let (start, end) = (first * 4096, (first + pages) * 4096);
            writeln!(text, "{start:012x}-{end:012x} ({pages:8}.000 KiB) {count:11}    -1").unwrap();
        }
        text += "\n";
    }
    text
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut to = liblzma::write::XzEncoder::new(Vec::new(), 1);
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

/// An archive of files, alternately deflated and stored. With zip64, all numbers that may be large are in extra fields.
pub fn zip(files: &[&[u8]], zip64: bool) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    let two = |n: usize| (n as u16).to_le_bytes();
    let four = |n: usize| (n as u32).to_le_bytes();
    let marked = |n: usize| if zip64 { [0xff; 4] } else { four(n) };
    for (n, file) in files.iter().enumerate() {
        let deflated = n % 2 == 0;
        let mut to = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(file).unwrap();
        let body = if deflated { to.finish().unwrap() } else { file.to_vec() };
        let mut crc = flate2::Crc::new();
        crc.update(file);
        let (name, at) = (format!("chunk.{n:04}"), bytes.len());
        let mut fields = vec![20, 0, 0, 0];
        fields.extend(two(if deflated { 8 } else { 0 }));
        fields.extend([0; 4]);
        fields.extend(crc.sum().to_le_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&fields);
        bytes.extend([four(body.len()), four(file.len())].concat());
        bytes.extend([two(name.len()), two(3)].concat());
        bytes.extend(name.as_bytes());
        bytes.extend(b"abc");
        bytes.extend(&body);

        let mut extra = Vec::new();
        if zip64 {
            extra.extend([&[9, 9, 1, 0, 7][..], &two(1), &two(24)].concat());
            [file.len(), body.len(), at].iter().for_each(|n| extra.extend((*n as u64).to_le_bytes()));
        }
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&fields);
        directory.extend([marked(body.len()), marked(file.len())].concat());
        directory.extend([two(name.len()), two(extra.len()), two(2), [0; 2], [0; 2], [0; 2], [0; 2]].concat());
        directory.extend(marked(at));
        directory.extend(name.as_bytes());
        directory.extend(extra);
        directory.extend(b"no");
    }
    let at = bytes.len();
    bytes.extend(&directory);
    if zip64 {
        let end = bytes.len() as u64;
        bytes.extend(b"PK\x06\x06");
        bytes.extend(44u64.to_le_bytes());
        bytes.extend([0; 28]);
        bytes.extend((directory.len() as u64).to_le_bytes());
        bytes.extend((at as u64).to_le_bytes());
        bytes.extend(b"PK\x06\x07\0\0\0\0");
        bytes.extend(end.to_le_bytes());
        bytes.extend([1, 0, 0, 0]);
    }
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([two(files.len()), two(files.len())].concat());
    bytes.extend([marked(directory.len()), marked(at)].concat());
    bytes.extend(two(6));
    bytes.extend(b"a text");
    bytes
}
