// SPDX-License-Identifier: Apache-2.0
//! Faults: the effect of each kind, as the host sees it.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{CLOCK, CSTS, DATA, Disk, Host, IO_CQ, IO_SQ, Pair, Sqe, read, write};
use trapless_memory::Cycle;

const MEDIA: u16 = 0x281;
const WRITE_FAULT: u16 = 0x280;
const ABORTED: u16 = 0x007;
const CFS: u32 = 2;

fn host(faults: &[&str]) -> Host {
    let mut host = Host::new();
    for fault in faults {
        host.ctrl.inject(fault.parse().unwrap(), CLOCK).unwrap();
    }
    host
}

fn struck(host: &Host) -> Vec<u64> {
    host.ctrl.faults().map(|(_, struck)| struck).collect()
}

#[test]
fn a_media_error_is_where_it_was_put_and_stays() {
    let mut h = host(&["media-error,disk=1,lba=8-9"]);
    for _ in 0..2 {
        assert_eq!(h.io(read(0, 8)).status, 0);
        assert_eq!(h.io(read(10, 1)).status, 0);
        assert_eq!(h.io(read(9, 1)).status, MEDIA);
        assert_eq!(h.io(read(0, 9)).status, MEDIA, "one bad block is enough");
        assert_eq!(h.io(write(8, 2)).status, WRITE_FAULT);
    }
    assert_eq!(struck(&h), [6]);
}

#[test]
fn a_failed_read_takes_its_time_and_writes_nothing() {
    let mut h = host(&["media-error,disk=1,lba=8"]);
    h.poke(DATA, &[0x5a; 512]);
    let start = h.now;
    assert_eq!(h.io(read(0, 1)).status, 0);
    let good = h.now.since(start);
    h.poke(DATA, &[0x5a; 512]);
    let start = h.now;
    assert_eq!(h.io(read(8, 1)).status, MEDIA);
    assert_eq!(h.now.since(start), good);
    assert_eq!(h.peek(DATA, 512), vec![0x5a; 512]);
}

#[test]
fn count_skip_op_and_queue_choose_the_command() {
    let mut h = host(&["abort,disk=1,op=read,skip=1,count=2", "abort,disk=1,queue=2,count=9"]);
    let statuses: Vec<u16> = (0..5).map(|n| h.io(if n == 0 { write(0, 1) } else { read(n, 1) }).status).collect();
    assert_eq!(statuses, [0, 0, ABORTED, ABORTED, 0]);
    let mut second = Pair::new(2, IO_SQ + 0x4000, IO_CQ + 0x4000, 8);
    h.create_pair(second);
    assert_eq!(h.submit(&mut second, read(0, 1)).unwrap().status, ABORTED);
    assert_eq!(struck(&h), [2, 1]);
}

#[test]
fn every_so_many_commands_one_is_struck() {
    let mut h = host(&["media-error,disk=1,op=read,skip=2,every=3,count=2"]);
    let statuses: Vec<u16> = (0..10).map(|n| h.io(read(n, 1)).status).collect();
    assert_eq!(statuses, [0, 0, MEDIA, 0, 0, MEDIA, 0, 0, 0, 0]);
}

#[test]
fn a_late_command_is_done_late_and_whole() {
    let mut h = host(&["late,disk=1,skip=1,every=2,by=0.001"]);
    let mut times = Vec::new();
    for n in 0..4 {
        let start = h.now;
        assert_eq!(h.io(read(n, 1)).status, 0);
        assert_eq!(h.peek(DATA, 8), n.to_le_bytes());
        times.push(h.now.since(start));
    }
    assert_eq!((times[2], times[3]), (times[0], times[1]));
    assert_eq!(times[1].since(times[0]), Cycle(100_000));
    // Abort finds a late command before the command is done.
    let mut p = h.io;
    h.push(&mut p, read(0, 1));
    h.push(&mut p, read(0, 1).cid(9));
    h.ring_sq(&p);
    let soon = h.now + Cycle(50_000);
    h.until(soon);
    let mut admin = h.admin;
    h.push(&mut admin, Sqe::new(0x08, 0).dw(10, 1 | 9 << 16));
    h.ring_sq(&admin);
    let soon = h.now + Cycle(10_000);
    h.until(soon);
    let done = [h.poll(&mut p), h.poll(&mut p)].map(|c| c.unwrap().status);
    assert_eq!((done, h.poll(&mut admin).unwrap().result & 1), ([0, ABORTED], 0));
}

#[test]
fn a_fault_has_its_namespace() {
    let mut h = Host::with_namespaces(vec![(Disk::numbered(1 << 20), 512), (Disk::numbered(1 << 20), 4096)]);
    h.ctrl.inject("media-error,disk=1,namespace=2,lba=255".parse().unwrap(), CLOCK).unwrap();
    let second = |lba| read(lba, 1).nsid(2);
    assert_eq!((h.io(read(255, 1)).status, h.io(second(255)).status, h.io(second(254)).status), (0, MEDIA, 0));
    let mut why = |text: &str| h.ctrl.inject(text.parse().unwrap(), CLOCK).unwrap_err().to_string();
    assert!(why("hang,disk=1,namespace=2,lba=256").contains("256 blocks"));
    assert!(why("hang,disk=1,namespace=3").contains("namespaces are 1 to 2"));
    assert!(why("hang,disk=1,namespace=0").contains("namespaces are 1 to 2"));
}

#[test]
fn time_puts_a_fault_off() {
    let mut h = Host::new();
    let from = h.now + Cycle(1_000_000);
    h.ctrl.inject(format!("abort,disk=1,after={}", CLOCK.micros(from) / 1e6).parse().unwrap(), CLOCK).unwrap();
    assert_eq!(h.io(read(0, 1)).status, 0);
    h.until(from);
    assert_eq!(h.io(read(0, 1)).status, ABORTED);
}

/// Abort does not find a hung command, and the deletion of its queue posts no completion for it. A reset ends it.
#[test]
fn a_hung_command_never_completes() {
    let mut h = host(&["hang,disk=1"]);
    let mut pair = Pair::new(2, IO_SQ + 0x4000, IO_CQ + 0x4000, 8);
    h.create_pair(pair);
    assert!(h.submit(&mut pair, read(0, 1).cid(7)).is_none());
    let abort = h.admin(Sqe::new(0x08, 0).dw(10, 2 | 7 << 16));
    assert_eq!((abort.status, abort.result & 1), (0, 1), "not aborted");
    assert_eq!(h.admin(Sqe::new(0x00, 0).dw(10, 2)).status, 0);
    h.settle();
    assert!(h.poll(&mut pair).is_none());
    h.write(0x14, 0);
    h.enable();
    h.create_pair(Pair::new(2, IO_SQ + 0x4000, IO_CQ + 0x4000, 8));
}

#[test]
fn a_fatal_controller_says_so_until_it_is_reset() {
    let mut h = host(&["fatal,disk=1"]);
    let mut pair = Pair::new(2, IO_SQ + 0x4000, IO_CQ + 0x4000, 8);
    h.create_pair(pair);
    assert!(h.submit(&mut pair, read(0, 1)).is_none());
    assert_eq!(h.read(CSTS) & CFS, CFS);
    h.write(0x14, 0);
    assert_eq!(h.read(CSTS), 0);
    h.enable();
    assert_eq!(h.read(CSTS), 1);
}

#[test]
fn a_removed_device_reads_all_ones_and_does_nothing_more() {
    let mut h = host(&["remove,disk=1,skip=1"]);
    let mut pair = Pair::new(2, IO_SQ + 0x4000, IO_CQ + 0x4000, 8);
    h.create_pair(pair);
    assert_eq!(h.submit(&mut pair, read(0, 1)).unwrap().status, 0);
    assert!(h.submit(&mut pair, read(0, 1)).is_none());
    assert!(h.ctrl.is_removed() && !h.ctrl.irq_asserted());
    assert_eq!((h.read(CSTS), h.read(0x14), h.read(0)), (u32::MAX, u32::MAX, u32::MAX));
    h.write(0x14, 0);
    h.write(0x14, 1);
    assert_eq!(h.read(CSTS), u32::MAX);
    assert_eq!(h.ctrl.next_event(), Cycle::NEVER);
}

#[test]
fn a_fault_that_could_never_happen_is_refused() {
    let mut h = Host::with(Disk::numbered(1 << 20));
    let mut why = |text: &str| h.ctrl.inject(text.parse().unwrap(), CLOCK).unwrap_err().to_string();
    assert!(why("hang,disk=1,lba=2048").contains("2048 blocks"));
    assert!(why("hang,disk=1,queue=65").contains("queue=65"));
}
