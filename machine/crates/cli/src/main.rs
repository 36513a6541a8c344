// SPDX-License-Identifier: Apache-2.0
//! `trapless-machine`: the command through which all other parts of the project use the machine.
//!
//! Exit status: 0 after the guest powered off or a checkpoint was written, 2 for bad input, 3 after the guest reset itself, 4
//! when the simulated time limit was reached, 130 after an interrupt. A bare-metal program sets the status through `tohost`. If
//! the guest powers off with a failure code, the status is this code, 255 at most, or 3 if the code is 0. Errors are one line on
//! standard error.

mod args;
mod attribution;
mod console;
mod files;
mod gdb;
mod trace;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use args::{Cli, Command, Common, DiskMode, Elf, Run, Trace, TraceFile};
use clap::Parser;
use files::{check_writable, temporary, write_whole};
use trapless_machine::{
    Boot, Console, DiskConfig, DiskWrites, End, Engine, Fault, Limits, Machine, MachineConfig, NamespaceConfig, Report,
    TraceConfig,
};
use trapless_memory::Cycle;
use trapless_timing::{Profile, SsdParams};

const BAD_INPUT: u8 = 2;
const GUEST_RESET: u8 = 3;
const TIME_LIMIT: u8 = 4;
const INTERRUPTED: u8 = 130;

/// Environment variable that only test builds with seeded bugs read. If it is set, walkers serve misses of every privilege mode.
#[cfg(feature = "seeded-bugs")]
const SERVES_KERNEL: &str = "TRAPLESS_SEED_SERVES_KERNEL";
/// Environment variable of the same builds. If it is N, one in N exchanges of page table entries by the SMU meets a bus error.
#[cfg(feature = "seeded-bugs")]
const EXCHANGE_ERRORS: &str = "TRAPLESS_SEED_EXCHANGE_ERRORS";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // clap prints help and version to standard output with status 0, and mistakes to standard error with status 2.
            let _ = e.print();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    #[cfg(feature = "seeded-bugs")]
    trapless_riscv::seed_bug(std::env::var_os(SERVES_KERNEL).map(|_| trapless_riscv::Bug::ServesKernel));
    #[cfg(feature = "seeded-bugs")]
    if let Some(every) = std::env::var(EXCHANGE_ERRORS).ok().and_then(|text| text.parse().ok()) {
        trapless_machine::exchange_errors::seed(every);
    }
    let result = match cli.command {
        Command::Run(options) => run(&options),
        Command::Elf(options) => elf(&options),
        Command::Resume(options) => {
            let boot = Boot::Checkpoint { dir: options.dir.clone() };
            simulate(&options.common, boot, options.interactive, None)
        }
        Command::Trace(Trace::Info { file }) => trace::info(&file).map(|()| 0),
        Command::Trace(Trace::Dump { file }) => trace::dump(&file).map(|()| 0),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(e) => {
            eprintln!("trapless-machine: {e:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(options: &Run) -> Result<u8> {
    let boot = Boot::Linux {
        kernel: options.kernel.clone(),
        initrd: options.initrd.clone(),
        append: options.append.clone(),
        firmware: options.bios.clone(),
    };
    simulate(&options.common, boot, options.interactive, None)
}

fn elf(options: &Elf) -> Result<u8> {
    let boot = Boot::Elf { file: options.file.clone() };
    simulate(&options.common, boot, false, options.signature.as_deref())
}

/// Loads the profile with the changes from the command line. `--ssd`, `--memory`, `--harts` and `--no-smu` are short forms of
/// `--set`.
fn profile(common: &Common) -> Result<Profile> {
    let mut changes: Vec<_> = common.ssd.iter().map(|name| format!("ssd={name}")).collect();
    changes.extend_from_slice(&common.set);
    changes.extend(common.memory.map(|size| format!("machine.memory_bytes={}", size.0)));
    changes.extend(common.harts.map(|harts| format!("machine.harts={harts}")));
    changes.extend(common.no_smu.then(|| "smu.present=false".to_owned()));
    Ok(Profile::load(&common.profile, &changes)?)
}

fn disks(common: &Common) -> Result<Vec<DiskConfig>> {
    let namespace = |n: &args::Namespace| NamespaceConfig {
        path: n.path.clone(),
        writes: match n.mode {
            DiskMode::ReadWrite => DiskWrites::ToFile,
            DiskMode::ReadOnly => DiskWrites::Fail,
            DiskMode::Snapshot => DiskWrites::InMemory,
        },
        block_bytes: n.block,
    };
    let disk = |d: &args::Disk| {
        let ssd = d.ssd.as_deref().map(SsdParams::load).transpose()?;
        Ok(DiskConfig { ssd, namespaces: d.namespaces.iter().map(namespace).collect() })
    };
    common.disks.iter().map(disk).collect()
}

fn faults(common: &Common) -> Result<Vec<Fault>> {
    common.faults.iter().map(|text| text.parse().with_context(|| format!("--fault {text}"))).collect()
}

fn simulate(common: &Common, boot: Boot, interactive: bool, signature: Option<&Path>) -> Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    let Some(address) = &common.gdb else {
        return simulate_under(common, boot, interactive, signature, stop, None);
    };
    let (server, front) = gdb::listen(address, Arc::clone(&stop))?;
    let status = simulate_under(common, boot, interactive, signature, stop, Some(front));
    server.finish(*status.as_ref().unwrap_or(&BAD_INPUT));
    status
}

/// Runs a machine, under a debugger if `front` is given.
fn simulate_under(
    common: &Common,
    boot: Boot,
    interactive: bool,
    signature: Option<&Path>,
    stop: Arc<AtomicBool>,
    debugger: Option<gdb::Front>,
) -> Result<u8> {
    let profile = profile(common)?;
    let max_cycle = match common.max_seconds {
        Some(s) if s > 0.0 && s.is_finite() => Cycle((s * profile.machine.clock_hz as f64) as u64),
        Some(s) => bail!("--max-seconds must be a positive number, not {s}"),
        None => Cycle::NEVER,
    };
    if let Some(path) = &common.json {
        check_writable(path)?;
    }

    if let Some(None) = common.smu_rtl {
        let parameters = Machine::rtl_parameters(&profile).context("the profile has no SMU")?;
        println!("{}", parameters.arguments());
        return Ok(0);
    }
    let trace = common.trace.as_ref().map(|t| temporary(&t.path)).transpose()?;
    let raised = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        // A second interrupt ends the program at once.
        if raised.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .context("cannot install the interrupt handler")?;

    let terminal = interactive.then(console::RawTerminal::new);
    let input = interactive.then(|| {
        let stop = Arc::clone(&stop);
        console::input(move || stop.store(true, Ordering::SeqCst))
    });
    let console = Console { output: console::output(&common.console)?, input };
    let engine = match common.engine {
        args::Engine::Interpreter => Engine::Interpreter,
        args::Engine::Translator => Engine::Translator,
    };
    let (disks, faults, detail) = (disks(common)?, faults(common)?, common.detail.unwrap_or_default());
    let checkpoint = common.checkpoint_at.zip(common.checkpoint.clone());
    let attribution = attribution::config(common, &boot)?;
    let config = MachineConfig { profile, boot, disks, faults, engine, detail, checkpoint, attribution };
    let mut machine = Machine::new(config, console)?;
    if let Some(Some(library)) = &common.smu_rtl {
        machine.use_rtl(library)?;
    }
    if let Some((to, file)) = common.trace.as_ref().zip(trace.as_ref()) {
        let TraceFile { path, grain, kernel, from } = to.clone();
        let writer = concat!("trapless-machine ", env!("CARGO_PKG_VERSION")).to_owned();
        let file = file.as_file().try_clone().with_context(|| format!("cannot write {}", path.display()))?;
        machine.trace(TraceConfig { file, grain, kernel, from, writer })?;
    }
    if let Some(pagefault_disabled) = common.check_atomic {
        machine.check_atomic(pagefault_disabled);
    }
    if let Some(front) = debugger {
        machine.debug(Box::new(front));
    }
    let end = machine.run(&Limits { max_cycle, window: None, stop: &stop });
    drop(terminal);
    let end = end?;

    if let Some(path) = signature {
        let missing = "--signature: the ELF file has no symbols begin_signature and end_signature";
        write_whole(path, machine.signature().context(missing)?.as_bytes())?;
    }
    let report = machine.report(&end);
    if common.summary {
        summarize(&report);
    }
    if let (Some(dir), Some(attribution)) = (&common.attribute, machine.attribution()) {
        attribution::write(dir, attribution)?;
    }
    if !matches!(end, End::Stopped)
        && let Some((to, file)) = common.trace.as_ref().zip(trace)
    {
        let cannot = || format!("cannot write {}", to.path.display());
        machine.finish_trace().with_context(cannot)?;
        file.persist(&to.path).with_context(cannot)?;
    }
    if !matches!(end, End::Stopped)
        && let Some(path) = &common.json
    {
        let mut text = serde_json::to_vec_pretty(&report)?;
        text.push(b'\n');
        write_whole(path, &text)?;
    }
    let (idle, harts) = (machine.harts_never_started(), machine.harts().len());
    if idle > 0 && matches!(end, End::PowerOff | End::Checkpoint) {
        eprintln!(
            "trapless-machine: {idle} of {harts} harts never ran: the guest did not start them (a Linux kernel starts \
             at most CONFIG_NR_CPUS harts, or fewer with nr_cpus= or maxcpus=)"
        );
    }
    Ok(match end {
        End::PowerOff | End::Checkpoint => 0,
        End::ToHost(code) => code,
        End::Reset => {
            eprintln!("trapless-machine: the guest reset itself");
            GUEST_RESET
        }
        End::Failed(code) => {
            eprintln!("trapless-machine: the guest reported failure {code}");
            if code == 0 { GUEST_RESET } else { code.min(255) as u8 }
        }
        End::MaxCycle => {
            eprintln!("trapless-machine: the simulated time limit is reached");
            TIME_LIMIT
        }
        End::Stopped => {
            eprintln!("trapless-machine: interrupted");
            INTERRUPTED
        }
    })
}

/// Number of the milestone that the guest's init passes before its first command (spec/platform.md).
const FIRST_COMMAND: u64 = 1;

fn summarize(report: &Report) {
    let mips = |instructions: u64, seconds: f64| instructions as f64 / 1e6 / seconds.max(1e-9);
    if let Some(m) = report.milestones.iter().find(|m| m.number == FIRST_COMMAND) {
        eprintln!(
            "trapless-machine: first command after {:.2} s on the host, {:.1} M instructions, {:.0} MIPS",
            m.host_seconds,
            m.instructions as f64 / 1e6,
            mips(m.instructions, m.host_seconds)
        );
    }
    eprintln!(
        "trapless-machine: {:.3} s simulated in {:.2} s on the host, {:.1} M instructions, {:.0} MIPS",
        report.sim_seconds,
        report.host_seconds,
        report.instructions as f64 / 1e6,
        report.mips
    );
}
