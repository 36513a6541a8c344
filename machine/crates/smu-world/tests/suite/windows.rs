// SPDX-License-Identifier: Apache-2.0
//! Examples of windows: the SMU neither reads nor writes memory outside them. REQ: SMU-15

use trapless_smu::{FailReason, Outcome, SmuUnit};
use trapless_smu_regs as regs;
use trapless_smu_world::sim::{Sim, config};
use trapless_smu_world::world::{self, FREE_RING, PMD, PT, PUD, Place, RET_RING};

use super::rules::{LONG, finish, outcomes};
use super::unit;

/// Memory that the unit must not access.
const FIRMWARE: u64 = 0x7000_0000;
const KIB4: u64 = 4096;
const MEMORY: u64 = regs::WINDOW_CTRL_MEMORY.mask();
const DOORBELL: u64 = regs::WINDOW_CTRL_DOORBELL.mask();

/// Windows for all memory and doorbells of the world: first byte, last byte, kind.
fn everything() -> Vec<(u64, u64, u64)> {
    let queues = world::sq(0);
    let bells = world::sq_doorbell(0);
    vec![(PT, RET_RING + KIB4 - 1, MEMORY), (queues, queues + 0xf_ffff, MEMORY), (bells, bells + KIB4 - 1, DOORBELL)]
}

/// Creates an idle unit: disabled, with no valid descriptor.
pub fn at_rest(unit: Box<dyn SmuUnit>) -> Sim {
    let mut sim = Sim::new(unit, 0);
    sim.run(LONG);
    sim.write(regs::CTRL, 0);
    (0..world::DESCRIPTORS).for_each(|d| sim.invalidate(d));
    sim.run(LONG);
    sim
}

/// Sets the windows as firmware does.
fn set(sim: &mut Sim, windows: &[(u64, u64, u64)], lock: bool) {
    for (w, &(first, last, kind)) in (0..).zip(windows) {
        for (register, value) in [(regs::WINDOW_FIRST, first), (regs::WINDOW_LAST, last), (regs::WINDOW_CTRL, kind)] {
            sim.write(Sim::window(w, register), value);
        }
    }
    if lock {
        sim.write(regs::WINDOW_LOCK, 1);
    }
    assert_eq!(sim.status(regs::STATUS_ERROR), 0);
    let held = windows.iter().map(|&(first, last, kind)| (first, last, kind & MEMORY != 0, kind & DOORBELL != 0));
    sim.world.windows = Some(held.collect());
}

/// Sets up descriptors, SMU and free ring as the operating system does.
fn start(sim: &mut Sim) {
    (0..world::DESCRIPTORS).for_each(|d| sim.set_up_descriptor(d));
    sim.write(regs::CTRL, 1);
    assert_eq!(sim.status(regs::STATUS_ERROR), 0);
    sim.refill(4);
    sim.run(100);
    sim.world.log.clear();
}

/// Creates a unit that works in locked windows.
pub fn windowed(unit: Box<dyn SmuUnit>) -> Sim {
    let mut sim = at_rest(unit);
    set(&mut sim, &everything(), true);
    start(&mut sim);
    sim
}

/// Returns whether STATUS.ERROR is set. Then disables the unit, which clears STATUS.ERROR.
fn error(sim: &mut Sim) -> bool {
    let found = sim.status(regs::STATUS_ERROR) == 1;
    sim.write(regs::CTRL, 0);
    assert_eq!(sim.status(regs::STATUS_ERROR), 0);
    found
}

/// REQ: SMU-15, SMU-11
#[test]
fn a_port_reads_no_memory_outside() {
    let good = [PT, PMD, PUD];
    for bad in 0..3 {
        for at in [FIRMWARE, PT - 8, RET_RING + KIB4, world::sq_doorbell(0), PT | 1 << 55] {
            let mut sim = windowed(unit(config(false)));
            sim.world.mem.insert(at, 0x5ec2_e75e_c2e7);
            let registers = [regs::PORT_PTE_ADDR, regs::PORT_PMD_ADDR, regs::PORT_PUD_ADDR];
            for (n, register) in registers.into_iter().enumerate() {
                sim.write(Sim::port(0, register), if n == bad { at } else { good[n] });
            }
            sim.write(Sim::port(0, regs::PORT_ENTRY), sim.world.pte(0));
            sim.run(LONG);
            assert_eq!(sim.port_answer(0), Some((regs::OUTCOME_FAILED, regs::REASON_BUS, 0)), "{at:#x} as entry {bad}");
            assert!(sim.world.log.is_empty(), "memory is left alone");
            assert_eq!(sim.status(regs::STATUS_ERROR), 1);
            finish(sim);
        }
    }
}

/// REQ: SMU-15. The SMU refuses a walker's request outside the windows, and still serves requests inside them.
#[test]
fn walkers_are_held_to_the_windows() {
    let beyond = FIRMWARE.wrapping_sub(PT);
    for spoil in [[beyond, 0, 0], [0, beyond, 0], [0, 0, beyond]] {
        let mut sim = windowed(unit(config(false)));
        sim.look(0, 3);
        sim.send_beside(0, spoil);
        sim.run(LONG);
        assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Bus)]);
        assert!(sim.world.log.is_empty(), "memory is left alone");
        sim.ask(1, 3);
        sim.run(LONG);
        assert!(sim.complete(1, 0, 0));
        sim.run(LONG);
        assert_eq!(outcomes(&sim)[1], Outcome::Done(sim.world.pte(3)));
        finish(sim);
    }
}

/// REQ: SMU-15, SMU-5. Frames wait until the return ring is in a window.
#[test]
fn a_return_ring_outside_is_not_written() {
    let mut sim = at_rest(unit(config(false)));
    set(&mut sim, &everything(), true);
    sim.write(regs::RET_BASE, FIRMWARE);
    assert_eq!(sim.status(regs::STATUS_ERROR), 0);
    sim.write(regs::CTRL, 1);
    assert_eq!(sim.read(regs::CTRL), 0);
    assert!(error(&mut sim));
    sim.write(regs::RET_BASE, RET_RING);
    sim.write(regs::RET_SIZE, 1);
    sim.write(regs::CTRL, 1);
    sim.put(8);
    sim.put(8); // this frame waits, because the ring is full
    sim.run(LONG);
    sim.write(regs::CTRL, 0);
    sim.write(regs::RET_BASE, FIRMWARE);
    sim.run(LONG);
    assert_eq!((sim.read(regs::RET_TAIL), sim.status(regs::STATUS_NO_FRAMES)), (0, 0));
    sim.write(regs::RET_HEAD, 0);
    sim.write(regs::RET_BASE, RET_RING);
    sim.run(LONG);
    assert_eq!(sim.read(regs::RET_TAIL), 1);
    finish(sim);
}

/// REQ: SMU-15, SMU-16. The unit cannot be enabled with a free ring outside the windows.
#[test]
fn a_free_ring_outside_gives_no_frame() {
    let mut sim = at_rest(unit(config(false)));
    set(&mut sim, &everything(), true);
    for (base, size, inside) in [
        (FIRMWARE, 8, false),
        (PT - 16, 8, false),
        (RET_RING + KIB4 - 0x80, 8, true),
        (RET_RING + KIB4 - 0x70, 8, false),
        (FREE_RING, 1 << 31, false),
        (FIRMWARE, 0, true),
        (world::sq(0), 8, true),
    ] {
        sim.write(regs::FREE_BASE, base);
        sim.write(regs::FREE_SIZE, size);
        assert_eq!(sim.status(regs::STATUS_ERROR), 0, "nothing is reported before the unit is enabled");
        sim.write(regs::CTRL, 1);
        assert_eq!(error(&mut sim), !inside, "{size} at {base:#x}");
    }
    sim.write(regs::FREE_BASE, FIRMWARE);
    (0..world::DESCRIPTORS).for_each(|d| sim.set_up_descriptor(d));
    sim.write(regs::CTRL, 1);
    sim.write(regs::FREE_TAIL, 8);
    sim.world.log.clear();
    sim.ask(0, 0);
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Disabled)]);
    assert!(sim.world.log.is_empty(), "memory is left alone");
    assert_eq!(sim.world.breach, None);
}

/// REQ: SMU-15. From a malformed entry, only the bits of a frame number come back.
#[test]
fn only_the_bits_of_a_frame_number_come_back() {
    for spoil in [1 << 63, 1 << 44, u64::MAX << 44] {
        let mut sim = Sim::new(unit(config(false)), 0);
        sim.world.mem.insert(FREE_RING, world::pfn(0) | spoil);
        sim.world.mem.insert(FREE_RING + 8, world::dma(0));
        sim.world.places[0] = Place::Smu;
        sim.write(regs::FREE_TAIL, 1);
        sim.run(LONG);
        assert_eq!(sim.world.word(RET_RING), world::pfn(0));
        assert_eq!(sim.take_returned(), [regs::REASON_BAD_ENTRY]);
        finish(sim);
    }
}

/// REQ: SMU-15, SMU-9. Each of a descriptor's four addresses must be in a window of its kind.
#[test]
fn queues_and_doorbells_are_held_to_the_windows() {
    let mut sim = at_rest(unit(config(false)));
    let near = world::sq(0);
    let bells = world::sq_doorbell(0) & !(KIB4 - 1);
    set(&mut sim, &[(near, near + KIB4 - 1, MEMORY), (bells, bells + KIB4 - 1, DOORBELL)], true);
    for d in 0..world::DESCRIPTORS {
        let desc = |at| Sim::desc(d, at);
        let good = [
            (regs::DESC_SQ_BASE, near),
            (regs::DESC_CQ_BASE, near),
            (regs::DESC_SQ_DB, bells),
            (regs::DESC_CQ_DB, bells + KIB4 - 4),
            (regs::DESC_DEPTH, 64),
        ];
        let bad = [
            (regs::DESC_SQ_BASE, near - KIB4),
            (regs::DESC_SQ_BASE, near + KIB4),
            (regs::DESC_CQ_BASE, bells),
            (regs::DESC_CQ_BASE, near | 1 << 55),
            (regs::DESC_SQ_DB, near),
            (regs::DESC_SQ_DB, bells + KIB4),
            (regs::DESC_CQ_DB, bells - 4),
            (regs::DESC_CQ_DB, bells | 1 << 60),
            (regs::DESC_DEPTH, 65),
        ];
        for (register, value) in [(regs::DESC_NSID, 1)].into_iter().chain(bad) {
            good.iter().for_each(|&(at, value)| sim.write(desc(at), value));
            sim.write(desc(register), value);
            sim.write(desc(regs::DESC_CTRL), 1);
            let fine = register == regs::DESC_NSID;
            assert_eq!((sim.read(desc(regs::DESC_CTRL)), error(&mut sim)), (fine.into(), !fine), "{register:#x}");
            sim.write(desc(regs::DESC_CTRL), 0);
        }
    }
    assert_eq!(sim.world.breach, None);
}

/// REQ: SMU-15. The lock holds until reset.
#[test]
fn a_locked_window_never_changes() {
    let mut sim = at_rest(unit(config(false)));
    set(&mut sim, &everything(), false);
    sim.write(regs::WINDOW_LOCK, 0);
    assert_eq!((sim.read(regs::WINDOW_LOCK), error(&mut sim)), (0, false));
    sim.write(regs::WINDOW_LOCK, 1);
    assert_eq!((sim.read(regs::WINDOW_LOCK), error(&mut sim)), (1, false));
    let registers: Vec<u64> = (0..3)
        .flat_map(|w| [regs::WINDOW_FIRST, regs::WINDOW_LAST, regs::WINDOW_CTRL].map(|at| Sim::window(w, at)))
        .chain([regs::WINDOW_LOCK])
        .collect();
    for at in registers {
        for value in [0, u64::MAX] {
            let before = sim.read(at);
            sim.write(at, value);
            assert_eq!((sim.read(at), error(&mut sim)), (before, true), "{at:#x}");
        }
    }
    start(&mut sim);
    finish(sim);
}

/// REQ: SMU-15. Windows cannot change while the unit is enabled, or while a descriptor is valid or has a command outstanding.
#[test]
fn windows_change_only_at_rest() {
    let mut sim = at_rest(unit(config(false)));
    let takes = |sim: &mut Sim, last: u64| {
        sim.write(Sim::window(2, regs::WINDOW_LAST), last);
        sim.read(Sim::window(2, regs::WINDOW_LAST)) == last
    };
    set(&mut sim, &everything(), false);
    sim.write(regs::CTRL, 1);
    assert!(!takes(&mut sim, KIB4) && error(&mut sim));
    start(&mut sim);
    sim.write(regs::TIMEOUT, 300);
    sim.ask(0, 0);
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Timeout)]);
    assert!(!takes(&mut sim, KIB4) && error(&mut sim));
    assert!(!takes(&mut sim, KIB4) && error(&mut sim), "a descriptor is valid");
    (0..world::DESCRIPTORS).for_each(|d| sim.invalidate(d));
    assert!(!takes(&mut sim, KIB4) && error(&mut sim), "a command is in quarantine");
    sim.write(regs::WINDOW_LOCK, 1);
    assert_eq!((sim.read(regs::WINDOW_LOCK), error(&mut sim)), (0, true));
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert!(takes(&mut sim, KIB4) && !error(&mut sim));
    sim.world.windows = None;
    sim.take_returned();
    finish(sim);
}

/// REQ: SMU-15. The SMU also checks rings that were set up before the windows.
#[test]
fn windows_may_come_behind_the_rings() {
    let mut sim = at_rest(unit(config(false)));
    set(&mut sim, &[(PT, PUD + KIB4 - 1, MEMORY)], false);
    sim.write(regs::CTRL, 1);
    assert!(error(&mut sim));
    set(&mut sim, &everything(), true);
    start(&mut sim);
    sim.ask(0, 0);
    sim.run(LONG);
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Done(sim.world.pte(0))]);
    finish(sim);
}

/// REQ: SMU-15. If no window is set, the lock forbids all accesses.
#[test]
fn no_windows_and_a_lock_forbid_everything() {
    let mut sim = at_rest(unit(config(false)));
    set(&mut sim, &[], true);
    sim.world.log.clear();
    sim.write(regs::CTRL, 1);
    assert_eq!(sim.status(regs::STATUS_ERROR), 1);
    assert_eq!(sim.read(regs::CTRL), 0);
    sim.ask(0, 0);
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Disabled)]);
    sim.set_up_descriptor(0);
    assert_eq!(sim.read(Sim::desc(0, regs::DESC_CTRL)), 0);
    assert!(sim.world.log.is_empty());
}
