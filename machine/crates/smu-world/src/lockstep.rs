// SPDX-License-Identifier: Apache-2.0
//! Lockstep: a unit and the reference model, each in its own world, get the same actions and are compared when both are idle.
//! The frame of a page and the order of answers may differ. The content of a page, its marks and all counters must be equal.

use trapless_smu::{Answer, Outcome, Smu, SmuConfig, SmuUnit, Source};
use trapless_smu_regs::{self as regs, Counter};

use crate::games::{Action, act};
use crate::sim::{HARTS, Sim};
use crate::world::{Area, DESCRIPTORS, PTES};

/// Cycles after which everything is done that does not wait for a device.
const REST: u64 = 1500;

/// Plays a game with a unit and with the reference model, and compares them.
///
/// # Errors
/// Returns the first breach of a rule, or the first difference.
pub fn play(unit: Box<dyn SmuUnit>, actions: &[Action]) -> Result<(), String> {
    // With hints the model would skip polls of a queue that it cannot read.
    let config = SmuConfig { completion_hints: false, ..unit.config().clone() };
    let model = Smu::new(config).map_err(|e| e.to_string())?;
    let mut sims = [Sim::new(unit, 4), Sim::new(Box::new(model), 4)];
    sims.iter_mut().for_each(|sim| sim.run(REST));
    for (n, &action) in actions.iter().enumerate() {
        if !is_fair(action, &sims) {
            continue;
        }
        let [ours, theirs] = &mut sims;
        let found = [step(ours, action), step(theirs, action)];
        for sim in &mut sims {
            if let Some(breach) = sim.world.breach.take() {
                return Err(format!("after {n} {action:?}: {breach}"));
            }
        }
        if let Some((left, right)) = found[0].iter().zip(&found[1]).find(|(a, b)| a != b) {
            return Err(format!("after {n} {action:?}: {left}, but the model has {right}"));
        }
    }
    for sim in &mut sims {
        sim.finish();
        if let Some(breach) = sim.world.breach.take() {
            return Err(format!("at the end: {breach}"));
        }
    }
    Ok(())
}

/// Tells whether an action must have the same outcome in model and RTL. There are three exceptions. If several requests wait
/// for one entry, any of them may get it. If the return ring fails, the model returns frames that the RTL still uses. If a PTE
/// cannot be read, the RTL's exchange ends at its read and writes nothing; the model's exchange is one access, and its error
/// does not say whether the write took effect.
fn is_fair(action: Action, sims: &[Sim]) -> bool {
    let held =
        |sim: &Sim| (0..HARTS as u32).any(|n| [Source::Walker(n), Source::Port(n)].iter().any(|s| sim.smu.is_held(*s)));
    match action {
        Action::Ask { .. } | Action::Send { .. } | Action::AskPort { .. } => !sims.iter().any(held),
        Action::Fault { area } => !matches!(area, Area::RetRing | Area::Pte),
        Action::WriteFault { area, .. } => area != Area::RetRing,
        Action::Run { .. } | Action::TakeReturned => false,
        _ => true,
    }
}

/// Executes an action, runs until the unit is idle, and returns the visible state.
fn step(sim: &mut Sim, action: Action) -> Vec<String> {
    let before = sim.answers.len();
    act(sim, action);
    let mut reasons = Vec::new();
    for _ in 0..4 {
        sim.run(REST);
        let returned = sim.take_returned();
        if returned.is_empty() {
            break;
        }
        reasons.extend(returned);
    }
    reasons.sort_unstable();
    let mut seen = vec![format!("returned {reasons:?}")];
    let mut answers: Vec<String> = sim.answers[before..].iter().map(told).collect();
    answers.sort_unstable();
    seen.push(format!("answers {answers:?}"));
    for page in 0..PTES {
        let marks = sim.world.marks(page);
        seen.push(format!("page {page}: {:?}, marks {marks:?}", sim.world.holds(page)));
    }
    let full = Counter::PmshrFull as usize;
    let counters = sim.smu.counters().into_iter().enumerate().filter(|(n, _)| *n != full);
    seen.extend(counters.map(|(_, (name, value))| format!("{name} {value}")));
    let global = [
        ("STATUS", regs::STATUS),
        ("FREE_HEAD", regs::FREE_HEAD),
        ("FREE_TAIL", regs::FREE_TAIL),
        ("FREE_USED", regs::FREE_USED),
        ("RET_HEAD", regs::RET_HEAD),
        ("RET_TAIL", regs::RET_TAIL),
        ("TIMEOUT", regs::TIMEOUT),
        ("CAP", regs::CAP),
    ];
    seen.extend(global.map(|(name, at)| format!("{name} {:#x}", sim.read(at))));
    for d in 0..DESCRIPTORS {
        for at in (0..regs::DESC_STRIDE).step_by(8) {
            seen.push(format!("descriptor {d} register {at:#x}: {:#x}", sim.read(Sim::desc(d, at))));
        }
    }
    for port in 0..HARTS {
        let status = sim.read(Sim::port(port, regs::PORT_STATUS));
        let answer = regs::PTE_V.is_set(sim.read(Sim::port(port, regs::PORT_ANSWER)));
        seen.push(format!("port {port}: {status:#x}, valid {answer}"));
    }
    seen
}

/// Formats an answer without the parts that may differ.
fn told(answer: &Answer) -> String {
    let outcome = match answer.outcome {
        Outcome::Done(pte) => format!("done {:#x}", pte & !regs::PTE_PFN.mask()),
        other => format!("{other:?}"),
    };
    format!("hart {}: {outcome}", answer.hart)
}
