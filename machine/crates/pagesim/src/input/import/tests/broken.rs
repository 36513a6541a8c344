// SPDX-License-Identifier: Apache-2.0
//! Imports files that are cut, damaged or of no known format. Each gives an error of one line and no panic.

use proptest::prelude::*;

use super::write::{foot, head, record};
use super::*;

/// A format, a small trace of it, and whether the trace may end after these bytes, which is so at the end of a record or a line.
type Sample = (&'static str, Vec<u8>, fn(&[u8]) -> bool);

/// One sample of each format.
fn samples() -> Vec<Sample> {
    let lines = |bytes: &[u8]| bytes.ends_with(b"\n");
    let instruction = [record(28, 2, 1000), record(10, 4, 0x1000), record(1, 8, 0x2000)].concat();
    let aggregations = [vec![(10, 2, 1), (20, 1, 2)], vec![(11, 1, 1)]];
    vec![
        ("drmemtrace", [head(5), instruction, foot(5)].concat(), |_| false),
        ("lackey", b"==1== x\nI  00401000,3\n L 1ffeffe7e0,8\n".to_vec(), lines),
        ("damon", write::damon_events(&aggregations).into_bytes(), |bytes| {
            // At the end of an aggregation.
            bytes.ends_with(b"\n") && matches!(bytes.iter().filter(|b| **b == b'\n').count(), 2 | 3)
        }),
        ("perf", write::perf(&[(5, 80, false, 0x1000, 0x2000), (6, 80, true, 0x1000, 0x2000)]).into_bytes(), lines),
        ("csv", b"time,page\n1,5\n2,6\n".to_vec(), lines),
        ("oracle-general", write::oracle(&[(1, 1), (2, 1), (1, 1)]), |bytes| bytes.len() % 24 == 0),
        ("champsim", (0..20).flat_map(|n| write::champsim(0x1000 + n, &[0x5000], &[])).collect(), |bytes| {
            bytes.len() % 64 == 0
        }),
    ]
}

#[test]
fn every_format_is_found() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(samples().len(), FORMATS.len());
    for (name, bytes, _) in samples() {
        for (form, bytes) in [("plain", bytes.clone()), ("xz", write::xz(&bytes)), ("zip", write::zip(&[&bytes], true))]
        {
            let trace = of(&dir, &bytes, None).unwrap_or_else(|e| panic!("{name}, {form}: {e}"));
            assert_eq!(stored(&trace).1.profile, name, "{form}");
        }
        assert!(FORMATS.iter().filter(|f| f.detects(&bytes)).all(|f| f.name() == name), "{name}");
    }
    // A request refers to a record of another object as the next one.
    let mut wrong = write::oracle(&[(1, 1), (2, 1), (1, 1)]);
    wrong[48 + 4] = 9;
    for (bytes, says) in [
        (&wrong[..], "its content does not tell its format"),
        (b"", "source: is empty"),
        (b"hello\n", "source: its content does not tell its format; give --format: drmemtrace, lackey, damon"),
        (&[0; 4096], "its content does not tell its format"),
        (b"BZh91AY", "is compressed by bzip2, which is not read; decompress it: bzip2 -dk FILE"),
        (b"PK\x05\x06nothing", "its archive: it has no directory at its end"),
    ] {
        let said = complaint(of(&dir, bytes, None));
        assert!(said.contains(says), "{said}");
    }
    let missing = complaint(imported(&dir, &dir.path().join("none"), None, Part::ALL, Options::default()));
    assert!(missing.contains("none: No such file"), "{missing}");
}

#[test]
fn what_is_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes, ends) in samples() {
        for len in 0..=bytes.len() {
            let cut = of(&dir, &bytes[..len], Some(name));
            let whole = len == bytes.len() || len > 0 && ends(&bytes[..len]);
            match cut {
                Ok(_) => assert!(whole, "{name}: {len} bytes"),
                Err(error) => {
                    let text = complaint(Err(error));
                    // A file of a header without accesses may end there.
                    assert!(
                        text.contains("source: ") && (!whole || text.ends_with("has no memory access")),
                        "{name}: {text}"
                    );
                }
            }
        }
        let forms: [(&str, Vec<u8>); 4] = [
            ("gzip", write::gzip(&bytes)),
            ("xz", write::xz(&bytes)),
            ("zstd", zstd::encode_all(&bytes[..], 1).unwrap()),
            ("zip", write::zip(&[&bytes[..9], &bytes[9..]], name.len() % 2 == 0)),
        ];
        for (form, packed) in forms {
            assert!(of(&dir, &packed, Some(name)).is_ok(), "{name}, {form}");
            for len in 0..packed.len() {
                // The comment at the end of an archive does not matter.
                let comment = form == "zip" && len + 6 >= packed.len();
                let cut = of(&dir, &packed[..len], Some(name));
                assert!(comment || complaint(cut).contains("source: "), "{name}, {form}: {len} bytes");
            }
        }
    }
}

#[test]
fn what_is_wrong_in_a_compressed_file() {
    let dir = tempfile::tempdir().unwrap();
    let (name, bytes, _) = samples().remove(5);
    let packed = write::gzip(&bytes);
    let said = complaint(of(&dir, &packed[..packed.len() - 9], Some(name)));
    assert!(said.contains("source: byte ") && said.contains("cannot be decompressed beyond here"), "{said}");
    let mut wrong = write::zip(&[&bytes], false);
    wrong[14] ^= 1;
    assert!(of(&dir, &wrong, Some(name)).is_ok(), "the sum before the file is not the directory's");
    let at = wrong.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    wrong[at + 16] ^= 1;
    assert!(complaint(of(&dir, &wrong, Some(name))).contains("a file's check sum is wrong"));
    // Absurd lengths must be refused.
    for place in [at + 20, at + 24, at + 28, at + 42] {
        let mut absurd = write::zip(&[&bytes], false);
        absurd[place..place + 2].copy_from_slice(&[0xfe, 0xff]);
        complaint(of(&dir, &absurd, Some(name)));
    }
    let long = format!("page\n{}\n", "1".repeat(70_000));
    assert!(complaint(of(&dir, long, None)).contains("line 2: longer than 65536 bytes"));
}

proptest! {
    #[test]
    fn any_bytes_are_stored_or_refused_in_a_line(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        format in 0..7usize,
        prefix in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        like: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let name = FORMATS[format].name();
        if like {
            // The input begins with a part of a valid trace, in which some bytes are wrong.
            let sample = samples().into_iter().find(|(other, ..)| *other == name).unwrap().1;
            let mut whole = sample[..prefix.index(sample.len() + 1)].to_vec();
            whole.append(&mut bytes);
            bytes = whole;
        }
        for (at, byte) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let from = dir.path().join("source");
        std::fs::write(&from, &bytes).unwrap();
        let part = Part { skip: 0, limit: 100_000 };
        for named in [Some(name), None] {
            match imported(&dir, &from, named, part, Options::default()) {
                Ok(trace) => prop_assert!(simulated(&trace) > 0),
                Err(error) => {
                    let text = error.to_string();
                    prop_assert!(text.contains("source: ") && text.lines().count() == 1, "{}", text);
                }
            }
        }
    }
}
