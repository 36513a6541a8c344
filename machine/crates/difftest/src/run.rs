// SPDX-License-Identifier: Apache-2.0
//! Runs a program on QEMU and on the machine, and reads its memory back.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use trapless_machine::{Boot, Console, DetailFrom, End, Engine, Limits, Machine, MachineConfig};
use trapless_memory::{Cycle, PhysAddr};
use trapless_timing::Profile;

use crate::layout::*;
use crate::program::Program;

/// CPU options that make QEMU's generic CPU the machine's RV64GC: extensions beyond it are off. The names are those of QEMU
/// 7.2; newer versions have more extensions, which are off by default in `rv64`.
const QEMU_CPU: &str =
    "rv64,h=false,v=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false,svinval=false,svnapot=false,svpbmt=false";
/// Limit for a run of QEMU. A program of ordinary size ends within seconds.
const QEMU_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit for a run of the machine. It is far more than any program needs.
const MAX_CYCLE: Cycle = Cycle(4_000_000_000);
/// Cycles of a window. They are many, so that translated code runs without interruptions, as it usually does.
const WINDOW_CYCLES: Cycle = Cycle(1_000_000);

/// Version of QEMU, in its own words. The list of what is not compared is for 7.2; other versions may differ elsewhere.
///
/// # Errors
/// QEMU cannot be started.
pub fn version(qemu: &Path) -> Result<String> {
    let out = Command::new(qemu).arg("--version").output();
    let out = out.with_context(|| format!("cannot start {}", qemu.display()))?;
    Ok(String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned())
}

/// Runs the program at `elf` on QEMU. Returns `length` bytes from [`DATA`] on.
///
/// # Errors
/// QEMU cannot be started, fails, or does not end.
fn qemu(qemu: &Path, elf: &Path, folder: &Path, length: usize) -> Result<Vec<u8>> {
    // QEMU's memory is a file in a folder that is removed even if QEMU has to be killed.
    let scratch = tempfile::tempdir_in(folder).context("cannot make a folder for QEMU's memory")?;
    let memory = scratch.path().join("memory");
    // With two harts QEMU executes AMOs as it does for parallel harts; their faults are then store faults.
    let mut child = Command::new(qemu)
        .args(["-machine", "virt,memory-backend=ram", "-smp", "2", "-cpu", QEMU_CPU, "-bios", "none"])
        .arg("-object")
        .arg(format!("memory-backend-file,id=ram,size={MEMORY},share=on,mem-path={}", memory.display()))
        .args([
            "-m",
            &format!("{}M", MEMORY >> 20),
            "-display",
            "none",
            "-serial",
            "null",
            "-monitor",
            "none",
            "-no-reboot",
        ])
        .arg("-kernel")
        .arg(elf)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", qemu.display()))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait().context("cannot wait for QEMU")? {
            Some(status) => break status,
            None if started.elapsed() > QEMU_TIMEOUT => {
                child.kill().context("cannot end QEMU")?;
                child.wait().context("cannot end QEMU")?;
                bail!("QEMU did not end within {} s", QEMU_TIMEOUT.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if !status.success() {
        let mut text = String::new();
        let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut text));
        bail!("QEMU failed ({status}): {}", text.trim());
    }
    let mut bytes = vec![0; length];
    File::open(&memory)
        .and_then(|f| f.read_exact_at(&mut bytes, DATA - RUNTIME))
        .with_context(|| format!("cannot read {}", memory.display()))?;
    Ok(bytes)
}

/// What runs a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The QEMU at this path.
    Qemu(PathBuf),
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
            Runner::Qemu(path) => Ok(Run { memory: qemu(path, &elf, folder, length)?, trouble: None, instructions: 0 }),
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
