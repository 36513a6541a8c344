// SPDX-License-Identifier: Apache-2.0
//! I/O commands: data, PRPs, status codes, time.

mod common;

use common::*;
use trapless_memory::{Cycle, PhysAddr};

/// Returns the numbers of the blocks in `data`.
fn block_numbers(data: &[u8]) -> Vec<u64> {
    data.chunks_exact(512).map(|b| u64::from_le_bytes(b[504..].try_into().unwrap())).collect()
}

#[test]
fn a_read_brings_the_blocks_and_nothing_else_is_written() {
    let mut h = Host::new();
    h.mem.writes.clear();
    let c = h.io(read(16, 8).cid(0x1234));
    assert_eq!((c.status, c.cid, c.sqid, c.sq_head), (0, 0x1234, 1, 1));
    assert_eq!(block_numbers(&h.peek(DATA, 4096)), (16..24).collect::<Vec<_>>());
    // REQ: SMU-4: data first, then the completion queue entry.
    assert_eq!(h.mem.writes, [(PhysAddr(DATA), 4096), (PhysAddr(IO_CQ), 16)]);
}

#[test]
fn a_read_takes_the_latency_of_the_profile_from_doorbell_to_completion() {
    let mut h = Host::new();
    h.until(Cycle(1_000_000));
    h.io(read(0, 8));
    let r = *h.records.last().unwrap();
    assert_eq!((r.doorbell, r.fetched, r.completed), (Cycle(1_000_000), Cycle(1_000_100), Cycle(1_002_816)));
    assert_eq!((r.sqid, r.cqid, r.opcode, r.slba, r.blocks, r.status), (1, 1, 2, 0, 8, 0));
    assert_eq!(r.cq_entry, PhysAddr(IO_CQ));
}

#[test]
fn nothing_is_written_before_the_completion_is_due() {
    let mut h = Host::new();
    let start = h.now;
    h.mem.writes.clear();
    let mut p = h.io;
    h.push(&mut p, read(0, 8));
    h.ring_sq(&p);
    h.until(start + Cycle(2815));
    assert!(h.mem.writes.is_empty());
    h.until(start + Cycle(2816));
    assert_eq!(h.mem.writes.len(), 2);
}

#[test]
fn the_command_is_read_when_it_is_fetched_and_from_memory() {
    let mut h = Host::new();
    let start = h.now;
    let mut p = h.io;
    h.push(&mut p, read(0, 8));
    h.ring_sq(&p);
    h.poke(IO_SQ + 40, &32u64.to_le_bytes()); // changes SLBA before the fetch
    h.until(start + Cycle(100));
    h.poke(IO_SQ + 40, &64u64.to_le_bytes()); // changes SLBA after the fetch
    h.settle();
    assert_eq!(block_numbers(&h.peek(DATA, 512)), [32]);
}

#[test]
fn the_phase_tag_turns_with_every_round() {
    let mut h = Host::new();
    for i in 0..100 {
        let c = h.io(read(i, 1).cid(i as u16));
        assert_eq!((c.cid, c.status), (i as u16, 0));
        assert_eq!(c.phase, i / 16 % 2 == 0);
        assert_eq!(block_numbers(&h.peek(DATA, 512)), [i]);
    }
}

#[test]
fn written_data_is_read_back() {
    let mut h = Host::new();
    h.poke(DATA, &[0xa5; 8192]);
    assert_eq!(h.io(write(100, 16)).status, 0);
    h.poke(DATA, &[0; 8192]);
    assert_eq!(h.io(read(99, 16)).status, 0);
    let data = h.peek(DATA, 8192);
    assert_eq!(block_numbers(&data[..512]), [99]);
    assert!(data[512..].iter().all(|&b| b == 0xa5));
    assert_eq!(h.io(read(116, 1)).status, 0);
    assert_eq!(block_numbers(&h.peek(DATA, 512)), [116]);
}

#[test]
fn prp_lists_with_offsets_and_chains() {
    let mut h = Host::new();
    let list = DATA + 0x40_0000;
    // 128 KiB from the middle of a page are 33 segments. The PRP list begins 24 bytes before the end of its page. There it
    // holds two entries and the pointer to a second list page.
    let page = |i: u64| DATA + 0x10_0000 + i * 0x3000;
    let pages: Vec<u64> = (0..32).map(page).collect();
    let first = DATA + 0xe00;
    let (head, tail) = pages.split_at(2);
    h.poke_u64s(list + 0x1000 - 24, &[head[0], head[1], list + 0x2000]);
    h.poke_u64s(list + 0x2000, tail);
    h.mem.writes.clear();
    assert_eq!(h.io(read(0, 256).prp(first, list + 0x1000 - 24)).status, 0);
    let mut got = h.peek(first, 512);
    for at in &pages[..31] {
        got.extend(h.peek(*at, 4096));
    }
    got.extend(h.peek(pages[31], 4096 - 512));
    assert_eq!(block_numbers(&got), (0..256).collect::<Vec<_>>());
    let written: u64 = h.mem.writes.iter().map(|w| w.1).sum();
    assert_eq!(written, (128 << 10) + 16);
}

#[test]
fn a_list_that_ends_with_its_page_is_not_chained() {
    let mut h = Host::new();
    let list = DATA + 0x40_0000;
    h.poke_u64s(list + 0x1000 - 24, &[DATA + 0x2000, DATA + 0x4000, DATA + 0x6000]);
    assert_eq!(h.io(read(0, 32).prp(DATA, list + 0x1000 - 24)).status, 0);
    assert_eq!(block_numbers(&h.peek(DATA + 0x6000, 4096)), (24..32).collect::<Vec<_>>());
}

#[test]
fn wrong_prps() {
    let mut h = Host::new();
    let list = DATA + 0x40_0000;
    let before = h.peek(DATA, 0x3000);
    let mut status = |prp1: u64, prp2: u64, blocks: u32, entries: &[u64]| {
        h.poke_u64s(list, entries);
        h.mem.writes.clear();
        let c = h.io(read(0, blocks).prp(prp1, prp2));
        assert_eq!(h.mem.writes.len(), 1, "only the completion was written");
        c.status
    };
    assert_eq!(status(DATA + 2, 0, 1, &[]), 0x13, "PRP1 is not dword aligned");
    assert_eq!(status(DATA + 4, DATA + 0x1004, 8, &[]), 0x13, "PRP2 with an offset");
    assert_eq!(status(DATA, list + 4, 32, &[]), 0x13, "the list is not qword aligned");
    assert_eq!(status(DATA, list, 24, &[DATA + 0x1000, DATA + 0x2008]), 0x13, "list entry with an offset");
    assert_eq!(status(DATA, 0x1000, 32, &[]), 0x04, "list outside memory");
    assert_eq!(status(DATA, !7, 32, &[]), 0x04, "list at the end of the address space");
    assert_eq!(status(0x1000, 0, 8, &[]), 0x04, "data outside memory");
    // A pointer to the next list page must not have an offset.
    h.poke_u64s(list + 8, &[DATA + 0x1000, DATA + 0x2000, DATA + 0x3000]);
    h.poke_u64s(list + 0x1000 - 8, &[list + 8]);
    assert_eq!(h.io(read(0, 32).prp(DATA, list + 0x1000 - 8)).status, 0x13);
    assert_eq!(h.peek(DATA, 0x3000), before);
}

#[test]
fn data_that_runs_out_of_memory_fails() {
    let mut h = Host::new();
    let c = h.io(read(0, 16).prp(RAM + RAM_SIZE - 4096, RAM + RAM_SIZE));
    assert_eq!((c.status, c.dnr), (0x04, false));
    let c = h.io(write(0, 16).prp(RAM + RAM_SIZE - 4096, RAM + RAM_SIZE));
    assert_eq!(c.status, 0x04);
    assert_eq!(h.io(read(0, 1)).status, 0);
    assert_eq!(block_numbers(&h.peek(DATA, 512)), [0], "the failed write wrote nothing");
}

#[test]
fn ranges_outside_the_namespace() {
    let mut h = Host::new();
    assert_eq!(h.io(read(2047, 1)).status, 0);
    for (slba, blocks) in [(2048, 1), (2047, 2), (u64::MAX, 1), (u64::MAX - 6, 8), (1 << 55, 1)] {
        for opcode in [1, 2, 8] {
            let c = h.io(Sqe::new(opcode, 1).lba(slba, blocks).prp(DATA, DATA + 0x1000));
            assert_eq!((c.status, c.dnr), (0x80, true), "opcode {opcode} at {slba}");
        }
    }
}

#[test]
fn transfers_above_the_limit_are_refused_and_write_zeroes_are_not() {
    let mut h = Host::new();
    assert_eq!(h.io(read(0, 257)).status, 0x02);
    assert_eq!(h.io(write(0, 257)).status, 0x02);
    assert_eq!(h.io(Sqe::new(8, 1).lba(0, 2048)).status, 0);
}

#[test]
fn wrong_namespaces_and_opcodes() {
    let mut h = Host::new();
    for nsid in [0, 2, u32::MAX] {
        let mut s = read(0, 1);
        s.0[1] = nsid;
        assert_eq!(h.io(s).status, 0x0b);
    }
    for opcode in [3, 4, 5, 9 + 4, 0x11, 0x80, 0xff] {
        assert_eq!(h.io(Sqe::new(opcode, 1)).status, 0x01, "opcode {opcode:#x}");
    }
    let mut sgl = read(0, 1);
    sgl.0[0] |= 1 << 15;
    assert_eq!(h.io(sgl).status, 0x02);
}

#[test]
fn flush_of_one_or_all_namespaces() {
    let mut h = Host::new();
    assert_eq!(h.io(Sqe::new(0, 1)).status, 0);
    assert_eq!(h.io(Sqe::new(0, u32::MAX)).status, 0);
    assert_eq!(h.io(Sqe::new(0, 3)).status, 0x0b);
}

#[test]
fn zeroes_are_written_and_ranges_deallocated() {
    let mut h = Host::new();
    assert_eq!(h.io(Sqe::new(8, 1).lba(10, 2)).status, 0);
    let range = |slba: u64, blocks: u64| [blocks << 32, slba];
    h.poke_u64s(DATA, &[range(20, 1), range(22, 3)].concat());
    assert_eq!(h.io(Sqe::new(9, 1).dw(10, 1).dw(11, 4).prp(DATA, 0)).status, 0);
    assert_eq!(h.io(read(8, 24)).status, 0x04, "the list at PRP2 is empty");
    let list = DATA + 0x40_0000;
    h.poke_u64s(list, &[DATA + 0x1000, DATA + 0x2000]);
    assert_eq!(h.io(read(8, 24).prp(DATA, list)).status, 0);
    let got = block_numbers(&h.peek(DATA, 24 * 512));
    let zero = [10, 11, 20, 22, 23, 24];
    let want: Vec<u64> = (8..32).map(|b| if zero.contains(&b) { 0 } else { b }).collect();
    assert_eq!(got, want);
}

#[test]
fn a_deallocation_with_one_bad_range_changes_nothing() {
    let mut h = Host::new();
    h.poke_u64s(DATA, &[8 << 32, 0, 8 << 32, 2044]);
    assert_eq!(h.io(Sqe::new(9, 1).dw(10, 1).dw(11, 4).prp(DATA, 0)).status, 0x80);
    assert_eq!(h.io(read(7, 1)).status, 0);
    assert_eq!(block_numbers(&h.peek(DATA, 512)), [7]);
    // Without the deallocate attribute the ranges are hints, and the controller does not read them.
    assert_eq!(h.io(Sqe::new(9, 1).dw(10, 255).prp(0, 0)).status, 0);
}

#[test]
fn a_write_protected_namespace() {
    let mut h = Host::with(Disk { read_only: true, ..Disk::numbered(1 << 20) });
    assert_eq!(h.io(write(0, 1)).status, 0x20);
    assert_eq!(h.io(Sqe::new(8, 1).lba(0, 1)).status, 0x20);
    assert_eq!(h.io(Sqe::new(9, 1).dw(11, 4).prp(DATA, 0)).status, 0x20);
    assert_eq!(h.io(Sqe::new(0, 1)).status, 0);
    assert_eq!(h.io(read(0, 1)).status, 0);
}

#[test]
fn host_failures_are_media_errors_and_are_kept() {
    let mut h = Host::with(Disk { bad_from: 512 * 1024, ..Disk::numbered(1 << 20) });
    assert_eq!(h.io(read(1023, 1)).status, 0);
    assert!(h.ctrl.host_error().is_none());
    let c = h.io(write(1024, 1));
    assert_eq!((c.status, c.dnr), (0x280, false));
    assert_eq!(h.io(read(1024, 1)).status, 0x281);
    assert_eq!(h.io(Sqe::new(8, 1).lba(1020, 8)).status, 0x280);
    let first = h.ctrl.host_error().unwrap().to_string();
    assert_eq!(first, "disk image disk.img: cannot write at byte 524288: no storage space");
    assert_eq!(h.io(read(0, 1)).status, 0, "the drive goes on");
}

#[test]
fn a_command_identifier_in_use_is_refused() {
    let mut h = Host::new();
    let mut p = h.io;
    h.push(&mut p, read(0, 1).cid(7));
    h.push(&mut p, read(1, 1).cid(7));
    h.ring_sq(&p);
    h.until(h.now + Cycle(500));
    assert_eq!(h.poll(&mut p).unwrap().status, 0x03);
    h.push(&mut p, read(1, 1).cid(7));
    h.ring_sq(&p);
    h.until(h.now + Cycle(500));
    assert_eq!(h.poll(&mut p).unwrap().status, 0x03, "still in use");
    h.settle();
    assert_eq!(h.poll(&mut p).unwrap().status, 0);
    h.ring_cq(&p);
    h.io = p;
    assert_eq!(h.io(read(0, 1).cid(7)).status, 0, "free again");
}

#[test]
fn commands_overlap_on_several_queues() {
    let mut h = Host::new();
    let second = Pair::new(2, IO_SQ + 0x2000, IO_CQ + 0x2000, 16);
    h.create_pair(second);
    let (mut a, mut b) = (h.io, second);
    let start = h.now;
    h.push(&mut a, read(0, 8));
    h.push(&mut b, read(8, 8).prp(DATA + 0x2000, 0));
    h.ring_sq(&a);
    h.ring_sq(&b);
    h.settle();
    assert!(h.now.since(start) < Cycle(2 * 2816), "{:?}", h.now.since(start));
    assert_eq!(h.poll(&mut a).unwrap().sqid, 1);
    assert_eq!(h.poll(&mut b).unwrap().sqid, 2);
    assert_eq!(block_numbers(&h.peek(DATA, 512)), [0]);
    assert_eq!(block_numbers(&h.peek(DATA + 0x2000, 512)), [8]);
}
