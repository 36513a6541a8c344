// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim import`: each format from the command line, and nothing left of what cannot be imported.

use std::path::Path;
use std::process::{Command, Output};

fn pagesim(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).current_dir(dir).args(arguments).output().unwrap()
}

fn works(dir: &Path, arguments: &[&str]) -> String {
    let done = pagesim(dir, arguments);
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn complaint(dir: &Path, arguments: &[&str]) -> String {
    let done = pagesim(dir, arguments);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), said.lines().count(), done.stdout.len()), (Some(2), 1, 0), "{arguments:?}: {said}");
    said
}

/// Records of oracleGeneral for these objects.
fn oracle(objects: &[u64]) -> Vec<u8> {
    let record = |object: &u64| [&[0; 4][..], &object.to_le_bytes(), &[0, 16, 0, 0], &(-1i64).to_le_bytes()].concat();
    objects.iter().flat_map(record).collect()
}

/// A program of DynamoRIO's with one instruction and one store.
fn drmemtrace() -> Vec<u8> {
    let records: [(u16, u16, u64); 7] =
        [(25, 0, 7), (28, 9, 0x40), (22, 4, 3), (24, 4, 3), (10, 4, 0x1000), (1, 8, 0x2000), (26, 0, 0)];
    let bytes = |(kind, size, value): &(u16, u16, u64)| {
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    records.iter().flat_map(bytes).collect()
}

#[test]
fn each_format_is_stored_with_its_sums() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    std::fs::create_dir_all(dir.join("drmemtrace.x.dir/trace")).unwrap();
    let champsim: Vec<u8> = [0x1000u64, 0, 0, 0, 0x2000, 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    for (name, bytes) in [
        ("drmemtrace.x.dir/trace/x.trace", drmemtrace()),
        ("a.champsim", champsim),
        ("a.bin", oracle(&[1, 2, 3, 2, 1])),
        ("a.csv", b"page,op\n1,r\n2,w\n2,w\n".to_vec()),
        ("plain.csv", b"3,1\n4,2\n".to_vec()),
        ("perf.txt", b"x 1/1 1.5: cpu/mem-loads/P: 7ffe1000 401000\n".to_vec()),
        ("damon.txt", b"k 1 [0] 1.0: damon:damon_aggregated: target_id=0 nr_regions=1 4096-12288: 2 0\n".to_vec()),
        ("lackey.txt", b"I  00401000,3\n".to_vec()),
    ] {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    for (arguments, accesses, pages, lines) in [
        (&["drmemtrace.x.dir"][..], 2, 2, true),
        (&["a.champsim", "--format", "champsim"], 2, 2, true),
        (&["a.bin", "--format", "oracle-general"], 5, 3, false),
        (&["a.bin", "--format", "oracle-general", "--skip", "1", "--limit", "2"], 2, 2, false),
        (&["a.bin", "--format", "oracle-general", "--unit", "4096", "--instructions", "10"], 5, 3, false),
        (&["a.csv"], 3, 2, false),
        (&["plain.csv", "--columns", "page,time"], 2, 2, false),
        (&["perf.txt"], 2, 2, true),
        (&["damon.txt"], 4, 2, false),
        (&["lackey.txt"], 1, 1, true),
    ] {
        works(dir, &[&["import"], arguments, &["--out", "to.trace"]].concat());
        let sums: serde_json::Value = serde_json::from_str(&works(dir, &["info", "--json", "to.trace"])).unwrap();
        assert_eq!((&sums["accesses"], &sums["footprint_pages"]), (&accesses.into(), &pages.into()), "{arguments:?}");
        assert_eq!(sums["cache_misses"].is_number(), lines, "{arguments:?}");
        let beside: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.join("to.trace.json")).unwrap()).unwrap();
        assert_eq!(sums, beside);
        std::fs::remove_file(dir.join("to.trace")).unwrap();
    }
    let help = works(dir, &["import", "--help"]);
    for format in trapless_pagesim::input::import::FORMATS {
        assert!(help.contains(format.name()) && help.contains(format.about()), "{help}");
    }
}

#[test]
fn nothing_is_left_of_what_cannot_be_imported() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let before = b"an older trace";
    std::fs::write(dir.join("to.trace"), before).unwrap();
    std::fs::write(dir.join("cut.bin"), &oracle(&[1, 2])[..40]).unwrap();
    std::fs::write(dir.join("cut.trace"), &drmemtrace()[..drmemtrace().len() - 12]).unwrap();
    std::fs::write(dir.join("a.csv"), "page\n1\nx\n").unwrap();
    std::fs::write(dir.join("kernel.txt"), "x 1/1 1.5: cpu/mem-loads/P: 7ffe1000 ffffffff81000000\n").unwrap();
    std::fs::write(dir.join("empty"), "").unwrap();
    for (arguments, says) in [
        (&["cut.bin"][..], "cut.bin: its content does not tell its format; give --format: drmemtrace, lackey"),
        (
            &["cut.bin", "--format", "oracle-general"],
            "cut.bin: record 2 at byte 24: cut short: 16 of a record's 24 bytes",
        ),
        (&["cut.trace"], "cut.trace: record 6 at byte 60: cut short: the last record is not a footer"),
        (&["a.csv"], "a.csv: line 3: \"x\" is not a number such as 4096 or 0x1000"),
        (&["a.csv", "--unit", "512"], "--unit needs a column of objects"),
        (&["kernel.txt"], "kernel.txt: all its accesses are the kernel's"),
        (&["empty"], "empty: is empty"),
        (&["."], ".: has no *.trace"),
        (&["no-such"], "no-such: No such file"),
    ] {
        if arguments == ["."] {
            std::fs::remove_file(dir.join("cut.trace")).unwrap();
            std::fs::rename(dir.join("to.trace"), dir.join("to")).unwrap();
        }
        let said = complaint(dir, &[&["import", "--out", "to.trace"], arguments].concat());
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(std::fs::read(dir.join("to")).unwrap(), before);
    let mut left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.csv", "cut.bin", "empty", "kernel.txt", "to"]);
    let unknown = pagesim(dir, &["import", "a.csv", "--out", "to.trace", "--format", "x"]);
    assert!(unknown.status.code() == Some(2) && String::from_utf8_lossy(&unknown.stderr).contains("drmemtrace"));
}
