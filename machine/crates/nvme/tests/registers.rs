// SPDX-License-Identifier: Apache-2.0
//! Registers, doorbells, interrupts and fatal errors.

mod common;

use common::*;
use trapless_memory::Cycle;

#[test]
fn capabilities_and_version() {
    let mut h = Host::off(Disk::numbered(4096));
    let cap = h.ctrl.mmio_read(0, 8, Cycle(0));
    assert_eq!(cap & 0xffff, 1023, "MQES");
    assert_eq!(cap >> 16 & 1, 1, "CQR");
    assert_eq!(cap >> 32 & 0xf, 0, "DSTRD");
    assert_eq!(cap >> 37 & 1, 1, "NVM command set");
    assert_eq!(cap >> 48, 0, "4 KiB pages only");
    assert_eq!(cap, u64::from(h.read(0)) | u64::from(h.read(4)) << 32);
    assert_eq!(h.read(8), 0x10400);
    assert_eq!(h.ctrl.mmio_read(0x0a, 2, Cycle(0)), 1);
}

#[test]
fn enabling_makes_ready_and_a_reset_forgets_the_queues() {
    let mut h = Host::new();
    assert_eq!(h.io(read(0, 1)).status, 0);
    h.write(0x14, 0x0046_0000);
    assert_eq!(h.read(CSTS), 0);
    assert_eq!(h.ctrl.next_event(), Cycle::NEVER);
    assert_eq!(h.ctrl.mmio_read(0x28, 8, h.now), ASQ, "the registers of the admin queue keep their values");
    h.poke(ACQ, &[0; 256]);
    h.enable();
    h.io = Pair::new(1, IO_SQ, IO_CQ, 16);
    h.create_pair(h.io);
    assert_eq!(h.io(read(0, 1)).status, 0);
}

#[test]
fn a_reset_drops_commands_in_service() {
    let mut h = Host::new();
    let mut p = h.io;
    h.push(&mut p, read(0, 8));
    h.ring_sq(&p);
    h.until(h.now + Cycle(1000));
    h.mem.writes.clear();
    h.write(0x14, 0x0046_0000);
    h.until(h.now + Cycle(100));
    h.poke(ACQ, &[0; 256]);
    h.enable();
    h.until(h.now + Cycle(1_000_000));
    assert!(h.mem.writes.is_empty());
}

#[test]
fn settings_that_are_not_supported_are_fatal() {
    for cc in [0x0046_0081, 0x0046_0011, 0x0046_0801] {
        let mut h = Host::off(Disk::numbered(4096));
        h.write(0x24, 7 << 16 | 7);
        h.write(0x14, cc);
        assert_eq!(h.read(CSTS), 2, "CC {cc:#x}");
        h.write(0x14, 0);
        assert_eq!(h.read(CSTS), 0);
    }
    let mut h = Host::off(Disk::numbered(4096));
    h.write(0x14, 0x0046_0001);
    assert_eq!(h.read(CSTS), 2, "admin queues of one entry");
}

#[test]
fn admin_queue_registers_are_fixed_while_enabled() {
    let mut h = Host::new();
    h.write(0x24, 0);
    h.ctrl.mmio_write(0x28, 8, 0x1234_5000, h.now);
    assert_eq!(h.read(0x24), 7 << 16 | 7);
    assert_eq!(h.ctrl.mmio_read(0x28, 8, h.now), ASQ);
}

#[test]
fn shutdown_completes() {
    let mut h = Host::new();
    h.write(0x14, 0x0046_4001);
    assert_eq!(h.read(CSTS) >> 2 & 3, 2);
    h.write(0x14, 0x0046_4000);
    assert_eq!(h.read(CSTS), 2 << 2);
}

#[test]
fn the_pin_follows_unread_entries_and_the_mask() {
    let mut h = Host::new();
    let mut p = h.io;
    assert!(!h.ctrl.irq_asserted());
    h.push(&mut p, read(0, 1));
    h.ring_sq(&p);
    assert!(!h.ctrl.irq_asserted());
    h.settle();
    assert!(h.ctrl.irq_asserted());
    h.write(0x0c, 1);
    assert!(!h.ctrl.irq_asserted());
    assert_eq!(h.read(0x0c), 1);
    h.write(0x10, 1);
    assert!(h.ctrl.irq_asserted());
    h.poll(&mut p).unwrap();
    h.ring_cq(&p);
    assert!(!h.ctrl.irq_asserted());
}

#[test]
fn a_queue_without_interrupts_never_raises_the_pin() {
    let mut h = Host::enabled(Disk::numbered(4096));
    h.admin(Sqe::new(5, 0).prp(IO_CQ, 0).dw(10, 15 << 16 | 1).dw(11, 1));
    h.admin(Sqe::new(1, 0).prp(IO_SQ, 0).dw(10, 15 << 16 | 1).dw(11, 1 << 16 | 1));
    let mut p = h.io;
    h.push(&mut p, read(0, 1));
    h.ring_sq(&p);
    h.settle();
    assert!(h.poll(&mut p).is_some());
    assert!(!h.ctrl.irq_asserted());
}

#[test]
fn a_queue_outside_memory_is_fatal() {
    let mut h = Host::enabled(Disk::numbered(4096));
    h.admin(Sqe::new(5, 0).prp(IO_CQ, 0).dw(10, 15 << 16 | 1).dw(11, 1));
    h.admin(Sqe::new(1, 0).prp(0x1000, 0).dw(10, 15 << 16 | 1).dw(11, 1 << 16 | 1));
    h.write(0x1008, 1);
    h.settle();
    assert_eq!(h.read(CSTS), 3, "fetch");
    assert_eq!(h.ctrl.next_event(), Cycle::NEVER);

    let mut h = Host::enabled(Disk::numbered(4096));
    h.admin(Sqe::new(5, 0).prp(u64::MAX << 12, 0).dw(10, 15 << 16 | 1).dw(11, 3));
    h.admin(Sqe::new(1, 0).prp(IO_SQ, 0).dw(10, 15 << 16 | 1).dw(11, 1 << 16 | 1));
    let mut p = h.io;
    h.push(&mut p, read(0, 1));
    h.ring_sq(&p);
    h.settle();
    assert_eq!(h.read(CSTS), 3, "completion");
    // Only a reset clears Controller Fatal Status.
    h.write(0x14, 0x0046_0000);
    h.poke(ACQ, &[0; 256]);
    h.enable();
    assert_eq!(h.admin(Sqe::new(6, 1).prp(DATA, 0)).status, 0);
}

#[test]
fn wrong_doorbell_values_are_reported_and_do_nothing() {
    let event = |offset: u64, value: u32| {
        let mut h = Host::new();
        let mut p = h.admin;
        h.push(&mut p, Sqe::new(0x0c, 0).cid(77));
        h.ring_sq(&p);
        h.settle();
        assert!(h.poll(&mut p).is_none(), "the request is kept");
        h.write(offset, value);
        h.settle();
        let e = h.poll(&mut p).expect("an event");
        h.ring_cq(&p);
        assert_eq!((e.cid, e.status), (77, 0));
        // The controller still works.
        h.admin = p;
        assert_eq!(h.io(read(0, 1)).status, 0);
        e.result
    };
    assert_eq!(event(0x1008, 16), 0x0001_0100, "tail out of range");
    assert_eq!(event(0x1008, 0), 0x0001_0100, "tail unchanged");
    assert_eq!(event(0x100c, 0), 0x0001_0100, "head unchanged");
    assert_eq!(event(0x100c, 1), 0x0001_0100, "head beyond what was completed");
    assert_eq!(event(0x100c, 0xffff_ffff), 0x0001_0100);
    assert_eq!(event(0x1010, 1), 0x0001_0000, "no such queue");
    assert_eq!(event(0x3ffc, 1), 0x0001_0000, "no such register");
}

#[test]
fn a_doorbell_cannot_overfill_its_queue_or_leave_it() {
    let mut h = Host::new();
    let mut p = h.io;
    for cid in 0..15 {
        h.push(&mut p, read(0, 1).cid(cid));
    }
    h.ring_sq(&p);
    for tail in [0, 3, 14, 16] {
        h.write(0x1008, tail);
    }
    h.settle();
    let done = std::iter::from_fn(|| h.poll(&mut p)).count();
    assert_eq!(done, 15);
    h.ring_cq(&p);
    h.write(0x1008, 16);
    h.settle();
    assert!(h.poll(&mut p).is_none(), "only the entries of the first doorbell write are fetched");
    h.io = p;
    assert_eq!(h.io(read(0, 1)).status, 0);
}

#[test]
fn one_event_until_the_error_log_is_read() {
    let mut h = Host::new();
    h.write(0x1008, 99);
    h.write(0x1008, 99);
    // No request was waiting for the event. The next request gets the event, and no later one does.
    assert_eq!(h.admin(Sqe::new(0x0c, 0)).result, 0x0001_0100);
    let mut p = h.admin;
    h.push(&mut p, Sqe::new(0x0c, 0).cid(5));
    h.ring_sq(&p);
    h.settle();
    h.write(0x1008, 99);
    h.settle();
    assert!(h.poll(&mut p).is_none());
    h.admin = p;
    let log = Sqe::new(2, 0).prp(DATA, 0).dw(10, 15 << 16 | 1);
    assert_eq!(h.admin(log).status, 0);
    assert_eq!(h.peek(DATA + 8, 2), [0xff, 0xff], "the error belongs to no command");
    h.write(0x1008, 99);
    h.settle();
    let mut p = h.admin;
    assert_eq!(h.poll(&mut p).unwrap().cid, 5);
}

#[test]
fn a_full_completion_queue_holds_completions_back_in_order() {
    let mut h = Host::enabled(Disk::numbered(1 << 20));
    let mut small = Pair::new(1, IO_SQ, IO_CQ, 4);
    h.poke(IO_CQ, &[0; 64]);
    h.admin(Sqe::new(5, 0).prp(IO_CQ, 0).dw(10, 3 << 16 | 1).dw(11, 3));
    h.admin(Sqe::new(1, 0).prp(IO_SQ, 0).dw(10, 15 << 16 | 1).dw(11, 1 << 16 | 1));
    small.entries = 16;
    for cid in 0..10 {
        h.push(&mut small, read(u64::from(cid), 1).cid(cid));
    }
    h.ring_sq(&small);
    h.settle();
    let mut cq = Pair::new(1, IO_SQ, IO_CQ, 4);
    let mut seen = Vec::new();
    for _ in 0..10 {
        while let Some(c) = h.poll(&mut cq) {
            seen.push(c.cid);
        }
        assert!(seen.len() % 3 == 0 || seen.len() == 10, "at most three fit: {seen:?}");
        h.ring_cq(&cq);
        h.settle();
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
}
