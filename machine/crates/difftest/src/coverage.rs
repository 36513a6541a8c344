// SPDX-License-Identifier: Apache-2.0
//! What must be covered, and what has been covered.

use std::collections::BTreeSet;

use trapless_memory::Paging;

use crate::csrs;
use crate::insn::{SHORT, WIDE};
use crate::program::Program;

/// Exceptions that each handler must have seen. Fetches are never misaligned (cause 0), because there are 16-bit
/// instructions, and `ecall` from M-mode cannot be delegated.
const EXCEPTIONS: [u64; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15];
const INTERRUPTS: [u64; 6] = [1, 3, 5, 7, 9, 11];
const DELEGABLE_INTERRUPTS: [u64; 3] = [1, 5, 9];

/// What has run on both machines without a difference.
#[derive(Default)]
pub struct Coverage {
    instructions: BTreeSet<&'static str>,
    things: BTreeSet<String>,
    causes: BTreeSet<String>,
}

/// Coverage of one kind of items.
pub struct Share {
    /// Name of the kind.
    pub name: &'static str,
    /// Number of items.
    pub all: usize,
    /// Items that are not covered.
    pub missing: Vec<String>,
}

impl Coverage {
    /// Adds a program without differences.
    pub fn add(&mut self, program: &Program, causes: BTreeSet<String>) {
        for b in &program.blocks {
            self.instructions.extend(b.executed.keys());
            self.things.extend(b.covers.iter().cloned());
        }
        self.causes.extend(causes);
    }

    /// Coverage of each kind.
    pub fn shares(&self) -> Vec<Share> {
        let instructions: Vec<&str> = WIDE.iter().map(|i| i.name).chain(SHORT.iter().map(|i| i.name)).collect();
        let registers: Vec<String> = csrs::names().map(|n| format!("CSR {n}")).collect();
        let exceptions = EXCEPTIONS.iter().map(|n| format!("exception {n} in M-mode"));
        let delegated = EXCEPTIONS.iter().filter(|n| **n != 11).map(|n| format!("exception {n} in S-mode"));
        let interrupts = INTERRUPTS.iter().map(|n| format!("interrupt {n} in M-mode"));
        let delegated_interrupts = DELEGABLE_INTERRUPTS.iter().map(|n| format!("interrupt {n} in S-mode"));
        let causes: Vec<String> = exceptions.chain(delegated).chain(interrupts).chain(delegated_interrupts).collect();
        let reasons = Paging::ALL.map(|paging| {
            let mut tables = Program::paged(paging);
            crate::paging::common(&mut tables);
            tables.blocks.into_iter().flat_map(|b| b.covers).collect::<BTreeSet<String>>()
        });
        let reasons: BTreeSet<String> = reasons.into_iter().flatten().collect();
        let share = |name, all: usize, missing: Vec<String>| Share { name, all, missing };
        let missing = |all: &mut dyn Iterator<Item = &String>, seen: &BTreeSet<String>| {
            all.filter(|n| !seen.contains(*n)).cloned().collect()
        };
        vec![
            share(
                "instructions of RV64GC and the privileged architecture",
                instructions.len(),
                instructions.iter().filter(|n| !self.instructions.contains(*n)).map(|n| (*n).to_owned()).collect(),
            ),
            share("CSRs", registers.len(), missing(&mut registers.iter(), &self.things)),
            share("trap causes in M-mode and delegated", causes.len(), missing(&mut causes.iter(), &self.causes)),
            share(
                "reasons of faults with Sv39, Sv48 and Sv57",
                reasons.len(),
                missing(&mut reasons.iter(), &self.things),
            ),
        ]
    }
}
