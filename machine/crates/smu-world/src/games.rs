// SPDX-License-Identifier: Apache-2.0
//! Games: random sequences of actions of walkers, devices and the operating system.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use trapless_smu::SmuUnit;
use trapless_smu_regs as regs;

use crate::sim::{HARTS, PMSHR, Sim};
use crate::world::{AREAS, Area, DESCRIPTORS, PTES};

/// An action of a walker, a device or the operating system, or a fault of the bus.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Action {
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
    Fence { device: usize },
    Drain { device: usize },
    Expire { device: usize },
    Enable { on: bool },
    Timeout { cycles: u64 },
    Invalidate { device: usize },
    Revalidate { device: usize },
    Release { device: usize },
    Fault { area: Area },
    WriteFault { area: Area, takes_effect: bool },
    Mend,
}

/// Strategy for random actions, with bus errors if `faults` is set.
pub fn action(faults: bool) -> impl Strategy<Value = Action> {
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
        2 => (device.clone(), (u16::from(PMSHR)..64, 0..1024_u16)).prop_map(|(device, (index, generation))| Stray { device, cid: index | generation << 6 }),
        6 => page.clone().prop_map(|page| Withdraw { page }),
        8 => (page.clone(), any::<bool>()).prop_map(|(page, other_block)| Arm { page, other_block }),
        4 => page.clone().prop_map(|page| ArmSoft { page }),
        6 => page.prop_map(|page| Adopt { page }),
        8 => (1..5_usize).prop_map(|frames| Refill { frames }),
        1 => (1..4096_u64).prop_map(|bits| Spoiled { bits }),
        6 => Just(TakeReturned),
        2 => device.clone().prop_map(|device| Fence { device }),
        2 => device.clone().prop_map(|device| Drain { device }),
        1 => device.clone().prop_map(|device| Expire { device }),
        2 => any::<bool>().prop_map(|on| Enable { on }),
        2 => (0..400_u64).prop_map(|cycles| Timeout { cycles }),
        1 => device.clone().prop_map(|device| Invalidate { device }),
        2 => device.clone().prop_map(|device| Revalidate { device }),
        1 => device.prop_map(|device| Release { device }),
    ];
    let trouble = prop_oneof![
        (0..AREAS.len()).prop_map(|i| Fault { area: AREAS[i] }),
        (0..AREAS.len(), any::<bool>()).prop_map(|(i, takes_effect)| WriteFault { area: AREAS[i], takes_effect }),
        Just(Mend),
    ];
    if faults { prop_oneof![60 => contract, 1 => trouble].boxed() } else { contract.boxed() }
}

/// Executes an action.
pub fn act(sim: &mut Sim, action: Action) {
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
        Action::Fence { device } => sim.fence(device),
        Action::Drain { device } => sim.drain(device),
        Action::Expire { device } => sim.expire(device),
        Action::Enable { on } => sim.write(regs::CTRL, on.into()),
        Action::Timeout { cycles } => sim.write(regs::TIMEOUT, cycles),
        Action::Invalidate { device } => sim.invalidate(device),
        Action::Revalidate { device } => sim.write(Sim::desc(device, regs::DESC_CTRL), 1),
        Action::Release { device } => sim.release(device),
        Action::Fault { area } => drop(sim.world.faults.insert(area)),
        Action::WriteFault { area, takes_effect } => {
            sim.world.write_faults.insert(area);
            sim.world.takes_effect = takes_effect;
        }
        Action::Mend => sim.world.mend(),
    }
}

/// Plays a game with a new unit.
///
/// # Errors
/// Returns the first breach of a rule.
pub fn play(unit: Box<dyn SmuUnit>, actions: &[Action]) -> Result<(), String> {
    // An access takes no time, 40 cycles, or 80 cycles, which is more than most steps of the unit.
    play_on(unit, actions, actions.len() as u64 % 3 * 40)
}

/// Like [`play`], on a bus where every access takes a fixed time.
///
/// # Errors
/// Returns the first breach of a rule.
pub fn play_on(unit: Box<dyn SmuUnit>, actions: &[Action], latency: u64) -> Result<(), String> {
    let mut sim = Sim::new(unit, 4);
    sim.world.latency = latency;
    for &action in actions {
        act(&mut sim, action);
        if let Some(breach) = sim.world.breach {
            return Err(format!("after {action:?}: {breach}"));
        }
    }
    sim.finish();
    sim.world.breach.map_or(Ok(()), |breach| Err(format!("at the end: {breach}")))
}

/// Plays many games, each with a new unit. `unit` gets whether to use completion hints, and a seed. If a game breaks a rule,
/// looks for the shortest game that does.
///
/// # Errors
/// Returns the rule that was broken, and the shortest game that breaks it.
pub fn hunt(cases: u32, faults: bool, unit: impl Fn(bool, u64) -> Box<dyn SmuUnit>) -> Result<(), String> {
    let games = (prop::collection::vec(action(faults), 1..160), any::<bool>(), any::<u64>());
    runner(cases)
        .run(&games, |(actions, hints, seed)| play(unit(hints, seed), &actions).map_err(TestCaseError::fail))
        .map_err(|failure| failure.to_string())
}

/// Makes the game with this number.
pub fn game(number: u64, faults: bool, longest: usize) -> Vec<Action> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let actions = prop::collection::vec(action(faults), 1..longest);
    actions.new_tree(&mut runner).map_or_else(|_| Vec::new(), |tree| tree.current())
}

/// Shortens a game that breaks a rule: leaves out smaller and smaller pieces while the rest still breaks a rule.
pub fn shrink(mut actions: Vec<Action>, lost: impl Fn(&[Action]) -> bool) -> Vec<Action> {
    let mut piece = actions.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < actions.len() {
            let mut fewer = actions.clone();
            fewer.drain(at..(at + piece).min(actions.len()));
            if lost(&fewer) { actions = fewer } else { at += piece }
        }
        piece /= 2;
    }
    actions
}

/// Makes a test runner that uses the same random numbers in every run.
pub fn runner(cases: u32) -> TestRunner {
    // With PROPTEST_MAX_SHRINK_ITERS=0 in the environment, a failing game is not shortened.
    let max_shrink_iters = Config::default().max_shrink_iters.min(20_000);
    let config = Config { cases, failure_persistence: None, max_shrink_iters, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}
