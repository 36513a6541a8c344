// SPDX-License-Identifier: Apache-2.0
//! Tests for the reference model only: exact times, sizes that the RTL cannot have, seeded bugs, random answers of the bus.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu::{
    Accept, Answer, Bug, FailReason, Outcome, Request, Smu, SmuBus, SmuConfig, SmuError, SmuTiming, SmuUnit,
};
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_world::games::{self, Action, act, action, runner};
use trapless_smu_world::sim::{self, HARTS, Sim};
use trapless_smu_world::world::{Area, PTES};

use super::rules::{LONG, failed, finish, warm};
use super::{seeded, unit};
/// The checks of random games find each of these bugs.
#[test]
fn seeded_bugs_are_caught() {
    let bugs = [
        (Bug::ForgetJoiners, "SMU-6"),
        (Bug::OverwritePte, "SMU-3"),
        (Bug::UpperMarksFirst, "SMU-3"),
        (Bug::LoseFrame, "SMU-5"),
        (Bug::KeepPrefetched, "SMU-5"),
        (Bug::AnswerTwice, "SMU-6"),
        (Bug::NoQuarantine, "SMU-7"),
        (Bug::FenceOverlooksDevice, "SMU-8"),
        (Bug::DrainOverlooksQuarantine, "SMU-8"),
        (Bug::WrapCommandId, "SMU-"),
        (Bug::ForgetPorts, "SMU-11"),
        (Bug::TrustWriteError, "SMU-13"),
    ];
    for (bug, rule) in bugs {
        let faults = bug == Bug::TrustWriteError;
        let found = games::hunt(3000, faults, |hints, _| seeded(sim::config(hints), Some(bug)))
            .expect_err(&format!("no check caught {bug:?}"));
        assert!(found.contains(rule), "{bug:?} was caught as something else: {found}");
    }
}

/// REQ: SMU-15. `walkers_are_held_to_the_windows` fails if the SMU checks only the addresses of PTEs.
#[test]
fn upper_entries_outside_are_caught() {
    for (bug, rule) in [(None, None), (Some(Bug::OverlookUpperEntries), Some("SMU-15"))] {
        let mut sim = super::windows::windowed(seeded(sim::config(false), bug));
        sim.look(0, 1);
        sim.send_beside(0, [0, 0x1000_0000, 0]);
        sim.run(LONG);
        sim.complete(1, 0, 0);
        sim.run(LONG);
        let breach = sim.world.breach.unwrap_or_default();
        assert_eq!(breach.split(':').next().filter(|rule| !rule.is_empty()), rule, "{breach}");
    }
}

/// REQ: SMU-8. `a_fence_is_of_one_descriptor` fails if a fence waits for other devices.
#[test]
fn a_fence_of_the_whole_unit_is_caught() {
    for (bug, waits) in [(None, false), (Some(Bug::FenceOfTheUnit), true)] {
        let mut sim = Sim::new(seeded(sim::config(false), bug), 4);
        sim.ask(0, 0);
        sim.run(100);
        sim.fence(1);
        sim.run(LONG);
        assert_eq!(sim.fences(1).0, waits, "{bug:?}");
        sim.complete(0, 0, 0);
        finish(sim);
    }
}

/// With hints the SMU leaves out the polls that would find nothing. Nothing else changes.
#[test]
fn hints_change_no_answer() {
    let games = prop::collection::vec(action(false), 1..160);
    let answers = |actions: &[Action], hints| {
        let mut sim = Sim::new(unit(sim::config(hints)), 4);
        for &action in actions {
            // In a machine, a device writes before the SMU polls in the same cycle. Here the poll at `now` is already over.
            if sim.now.0.is_multiple_of(sim::timing().poll_interval.0) {
                sim.run(1);
            }
            act(&mut sim, action);
        }
        sim.run(1000);
        sim.answers
    };
    runner(1500)
        .run(&games, |actions| {
            prop_assert_eq!(answers(&actions, false), answers(&actions, true));
            Ok(())
        })
        .unwrap();
}

/// A bus whose answers are random, from a seed.
struct Chaos {
    state: u64,
    accesses: u64,
}

impl Chaos {
    fn next(&mut self) -> u64 {
        self.accesses += 1;
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state ^ (self.state >> 29)
    }

    fn answer<T>(&mut self, at: PhysAddr, value: impl FnOnce(u64) -> T) -> Result<T, BusError> {
        let n = self.next();
        if n.is_multiple_of(16) { Err(BusError(at)) } else { Ok(value(self.next())) }
    }
}

impl SmuBus for Chaos {
    fn read_u64(&mut self, at: PhysAddr) -> Result<u64, BusError> {
        self.answer(at, |n| n)
    }
    fn write_u32(&mut self, at: PhysAddr, _: u32) -> Result<(), BusError> {
        self.answer(at, |_| ())
    }
    fn write_bytes(&mut self, at: PhysAddr, _: &[u8]) -> Result<(), BusError> {
        self.answer(at, |_| ())
    }
    fn compare_exchange_u64(&mut self, at: PhysAddr, old: u64, _: u64) -> Result<Result<u64, u64>, BusError> {
        self.answer(at, |n| if n % 2 == 0 { Ok(old) } else { Err(n) })
    }
    fn fetch_or_u64(&mut self, at: PhysAddr, _: u64) -> Result<u64, BusError> {
        self.answer(at, |n| n)
    }
}

#[derive(Clone, Debug)]
enum Nonsense {
    Write { offset: u64, size: usize, value: u64 },
    Ask(Request),
    Abandon { hart: u32, id: u64 },
    Run { cycles: u64 },
    Hint,
}

fn nonsense() -> impl Strategy<Value = Nonsense> {
    let offset = prop_oneof![9 => (0..0x200_u64).prop_map(|r| r * 8), 1 => any::<u64>()];
    let value = prop_oneof![
        3 => any::<u64>(),
        3 => 0..64_u64,
        3 => (0..64_u32).prop_map(|bit| 1 << bit),
        1 => Just(u64::MAX),
    ];
    let address = prop_oneof![(0..4_u64).prop_map(|p| 0x8000_0000 + 8 * p), any::<u64>()];
    // Entries of the armed form, so that requests pass the first checks.
    let seen = (any::<u64>(), any::<bool>()).prop_map(|(n, tidy)| {
        let must = regs::PTE_L.mask() | regs::PTE_U.mask() | regs::PTE_R.mask();
        let never = regs::PTE_V.mask()
            | regs::PTE_G.mask()
            | regs::PTE_D.mask()
            | regs::PTE_HIGH.mask()
            | regs::PTE_SOCKET.mask();
        if tidy { (n | must) & !never } else { n }
    });
    let ask = (address.clone(), address.clone(), address, seen, prop_oneof![0..4_u32, any::<u32>()], 0..8_u64);
    prop_oneof![
        10 => (offset, prop_oneof![Just(8_usize), Just(4), 0..9_usize], value)
            .prop_map(|(offset, size, value)| Nonsense::Write { offset, size, value }),
        6 => ask.prop_map(|(pte, pmd, pud, seen, hart, id)| Nonsense::Ask(Request {
            pte: PhysAddr(pte), pmd: PhysAddr(pmd), pud: PhysAddr(pud), seen, hart, id
        })),
        1 => (0..4_u32, 0..8_u64).prop_map(|(hart, id)| Nonsense::Abandon { hart, id }),
        6 => (0..300_u64).prop_map(|cycles| Nonsense::Run { cycles }),
        1 => Just(Nonsense::Hint),
    ]
}

/// REQ: SMU-10. The model does not panic and makes a bounded number of accesses per cycle, whatever registers and memory contain
/// and whatever the times of its steps are, even 0.
#[test]
fn nonsense_neither_stops_nor_breaks_it() {
    let games = (prop::collection::vec(nonsense(), 1..200), any::<u64>(), any::<bool>(), any::<bool>(), 0..9_u8);
    runner(3000)
        .run(&games, |(actions, seed, hints, instant, depth)| {
            let mut config = SmuConfig { prefetch_depth: depth, ..sim::config(hints) };
            if instant {
                let zero = Cycle(0);
                config.timing = SmuTiming {
                    request: zero,
                    cam: zero,
                    command_write: zero,
                    doorbell: zero,
                    completion: zero,
                    update: zero,
                    notify: zero,
                    poll_interval: zero,
                    first_look: Some(zero),
                    ring_read: zero,
                };
            }
            let mut bus = Chaos { state: seed, accesses: 0 };
            let mut smu = Smu::new(config).map_err(|e| TestCaseError::fail(e.to_string()))?;
            // Set up descriptors and rings, so that random calls reach every part of the model.
            for d in 0..8 {
                smu.mmio_write(Sim::desc(d, regs::DESC_DEPTH), 8, 64, Cycle(0), &mut bus);
                smu.mmio_write(Sim::desc(d, regs::DESC_CTRL), 8, 1, Cycle(0), &mut bus);
            }
            for (register, value) in
                [(regs::FREE_SIZE, 64), (regs::RET_SIZE, 16), (regs::CTRL, 1), (regs::FREE_TAIL, 64)]
            {
                // Repeat until the random bus accepts the exclusive pair of accesses that enabling needs.
                while smu.peek(register) != value {
                    smu.mmio_write(register, 8, value, Cycle(0), &mut bus);
                }
            }
            let mut now = Cycle(0);
            let mut answers = 0_u64;
            for action in actions {
                match action {
                    Nonsense::Write { offset, size, value } => smu.mmio_write(offset, size, value, now, &mut bus),
                    Nonsense::Ask(request) => drop(smu.request(now, request)),
                    Nonsense::Abandon { hart, id } => smu.abandon(hart, id),
                    Nonsense::Hint => smu.completion_queue_written(now),
                    Nonsense::Run { cycles } => {
                        let before = bus.accesses;
                        now += Cycle(cycles);
                        smu.advance(now, &mut bus, &mut |_: Answer| answers += 1);
                        prop_assert!(
                            bus.accesses - before < 10_000 + 100 * cycles,
                            "{} accesses",
                            bus.accesses - before
                        );
                        prop_assert!(smu.next_event().is_none_or(|at| at > now));
                    }
                }
                for offset in (0..0x1000).step_by(8) {
                    smu.peek(offset);
                }
            }
            prop_assert!(answers <= smu.counter(regs::Counter::Requests));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_miss_takes_exactly_the_time_of_its_steps() {
    let mut sim = warm();
    let t0 = sim.now;
    sim.ask(0, 3);
    sim.run(40);
    let written = sim.now; // cycle 140 has a poll, but the poll is already over
    assert!(sim.complete(1, 0, 0));
    sim.run(LONG);
    let Answer { outcome, at, asked, joined, stamps, .. } = sim.answers[0];
    assert_eq!((outcome, joined, asked), (Outcome::Done(sim.world.pte(3)), false, t0));
    let after = |base: Cycle, cycles| Some(base + Cycle(cycles));
    assert_eq!(stamps.requested, Some(t0));
    assert_eq!(stamps.allocated, after(t0, 2 + 5));
    assert_eq!(stamps.frame, after(t0, 7), "a prefetched frame costs nothing");
    assert_eq!(stamps.command, after(t0, 7 + 8));
    assert_eq!(stamps.doorbell, after(t0, 15 + 1));
    assert_eq!(stamps.completion, after(written, 10), "the next poll");
    let seen = written + Cycle(10);
    assert_eq!(stamps.pte, after(seen, 2 + 32));
    assert_eq!(stamps.pmd, after(seen, 2 + 64));
    assert_eq!(stamps.pud, after(seen, 2 + 97));
    assert_eq!(stamps.answered, after(seen, 2 + 97 + 2));
    assert_eq!(Some(at), stamps.answered);
    finish(sim);
}

#[test]
fn where_the_bus_takes_time_each_step_waits_for_the_access_before_it() {
    let mut sim = warm();
    sim.smu.set_timing(sim::timing().logic());
    sim.world.latency = 50;
    let t0 = sim.now;
    sim.ask(0, 3);
    sim.run(200);
    let written = sim.now; // cycle 300 has a poll, but the poll is already over
    assert!(sim.complete(1, 0, 0));
    sim.run(LONG);
    let Answer { outcome, at, stamps, .. } = sim.answers[0];
    assert_eq!(outcome, Outcome::Done(sim.world.pte(3)));
    let after = |base: Cycle, cycles| Some(base + Cycle(cycles));
    assert_eq!(stamps.allocated, after(t0, 2 + 5));
    assert_eq!(stamps.command, after(t0, 7 + 50 + 1), "after the second read of the PTE");
    assert_eq!(stamps.doorbell, after(t0, 58 + 50 + 1), "after the write of the command");
    let seen = written + Cycle(10);
    assert_eq!(stamps.completion, Some(seen));
    assert_eq!(stamps.pte, after(seen, 2 + 1));
    assert_eq!(stamps.pmd, after(seen, 2 + 1 + 51));
    assert_eq!(stamps.pud, after(seen, 2 + 1 + 2 * 51));
    assert_eq!(stamps.answered, after(seen, 2 + 1 + 2 * 51 + 50 + 2));
    assert_eq!(Some(at), stamps.answered);
    finish(sim);
}

/// REQ: SMU-1. A request that joins at the last moment is answered only after it has reached the PMSHR.
#[test]
fn a_late_joiner_is_answered_late() {
    let mut sim = warm();
    sim.ask(0, 5);
    sim.run(39);
    sim.complete(1, 0, 0);
    sim.look(1, 5);
    sim.run(101);
    assert!(sim.answers.is_empty());
    let asked = sim.now;
    sim.send(1);
    sim.fence(1);
    sim.run(5);
    assert_eq!(sim.answers.len(), 1, "the first is answered in these cycles");
    assert!(sim.fences(1).0, "the fence waits for the joiner's answer too");
    sim.run(LONG);
    assert_eq!((sim.answers[1].at, sim.answers[1].joined), (asked + Cycle(2 + 5 + 2), true));
    assert_eq!(sim.answers[1].outcome, sim.answers[0].outcome);
    finish(sim);
}

/// REQ: SMU-1. An abandoned request that was not accepted yet never starts a miss.
#[test]
fn a_request_at_the_port_can_be_withdrawn() {
    let mut sim = Sim::new(unit(SmuConfig { pmshr_entries: 1, ..sim::config(false) }), 4);
    assert_eq!(sim.ask(0, 0), Some(Accept::Accepted));
    assert_eq!(sim.ask(1, 1), Some(Accept::Full));
    sim.abandon(1);
    sim.run(50);
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert_eq!((sim.count(Counter::Requests), sim.count(Counter::PmshrFull)), (1, 1));
    finish(sim);
}

/// REQ: SMU-5
#[test]
fn without_a_prefetch_buffer_frames_are_fetched_on_demand() {
    let mut sim = Sim::new(unit(SmuConfig { prefetch_depth: 0, ..sim::config(false) }), 4);
    sim.run(100);
    assert_eq!(sim.read(regs::FREE_HEAD), 0);
    let asked = sim.now;
    sim.ask(0, 0);
    sim.run(100);
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert_eq!(sim.answers[0].stamps.frame, Some(asked + Cycle(7 + 4)));
    finish(sim);
}

/// REQ: SMU-6
#[test]
fn a_full_pmshr_takes_waiting_harts_in_turn() {
    let mut sim = Sim::new(unit(SmuConfig { pmshr_entries: 1, ..sim::config(false) }), 8);
    let accepts: Vec<_> = [2, 1, 0, 3].into_iter().map(|hart| sim.ask(hart, 2 * hart).unwrap()).collect();
    assert_eq!(accepts, [Accept::Accepted, Accept::Full, Accept::Full, Accept::Full]);
    assert_eq!(sim.count(Counter::PmshrFull), 3);
    for _ in 0..HARTS {
        sim.run(60);
        sim.complete(0, 0, 0);
        sim.run(200);
    }
    assert_eq!(sim.answers.iter().map(|a| a.hart).collect::<Vec<_>>(), [2, 0, 1, 3]);
    finish(sim);
}

/// REQ: SMU-6. A request that waits for a free entry joins a miss of its page that another request has started meanwhile.
#[test]
fn a_waiting_request_joins_too() {
    let mut sim = Sim::new(unit(SmuConfig { pmshr_entries: 1, ..sim::config(false) }), 8);
    sim.ask(0, 0);
    sim.ask(1, 2);
    sim.ask(2, 2);
    sim.run(60);
    sim.complete(0, 0, 0);
    sim.run(200);
    sim.complete(0, 0, 0);
    sim.run(200);
    assert_eq!((sim.answers.len(), sim.count(Counter::Coalesced)), (3, 1));
    finish(sim);
}

/// REQ: SMU-9
#[test]
fn the_completion_queue_is_read_only_while_a_command_is_outstanding() {
    let looks = |sim: &Sim| sim.world.log.iter().filter(|(area, _)| *area == Area::Cq).count();
    let mut sim = warm();
    sim.run(LONG);
    assert_eq!(looks(&sim), 0);
    sim.ask(0, 0);
    sim.run(116);
    assert_eq!(looks(&sim), 10, "one every ten cycles");
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert_eq!(looks(&sim), 11);
    finish(sim);
}

#[test]
fn impossible_configurations_are_refused() {
    let zero = Smu::new(SmuConfig { pmshr_entries: 0, ..sim::config(false) }).unwrap_err();
    assert_eq!(zero.to_string(), "smu.pmshr_entries must be 1 to 255, not 0");
    let socket = Smu::new(SmuConfig { socket: 8, ..sim::config(false) }).unwrap_err();
    assert!(matches!(socket, SmuError::OutOfRange { field: "socket", value: 8, .. }));
}

/// The same calls give the same state in every field.
#[test]
fn the_model_is_deterministic() {
    let play = || {
        let mut sim = warm();
        for page in 0..PTES {
            sim.ask(page % HARTS, page);
            sim.run(33);
            sim.complete(page % 2, page, 0);
            sim.refill(1);
        }
        format!("{:?} {:?}", sim.smu.save(), sim.answers)
    };
    assert_eq!(play(), play());
}

/// REQ: SMU-6, SMU-11. While the PMSHR is full, a port's request waits for its turn.
#[test]
fn a_port_waits_for_a_free_entry() {
    let mut sim = Sim::new(unit(SmuConfig { pmshr_entries: 1, ..sim::config(false) }), 4);
    sim.ask_port(0, 0);
    sim.ask_port(1, 1);
    sim.ask(0, 2);
    assert_eq!((sim.count(Counter::Requests), sim.count(Counter::PmshrFull)), (1, 2));
    for device in [0, 0, 1] {
        sim.run(60);
        assert!(sim.complete(device, 0, 0));
        sim.run(150);
    }
    sim.run(LONG);
    assert!([0, 1, 2].iter().all(|&p| regs::PTE_V.is_set(sim.world.pte(p))));
    finish(sim);
}

/// REQ: SMU-6
#[test]
fn entries_of_other_sockets_fail() {
    let mut sim = Sim::new(unit(SmuConfig { socket: 1, ..sim::config(false) }), 4);
    sim.ask(0, 0);
    sim.run(100);
    assert!(failed(&sim, FailReason::Descriptor));
    finish(sim);
}
