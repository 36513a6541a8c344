// SPDX-License-Identifier: Apache-2.0
//! Image files and snapshots.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;
use trapless_nvme::{Backend, Image, ImageMode, Overlay, open_image};

fn image(dir: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join("disk.img");
    fs::write(&path, bytes).unwrap();
    path
}

fn error(path: &Path, mode: ImageMode) -> String {
    let text = open_image(path, mode).err().expect("an error").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn bad_images_are_named() {
    let dir = TempDir::new().unwrap();
    assert!(error(Path::new("no/such.img"), ImageMode::ReadOnly).starts_with("disk image no/such.img: No such file"));
    assert!(error(dir.path(), ImageMode::ReadOnly).contains("directory"));
    for size in [0, 1, 512, 4095, 4097, 8191] {
        let path = image(&dir, &vec![0; size]);
        let text = error(&path, ImageMode::ReadWrite);
        assert!(text.contains(&format!("size of {size} bytes")) && text.contains("disk.img"), "{text}");
    }
}

#[test]
fn one_writer_or_many_readers() {
    let dir = TempDir::new().unwrap();
    let path = image(&dir, &[0; 4096]);
    let reader = open_image(&path, ImageMode::Snapshot).unwrap();
    let _second = open_image(&path, ImageMode::ReadOnly).unwrap();
    assert!(error(&path, ImageMode::ReadWrite).contains("disk.img: in use by another machine"));
    drop((reader, _second));
    let _writer = open_image(&path, ImageMode::ReadWrite).unwrap();
    assert!(error(&path, ImageMode::Snapshot).contains("in use by another machine"));
}

#[test]
fn sixteen_gigabytes_cost_what_is_written() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("big.img");
    File::create(&path).unwrap().set_len(16 << 30).unwrap();
    let mut disk = open_image(&path, ImageMode::ReadWrite).unwrap();
    assert_eq!(disk.size(), 16 << 30);
    let last = (16 << 30) - 4096;
    disk.write(last, &[7; 4096]).unwrap();
    disk.zero(0, 8 << 30).unwrap();
    let mut buf = [1; 4096];
    disk.read(last - 4096, &mut buf).unwrap();
    assert_eq!(buf, [0; 4096]);
    disk.read(last, &mut buf).unwrap();
    assert_eq!(buf, [7; 4096]);
    assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);

    drop(disk);
    let mut snapshot = open_image(&path, ImageMode::Snapshot).unwrap();
    snapshot.zero(0, 16 << 30).unwrap();
    snapshot.read(last, &mut buf).unwrap();
    assert_eq!(buf, [0; 4096]);
}

#[test]
fn a_file_that_shrinks_under_the_machine_is_an_error() {
    let dir = TempDir::new().unwrap();
    let path = image(&dir, &[0; 16384]);
    let mut disk = open_image(&path, ImageMode::ReadOnly).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let text = disk.read(8192, &mut [0; 512]).unwrap_err().to_string();
    assert!(text.contains("disk.img: cannot read at byte 8192"), "{text}");
}

#[test]
fn a_snapshot_leaves_the_file_alone() {
    let dir = TempDir::new().unwrap();
    let path = image(&dir, &[3; 16384]);
    let mut disk = open_image(&path, ImageMode::Snapshot).unwrap();
    assert!(!disk.read_only());
    disk.write(100, &[4; 5000]).unwrap();
    disk.zero(8000, 4000).unwrap();
    drop(disk);
    assert!(fs::read(&path).unwrap().iter().all(|&b| b == 3));
}

const PAGES: usize = 12;
const SIZE: usize = PAGES * 4096;

#[derive(Clone, Debug)]
enum Op {
    Write(usize, usize, u8),
    Zero(usize, usize),
    Read(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    // Ranges are multiples of 512 bytes; many are whole pages.
    let range = prop_oneof![
        (0..SIZE / 512, 1..40usize).prop_map(|(at, n)| (at * 512, n * 512)),
        (0..PAGES, 1..5usize).prop_map(|(at, n)| (at * 4096, n * 4096)),
    ]
    .prop_map(|(at, n)| (at, n.min(SIZE - at)));
    prop_oneof![
        (range.clone(), 1..=255u8).prop_map(|((at, n), b)| Op::Write(at, n, b)),
        range.clone().prop_map(|(at, n)| Op::Zero(at, n)),
        range.prop_map(|(at, n)| Op::Read(at, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_and_snapshots_behave_as_an_array_does(ops in vec(op(), 1..60)) {
        let dir = TempDir::new().unwrap();
        let start: Vec<u8> = (0..SIZE).map(|i| (i / 512 % 251) as u8 + 1).collect();
        let path = image(&dir, &start);
        for mode in [ImageMode::Snapshot, ImageMode::ReadWrite] {
            let mut model = start.clone();
            let mut disk = open_image(&path, mode).unwrap();
            for op in &ops {
                match *op {
                    Op::Write(at, n, b) => {
                        disk.write(at as u64, &vec![b; n]).unwrap();
                        model[at..at + n].fill(b);
                    }
                    Op::Zero(at, n) => {
                        disk.zero(at as u64, n as u64).unwrap();
                        model[at..at + n].fill(0);
                    }
                    Op::Read(at, n) => {
                        let mut got = vec![0xee; n];
                        disk.read(at as u64, &mut got).unwrap();
                        prop_assert_eq!(&got, &model[at..at + n]);
                    }
                }
            }
            let mut whole = vec![0; SIZE];
            disk.read(0, &mut whole).unwrap();
            prop_assert_eq!(whole, model);
        }
    }
}

#[test]
fn an_overlay_needs_no_file() {
    let dir = TempDir::new().unwrap();
    let base = Image::open(&image(&dir, &[9; 4096]), ImageMode::ReadOnly).unwrap();
    let mut disk = Overlay::new(base);
    disk.write(0, &[1]).unwrap();
    let mut two = [0; 2];
    disk.read(0, &mut two).unwrap();
    assert_eq!(two, [1, 9]);
}
