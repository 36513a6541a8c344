// SPDX-License-Identifier: Apache-2.0
//! `lockstep`: runs one guest on the interpreter and on the translator, and compares both while they run.
//!
//! Exit status: 0 when nothing differs, 1 otherwise, 2 when a machine could not be built.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Parser;
use trapless_difftest::say;
use trapless_machine::{
    Boot, Console, DetailFrom, DiskConfig, DiskWrites, End, Engine, Limits, Machine, MachineConfig,
};
use trapless_memory::Cycle;
use trapless_timing::Profile;

/// Runs one guest on the interpreter and on the translator and compares registers, time and memory.
#[derive(Parser)]
#[command(name = "lockstep", version)]
struct Cli {
    /// RISC-V Linux Image, or a bare-metal ELF (`--elf`).
    guest: PathBuf,
    /// The guest is a bare-metal ELF.
    #[arg(long)]
    elf: bool,
    /// Kernel command line.
    #[arg(long, default_value = "", value_name = "TEXT")]
    append: String,
    /// Disk image, never written; may be repeated.
    #[arg(long = "disk", value_name = "PATH")]
    disks: Vec<PathBuf>,
    /// Name of a built-in profile, or a TOML file.
    #[arg(long, default_value = "vc707")]
    profile: String,
    /// Change one value of the profile; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Detailed timing: from `start`, in `roi`s, from `milestone:N` or `instructions:N` on.
    #[arg(long, value_name = "FROM")]
    detail: Option<DetailFrom>,
    /// Cycles between two comparisons.
    #[arg(long, default_value_t = 100_000)]
    step: u64,
    /// Stop after this number of cycles.
    #[arg(long, value_name = "CYCLES")]
    max_cycles: Option<u64>,
}

/// Number of comparisons of registers for each comparison of memory.
const MEMORY_EVERY: u64 = 512;

/// The two machines.
struct Pair {
    one: Machine,
    other: Machine,
    stop: AtomicBool,
}

impl Pair {
    fn new(cli: &Cli) -> Result<Pair> {
        let machine = |engine| -> Result<Machine> {
            let boot = if cli.elf {
                Boot::Elf { file: cli.guest.clone() }
            } else {
                let (kernel, append) = (cli.guest.clone(), cli.append.clone());
                Boot::Linux { kernel, append, initrd: None, firmware: None }
            };
            let disk = |path: &PathBuf| DiskConfig::new(path, DiskWrites::InMemory);
            let config = MachineConfig {
                profile: Profile::load(&cli.profile, &cli.set)?,
                boot,
                disks: cli.disks.iter().map(disk).collect(),
                faults: Vec::new(),
                engine,
                detail: cli.detail.unwrap_or_default(),
                checkpoint: None,
                attribution: None,
            };
            Ok(Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })?)
        };
        Ok(Pair {
            one: machine(Engine::Interpreter)?,
            other: machine(Engine::Translator)?,
            stop: AtomicBool::new(false),
        })
    }

    /// Runs both up to `max_cycle` in windows of at most `window` cycles, and returns how both ended.
    fn run(&mut self, max_cycle: Cycle, window: Option<Cycle>) -> Result<(End, End)> {
        let limits = Limits { max_cycle, window, stop: &self.stop };
        Ok((self.one.run(&limits)?, self.other.run(&limits)?))
    }

    /// The first difference in harts and time, and in memory if `memory`.
    fn difference(&self, memory: bool) -> Option<String> {
        for (n, (a, b)) in self.one.harts().iter().zip(&self.other.harts()).enumerate() {
            if a.pc != b.pc || a.cycle != b.cycle || a.retired != b.retired {
                return Some(format!(
                    "hart {n}: interpreter at {:#x}, cycle {}, retired {:?}; translator at {:#x}, cycle {}, retired {:?}",
                    a.pc, a.cycle.0, a.retired, b.pc, b.cycle.0, b.retired
                ));
            }
            let files = [("x", &a.x, &b.x), ("f", &a.f, &b.f)];
            for (name, a, b) in files {
                if let Some(i) = (0..32).find(|&i| a[i] != b[i]) {
                    return Some(format!(
                        "hart {n}: {name}{i} is {:#x} on the interpreter, {:#x} on the translator",
                        a[i], b[i]
                    ));
                }
            }
            if a != b {
                return Some(format!("hart {n}: control and status registers differ"));
            }
        }
        let differs =
            || (0..self.one.ram().size()).step_by(8).find(|&at| self.word(&self.one, at) != self.word(&self.other, at));
        if memory && let Some(at) = differs() {
            return Some(format!("memory differs at offset {at:#x}"));
        }
        None
    }

    fn word(&self, machine: &Machine, at: u64) -> Option<[u8; 8]> {
        let ram = machine.ram();
        ram.load(trapless_memory::PhysAddr(ram.base().0 + at))
    }
}

fn compare(cli: &Cli) -> Result<bool> {
    let mut pair = Pair::new(cli)?;
    let (mut equal, mut steps) = (Cycle(0), 0);
    let end = Cycle(cli.max_cycles.unwrap_or(u64::MAX));
    loop {
        let until = (equal + Cycle(cli.step)).min(end);
        let ends = pair.run(until, None)?;
        steps += 1;
        let over = ends.0 != End::MaxCycle || ends.1 != End::MaxCycle || until == end;
        let what = pair.difference(over || steps % MEMORY_EVERY == 0);
        if ends.0 != ends.1 || what.is_some() {
            let what = what.unwrap_or_else(|| format!("ends {ends:?}"));
            say(format_args!("the engines differ between cycles {} and {}: {what}", equal.0, until.0));
            return narrow(cli, equal, until).map(|()| false);
        }
        equal = until;
        if over {
            let retired: u64 = pair.one.harts().iter().flat_map(|h| h.retired).sum();
            say(format_args!(
                "{retired} instructions in {} cycles, compared {steps} times: equal ({:?})",
                pair.one.now().0,
                ends.0
            ));
            return Ok(true);
        }
    }
}

/// Lengths of the windows in which a difference is looked for again, in cycles; the first is about a jump. In shorter
/// windows the harts of one core wait at other times, so the difference may not appear in all of them.
const NARROW: [u64; 3] = [1, 30, 1000];

/// Runs both again, in shorter windows around the place where they begin to differ.
fn narrow(cli: &Cli, equal: Cycle, until: Cycle) -> Result<()> {
    for window in NARROW.map(Cycle) {
        let mut pair = Pair::new(cli)?;
        pair.run(equal, None)?;
        let mut at = equal;
        while at < until {
            let before = pair.one.harts();
            at += window;
            let ends = pair.run(at, Some(window))?;
            let found = if ends.0 == ends.1 { pair.difference(false) } else { Some(format!("ends differ: {ends:?}")) };
            if let Some(what) = found {
                let from: Vec<String> =
                    before.iter().map(|h| format!("{:#x} at {} after {:?}", h.pc, h.cycle.0, h.retired)).collect();
                say(format_args!("from cycle {}, pc {}: {what}", (at - window).0, from.join(", ")));
                return Ok(());
            }
        }
        let memory = pair.difference(true).unwrap_or_else(|| "nothing differs".into());
        say(format_args!("in windows of {} cycles no registers differ; at the end: {memory}", window.0));
    }
    Ok(())
}

fn main() -> ExitCode {
    match compare(&Cli::parse()) {
        Ok(equal) => {
            say(format_args!("{} passed, {} failed", u8::from(equal), u8::from(!equal)));
            if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(e) => {
            eprintln!("lockstep: {e:#}");
            ExitCode::from(2)
        }
    }
}
