// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets: use everything that a guest or a user's file can reach at random, and check what must always hold.
//! A seed gives an input. There is no other state, so a failure can be repeated.

pub mod tape;
pub mod targets;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use tape::Tape;

/// A fuzz target.
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Devices of the board ([`trapless_machine::devices`]) or kinds of input that the target uses.
    pub covers: &'static [&'static str],
    /// Number of inputs in a short run.
    pub runs: u64,
    /// Uses one input. The error says what should have held and did not.
    pub run: fn(&mut Tape) -> Result<(), String>,
}

/// An input that fails, and why.
#[derive(Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What did not hold.
    pub what: String,
    /// The shortest input found that fails.
    pub input: Vec<u64>,
}

/// Maximum number of attempts to shorten a failing input.
const TRIES: usize = 2000;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Turns panics of targets into failures. Each is reported once, without a stack trace.
pub fn catch_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            report(info);
        }
        PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
    }));
}

/// Number of inputs begun so far, by all targets. If it stops growing, an input hangs.
pub static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// Uses one input. The error says what went wrong; a panic is such an error.
pub fn attempt(target: &Target, words: &[u64]) -> Result<(), String> {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(&mut Tape::new(words.to_vec()))));
    QUIET.set(false);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(format!("panic: {text} ({})", PLACE.take()))
    })
}

/// Uses the input of one seed. If it fails, calls `failed` and then looks for a shorter input that fails.
///
/// # Errors
/// The input fails.
pub fn run(target: &Target, seed: u64, failed: impl FnOnce(&str)) -> Result<(), Failure> {
    let words = tape::random(seed);
    let Err(what) = attempt(target, &words) else { return Ok(()) };
    failed(&what);
    let input = tape::minimal(words, TRIES, |words| attempt(target, words).is_err());
    let what = attempt(target, &input).err().unwrap_or(what);
    Err(Failure { seed, what, input })
}

/// Returns an error with the line `what` if something does not hold.
pub fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
