// SPDX-License-Identifier: Apache-2.0
//! `fuzz`: uses devices, firmware calls, page tables and input files at random.
//!
//! Exit status: 0 if everything held, 1 otherwise, 2 if a target does not exist. A failure is printed with its seed and
//! with a short input that also fails.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use trapless_difftest::say;
use trapless_fuzz::{ATTEMPTS, Target, attempt, catch_panics, run, targets};

/// Uses everything that a guest or a file reaches at random, and checks what must hold.
#[derive(Parser)]
#[command(name = "fuzz", version)]
struct Cli {
    /// Use only these targets.
    targets: Vec<String>,
    /// Run each target for this number of seconds, instead of a fixed number of inputs.
    #[arg(long)]
    seconds: Option<f64>,
    /// Number of inputs of each target (default: the target's).
    #[arg(long)]
    runs: Option<u64>,
    /// Seed of the first input; each further input adds 1.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this input, as a failure prints it: hexadecimal numbers with commas between them.
    #[arg(long, value_name = "NUMBERS")]
    input: Option<String>,
    /// List the targets and what they cover.
    #[arg(long)]
    list: bool,
}

/// Host time after which an input counts as hanging.
const HANGS: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(name) = cli.targets.iter().find(|n| targets::ALL.iter().all(|t| t.name != **n)) {
        eprintln!("fuzz: no target {name}: --list shows all targets");
        return ExitCode::from(2);
    }
    let chosen = targets::ALL.iter().filter(|t| cli.targets.is_empty() || cli.targets.iter().any(|n| n == t.name));
    if cli.list {
        chosen.for_each(|t| say(format_args!("{:14} {}", t.name, t.covers.join(", "))));
        return ExitCode::SUCCESS;
    }
    catch_panics();
    let current = Arc::new(Mutex::new(String::new()));
    watch(Arc::clone(&current));
    let (mut passed, mut failed) = (0, 0);
    for target in chosen {
        let good = match &cli.input {
            Some(text) => one(target, text),
            None => many(target, &cli, &current),
        };
        if good {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    say(format_args!("{passed} passed, {failed} failed"));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(target: &Target, text: &str) -> bool {
    let words: Result<Vec<u64>, _> =
        text.split(',').filter(|n| !n.is_empty()).map(|n| u64::from_str_radix(n, 16)).collect();
    let Ok(words) = words else {
        eprintln!("fuzz: --input {text}: must be hexadecimal numbers with commas between them");
        return false;
    };
    let done = attempt(target, &words);
    say(format_args!("{}: {}", target.name, done.as_ref().err().map_or("held", |e| e)));
    done.is_ok()
}

fn many(target: &Target, cli: &Cli, current: &Mutex<String>) -> bool {
    let started = Instant::now();
    let mut count = 0;
    loop {
        let over = match (cli.seconds, cli.runs) {
            (Some(seconds), _) => started.elapsed().as_secs_f64() >= seconds,
            (None, runs) => count >= runs.unwrap_or(target.runs),
        };
        if over {
            break;
        }
        let seed = cli.seed + count;
        *current.lock().expect("no thread panics while it holds the lock") = format!("{}: seed {seed}", target.name);
        let failed = |what: &str| say(format_args!("{}: seed {seed}: {what}; looking for a short input", target.name));
        if let Err(failure) = run(target, seed, failed) {
            let input: Vec<String> = failure.input.iter().map(|w| format!("{w:x}")).collect();
            say(format_args!("{}: seed {}: {}", target.name, failure.seed, failure.what));
            say(format_args!("  to repeat: fuzz {} --input {}", target.name, input.join(",")));
            return false;
        }
        count += 1;
    }
    say(format_args!("{}: {count} inputs, {:.1} s", target.name, started.elapsed().as_secs_f64()));
    true
}

/// Ends the program if an input takes too long; `current` names the input.
fn watch(current: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let (mut count, mut since) = (u64::MAX, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = ATTEMPTS.load(Ordering::Relaxed);
            if now != count {
                (count, since) = (now, Instant::now());
            } else if since.elapsed() > HANGS {
                let current = current.lock().map_or_else(|e| e.into_inner().clone(), |c| c.clone());
                say(format_args!("{current}: has not ended after {} s", HANGS.as_secs()));
                say("0 passed, 1 failed");
                std::process::exit(1);
            }
        }
    });
}
