// SPDX-License-Identifier: Apache-2.0
//! Guests that write random values into registers, queues and lists. The controller must not panic or work forever. It may
//! write only to completion queues and to the pages in the PRPs of a read.

mod common;

use common::*;
use proptest::collection::vec;
use proptest::prelude::*;
use trapless_memory::{Cycle, PhysAddr};

/// One action of a guest.
#[derive(Clone, Debug)]
enum Step {
    Read(u64, u32),
    Write(u64, u32, u64),
    Poke(u64, Vec<u8>),
    Wait(u64),
    /// Submits these words as an admin or I/O command, with a correct doorbell write.
    Command(bool, [u32; 16]),
    Enable,
}

/// Picks special numbers and random numbers.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..64,
        (0u64..64).prop_map(|k| (1u64 << k).wrapping_sub(1)),
        (0u64..RAM_SIZE / 4096).prop_map(|p| RAM + p * 4096),
        (0u64..RAM_SIZE).prop_map(|o| RAM + (o & !3)),
        (0u64..4096).prop_map(|o| RAM + RAM_SIZE - o),
    ]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..0x40,
        Just(0x14u64),
        Just(0x24u64),
        Just(0x28u64),
        (0u64..16).prop_map(|d| 0x1000 + 4 * d),
        0u64..0x4000,
        any::<u64>(),
    ]
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(4u32), 2 => Just(8u32), 1 => Just(1u32), 1 => Just(2u32)]
}

/// Builds a command with a valid opcode and random fields.
fn command() -> impl Strategy<Value = [u32; 16]> {
    let opcode = prop_oneof![0u32..0x10, any::<u32>().prop_map(|o| o & 0xff)];
    let nsid = prop_oneof![4 => 1u32..4, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let small = prop_oneof![0u32..8, 0u32..512, any::<u32>(), (0u32..64).prop_map(|n| n << 16 | 1)];
    (opcode, 0u32..4, nsid, number(), number(), vec(small, 6)).prop_map(|(op, cid, nsid, p1, p2, dw)| {
        let mut s = Sqe::new(op as u8, nsid).cid(cid as u16).prp(p1, p2);
        s.0[10..16].copy_from_slice(&dw);
        s.0
    })
}

/// Picks namespaces of random sizes and formats.
fn namespaces() -> impl Strategy<Value = Vec<(usize, bool, bool)>> {
    vec((1usize..256, any::<bool>(), any::<bool>()), 1..4)
}

fn host(namespaces: &[(usize, bool, bool)]) -> Host {
    let disk = |&(pages, large, read_only): &(usize, bool, bool)| {
        (Disk { read_only, ..Disk::numbered(4096 * pages) }, if large { 4096 } else { 512 })
    };
    Host::with_namespaces(namespaces.iter().map(disk).collect())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (offset(), size()).prop_map(|(o, s)| Step::Read(o, s)),
        4 => (offset(), size(), number()).prop_map(|(o, s, v)| Step::Write(o, s, v)),
        2 => (0u64..RAM_SIZE, vec(any::<u8>(), 1..200)).prop_map(|(o, b)| Step::Poke(RAM + o, b)),
        2 => prop_oneof![0u64..5000, 0u64..1_000_000].prop_map(Step::Wait),
        6 => (any::<bool>(), command()).prop_map(|(io, c)| Step::Command(io, c)),
        1 => Just(Step::Enable),
    ]
}

/// Runs the controller up to `limit`. Checks that the number of events, and the work for each event, are bounded.
fn rest(h: &mut Host, limit: Cycle) {
    for _ in 0..200_000 {
        let next = h.ctrl.next_event();
        if next > limit {
            h.until(limit.max(h.now));
            return;
        }
        h.mem.accesses = 0;
        let at = next.max(h.now);
        h.until(at);
        assert!(h.mem.accesses < 100_000, "{} accesses in one call", h.mem.accesses);
        assert!(h.ctrl.next_event() > at, "an event is left over");
    }
    panic!("the controller still has events after 200,000 steps");
}

fn play(namespaces: &[(usize, bool, bool)], steps: &[Step]) -> (Vec<u64>, Vec<trapless_nvme::CommandRecord>) {
    let mut h = host(namespaces);
    let mut seen = Vec::new();
    for step in steps {
        match step {
            Step::Read(offset, size) => seen.push(h.ctrl.mmio_read(*offset, *size, h.now)),
            Step::Write(offset, size, value) => {
                h.ctrl.mmio_write(*offset, *size, *value, h.now);
            }
            Step::Poke(at, bytes) => {
                let room = (RAM + RAM_SIZE - at) as usize;
                h.poke(*at, &bytes[..bytes.len().min(room)]);
            }
            Step::Wait(cycles) => {
                let limit = h.now + Cycle(*cycles);
                rest(&mut h, limit);
            }
            Step::Command(io, words) => {
                let mut p = if *io { h.io } else { h.admin };
                h.push(&mut p, Sqe(*words));
                h.ring_sq(&p);
                *(if *io { &mut h.io } else { &mut h.admin }) = p;
            }
            Step::Enable => {
                h.ctrl.mmio_write(0x14, 4, 0, h.now);
                h.ctrl.mmio_write(0x24, 4, 7 << 16 | 7, h.now);
                h.ctrl.mmio_write(0x28, 8, ASQ, h.now);
                h.ctrl.mmio_write(0x30, 8, ACQ, h.now);
                h.ctrl.mmio_write(0x14, 4, 0x0046_0001, h.now);
                h.admin = Pair::new(0, ASQ, ACQ, ADMIN_ENTRIES);
                h.io = Pair::new(1, IO_SQ, IO_CQ, 16);
            }
        }
        seen.push(u64::from(h.ctrl.irq_asserted()));
    }
    rest(&mut h, Cycle(u64::MAX - 1));
    (seen, h.records)
}

/// Returns the pages that a command may write: those in its two PRP fields and in its PRP list.
fn allowed(words: &[u32; 16], list: &[u64]) -> Vec<u64> {
    let prp = |i: usize| u64::from(words[i]) | u64::from(words[i + 1]) << 32;
    let mut pages = vec![prp(6) & !0xfff, prp(8) & !0xfff];
    pages.extend(list.iter().map(|p| p & !0xfff));
    pages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_neither_panics_nor_hangs_and_is_deterministic(
        namespaces in namespaces(),
        steps in vec(step(), 1..60),
    ) {
        let first = play(&namespaces, &steps);
        prop_assert_eq!(first, play(&namespaces, &steps));
    }

    #[test]
    fn one_command_writes_only_where_it_may(
        namespaces in namespaces(),
        io in any::<bool>(),
        mut words in command(),
        list in vec(number(), 32),
        at in prop_oneof![Just(0u64), Just(0xff8u64), (0u64..512).prop_map(|i| i * 8)],
        use_list in any::<bool>(),
    ) {
        let mut h = host(&namespaces);
        let list_at = DATA + 0x40_0000 + at;
        h.poke_u64s(list_at, &list);
        if use_list {
            (words[8], words[9]) = (list_at as u32, (list_at >> 32) as u32);
        }
        let mut p = if io { h.io } else { h.admin };
        h.mem.writes.clear();
        h.push(&mut p, Sqe(words));
        h.ring_sq(&p);
        h.settle();
        let pages = allowed(&words, &list);
        let entry = PhysAddr(p.cq + 16 * u64::from(p.head));
        let mut entries = 0;
        for (to, len) in &h.mem.writes {
            if (*to, *len) == (entry, 16) {
                entries += 1;
                continue;
            }
            prop_assert_eq!(entries, 0, "data after the completion");
            prop_assert!(pages.contains(&(to.0 & !0xfff)), "{:?} is in none of the command's pages", to);
            prop_assert!(to.0 % 4096 + len <= 4096);
        }
        // Only a valid Asynchronous Event Request gets no completion.
        let kept = !io && words[0] & 0xff == 0x0c && words[0] & 0xc300 == 0;
        prop_assert_eq!(entries, if kept { 0 } else { 1 });
    }
}
