// SPDX-License-Identifier: Apache-2.0
//! The register map of spec/smu.rdl: the values that each register has, accepts and refuses.

use std::collections::BTreeMap;

use trapless_memory::Cycle;
use trapless_smu::{Answer, SmuUnit};
use trapless_smu_regs as regs;
use trapless_smu_rtl::Dice;
use trapless_smu_world::sim::{HARTS, PMSHR, Sim, config};
use trapless_smu_world::world::World;

use super::unit;

/// Number of windows.
const WINDOWS: u64 = 3;
const AT_REST: u64 = regs::STATUS_IDLE.mask() | regs::STATUS_NO_DMA.mask() | regs::STATUS_NO_FRAMES.mask();
/// The largest address of 56 bits whose `low` lowest bits are 0.
const fn address(low: u32) -> u64 {
    u64::MAX >> 8 >> low << low
}

/// A unit in its state after reset.
struct Bare {
    smu: Box<dyn SmuUnit>,
    world: World,
    now: Cycle,
}

impl Bare {
    fn new() -> Bare {
        Bare { smu: unit(config(false)), world: World::new(), now: Cycle(0) }
    }

    /// Reads a register over the bus, and checks that `peek` returns the same value.
    fn read(&mut self, at: u64) -> u64 {
        let value = self.smu.mmio_read(at, 8, self.now, &mut self.world);
        assert_eq!(value, self.smu.peek(at), "register {at:#x}");
        value
    }

    fn write(&mut self, at: u64, value: u64) {
        self.smu.mmio_write(at, 8, value, self.now, &mut self.world);
        self.now += Cycle(5);
        self.smu.advance(self.now, &mut self.world, &mut |answer: Answer| panic!("unexpected answer: {answer:?}"));
    }

    /// Returns whether STATUS.ERROR is set, and clears it.
    fn error(&mut self) -> bool {
        let error = regs::STATUS_ERROR.is_set(self.read(regs::STATUS));
        self.write(regs::CTRL, 0);
        assert!(!regs::STATUS_ERROR.is_set(self.read(regs::STATUS)));
        error
    }

    fn refuses(&mut self, at: u64, value: u64) {
        let before = self.read(at);
        self.write(at, value);
        assert!(self.read(at) == before && self.error(), "{at:#x} took {value:#x}");
    }

    fn takes(&mut self, at: u64, value: u64) {
        self.write(at, value);
        assert!(self.read(at) == value && !self.error(), "{at:#x} refused {value:#x}");
    }

    /// Checks all registers against `expected`. A register that is not listed must be zero.
    fn is(&mut self, expected: &BTreeMap<u64, u64>) {
        for at in (0..0x1000).step_by(8) {
            assert_eq!(self.read(at), expected.get(&at).copied().unwrap_or(0), "register {at:#x}");
        }
    }
}

/// Returns the values of all registers after reset that are not zero.
fn reset() -> BTreeMap<u64, u64> {
    let capabilities = regs::CAP_PMSHR.of(PMSHR.into())
        | regs::CAP_DESCRIPTORS.of(regs::DESC_COUNT as u64)
        | regs::CAP_PREFETCH.of(2)
        | regs::CAP_HARTS.of(HARTS as u64)
        | regs::CAP_PORTS.of(HARTS as u64)
        | regs::CAP_WINDOWS.of(WINDOWS);
    let mut expected = BTreeMap::from([(regs::ID, regs::ID_RESET), (regs::CAP, capabilities), (regs::STATUS, AT_REST)]);
    expected.extend((0..regs::DESC_COUNT).map(|d| (Sim::desc(d, regs::DESC_CQ_HEAD), regs::DESC_CQ_HEAD_RESET)));
    expected
}

/// Returns the registers that keep a written value while the unit is idle, with a mask of their bits.
fn settings() -> Vec<(u64, u64)> {
    let mut found = vec![(regs::TIMEOUT, u64::MAX), (regs::FREE_BASE, address(4)), (regs::RET_BASE, address(4))];
    found.extend([(regs::INT_ENABLE, 0xf), (regs::FREE_LOW, regs::FREE_LOW_ENTRIES.mask())]);
    for w in 0..WINDOWS {
        let granules = regs::WINDOW_FIRST_GRANULE.mask();
        let kinds = regs::WINDOW_CTRL_MEMORY.mask() | regs::WINDOW_CTRL_DOORBELL.mask();
        let registers = [(regs::WINDOW_FIRST, granules), (regs::WINDOW_LAST, granules), (regs::WINDOW_CTRL, kinds)];
        found.extend(registers.map(|(at, bits)| (Sim::window(w, at), bits)));
    }
    for d in 0..regs::DESC_COUNT {
        let whole =
            [regs::DESC_SQ_BASE, regs::DESC_CQ_BASE, regs::DESC_SQ_DB, regs::DESC_CQ_DB].map(|at| (at, u64::MAX));
        let parts = [
            (regs::DESC_DEPTH, regs::DESC_DEPTH_ENTRIES.mask()),
            (regs::DESC_NSID, regs::DESC_NSID_ID.mask()),
            (regs::DESC_BLOCKS, regs::DESC_BLOCKS_LOG2.mask()),
        ];
        found.extend(whole.into_iter().chain(parts).map(|(at, bits)| (Sim::desc(d, at), bits)));
    }
    for p in 0..HARTS {
        let addresses = [regs::PORT_PTE_ADDR, regs::PORT_PMD_ADDR, regs::PORT_PUD_ADDR];
        found.extend(addresses.map(|at| (Sim::port(p, at), u64::MAX)));
    }
    found
}

#[test]
fn reset_leaves_what_the_map_says() {
    Bare::new().is(&reset());
}

/// Every bit of a setting can be written as 0 and as 1 and reads back. No other register changes.
#[test]
fn settings_keep_what_is_written() {
    let mut dice = Dice::new(1);
    let (mut bare, mut expected) = (Bare::new(), reset());
    for round in 0..4_u64 {
        for (at, bits) in settings() {
            let value =
                if round % 2 == 0 { dice.roll() & bits } else { !expected.get(&at).copied().unwrap_or(0) & bits };
            bare.write(at, value);
            expected.insert(at, value);
        }
        bare.is(&expected);
    }
    assert!(!bare.error());
}

/// A 32-bit write changes only its half of a setting.
#[test]
fn half_a_write_leaves_the_other_half() {
    let mut dice = Dice::new(2);
    let mut bare = Bare::new();
    for (at, bits) in settings() {
        for half in [0, 4] {
            let (old, new) = (bare.read(at), dice.roll() & bits);
            bare.smu.mmio_write(at + half, 4, new >> (8 * half), bare.now, &mut bare.world);
            let keep = u64::from(u32::MAX) << (32 - 8 * half);
            assert_eq!(bare.read(at), old & keep | new & !keep, "register {at:#x}");
        }
    }
}

/// REQ: SMU-11. Every bit of a port's ENTRY can be written, here with a disabled unit. A write of the lower half starts no
/// request.
#[test]
fn port_entries_keep_what_is_written() {
    let mut dice = Dice::new(9);
    let mut bare = Bare::new();
    for p in 0..HARTS {
        let [entry, status] = [regs::PORT_ENTRY, regs::PORT_STATUS].map(|at| Sim::port(p, at));
        let first = dice.roll();
        for value in [first, !first] {
            bare.smu.mmio_write(entry, 4, value, bare.now, &mut bare.world);
            let low = u64::from(u32::MAX);
            assert_eq!(bare.read(entry) & low, value & low);
            assert!(!regs::PORT_STATUS_BUSY.is_set(bare.read(status)));
            bare.write(entry, value);
            (0..10).for_each(|_| bare.write(regs::TIMEOUT, 0));
            let refused =
                regs::PORT_STATUS_OUTCOME.of(regs::OUTCOME_FAILED) | regs::PORT_STATUS_REASON.of(regs::REASON_DISABLED);
            assert_eq!((bare.read(entry), bare.read(status)), (value, refused));
        }
    }
}

/// A register that is neither a setting nor an action ignores writes.
#[test]
fn all_else_ignores_writes() {
    let mut bare = Bare::new();
    let action = [regs::CTRL, regs::WINDOW_LOCK, regs::FREE_SIZE, regs::FREE_TAIL, regs::RET_SIZE, regs::RET_HEAD];
    let desc = |at: u64| at.checked_sub(regs::DESC_BASE).filter(|at| *at < regs::DESC_STRIDE * regs::DESC_COUNT as u64);
    let port = |at: u64| at.checked_sub(regs::PORT_BASE).filter(|at| *at < regs::PORT_STRIDE * HARTS as u64);
    for at in (0..0x1000).step_by(8) {
        let setting = settings().iter().any(|(setting, _)| *setting == at) || action.contains(&at);
        let acting = [regs::DESC_CTRL, regs::DESC_RELEASE, regs::DESC_FENCE, regs::DESC_EXPIRE];
        let acts = desc(at).is_some_and(|at| acting.contains(&(at % regs::DESC_STRIDE)))
            || port(at).is_some_and(|at| at % regs::PORT_STRIDE == regs::PORT_ENTRY);
        if !setting && !acts {
            bare.write(at, u64::MAX);
            bare.write(at, 1);
        }
    }
    bare.is(&reset());
}

/// REQ: SMU-5, SMU-10. Tests each bit of ring bases and sizes, and indices at the limits of a ring.
#[test]
fn rings_take_only_what_is_sound() {
    let mut bare = Bare::new();
    for (base, size) in [(regs::FREE_BASE, regs::FREE_SIZE), (regs::RET_BASE, regs::RET_SIZE)] {
        for bit in 0..64 {
            if address(4) >> bit & 1 == 1 {
                bare.takes(base, 1 << bit)
            } else {
                bare.refuses(base, 1 << bit)
            }
            if bit < 32 {
                bare.takes(size, 1 << bit)
            } else {
                bare.refuses(size, 1 << bit)
            }
            bare.refuses(size, 1 << bit | 1 << ((bit + 1) % 64));
            bare.refuses(size, 1 << bit | 1 << ((bit + 32) % 64));
        }
        bare.takes(size, 0);
    }
    for bit in 0..32 {
        let size = 1 << bit;
        bare.takes(regs::FREE_SIZE, size);
        bare.refuses(regs::FREE_TAIL, size + 1);
        bare.refuses(regs::FREE_TAIL, 0xffff_ffff);
        bare.takes(regs::FREE_TAIL, size);
        bare.takes(regs::FREE_TAIL, size - 1);
        bare.takes(regs::RET_SIZE, size);
        bare.refuses(regs::RET_HEAD, size);
        bare.refuses(regs::RET_HEAD, 0xffff_ffff);
    }
    bare.takes(regs::FREE_BASE, 0);
    assert_eq!(bare.read(regs::FREE_TAIL), 0, "a base resets the ring's indices");
}

/// REQ: SMU-9, SMU-10. A descriptor can be made valid with all allowed values, and with no others.
#[test]
fn descriptors_serve_only_when_sound() {
    let mut bare = Bare::new();
    let least = u64::from(PMSHR) + 1;
    for d in 0..regs::DESC_COUNT {
        let desc = |at| Sim::desc(d, at);
        let (depth, blocks, ctrl) = (desc(regs::DESC_DEPTH), desc(regs::DESC_BLOCKS), desc(regs::DESC_CTRL));
        let mut with = |at: u64, value: u64, sound: bool| {
            let before = bare.read(at);
            bare.write(at, value);
            if sound {
                bare.takes(ctrl, 1)
            } else {
                bare.refuses(ctrl, 1)
            }
            if sound {
                bare.refuses(at, before);
                bare.refuses(desc(regs::DESC_RELEASE), 1);
            }
            bare.takes(ctrl, 0);
            bare.write(at, before);
        };
        with(depth, least, true);
        with(depth, 1 << 16, true);
        (0..17).for_each(|bit| with(depth, 1 << bit, 1 << bit >= least));
        (0..16).for_each(|bit| with(depth, 1 << 16 | 1 << bit, false));
        with(depth, least - 1, false);
        bare.write(depth, least);
        let mut with = |at: u64, value: u64, sound: bool| {
            bare.takes(desc(at), value);
            if sound {
                bare.takes(ctrl, 1)
            } else {
                bare.refuses(ctrl, 1)
            }
            bare.takes(ctrl, 0);
            bare.takes(desc(at), 0);
        };
        for bit in 0..64 {
            for base in [regs::DESC_SQ_BASE, regs::DESC_CQ_BASE] {
                with(base, 1 << bit, address(12) >> bit & 1 == 1);
            }
            for doorbell in [regs::DESC_SQ_DB, regs::DESC_CQ_DB] {
                with(doorbell, 1 << bit, bit >= 2);
            }
        }
        (0..16).for_each(|n| with(regs::DESC_BLOCKS, n, n <= 3));
        bare.takes(blocks, 3);
    }
}

/// REQ: SMU-8, SMU-12. In an idle unit every fence is over at once, and EXPIRE has no effect.
#[test]
fn fences_at_rest_are_over() {
    let mut bare = Bare::new();
    for d in 0..regs::DESC_COUNT as u64 {
        let desc = regs::DESC_BASE + regs::DESC_STRIDE * d;
        for what in 0..4 {
            bare.write(desc + regs::DESC_FENCE, what);
            bare.write(desc + regs::DESC_EXPIRE, what);
            assert_eq!(bare.read(desc + regs::DESC_FENCE), 0);
        }
    }
}
