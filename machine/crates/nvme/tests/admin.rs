// SPDX-License-Identifier: Apache-2.0
//! Admin commands and their status codes.

mod common;

use common::*;
use trapless_memory::Cycle;

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}

#[test]
fn identify_controller() {
    let mut h = Host::enabled(Disk::numbered(1 << 20));
    assert_eq!(h.admin(Sqe::new(6, 0).prp(DATA, 0).dw(10, 1)).status, 0);
    let id = h.peek(DATA, 4096);
    assert_eq!(&id[4..24], b"TEST1               ");
    assert_eq!(id[77], 5, "MDTS: 128 KiB");
    assert_eq!(&id[512..514], &[0x66, 0x44]);
    assert_eq!(id[516], 1);
    assert_eq!(u16_at(&id, 520), 0x0c);
    assert_eq!(id[525] & 1, 1, "a volatile write cache");
    assert!(id[768..].starts_with(b"nqn.2014-08.org.nvmexpress:uuid:"));
}

#[test]
fn identify_namespace() {
    let mut h = Host::enabled(Disk { read_only: true, ..Disk::numbered(1 << 20) });
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA, 0)).status, 0);
    let id = h.peek(DATA, 4096);
    assert_eq!([0, 8, 16].map(|at| u64_at(&id, at)), [2048; 3]);
    assert_eq!((id[25], id[26], id[130], id[134]), (1, 0, 9, 12), "two formats, the first in use");
    assert_eq!(id[99], 1, "write protected");
    assert_ne!(&id[104..120], &[0; 16]);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA, 0).dw(10, 3)).status, 0);
    let list = h.peek(DATA, 24);
    assert_eq!((list[0], list[1]), (2, 16));
    assert_eq!(list[4..20], id[104..120]);
    assert_eq!(list[20], 0);
}

#[test]
fn identify_lists_and_errors() {
    let mut h = Host::enabled(Disk::numbered(4096));
    assert_eq!(h.admin(Sqe::new(6, 0).prp(DATA, 0).dw(10, 2)).status, 0);
    assert_eq!(h.peek(DATA, 8), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA, 0).dw(10, 2)).status, 0);
    assert_eq!(h.peek(DATA, 4), [0; 4]);
    assert_eq!(h.admin(Sqe::new(6, 0xffff_fffe).prp(DATA, 0).dw(10, 2)).status, 0x0b);
    assert_eq!(h.admin(Sqe::new(6, 2).prp(DATA, 0)).status, 0x0b);
    assert_eq!(h.admin(Sqe::new(6, 0).prp(DATA, 0)).status, 0x0b);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA, 0).dw(10, 0x55)).status, 0x02);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA + 1, 0)).status, 0x13);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA + 4, DATA + 8)).status, 0x13);
    assert_eq!(h.admin(Sqe::new(6, 1).prp(0, 0)).status, 0x04, "not memory");
}

#[test]
fn an_identify_that_crosses_a_page_uses_both_prps() {
    let mut h = Host::enabled(Disk::numbered(4096));
    h.admin(Sqe::new(6, 0).prp(DATA, 0).dw(10, 1));
    let whole = h.peek(DATA, 4096);
    h.admin(Sqe::new(6, 0).prp(DATA + 0x2800, DATA + 0x8000).dw(10, 1));
    assert_eq!(h.peek(DATA + 0x2800, 0x800), whole[..0x800]);
    assert_eq!(h.peek(DATA + 0x8000, 0x800), whole[0x800..]);
}

#[test]
fn unknown_opcodes_and_unsupported_flags() {
    let mut h = Host::enabled(Disk::numbered(4096));
    for opcode in [0x03, 0x0d, 0x10, 0x14, 0x18, 0x80, 0x81, 0xff] {
        let c = h.admin(Sqe::new(opcode, 1).prp(DATA, 0).cid(9));
        assert_eq!((c.status, c.dnr, c.cid, c.sqid), (1, true, 9, 0), "opcode {opcode:#x}");
    }
    let mut fused = Sqe::new(6, 1).prp(DATA, 0);
    fused.0[0] |= 1 << 8;
    assert_eq!(h.admin(fused).status, 0x02);
    let mut sgl = Sqe::new(6, 1).prp(DATA, 0);
    sgl.0[0] |= 1 << 14;
    assert_eq!(h.admin(sgl).status, 0x02);
}

/// Creates a queue and returns the status of the command.
fn create(h: &mut Host, opcode: u8, prp1: u64, id: u32, entries: u32, dw11: u32) -> u16 {
    h.admin(Sqe::new(opcode, 0).prp(prp1, 0).dw(10, (entries - 1) << 16 | id).dw(11, dw11)).status
}

#[test]
fn creating_queues_checks_everything() {
    let mut h = Host::enabled(Disk::numbered(4096));
    let h = &mut h;
    assert_eq!(create(h, 5, IO_CQ, 0, 16, 3), 0x101, "id 0");
    assert_eq!(create(h, 5, IO_CQ, 5, 16, 3), 0x101, "id above the limit");
    assert_eq!(create(h, 5, IO_CQ, 1, 1, 3), 0x102, "one entry");
    assert_eq!(create(h, 5, IO_CQ, 1, 1025, 3), 0x102, "above MQES");
    assert_eq!(create(h, 5, IO_CQ, 1, 16, 2), 0x02, "not contiguous");
    assert_eq!(create(h, 5, IO_CQ + 8, 1, 16, 3), 0x13, "not aligned");
    assert_eq!(create(h, 5, IO_CQ, 1, 16, 1 << 16 | 3), 0x108, "vector 1");
    assert_eq!(create(h, 1, IO_SQ, 1, 16, 1 << 16 | 1), 0x100, "the completion queue does not exist");
    assert_eq!(create(h, 1, IO_SQ, 1, 16, 1), 0x100, "completion queue 0");
    assert_eq!(create(h, 1, IO_SQ, 1, 16, 9 << 16 | 1), 0x101, "completion queue out of range");
    assert_eq!(create(h, 5, IO_CQ, 1, 16, 3), 0);
    assert_eq!(create(h, 5, IO_CQ, 1, 16, 3), 0x101, "the queue exists already");
    assert_eq!(create(h, 1, IO_SQ, 2, 16, 1 << 16), 0x02, "not contiguous");
    assert_eq!(create(h, 1, IO_SQ + 64, 2, 16, 1 << 16 | 1), 0x13);
    assert_eq!(create(h, 1, IO_SQ, 2, 16, 1 << 16 | 1), 0, "a submission queue may use any completion queue");
    assert_eq!(create(h, 1, IO_SQ, 2, 16, 1 << 16 | 1), 0x101);
}

#[test]
fn queues_are_deleted_in_order() {
    let mut h = Host::new();
    let delete = |h: &mut Host, opcode, id| h.admin(Sqe::new(opcode, 0).dw(10, id)).status;
    assert_eq!(delete(&mut h, 4, 1), 0x10c, "a submission queue still uses it");
    assert_eq!(delete(&mut h, 0, 0), 0x101);
    assert_eq!(delete(&mut h, 0, 2), 0x101);
    assert_eq!(delete(&mut h, 4, 99), 0x101);
    assert_eq!(delete(&mut h, 0, 1), 0);
    assert_eq!(delete(&mut h, 4, 1), 0);
    assert_eq!(delete(&mut h, 4, 1), 0x101);
}

// REQ: SMU-7
#[test]
fn after_a_queue_is_deleted_no_dma_of_its_commands_happens() {
    let mut h = Host::new();
    let mut p = h.io;
    for cid in 0..4 {
        h.push(&mut p, read(8, 8).cid(cid));
    }
    h.ring_sq(&p);
    h.until(h.now + Cycle(200));
    let mut a = h.admin;
    h.push(&mut a, Sqe::new(0, 0).dw(10, 1).cid(50));
    h.ring_sq(&a);
    while h.poll(&mut a).is_none() {
        let next = h.ctrl.next_event();
        assert_ne!(next, Cycle::NEVER);
        h.until(next);
    }
    let after = h.mem.writes.len();
    h.until(h.now + Cycle(10_000_000));
    assert_eq!(h.mem.writes.len(), after, "the device was silent");
    // Each command was completed exactly once, done or aborted.
    let mut cids: Vec<_> = std::iter::from_fn(|| h.poll(&mut p)).map(|c| c.cid).collect();
    cids.sort_unstable();
    assert_eq!(cids, [0, 1, 2, 3]);
}

#[test]
fn deletion_and_abort_stop_commands_in_service() {
    // We submit enough commands that some are still in service when the admin command is done.
    let busy = |command: Sqe| {
        let mut h = Host::enabled(Disk::numbered(1 << 20));
        h.io = Pair::new(1, IO_SQ, IO_CQ, 256);
        h.create_pair(h.io);
        let mut p = h.io;
        for cid in 0..200 {
            h.push(&mut p, read(8, 8).cid(cid));
        }
        h.ring_sq(&p);
        h.until(h.now + Cycle(10));
        let mut a = h.admin;
        h.push(&mut a, command);
        h.ring_sq(&a);
        h.settle();
        let done = h.poll(&mut a).unwrap();
        let io: Vec<_> = std::iter::from_fn(|| h.poll(&mut p)).collect();
        (done, io)
    };
    let (done, io) = busy(Sqe::new(0, 0).dw(10, 1));
    assert_eq!(done.status, 0);
    let aborted = io.iter().filter(|c| c.status == 0x08).count();
    assert!(aborted > 100 && io.len() == 200, "{aborted} of {}", io.len());

    let (done, io) = busy(Sqe::new(8, 0).dw(10, 199 << 16 | 1));
    assert_eq!((done.status, done.result), (0, 0));
    let aborted: Vec<_> = io.iter().filter(|c| c.status == 0x07).map(|c| c.cid).collect();
    assert_eq!(aborted, [199]);
    assert_eq!(io.len(), 200);

    let (done, io) = busy(Sqe::new(8, 0).dw(10, 999 << 16 | 1));
    assert_eq!((done.status, done.result), (0, 1), "nothing to abort");
    assert!(io.iter().all(|c| c.status == 0));
}

#[test]
fn features() {
    let mut h = Host::enabled(Disk::numbered(4096));
    let get = |h: &mut Host, fid: u32| h.admin(Sqe::new(0x0a, 0).dw(10, fid));
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 7).dw(11, 0x003f_003f)).result, 3 << 16 | 3);
    assert_eq!(get(&mut h, 7).result, 3 << 16 | 3);
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 7).dw(11, 0xffff)).status, 0x02);
    assert_eq!(get(&mut h, 6).result, 1);
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 6).dw(11, 0)).status, 0);
    assert_eq!(get(&mut h, 6).result, 0);
    assert_eq!(get(&mut h, 1 << 8 | 6).result, 1, "default");
    assert_eq!(get(&mut h, 3 << 8 | 6).result, 4, "changeable, not saveable");
    assert_eq!(get(&mut h, 4 << 8 | 6).status, 0x02);
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 1 << 31 | 6)).status, 0x10d);
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 2).dw(11, 1)).status, 0x02, "one power state");
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 9).dw(11, 1)).status, 0x02, "one vector");
    for fid in [0, 3, 0x0c, 0x0d, 0x0f, 0x80, 0xff] {
        assert_eq!(get(&mut h, fid).status, 0x02, "feature {fid:#x}");
        assert_eq!(h.admin(Sqe::new(9, 0).dw(10, fid)).status, 0x02, "feature {fid:#x}");
    }
    assert_eq!(create(&mut h, 5, IO_CQ, 1, 16, 3), 0);
    assert_eq!(h.admin(Sqe::new(9, 0).dw(10, 7).dw(11, 0)).status, 0x0c);
}

#[test]
fn log_pages() {
    let mut h = Host::new();
    h.io(read(0, 8));
    h.io(write(0, 8));
    h.io(read(u64::MAX, 1).cid(42));
    let log = |h: &mut Host, id: u32, bytes: u32, offset: u32| {
        h.admin(Sqe::new(2, u32::MAX).prp(DATA, DATA + 0x1000).dw(10, (bytes / 4 - 1) << 16 | id).dw(12, offset)).status
    };
    assert_eq!(log(&mut h, 2, 512, 0), 0);
    let smart = h.peek(DATA, 512);
    assert_eq!([32, 48, 64, 80, 160, 176].map(|at| u64_at(&smart, at)), [1, 1, 1, 1, 0, 1]);
    assert_eq!(log(&mut h, 1, 64, 0), 0);
    let error = h.peek(DATA, 64);
    assert_eq!((u64_at(&error, 0), u16_at(&error, 8), u16_at(&error, 10)), (1, 1, 42));
    assert_eq!(u16_at(&error, 12) >> 1 & 0xfff, 0x80);
    assert_eq!(log(&mut h, 3, 512, 8), 0);
    assert_eq!(h.peek(DATA, 2), *b"1 ");
    assert_eq!(log(&mut h, 4, 512, 0), 0x109);
    assert_eq!(log(&mut h, 2, 512, 516), 0x02);
    assert_eq!(log(&mut h, 2, 512, 2), 0x02);
    let huge = Sqe::new(2, 0).prp(DATA, DATA).dw(10, 0xffff_0002).dw(11, 0xffff);
    assert_eq!(h.admin(huge).status, 0x02);
}

#[test]
fn event_requests_are_limited() {
    let mut h = Host::enabled(Disk::numbered(4096));
    let mut p = h.admin;
    for cid in 0..5 {
        h.push(&mut p, Sqe::new(0x0c, 0).cid(cid));
    }
    h.ring_sq(&p);
    h.settle();
    let c = h.poll(&mut p).unwrap();
    assert_eq!((c.cid, c.status), (4, 0x105));
    assert!(h.poll(&mut p).is_none());
}
