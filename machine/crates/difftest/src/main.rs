// SPDX-License-Identifier: Apache-2.0
//! `difftest`: runs the same programs on the machine and on QEMU and compares registers and memory.
//!
//! Exit status: 0 if nothing differs and everything is covered, 1 otherwise, 2 if a program could not be run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use trapless_difftest::qemu::Qemu;
use trapless_difftest::say;
use trapless_difftest::suite::{self, Options};

/// Runs random and hand-made RISC-V programs on the Trapless machine and on QEMU, and compares registers and memory.
#[derive(Parser)]
#[command(name = "difftest", version)]
struct Cli {
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Minimum number of instructions to compare.
    #[arg(long, default_value_t = 10_000_000)]
    instructions: u64,
    /// Number of these in blocks that record all registers; the others are in blocks that record a hash of them.
    #[arg(long, default_value_t = 300_000)]
    logged: u64,
    /// Keep the programs in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// QEMU's program.
    #[arg(long, default_value = "qemu-system-riscv64", value_name = "PATH")]
    qemu: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let Cli { seed, instructions, logged, keep, qemu } = cli;
    let options = Qemu::at(&qemu).map(|qemu| Options { seed, instructions, logged, keep, qemu });
    let run = options.and_then(|options| suite::run_all(&options));
    let summary = match run {
        Ok(summary) => summary,
        Err(e) => {
            eprintln!("difftest: {e:#}");
            return ExitCode::from(2);
        }
    };
    let mut complete = true;
    for share in summary.coverage.shares() {
        say(format_args!("covered {} of {} {}", share.all - share.missing.len(), share.all, share.name));
        if !share.missing.is_empty() {
            complete = false;
            say(format_args!("  missing: {}", share.missing.join(", ")));
        }
    }
    say(format_args!(
        "compared {} instructions, seed {seed} ({} with the test runtime's own)",
        summary.instructions, summary.machine_instructions
    ));
    let failed = summary.failed + usize::from(!complete);
    say(format_args!("{} passed, {failed} failed", summary.passed + usize::from(complete)));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
