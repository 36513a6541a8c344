// SPDX-License-Identifier: Apache-2.0
//! Random walkers, devices and operating systems.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu_regs as regs;

use super::sim::{self, HARTS, PMSHR, Sim};
use super::world::{AREAS, Area, DESCRIPTORS, PTES};
use crate::bugs::Bug;
use crate::{Answer, Request, Smu, SmuBus, SmuConfig, SmuTiming};

#[derive(Clone, Copy, Debug)]
enum Action {
    Look { hart: usize, page: usize },
    Send { hart: usize },
    Ask { hart: usize, page: usize },
    Abandon { hart: usize },
    AskPort { port: usize, page: usize },
    Run { cycles: u64 },
    Complete { device: usize, which: usize, status: u16 },
    Stray { device: usize, cid: u16 },
    Withdraw { page: usize },
    Arm { page: usize, other_block: bool },
    ArmSoft { page: usize },
    Adopt { page: usize },
    Refill { frames: usize },
    Spoiled { bits: u64 },
    TakeReturned,
    Fence,
    Drain,
    Enable { on: bool },
    Timeout { cycles: u64 },
    Invalidate { device: usize },
    Revalidate { device: usize },
    Release { device: usize },
    Fault { area: Area },
    Mend,
}

fn action(faults: bool) -> impl Strategy<Value = Action> {
    use Action::*;
    let (hart, page, device) = (0..HARTS, 0..PTES, 0..DESCRIPTORS);
    let contract = prop_oneof![
        4 => (hart.clone(), page.clone()).prop_map(|(hart, page)| Look { hart, page }),
        6 => hart.clone().prop_map(|hart| Send { hart }),
        20 => (hart.clone(), page.clone()).prop_map(|(hart, page)| Ask { hart, page }),
        3 => hart.clone().prop_map(|hart| Abandon { hart }),
        8 => (hart, page.clone()).prop_map(|(port, page)| AskPort { port, page }),
        30 => (1..60_u64).prop_map(|cycles| Run { cycles }),
        20 => (device.clone(), 0..4_usize, prop_oneof![6 => Just(0), 1 => 1..0x8000_u16])
            .prop_map(|(device, which, status)| Complete { device, which, status }),
        2 => (device.clone(), prop_oneof![u16::from(PMSHR)..8, u16::from(PMSHR)..=u16::MAX]).prop_map(|(device, cid)| Stray { device, cid }),
        6 => page.clone().prop_map(|page| Withdraw { page }),
        8 => (page.clone(), any::<bool>()).prop_map(|(page, other_block)| Arm { page, other_block }),
        4 => page.clone().prop_map(|page| ArmSoft { page }),
        6 => page.prop_map(|page| Adopt { page }),
        8 => (1..5_usize).prop_map(|frames| Refill { frames }),
        1 => (1..4096_u64).prop_map(|bits| Spoiled { bits }),
        6 => Just(TakeReturned),
        2 => Just(Fence),
        2 => Just(Drain),
        2 => any::<bool>().prop_map(|on| Enable { on }),
        2 => (0..400_u64).prop_map(|cycles| Timeout { cycles }),
        1 => device.clone().prop_map(|device| Invalidate { device }),
        2 => device.clone().prop_map(|device| Revalidate { device }),
        1 => device.prop_map(|device| Release { device }),
    ];
    let trouble = prop_oneof![(0..AREAS.len()).prop_map(|i| Fault { area: AREAS[i] }), Just(Mend)];
    if faults { prop_oneof![60 => contract, 1 => trouble].boxed() } else { contract.boxed() }
}

fn act(sim: &mut Sim, action: Action) {
    match action {
        Action::Look { hart, page } => sim.look(hart, page),
        Action::Send { hart } => drop(sim.send(hart)),
        Action::Ask { hart, page } => drop(sim.ask(hart, page)),
        Action::Abandon { hart } => sim.abandon(hart),
        Action::AskPort { port, page } => sim.ask_port(port, page),
        Action::Run { cycles } => sim.run(cycles),
        Action::Complete { device, which, status } => drop(sim.complete(device, which, status)),
        Action::Stray { device, cid } => sim.stray(device, cid),
        Action::Withdraw { page } => sim.withdraw(page),
        Action::Arm { page, other_block } => sim.arm(page, other_block),
        Action::ArmSoft { page } => sim.arm_soft(page),
        Action::Adopt { page } => sim.adopt(page),
        Action::Refill { frames } => sim.refill(frames),
        Action::Spoiled { bits } => sim.put(bits),
        Action::TakeReturned => drop(sim.take_returned()),
        Action::Fence => drop(sim.fence()),
        Action::Drain => drop(sim.drain()),
        Action::Enable { on } => sim.write(regs::CTRL, on.into()),
        Action::Timeout { cycles } => sim.write(regs::TIMEOUT, cycles),
        Action::Invalidate { device } => sim.invalidate(device),
        Action::Revalidate { device } => sim.write(Sim::desc(device, regs::DESC_CTRL), 1),
        Action::Release { device } => sim.release(device),
        Action::Fault { area } => drop(sim.world.faults.insert(area)),
        Action::Mend => sim.world.faults.clear(),
    }
}

fn play(actions: &[Action], hints: bool, bug: Option<Bug>) -> Result<(), String> {
    let mut sim = Sim::new(sim::config(hints), bug, 4);
    // On a bus that takes no time, some, or more than other steps.
    sim.world.latency = actions.len() as u64 % 3 * 40;
    for &action in actions {
        act(&mut sim, action);
        if let Some(breach) = sim.world.breach {
            return Err(format!("after {action:?}: {breach}"));
        }
    }
    sim.finish();
    sim.world.breach.map_or(Ok(()), |breach| Err(format!("at the end: {breach}")))
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn hunt(cases: u32, faults: bool, bug: Option<Bug>) -> Result<(), String> {
    let games = (prop::collection::vec(action(faults), 1..160), any::<bool>());
    runner(cases)
        .run(&games, |(actions, hints)| play(&actions, hints, bug).map_err(TestCaseError::fail))
        .map_err(|failure| failure.to_string())
}

/// REQ: SMU-1, SMU-2, SMU-3, SMU-4, SMU-5, SMU-6, SMU-7, SMU-8, SMU-9, SMU-10, SMU-11
#[test]
fn no_rule_is_broken_without_bus_errors() {
    hunt(3000, false, None).unwrap();
}

/// REQ: SMU-6, SMU-7, SMU-10
#[test]
fn no_rule_is_broken_with_bus_errors_everywhere() {
    hunt(3000, true, None).unwrap();
}

/// The checks above would see these.
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
    ];
    for (bug, rule) in bugs {
        let found = hunt(3000, false, Some(bug)).expect_err(&format!("{bug:?} was not caught"));
        assert!(found.contains(rule), "{bug:?} was caught as something else: {found}");
    }
}

/// With hints the polls that find nothing are left out, and nothing else changes.
#[test]
fn hints_change_no_answer() {
    let games = prop::collection::vec(action(false), 1..160);
    let answers = |actions: &[Action], hints| {
        let mut sim = Sim::new(sim::config(hints), None, 4);
        for &action in actions {
            // In a machine a device's write comes before the SMU's look at the same time. Here looks at `now` are over.
            if sim.now.0 % sim::timing().poll_interval.0 == 0 {
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

/// A bus that answers anything, from a seed.
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
        if n % 16 == 0 { Err(BusError(at)) } else { Ok(value(self.next())) }
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
    // Entries that look armed, so that requests get far.
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

/// REQ: SMU-10. Any register content, any memory content, any timing, down to steps that take no time: no panic, and time
/// goes on with a bounded number of accesses a cycle.
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
                    ring_read: zero,
                };
            }
            let mut smu = Smu::new(config).map_err(|e| TestCaseError::fail(e.to_string()))?;
            // Set up well enough that nonsense reaches every part.
            for d in 0..8 {
                smu.mmio_write(Sim::desc(d, regs::DESC_DEPTH), 8, 64, Cycle(0));
                smu.mmio_write(Sim::desc(d, regs::DESC_CTRL), 8, 1, Cycle(0));
            }
            for (register, value) in
                [(regs::FREE_SIZE, 64), (regs::RET_SIZE, 16), (regs::CTRL, 1), (regs::FREE_TAIL, 64)]
            {
                smu.mmio_write(register, 8, value, Cycle(0));
            }
            let mut bus = Chaos { state: seed, accesses: 0 };
            let mut now = Cycle(0);
            let mut answers = 0_u64;
            for action in actions {
                match action {
                    Nonsense::Write { offset, size, value } => smu.mmio_write(offset, size, value, now),
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
                    smu.mmio_read(offset, 8);
                }
            }
            prop_assert!(answers <= smu.counter(regs::Counter::Requests));
            Ok(())
        })
        .unwrap();
}

/// A long hunt: `cargo test -p trapless-smu --release -- --ignored`.
#[test]
#[ignore = "minutes long"]
fn long_hunt() {
    hunt(100_000, false, None).unwrap();
    hunt(100_000, true, None).unwrap();
}
