// SPDX-License-Identifier: Apache-2.0
//! Fuzz targets: everything that a guest or a file of the user's reaches, under random use, with what must hold whatever
//! happens. A seed is an input; there is no other state, so a failure repeats.

pub mod tape;
pub mod targets;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use tape::Tape;

/// One target.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Device of the board ([`trapless_machine::devices`]) or kind of input that it uses.
    pub covers: &'static [&'static str],
    /// Inputs of a short run.
    pub runs: u64,
    /// Uses one input; what should have held and did not.
    pub run: fn(&mut Tape) -> Result<(), String>,
}

/// An input that fails.
#[derive(Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What did not hold.
    pub what: String,
    /// The shortest input found that fails.
    pub input: Vec<u64>,
}

/// Most attempts to make a failing input shorter.
const TRIES: usize = 2000;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of targets are failures, which are reported once; nobody wants a trace of each.
pub fn catch_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            report(info);
        }
        PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
    }));
}

/// Inputs begun so far, by all targets: what does not count on hangs.
pub static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// Uses one input; what went wrong, a panic included.
pub fn attempt(target: &Target, words: &[u64]) -> Result<(), String> {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(&mut Tape::new(words.to_vec()))));
    QUIET.set(false);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(format!("it panics: {text} ({})", PLACE.take()))
    })
}

/// Uses the input of one seed, and makes it short if it fails; `failed` hears of that before.
///
/// # Errors
/// What failed.
pub fn run(target: &Target, seed: u64, failed: impl FnOnce(&str)) -> Result<(), Failure> {
    let words = tape::random(seed);
    let Err(what) = attempt(target, &words) else { return Ok(()) };
    failed(&what);
    let input = tape::minimal(words, TRIES, |words| attempt(target, words).is_err());
    let what = attempt(target, &input).err().unwrap_or(what);
    Err(Failure { seed, what, input })
}

/// `Err` with a line if something does not hold.
pub fn demand(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
