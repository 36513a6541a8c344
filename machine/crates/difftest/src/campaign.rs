// SPDX-License-Identifier: Apache-2.0
//! Programs of self-hashing blocks, run on the reference and on all configurations of the machine.

use std::path::Path;

use anyhow::Result;
use fastrand::Rng;

use crate::bisect::{self, Culprit};
use crate::cells::Cells;
use crate::compare;
use crate::run::Runner;

/// Cells of a program: few enough that QEMU ends in time, and enough that starting QEMU takes a small part of the time.
const CELLS: usize = 160;
/// Rounds of a cell: far more than a page needs to be translated.
const ROUNDS: std::ops::RangeInclusive<u64> = 400..=1000;

/// Makes a program of cells that run about `instructions` instructions of the tests.
pub fn program(rng: &mut Rng, instructions: u64) -> Cells {
    let mut cells = Cells::new(rng);
    while cells.cells.len() < CELLS && cells.program.instructions() < instructions {
        let rounds = rng.u64(ROUNDS);
        if !cells.add(rng, rounds) {
            break;
        }
    }
    cells
}

/// Result of running a program.
#[derive(Default)]
pub struct Outcome {
    /// The differences, one line each.
    pub problems: Vec<String>,
    /// Result of bisecting the first difference.
    pub culprit: Option<Culprit>,
    /// Number of instructions on the machine, over all its configurations.
    pub machine_instructions: u64,
}

/// Runs a program on `reference` and on all of `machines`, and bisects the first difference.
///
/// # Errors
/// A program cannot be run.
pub fn run(cells: &Cells, reference: &Runner, machines: &[Runner], folder: &Path) -> Result<Outcome> {
    let program = &cells.program;
    let theirs = reference.run(program, folder)?;
    let mut outcome = Outcome::default();
    if !compare::complete(program, &compare::records(&theirs.memory)) {
        outcome.problems.push(format!("{reference} did not reach the end of the program"));
        return Ok(outcome);
    }
    for machine in machines {
        let ours = machine.run(program, folder)?;
        outcome.machine_instructions += ours.instructions;
        let differences = compare::differences(program, &ours.memory, &theirs.memory, 3);
        if ours.trouble.is_none() && differences.is_empty() {
            continue;
        }
        let lines = ours.trouble.iter().cloned().chain(differences);
        outcome.problems.extend(lines.map(|line| format!("{machine}: {line}")));
        if let Some(cell) = bisect::first_difference(program, &cells.cells, &ours, &theirs) {
            outcome.culprit = bisect::bisect(program, cell, machine, reference, folder)?;
        }
        break;
    }
    Ok(outcome)
}
