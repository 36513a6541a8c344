// SPDX-License-Identifier: Apache-2.0
//! Traces of other programs, mostly right, some damaged: each must be refused in one line, or stored so that all of it can be
//! read.

use std::fmt::Write as _;
use std::io::Write;

use trapless_pagesim::input::import::{Part, import};

use super::damage;
use super::traces::{accesses, refused, target};
use crate::demand;
use crate::tape::Tape;

/// Largest number of accesses to store. A single line of DAMON may mean many accesses.
const LIMIT: u64 = 50_000;
/// Most addresses are near this one.
const BASE: u64 = 0x40_0000;

fn io(e: std::io::Error) -> String {
    e.to_string()
}

/// Damages a file in one of two cases, imports it, and reads the stored trace. Names the format in three of four cases.
fn check(t: &mut Tape, format: &str, mut bytes: Vec<u8>) -> Result<(), String> {
    if t.below(2) == 0 {
        damage(t, &mut bytes);
    }
    let folder = tempfile::tempdir().map_err(io)?;
    let (from, to) = (folder.path().join("source"), folder.path().join("trace"));
    std::fs::write(&from, &bytes).map_err(io)?;
    let part = Part { skip: t.one(&[0, 0, 0, 3, u64::MAX]), limit: t.one(&[LIMIT, LIMIT, 1, 7]) };
    let named = (t.below(4) != 0).then_some(format);
    match import(target(&from, &to, part)?, named) {
        Err(error) => refused(&error, &from),
        Ok(totals) => {
            let all: u64 = totals.accesses.iter().sum();
            demand(all > 0 && all < 2 * LIMIT, || format!("{all} accesses stored"))?;
            // The kernel's accesses are stored as well, but not read here.
            let found = accesses(&to);
            demand(matches!(found, Ok(n) if n > 0 && n <= all), || format!("{all} accesses stored, read: {found:?}"))
        }
    }
}

/// An address. Most are near each other; a few are arbitrary.
fn address(t: &mut Tape) -> u64 {
    if t.below(8) == 0 { t.number(BASE, 1 << 16) } else { BASE + t.below(1 << 14) }
}

fn records_of_dynamorio(t: &mut Tape) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |kind: u16, size: u16, value: u64| {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    };
    let version = t.one(&[7, 7, 7, 6, 1, 8]);
    for (kind, size, value) in
        [(25, 0, version), (28, 12, version), (28, 9, t.one(&[0xe40, 0xe40, 0x40, 0x80, 1 << 40]))]
    {
        put(kind, size, value);
    }
    put(22, 4, 1);
    put(24, 4, 1);
    let mut time = 1000;
    for _ in 0..t.below(200) {
        match t.below(12) {
            0 => put(22, 4, t.below(3)),
            1 => {
                time += t.below(5);
                put(28, 2, if t.below(20) == 0 { t.u64() } else { time });
            }
            2 => put(17, t.below(9) as u16, t.u64()),
            3 => put(28, t.below(50) as u16, t.u64()),
            4 => put(t.below(52) as u16, t.below(20) as u16, address(t)),
            5..8 => put(10 + t.below(7) as u16, 1 + t.below(15) as u16, address(t)),
            _ => put(t.below(2) as u16, t.one(&[1, 4, 8, 64, 0xffff]), address(t)),
        }
    }
    put(26, 0, 0);
    bytes
}

/// Traces of DynamoRIO.
pub fn drmemtrace(t: &mut Tape) -> Result<(), String> {
    let bytes = records_of_dynamorio(t);
    check(t, "drmemtrace", bytes)
}

/// Traces of ChampSim.
pub fn champsim(t: &mut Tape) -> Result<(), String> {
    let mut bytes = Vec::new();
    for _ in 0..t.below(100) {
        bytes.extend(address(t).to_le_bytes());
        let mark = if t.below(100) == 0 { 2 } else { 1 };
        bytes.extend([t.below(2) as u8, mark, 0, 0, 0, 0, 0, 0]);
        for _ in 0..6 {
            bytes.extend(if t.below(2) == 0 { 0 } else { address(t) }.to_le_bytes());
        }
    }
    check(t, "champsim", bytes)
}

fn requests(t: &mut Tape) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..t.below(200) {
        bytes.extend((n as u32).to_le_bytes());
        bytes.extend(if t.below(8) == 0 { t.number(BASE, 64) } else { t.below(64) }.to_le_bytes());
        bytes.extend((t.u64() as u32).to_le_bytes());
        bytes.extend(t.one(&[-1, i64::MAX, 500, -2]).max(if t.below(50) == 0 { -2 } else { -1 }).to_le_bytes());
    }
    bytes
}

/// Traces in libCacheSim's format oracleGeneral.
pub fn oracle_general(t: &mut Tape) -> Result<(), String> {
    let bytes = requests(t);
    check(t, "oracle-general", bytes)
}

/// Text with columns (CSV).
pub fn csv(t: &mut Tape) -> Result<(), String> {
    let between = t.one(&[",", ";", "\t"]);
    let place = t.one(&["address", "page", "object", "key", "colour"]);
    let columns: Vec<&str> = ["time", "tid", "op", place, "size", "other"]
        .into_iter()
        .filter(|name| *name == place || t.below(2) == 0)
        .collect();
    let mut text = columns.join(between) + t.one(&["\n", "\r\n"]);
    let strange = t.below(4) == 0;
    for n in 0..t.below(200) {
        for (at, name) in columns.iter().enumerate() {
            text += if at == 0 { "" } else { between };
            let _ = match (*name, if strange { t.below(30) } else { 9 }) {
                (_, 0) => write!(text, "{}", t.one(&["", "\"", "0x", "-1", "1e9", "nan", "é", "read write"])),
                (_, 1) => write!(text, "{}", t.u64()),
                ("time", _) => write!(text, "{n}.5"),
                ("op", _) => write!(text, "{}", t.one(&["r", "W", "fetch", "2a", "\"load\""])),
                ("size", _) => write!(text, "{}", 1 + t.below(100)),
                ("key", 9..20) => write!(text, "k{}", t.below(50)),
                (_, 5..15) => write!(text, "{:#x}", address(t)),
                _ => write!(text, "{}", t.below(100)),
            };
        }
        text += "\n";
    }
    check(t, "csv", text.into_bytes())
}

/// Samples as perf prints them.
pub fn perf(t: &mut Tape) -> Result<(), String> {
    let (mut text, mut time) = (String::new(), 1_000_000u64);
    let strange = t.below(4) == 0;
    for _ in 0..t.below(200) {
        time += t.below(1000);
        let event = t.one(&[
            "cpu/mem-loads,ldlat=30/P:",
            "cpu/mem-stores/P:",
            "l1d-load:",
            if strange { "faults:" } else { "store:" },
        ]);
        let ids = t.one(&["7/8", "7/9", "8", if strange { "9/9" } else { "7" }]);
        let (cpu, period) = (t.one(&["", "[001]"]), t.one(&["", "  100"]));
        let (address, ip) = (address(t), if t.below(3) == 0 { String::new() } else { format!("{:x}", address(t)) });
        let _ = writeln!(
            text,
            "  my prog {ids} {cpu} {}.{:06}: {period} {event} {address:16x} {ip:>16} {}",
            time / 1_000_000,
            time % 1_000_000,
            t.one(&["", "main+0x1 (/bin/x)"]),
        );
    }
    check(t, "perf", text.into_bytes())
}

/// Regions of DAMON with their counts.
pub fn damon(t: &mut Tape) -> Result<(), String> {
    let mut text = String::new();
    let report = t.below(2) == 0;
    for _ in 0..t.below(12) {
        let regions = t.below(12);
        if report {
            let _ = writeln!(
                text,
                "\nmonitoring_start: 0 ns\ntarget_id: {}\nnr_regions: {regions}",
                t.one(&[1, 1, 1, 1, 2])
            );
        }
        for _ in 0..regions {
            let start = address(t) & !4095;
            let end =
                start.saturating_add(if t.below(16) == 0 { t.number(0, 1 << 40) } else { 4096 * (1 + t.below(9)) });
            let count = if t.below(20) == 0 { t.number(0, 1 << 20) } else { t.below(21) };
            let _ = if report {
                writeln!(text, "{start:012x}-{end:012x} (   3.949 MiB) {count:11} {:5}", -1)
            } else {
                let head = t.one(&["kdamond.0  4452 [000] 1.0: damon:", "kdamond.0-4452 [000] ..... 1.0: "]);
                writeln!(text, "{head}damon_aggregated: target_id=1 nr_regions={regions} {start}-{end}: {count} 5")
            };
        }
    }
    check(t, "damon", text.into_bytes())
}

/// Compressed files, damaged after compression.
pub fn archive(t: &mut Tape) -> Result<(), String> {
    let (format, bytes) =
        if t.below(2) == 0 { ("drmemtrace", records_of_dynamorio(t)) } else { ("oracle-general", requests(t)) };
    let packed = match t.below(3) {
        0 => {
            let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            to.write_all(&bytes).map_err(io)?;
            to.finish().map_err(io)?
        }
        1 => {
            let mut to = liblzma::write::XzEncoder::new(Vec::new(), 1);
            to.write_all(&bytes).map_err(io)?;
            to.finish().map_err(io)?
        }
        _ => zip(t, &bytes)?,
    };
    check(t, format, packed)
}

/// Makes an archive with the bytes in several files.
fn zip(t: &mut Tape, mut bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (mut packed, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    while !bytes.is_empty() {
        let (file, rest) = bytes.split_at(1 + t.below(bytes.len() as u64) as usize);
        let mut crc = flate2::Crc::new();
        crc.update(file);
        let mut to = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(file).map_err(io)?;
        let body = to.finish().map_err(io)?;
        let mut fields = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        fields.extend(crc.sum().to_le_bytes());
        fields.extend((body.len() as u32).to_le_bytes());
        fields.extend((file.len() as u32).to_le_bytes());
        fields.extend([1, 0, 0, 0]);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend((packed.len() as u32).to_le_bytes());
        directory.push(b'a');
        packed.extend(b"PK\x03\x04");
        packed.extend(&fields);
        packed.push(b'a');
        packed.extend(&body);
        (bytes, count) = (rest, count + 1);
    }
    let at = packed.len() as u32;
    packed.extend(&directory);
    packed.extend(b"PK\x05\x06\0\0\0\0");
    packed.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    packed.extend((directory.len() as u32).to_le_bytes());
    packed.extend(at.to_le_bytes());
    packed.extend([0, 0]);
    Ok(packed)
}
