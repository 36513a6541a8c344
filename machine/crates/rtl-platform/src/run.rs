// SPDX-License-Identifier: Apache-2.0
//! Runs the model from one device event to the next.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use clap::Parser;
use serde::{Deserialize, Serialize};
use trapless_devices::Finish;
use trapless_machine::{Error, map, open_drives};
use trapless_memory::{Cycle, Ram};
use trapless_timing::Profile;

use crate::args::Args;
use crate::ffi::{self, Marker};
use crate::image::{self, Start};
use crate::model::{Latencies, Model};
use crate::platform::{Platform, PlatformState};

/// Longest run of the model, in cycles. Then the limits are checked.
const WINDOW: u64 = 1_000_000;

const MARKER_ROI_BEGIN: u32 = 0x7a1;
const MARKER_ROI_END: u32 = 0x7a2;
const MARKER_MILESTONE: u32 = 0x7a5;

/// Exit statuses that do not come from the guest.
mod status {
    pub const BAD_INPUT: i32 = 2;
    pub const RESET: i32 = 3;
    pub const MAX_CYCLES: i32 = 4;
}

/// Errors before or after the run.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error(transparent)]
    Machine(#[from] Error),
    #[error("profile: {0}")]
    Profile(String),
    #[error("memory: {0}")]
    Memory(#[from] trapless_memory::RamError),
    #[error("checkpoint {0}: {1}")]
    Checkpoint(String, String),
    #[error("{0}: {1}")]
    Output(String, String),
}

/// Content of the checkpoint's file `platform`. The files `memory` and `model` are beside it.
#[derive(Serialize, Deserialize)]
struct Saved {
    memory: u64,
    boot_address: u64,
    platform: PlatformState,
}

/// Runs everything. `main` of the harness calls this.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_rtl_main() -> i32 {
    let args = Args::parse();
    run(&args).unwrap_or_else(|wrong| {
        eprintln!("error: {wrong}");
        status::BAD_INPUT
    })
}

fn run(args: &Args) -> Result<i32, Wrong> {
    let profile = Profile::load(&args.profile, &[]).map_err(|e| Wrong::Profile(e.to_string()))?;
    let drives = open_drives(&args.disks, &profile)?;
    let saved = args.resume.as_deref().map(read_checkpoint).transpose()?;
    let (mut ram, saved) = match saved {
        Some((ram, saved)) => (ram, Some(saved)),
        None => (Ram::new(map::RAM_BASE, args.memory << 20)?, None),
    };
    let start = match &saved {
        Some(saved) => Start { address: saved.boot_address, to_host: None },
        None => image::load(&mut ram, args, &profile)?,
    };
    let model = Model::new(&ram);
    let latencies = Latencies { read: args.read_latency, write: args.write_latency, device: args.device_latency };
    model.configure(start.address, latencies);
    let mut platform = Platform::new(ram, profile.clock(), profile.machine.timebase_hz, drives).map_err(Error::from)?;
    match (saved, &args.resume) {
        (Some(saved), Some(dir)) => {
            let wrong = |what: String| Wrong::Checkpoint(dir.display().to_string(), what);
            platform.restore(saved.platform).map_err(wrong)?;
            if !model.restore(&dir.join("model")) {
                return Err(wrong("its model cannot be read by this build: write it again".to_owned()));
            }
        }
        _ => model.reset(),
    }
    if let Some(address) = start.to_host {
        model.watch(address);
    }
    platform.uart().push_input(args.input.replace("\\n", "\n").as_bytes());
    ffi::install(platform);
    loop_until_end(args, model, start)
}

fn loop_until_end(args: &Args, model: Model, start: Start) -> Result<i32, Wrong> {
    let began = Instant::now();
    let (first_cycle, first_instruction) = (model.cycle().0, model.instructions());
    let limit = args.max_cycles.map_or(u64::MAX, |cycles| first_cycle.saturating_add(cycles));
    let every = args.progress.map(|millions| millions * 1_000_000);
    let mut next_word = every.map_or(u64::MAX, |every| first_cycle + every);
    let end = loop {
        let now = model.cycle();
        let (markers, end) = ffi::reach(|reach| {
            let regions = &mut reach.regions;
            reach.platform.advance(now, &mut |record| regions.command(record));
            for (address, length) in reach.platform.written.drain(..) {
                model.written(address, length);
            }
            model.set_lines(reach.platform.lines(now));
            print(&mut reach.platform);
            let end = match (reach.platform.finish(), reach.to_host) {
                (Some(Finish::PowerOff), _) => Some(0),
                (Some(Finish::Reset), _) => Some(status::RESET),
                (Some(Finish::Fail(code)), _) => Some(i32::from(code).clamp(1, 255)),
                (None, Some(word)) if word & 1 == 1 => Some((word >> 1).min(255) as i32),
                _ => None,
            };
            (std::mem::take(&mut reach.markers), end)
        });
        if let Some(end) = end {
            break end;
        }
        let mut ended = false;
        for marker in markers {
            tell(marker, model, began);
            ffi::reach(|reach| match marker.number {
                MARKER_ROI_BEGIN => reach.regions.begin(marker.a0, marker.cycle, model.instructions()),
                MARKER_ROI_END => reach.regions.end(marker.cycle, model.instructions()),
                _ => {}
            });
            ended |= marker.number == MARKER_MILESTONE && args.end_at == Some(marker.a0);
            // Write it now, because a run of hours may be interrupted.
            if let (Some(path), MARKER_ROI_END) = (&args.json, marker.number) {
                write_regions(path)?;
            }
            if let (Some(dir), MARKER_MILESTONE) = (&args.checkpoint, marker.number)
                && marker.a0 == args.checkpoint_at
            {
                write_checkpoint(dir, model, start)?;
                summary(model, began, first_cycle, first_instruction);
                return Ok(0);
            }
        }
        if ended {
            break 0;
        }
        if now.0 >= limit {
            break status::MAX_CYCLES;
        }
        if now.0 >= next_word {
            next_word += every.unwrap_or(u64::MAX);
            eprintln!(
                "cva6: cycle {}, {} instructions, pc {:#x}, {:.0} kHz",
                now.0,
                model.instructions(),
                model.pc(),
                (now.0 - first_cycle) as f64 / began.elapsed().as_secs_f64() / 1e3
            );
        }
        let event = ffi::reach(|reach| reach.platform.next_event(now));
        let until = event.0.max(now.0 + 1).min(now.0 + WINDOW).min(limit);
        model.run(Cycle(until));
    };
    summary(model, began, first_cycle, first_instruction);
    if let Some(path) = &args.json {
        write_regions(path)?;
    }
    Ok(end)
}

/// Writes the regions that have ended, completely or not at all.
fn write_regions(path: &Path) -> Result<(), Wrong> {
    let text = ffi::reach(|reach| serde_json::to_string_pretty(&reach.regions.closed)).unwrap_or_default() + "\n";
    let written = path.with_extension("new");
    let done = fs::write(&written, text).and_then(|()| fs::rename(&written, path));
    done.map_err(|e| Wrong::Output(path.display().to_string(), e.to_string()))
}

/// Prints the guest's console to standard output.
fn print(platform: &mut Platform) {
    if platform.uart().has_output() {
        let mut out = std::io::stdout().lock();
        // Ignore errors: nobody reads the output any more.
        let _ = out.write_all(&platform.uart().take_output()).and_then(|()| out.flush());
    }
}

fn tell(marker: Marker, model: Model, began: Instant) {
    let what = match marker.number {
        MARKER_ROI_BEGIN => "region begins",
        MARKER_ROI_END => "region ends",
        MARKER_MILESTONE => "milestone",
        _ => return,
    };
    eprintln!(
        "cva6: {what} {}: cycle {}, {} instructions, {:.1} s",
        marker.a0,
        marker.cycle,
        model.instructions(),
        began.elapsed().as_secs_f64()
    );
}

fn summary(model: Model, began: Instant, first_cycle: u64, first_instruction: u64) {
    let (cycles, seconds) = (model.cycle().0 - first_cycle, began.elapsed().as_secs_f64());
    let instructions = model.instructions() - first_instruction;
    let speed = cycles as f64 / seconds / 1e3;
    eprintln!("cva6: {cycles} cycles, {instructions} instructions, {seconds:.1} s of host time, {speed:.0} kHz");
}

fn write_checkpoint(dir: &Path, model: Model, start: Start) -> Result<(), Wrong> {
    let wrong = |what: String| Wrong::Checkpoint(dir.display().to_string(), what);
    fs::create_dir_all(dir).map_err(|e| wrong(e.to_string()))?;
    ffi::reach(|reach| {
        let platform = reach.platform.save();
        let platform = platform.map_err(|disk| wrong(format!("disk {disk} was written to: make it a snapshot")))?;
        let memory = reach.platform.ram.size();
        let saved = Saved { memory, boot_address: start.address, platform };
        let bytes = postcard::to_stdvec(&saved).map_err(|e| wrong(e.to_string()))?;
        fs::write(dir.join("platform"), bytes).map_err(|e| wrong(e.to_string()))?;
        let file = File::create(dir.join("memory")).map_err(|e| wrong(e.to_string()))?;
        reach.platform.ram.save(&file).map_err(|e| wrong(e.to_string()))
    })?;
    if model.save(&dir.join("model")) { Ok(()) } else { Err(wrong("cannot save the model".to_owned())) }
}

fn read_checkpoint(dir: &Path) -> Result<(Ram, Saved), Wrong> {
    let wrong = |what: String| Wrong::Checkpoint(dir.display().to_string(), what);
    let bytes = fs::read(dir.join("platform")).map_err(|e| wrong(e.to_string()))?;
    let saved: Saved = postcard::from_bytes(&bytes).map_err(|e| wrong(e.to_string()))?;
    let file = File::open(dir.join("memory")).map_err(|e| wrong(e.to_string()))?;
    Ok((Ram::restore(map::RAM_BASE, saved.memory, file)?, saved))
}
