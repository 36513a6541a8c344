// SPDX-License-Identifier: Apache-2.0
//! Runs all programs, one after another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fastrand::Rng;
use trapless_memory::Paging;

use crate::coverage::Coverage;
use crate::program::Program;
use crate::qemu::Qemu;
use crate::run::Runner;
use crate::{campaign, compare, csrs, listing, paging, privileged, random, run, say};

/// Instructions of a random program. A few programs have a million.
const BATCH: u64 = 300_000;
/// Maximum number of differences that are shown for one program.
const SHOWN: usize = 8;

/// Options of a run.
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Minimum number of test instructions to compare.
    pub instructions: u64,
    /// How many of these are in blocks that record all registers; the others are in blocks that record a hash of them.
    pub logged: u64,
    /// Folder in which to keep the program files; without it they are removed at the end.
    pub keep: Option<PathBuf>,
    /// Path of QEMU.
    pub qemu: Qemu,
}

/// Result of a run.
#[derive(Default)]
pub struct Summary {
    /// Number of programs without a difference.
    pub passed: usize,
    /// Number of programs with a difference.
    pub failed: usize,
    /// Test instructions that ran on both, without those of the runtime.
    pub instructions: u64,
    /// All instructions on the machine.
    pub machine_instructions: u64,
    /// What was covered.
    pub coverage: Coverage,
}

/// Runs all programs. Prints a line for each, and the differences.
///
/// # Errors
/// A machine cannot run a program at all.
pub fn run_all(options: &Options) -> Result<Summary> {
    say(&options.qemu.version);
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let folder = options.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut rng = Rng::with_seed(options.seed);
    let mut summary = Summary::default();
    let mut go =
        |name: &str, program: &Program, reference: bool| one(name, program, reference, options, folder, &mut summary);

    let made = |make: &mut dyn FnMut(&mut Program)| {
        let mut program = Program::new();
        make(&mut program);
        program
    };
    for mode in Paging::ALL {
        let made = |make: &mut dyn FnMut(&mut Program)| {
            let mut program = Program::paged(mode);
            make(&mut program);
            program
        };
        go(&format!("paging-{mode}"), &made(&mut paging::common), true)?;
        go(&format!("paging-{mode}-machine-only"), &made(&mut paging::machine_only), false)?;
        go(&format!("translations-{mode}"), &made(&mut |p| paging::changes(p, &mut rng)), true)?;
    }
    go("privileged", &made(&mut privileged::all), true)?;
    go("machine-only", &made(&mut privileged::machine_only), false)?;
    go(
        "csrs",
        &made(&mut |p| {
            csrs::probes(p, &mut rng);
            csrs::sweep(p)
        }),
        true,
    )?;
    let words = made(&mut |p| random::all_short_words(p, &mut rng));
    go("words", &words, true)?;
    let raw = made(&mut |p| random::raw_words(p, &mut rng));
    let mut done = go("raw", &raw, true)?;
    let mut block = 0;
    let mut batch = 0;
    let logged = options.logged.min(options.instructions);
    while done < logged {
        let mut program = Program::new();
        while program.has_room() && program.instructions() < BATCH.min(logged - done) {
            random::block(&mut program, &mut rng, block);
            block += 1;
        }
        batch += 1;
        done = go(&format!("random-{batch}"), &program, true)?;
    }
    hashing(&mut rng, options, folder, &mut summary)?;
    Ok(summary)
}

/// Runs one program. Returns how many instructions have been compared so far.
fn one(name: &str, program: &Program, reference: bool, o: &Options, folder: &Path, s: &mut Summary) -> Result<u64> {
    keep(name, program, o, folder)?;
    let translated = &run::MACHINES[0];
    let ours = translated.run(program, folder)?;
    let log = compare::records(&ours.memory);
    let mut problems: Vec<String> = ours.trouble.into_iter().collect();
    if !compare::complete(program, &log) {
        problems.push("the machine did not reach the end of the program".into());
    }
    problems.extend(compare::broken_expectations(program, &log, "the machine"));
    if reference {
        let theirs = Runner::Qemu(o.qemu.clone()).run(program, folder)?.memory;
        let log = compare::records(&theirs);
        if !compare::complete(program, &log) {
            problems.push("QEMU did not reach the end of the program".into());
        }
        problems.extend(compare::broken_expectations(program, &log, "QEMU"));
        problems.extend(compare::differences(program, &ours.memory, &theirs, SHOWN));
    }
    for machine in &run::MACHINES[1..] {
        let other = machine.run(program, folder)?;
        let more = compare::differences(program, &other.memory, &ours.memory, SHOWN);
        problems.extend(other.trouble.into_iter().chain(more).map(|p| format!("{p} ({machine}, {translated})")));
    }
    s.machine_instructions += ours.instructions;
    let what = format!("{} blocks, {} instructions", program.blocks.len(), program.instructions());
    if problems.is_empty() {
        say(format_args!("{name}: {what}: ok"));
        s.passed += 1;
        if reference {
            s.instructions += program.instructions();
            s.coverage.add(program, compare::causes(&log));
        }
    } else {
        say(format_args!("{name}: {what}: {} problems, seed {}", problems.len(), o.seed));
        problems.iter().take(SHOWN).for_each(|p| say(format_args!("  {p}")));
        let named = |p: &String| program.blocks.iter().filter(|b| p.starts_with(&b.name)).max_by_key(|b| b.name.len());
        let block = problems.iter().find_map(named);
        if let Some(block) = block {
            say(format_args!("  code of {}:\n{}", block.name, listing::listing(&block.code, block.entry, folder)));
        }
        s.failed += 1;
        // Count them, so that a run with a difference ends as well.
        s.instructions += program.instructions();
    }
    Ok(s.instructions)
}

/// Keeps the program's file if that is asked for.
fn keep(name: &str, program: &Program, o: &Options, folder: &Path) -> Result<()> {
    if o.keep.is_some() {
        let elf = folder.join(format!("{name}.elf"));
        std::fs::write(&elf, program.elf()).with_context(|| format!("cannot write {}", elf.display()))?;
    }
    Ok(())
}

/// Runs programs of self-hashing blocks until enough instructions have run.
fn hashing(rng: &mut Rng, o: &Options, folder: &Path, s: &mut Summary) -> Result<()> {
    let mut batch = 0;
    while s.instructions < o.instructions {
        batch += 1;
        let cells = campaign::program(rng, o.instructions - s.instructions);
        let name = format!("hashing-{batch}");
        keep(&name, &cells.program, o, folder)?;
        let outcome = campaign::run(&cells, &Runner::Qemu(o.qemu.clone()), &run::MACHINES, folder)?;
        let what = format!("{} blocks, {} instructions", cells.cells.len(), cells.program.instructions());
        s.machine_instructions += outcome.machine_instructions;
        s.instructions += cells.program.instructions();
        if outcome.problems.is_empty() {
            say(format_args!("{name}: {what}: ok"));
            s.passed += 1;
            s.coverage.add(&cells.program, Default::default());
            continue;
        }
        s.failed += 1;
        say(format_args!("{name}: {what}: {} problems, seed {}", outcome.problems.len(), o.seed));
        outcome.problems.iter().for_each(|p| say(format_args!("  {p}")));
        match outcome.culprit {
            Some(c) => say(format_args!("  bisected: {}, round {}:\n{}", c.cell, c.round, c.text.trim_end())),
            None => say("  the block does not differ again"),
        }
    }
    Ok(())
}
