// SPDX-License-Identifier: Apache-2.0
//! Arbitrary accesses of a guest to devices: none panics, and the same history always gives the same answers.

use proptest::collection::vec;
use proptest::prelude::*;
use trapless_devices::{Aclint, Finisher, PciFunction, PciHost, PciIds, Plic, Uart};
use trapless_memory::{ClockHz, Cycle, PhysAddr};

#[derive(Clone, Debug)]
struct Access {
    write: bool,
    offset: u64,
    size: u32,
    value: u64,
}

fn access(limit: u64) -> impl Strategy<Value = Access> {
    let offset = prop_oneof![0..limit, (0..limit).prop_map(|o| o & !7), 0..64u64, any::<u64>()];
    let size = prop_oneof![Just(1u32), Just(2u32), Just(4u32), Just(8u32)];
    let value = prop_oneof![any::<u64>(), 0..16u64, Just(u64::MAX)];
    (any::<bool>(), offset, size, value).prop_map(|(write, offset, size, value)| Access { write, offset, size, value })
}

/// Plays a history twice and compares all answers.
fn twice<S>(history: &[Access], new: impl Fn() -> S, mut play: impl FnMut(&mut S, &Access, Cycle) -> Vec<u64>) {
    let mut run = || {
        let mut device = new();
        let step = |(i, a): (usize, &Access)| play(&mut device, a, Cycle(i as u64 * 12_345));
        history.iter().enumerate().flat_map(step).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn aclint(history in vec(access(Aclint::SIZE), 1..100)) {
        twice(&history, || Aclint::new(4, ClockHz(100_000_000), 10_000_000), |d, a, now| {
            let read = if a.write {
                d.mmio_write(a.offset, a.size, a.value, now);
                0
            } else {
                d.mmio_read(a.offset, a.size, now)
            };
            assert!(d.next_event(now) > now, "an event is never in the past");
            vec![read, d.next_event(now).0, u64::from(d.mtip(3, now)), u64::from(d.msip(0))]
        });
    }

    #[test]
    fn plic(history in vec(access(Plic::SIZE), 1..100)) {
        twice(&history, || Plic::new(8), |d, a, now| {
            d.set_level((a.value % 70) as u32, now.0 & 1 == 0);
            let read = if a.write {
                d.mmio_write(a.offset, a.size, a.value);
                0
            } else {
                d.mmio_read(a.offset, a.size)
            };
            vec![read, (0..10).map(|c| u64::from(d.pending(c))).sum()]
        });
    }

    #[test]
    fn uart(history in vec(access(Uart::SIZE), 1..100)) {
        twice(&history, Uart::new, |d, a, _| {
            d.push_input(&a.value.to_le_bytes()[..(a.value % 3) as usize]);
            let read = if a.write {
                d.mmio_write(a.offset, a.size, a.value);
                0
            } else {
                d.mmio_read(a.offset, a.size)
            };
            let mut seen = vec![read, u64::from(d.irq_asserted())];
            seen.extend(d.take_output().into_iter().map(u64::from));
            seen
        });
    }

    #[test]
    fn finisher(history in vec(access(Finisher::SIZE), 1..100)) {
        twice(&history, Finisher::default, |d, a, _| {
            let asked = a.write && d.mmio_write(a.offset, a.size, a.value).is_some();
            vec![u64::from(asked), d.mmio_read(a.offset, a.size)]
        });
    }

    #[test]
    fn pci(history in vec(access(PciHost::ECAM_SIZE / 8), 1..100)) {
        let ids = PciIds { vendor: 1, device: 2, class: 3, revision: 4 };
        let host = || {
            let mut h = PciHost::new(PhysAddr(0x4000_0000), 0x4000_0000);
            for device in [1, 2, 31, 32, usize::MAX] {
                h.add(device, PciFunction::endpoint(ids, 0x4000));
            }
            h
        };
        twice(&history, host, |d, a, now| {
            d.set_interrupt((a.value % 40) as usize, now.0 & 1 == 0);
            let read = if a.write {
                d.config_write(a.offset, a.size, a.value);
                0
            } else {
                d.config_read(a.offset, a.size)
            };
            let routed = d.route(PhysAddr(a.value), a.size).map_or(0, |(device, offset)| {
                assert!(offset + u64::from(a.size) <= 0x4000);
                (device as u64) << 32 | offset
            });
            vec![read, routed, d.lines().iter().map(|&l| u64::from(l)).sum()]
        });
    }
}
