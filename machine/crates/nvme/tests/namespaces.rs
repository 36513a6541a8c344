// SPDX-License-Identifier: Apache-2.0
//! Controllers with several namespaces that differ in size, format and contents.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{CLOCK, DATA, Disk, Host, Sqe, controller_of, read, write};
use trapless_nvme::{Backend, Overlay};

const MIB: usize = 1 << 20;
const INVALID_NAMESPACE: u16 = 0x0b;
const OUT_OF_RANGE: u16 = 0x80;
const WRITE_PROTECTED: u16 = 0x20;

/// A host with three namespaces: 1 MiB of 512-byte blocks, 2 MiB of 4 KiB blocks, and 64 KiB that are write protected.
fn three() -> Host {
    let small = Disk { read_only: true, ..Disk::numbered(MIB / 16) };
    Host::with_namespaces(vec![(Disk::numbered(MIB), 512), (Disk::numbered(2 * MIB), 4096), (small, 512)])
}

fn identify(h: &mut Host, nsid: u32, cns: u32) -> Vec<u8> {
    assert_eq!(h.admin(Sqe::new(6, nsid).prp(DATA, 0).dw(10, cns)).status, 0);
    h.peek(DATA, 4096)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

#[test]
fn identify_tells_of_all() {
    let mut h = three();
    assert_eq!(number(&identify(&mut h, 0, 1)[516..520]), 3, "NN");
    let list = |h: &mut Host, above| identify(h, above, 2)[..16].chunks(4).map(number).collect::<Vec<_>>();
    assert_eq!(list(&mut h, 0), [1, 2, 3, 0]);
    assert_eq!(list(&mut h, 2), [3, 0, 0, 0]);
    assert_eq!(list(&mut h, 3), [0; 4]);
    let mut names = Vec::new();
    for (nsid, blocks, log2, write_protected) in [(1, 2048, 9, 0), (2, 512, 12, 0), (3, 128, 9, 1)] {
        let id = identify(&mut h, nsid, 0);
        assert_eq!([0, 8, 16].map(|at| number(&id[at..at + 8])), [blocks; 3], "namespace {nsid}");
        let format = usize::from(id[26] & 0xf);
        assert!(format <= usize::from(id[25]));
        assert_eq!((id[128 + 4 * format + 2], id[99]), (log2, write_protected), "namespace {nsid}");
        let descriptor = identify(&mut h, nsid, 3);
        assert_eq!((descriptor[0], descriptor[1], &descriptor[4..20]), (2, 16, &id[104..120]));
        names.push(id[104..120].to_vec());
    }
    names.dedup();
    assert_eq!(names.len(), 3, "each has its own identifier");
    for (nsid, cns) in [(4, 0), (0, 0), (u32::MAX, 0), (4, 3), (0, 3)] {
        assert_eq!(h.admin(Sqe::new(6, nsid).prp(DATA, 0).dw(10, cns)).status, INVALID_NAMESPACE);
    }
}

#[test]
fn each_has_its_blocks_and_its_end() {
    let mut h = three();
    for (nsid, last, sector) in [(1, 2047, 2047), (2, 511, 511 * 8), (3, 127, 127u64)] {
        assert_eq!(h.io(read(last, 1).nsid(nsid)).status, 0);
        assert_eq!(h.peek(DATA, 8), sector.to_le_bytes(), "namespace {nsid}");
        assert_eq!(h.io(read(last, 2).nsid(nsid)).status, OUT_OF_RANGE);
        assert_eq!(h.io(read(last + 1, 1).nsid(nsid)).status, OUT_OF_RANGE);
    }
    assert_eq!(h.io(read(0, 32).nsid(2)).status, 0x04, "the PRP list has no valid address");
    assert_eq!(h.io(read(0, 33).nsid(2)).status, 0x02, "more than MDTS in blocks of 4 KiB");
    for nsid in [0, 4, u32::MAX] {
        assert_eq!(h.io(read(0, 1).nsid(nsid)).status, INVALID_NAMESPACE);
        assert_eq!(h.io(write(0, 1).nsid(nsid)).status, INVALID_NAMESPACE);
    }
}

#[test]
fn what_is_written_to_one_is_not_in_another() {
    let mut h = three();
    h.poke(DATA, &[0xa5; 4096]);
    assert_eq!(h.io(write(8, 1).nsid(2)).status, 0);
    assert_eq!(h.io(write(8, 1).nsid(3)).status, WRITE_PROTECTED);
    assert_eq!(h.io(Sqe::new(8, 1).lba(16, 8)).status, 0, "zeroes");
    for (nsid, lba, expected) in
        [(1, 8, 8u64), (3, 8, 8), (1, 16, 0), (2, 8, 0xa5a5_a5a5_a5a5_a5a5), (2, 2, 16), (3, 16, 16)]
    {
        assert_eq!(h.io(read(lba, 1).nsid(nsid)).status, 0);
        assert_eq!(h.peek(DATA, 8), expected.to_le_bytes(), "namespace {nsid} block {lba}");
    }
    // Deallocate blocks 1 and 2 of namespace 2, which has blocks of 4 KiB.
    h.poke_u64s(DATA, &[2 << 32, 1]);
    assert_eq!(h.io(Sqe::new(9, 2).prp(DATA, 0).dw(10, 0).dw(11, 4)).status, 0);
    for (lba, expected) in [(0, 0u64), (1, 0), (2, 0), (3, 24)] {
        assert_eq!(h.io(read(lba, 1).nsid(2)).status, 0);
        assert_eq!(h.peek(DATA, 8), expected.to_le_bytes(), "block {lba}");
    }
}

#[test]
fn a_flush_is_for_one_or_for_all() {
    let mut h = three();
    for (nsid, status) in [(1, 0), (3, 0), (u32::MAX, 0), (4, INVALID_NAMESPACE), (0, INVALID_NAMESPACE)] {
        assert_eq!(h.io(Sqe::new(0, nsid)).status, status);
    }
}

#[test]
fn the_units_of_a_command_are_its_namespaces() {
    let mut h = three();
    let mut time = |sqe: Sqe| {
        let start = h.now;
        assert_eq!(h.io(sqe).status, 0);
        h.now.since(start)
    };
    let (page, sector) = (time(read(0, 8)), time(read(0, 1)));
    assert_eq!(time(read(0, 1).nsid(2)), page);
    assert!(page > sector);
    assert_eq!(CLOCK.micros(page), 28.16);
}

#[test]
fn a_state_fits_the_same_namespaces_only() {
    let snapshots = |disks: &[(usize, u32)]| {
        let contents = disks.iter().map(|&(size, block)| {
            (Box::new(Overlay::new(Disk { read_only: true, ..Disk::numbered(size) })) as Box<dyn Backend>, block)
        });
        controller_of(contents.collect())
    };
    let mut h = Host { ctrl: snapshots(&[(MIB, 512), (MIB, 4096)]), ..Host::off(Disk::numbered(MIB)) };
    h.enable();
    h.create_pair(h.io);
    h.poke(DATA, &[0xa5; 4096]);
    assert_eq!(h.io(write(7, 1).nsid(2)).status, 0);
    let why = |disks: &[(usize, u32)]| snapshots(disks).restore(h.ctrl.save().unwrap()).unwrap_err();
    assert_eq!(why(&[(MIB, 512)]), "has another number of namespaces than the attached disk");
    assert_eq!(why(&[(MIB, 512), (2 * MIB, 4096)]), "has another size than the attached disk");
    assert_eq!(why(&[(MIB, 512), (MIB, 512)]), "has blocks of another size than the attached disk");
    let mut other = snapshots(&[(MIB, 512), (MIB, 4096)]);
    other.restore(h.ctrl.save().unwrap()).unwrap();
    h.ctrl = other;
    for (nsid, lba, expected) in [(2, 7, 0xa5a5_a5a5_a5a5_a5a5), (1, 7, 7u64)] {
        assert_eq!(h.io(read(lba, 1).nsid(nsid)).status, 0);
        assert_eq!(h.peek(DATA, 8), expected.to_le_bytes());
    }
}
