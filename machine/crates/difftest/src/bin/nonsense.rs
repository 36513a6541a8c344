// SPDX-License-Identifier: Apache-2.0
//! `nonsense`: guests that write nonsense into every device register, ring, queue and page table. The machine must not panic,
//! and every run must end; it does not matter what happens inside the guest.
//!
//! Exit status: 0 if every run ended, 1 otherwise. The seed of a failure is printed; it repeats the run.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use trapless_difftest::nonsense::{self, DRIVES, HARTS, MEMORY};
use trapless_difftest::say;
use trapless_machine::{
    Boot, Console, DetailFrom, DiskConfig, DiskWrites, End, Engine, Error, Limits, Machine, MachineConfig,
};
use trapless_memory::Cycle;
use trapless_timing::Profile;

/// Runs guests that write nonsense into the machine's devices.
#[derive(Parser)]
#[command(name = "nonsense", version)]
struct Cli {
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of runs, each with the next seed.
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// Maximum number of simulated cycles of a run.
    #[arg(long, default_value_t = 4_000_000)]
    cycles: u64,
    /// Host seconds after which a run counts as hanging.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run_all(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nonsense: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(cli: &Cli) -> Result<()> {
    let current = Arc::new(AtomicU64::new(cli.seed));
    let seed = Arc::clone(&current);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        eprintln!("nonsense: seed {} panics", seed.load(Ordering::Relaxed));
        report(info);
    }));
    watch(Arc::clone(&current), Duration::from_secs(cli.seconds));

    let started = Instant::now();
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let disk = folder.path().join("disk");
    std::fs::write(&disk, vec![0x5a; 4 << 20]).context("cannot write the disk")?;
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    for seed in cli.seed..cli.seed + cli.runs {
        current.store(seed, Ordering::Relaxed);
        let elf = folder.path().join("program");
        std::fs::write(&elf, nonsense::program(seed)).context("cannot write the program")?;
        // With few entries, harts wait for each other. A block of a whole page is computed differently.
        let (pmshr, block_bytes) = ([32, 1, 2, 64][seed as usize % 4], if seed % 5 == 0 { 4096 } else { 512 });
        let changes = [
            format!("machine.harts={HARTS}"),
            format!("machine.memory_bytes={MEMORY}"),
            "smu.present=true".into(),
            format!("smu.pmshr_entries={pmshr}"),
            format!("ssd.block_bytes={block_bytes}"),
        ];
        let config = MachineConfig {
            profile: Profile::load("vc707", &changes)?,
            boot: Boot::Elf { file: elf },
            disks: (0..DRIVES).map(|_| DiskConfig::new(&disk, DiskWrites::InMemory)).collect(),
            faults: Vec::new(),
            engine: Engine::default(),
            detail: DetailFrom::Never,
            checkpoint: None,
            attribution: None,
        };
        let mut machine = Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })?;
        let stop = AtomicBool::new(false);
        let end = match machine.run(&Limits { max_cycle: Cycle(cli.cycles), window: None, stop: &stop }) {
            Ok(end) => format!("{end:?}"),
            // Every hart sleeps and nothing can wake it, so the run has ended.
            Err(Error::Deadlock(_)) => "all asleep".into(),
            Err(e) => return Err(e).with_context(|| format!("seed {seed}")),
        };
        for (name, count) in &machine.report(&End::MaxCycle).smu_counters {
            *counters.entry(name.to_string()).or_default() += count;
        }
        *ends.entry(end).or_default() += 1;
    }
    // Report what the runs reached, so that a set-up that never works is noticed.
    say(format_args!("ends: {}", list(&ends)));
    say(format_args!("SMU: {}", list(&counters)));
    say(format_args!("seeds {}..{}, {:.1} s", cli.seed, cli.seed + cli.runs, started.elapsed().as_secs_f64()));
    let idle: Vec<_> = ["requests", "installed", "commands", "fail_device", "fail_no_frame"]
        .into_iter()
        .filter(|name| counters.get(*name).is_none_or(|n| *n == 0))
        .collect();
    anyhow::ensure!(idle.is_empty() || cli.runs < 50, "the runs never reached: {}", idle.join(", "));
    say(format_args!("{} passed, 0 failed", cli.runs));
    Ok(())
}

fn list(map: &BTreeMap<String, u64>) -> String {
    map.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Ends the program if one seed takes too long.
fn watch(current: Arc<AtomicU64>, limit: Duration) {
    std::thread::spawn(move || {
        let (mut seed, mut since) = (u64::MAX, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = current.load(Ordering::Relaxed);
            if now != seed {
                (seed, since) = (now, Instant::now());
            } else if since.elapsed() > limit {
                eprintln!("nonsense: seed {seed} has not ended after {} s", limit.as_secs());
                say(format_args!("0 passed, 1 failed"));
                std::process::exit(1);
            }
        }
    });
}
