// SPDX-License-Identifier: Apache-2.0
//! Runs a program on QEMU and on the machine, and reads its memory back.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use trapless_machine::{Boot, Console, DetailFrom, End, Engine, Limits, Machine, MachineConfig};
use trapless_memory::{Cycle, PhysAddr};
use trapless_timing::Profile;

use crate::layout::*;
use crate::program::Program;
use crate::qemu::Qemu;

/// Limit for a run of the machine. It is far more than any program needs.
const MAX_CYCLE: Cycle = Cycle(4_000_000_000);
/// Cycles of a window. They are many, so that translated code runs without interruptions, as it usually does.
const WINDOW_CYCLES: Cycle = Cycle(1_000_000);

/// What runs a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// QEMU.
    Qemu(Qemu),
    /// The machine.
    Machine {
        /// How the machine executes instructions.
        engine: Engine,
        /// Whether timing is detailed.
        detailed: bool,
    },
}

/// Configurations of the machine that must all give the same result.
pub const MACHINES: [Runner; 4] = [
    Runner::Machine { engine: Engine::Translator, detailed: false },
    Runner::Machine { engine: Engine::Interpreter, detailed: false },
    Runner::Machine { engine: Engine::Translator, detailed: true },
    Runner::Machine { engine: Engine::Interpreter, detailed: true },
];

impl std::fmt::Display for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Runner::Machine { engine, detailed } = self else { return f.write_str("QEMU") };
        let engine = if *engine == Engine::Translator { "translator" } else { "interpreter" };
        write!(f, "{engine}{}", if *detailed { " with detailed timing" } else { "" })
    }
}

/// Result of a run.
pub struct Run {
    /// Bytes from [`DATA`] on.
    pub memory: Vec<u8>,
    /// How the run ended, unless the program powered off.
    pub trouble: Option<String>,
    /// Number of all instructions, including the runtime's; 0 if they are not counted.
    pub instructions: u64,
}

impl Runner {
    /// Runs a program. The program's file is written to `folder`.
    ///
    /// # Errors
    /// QEMU or the machine cannot be started, or QEMU does not end.
    pub fn run(&self, program: &Program, folder: &Path) -> Result<Run> {
        let elf = folder.join("program.elf");
        std::fs::write(&elf, program.elf()).with_context(|| format!("cannot write {}", elf.display()))?;
        let length = program.compared();
        match self {
            Runner::Qemu(qemu) => Ok(Run { memory: qemu.run(&elf, folder, length)?, trouble: None, instructions: 0 }),
            Runner::Machine { engine, detailed } => machine(&elf, length, *engine, *detailed),
        }
    }
}

/// Runs the program at `elf` on the machine.
fn machine(elf: &Path, length: usize, engine: Engine, detailed: bool) -> Result<Run> {
    // The deepest mode is the one that QEMU has.
    let changes =
        ["machine.harts=1".to_owned(), "machine.paging=sv57".to_owned(), format!("machine.memory_bytes={MEMORY}")];
    let config = MachineConfig {
        profile: Profile::load(if detailed { "server" } else { "vc707" }, &changes)?,
        boot: Boot::Elf { file: elf.to_owned() },
        disks: Vec::new(),
        faults: Vec::new(),
        engine,
        detail: if detailed { DetailFrom::Start } else { DetailFrom::Never },
        checkpoint: None,
        attribution: None,
    };
    let mut machine = Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })?;
    let stop = AtomicBool::new(false);
    let trouble = match machine.run(&Limits { max_cycle: MAX_CYCLE, window: Some(WINDOW_CYCLES), stop: &stop }) {
        Ok(End::PowerOff) => None,
        Ok(end) => Some(format!("the machine ended with {end:?}")),
        Err(e) => Some(format!("the machine ended with: {e}")),
    };
    let ram = machine.ram();
    let word = |at: usize| ram.load::<8>(PhysAddr(DATA + at as u64)).unwrap_or_default();
    let memory = (0..length).step_by(8).flat_map(word).take(length).collect();
    Ok(Run { memory, trouble, instructions: machine.report(&End::PowerOff).instructions })
}
