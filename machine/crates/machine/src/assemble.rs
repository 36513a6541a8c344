// SPDX-License-Identifier: Apache-2.0
//! Putting a machine together from a profile, images and what runs first.

use std::path::Path;
use std::time::Instant;

use trapless_devices::Aclint;
use trapless_memory::{ClockHz, Cycle, Picos, Ram};
use trapless_nvme::{Controller, ControllerConfig, Fault, ImageMode, MAX_NAMESPACES, open_image};
use trapless_riscv::{CodeCache, CostTable, Hart, HartConfig};
use trapless_smu::{Smu, SmuConfig, SmuTiming, SmuUnit};
use trapless_smu_rtl::{Memory, RtlSmu};
use trapless_timing::{CoreCosts, Profile, SsdTiming};

use crate::attribute::Attributed;
use crate::board::Board;
use crate::checkpoint;
use crate::fdt::{self, FdtConfig};
use crate::frames::Installed;
use crate::machine::{A0, A1, Machine, Phase};
use crate::recorder::Recorder;
use crate::slots::Slots;
use crate::times::Times;
use crate::walk_cache;
use crate::{
    Boot, Console, DetailFrom, DiskConfig, DiskWrites, Engine, Error, MachineConfig, NamespaceConfig, load, map,
};

impl Machine {
    /// Builds the machine and loads what it starts with.
    ///
    /// # Errors
    /// One line that names the file or value that is wrong.
    pub fn new(config: MachineConfig, console: Console) -> Result<Machine, Error> {
        let MachineConfig { profile, boot, disks, faults, engine, detail, checkpoint: save_at, attribution } = config;
        if detail != DetailFrom::Never && profile.detail.is_none() {
            return Err(Error::NoDetail(profile.name));
        }
        let clock = profile.clock();
        let harts = profile.machine.harts as usize;
        let threads = (profile.machine.threads_per_core as usize).min(harts);
        let mut ram = match &boot {
            Boot::Checkpoint { dir } => checkpoint::memory(dir, &profile)?,
            _ => Ram::new(map::RAM_BASE, profile.machine.memory_bytes)?,
        };
        let mut drives = open_drives(&disks, &profile)?;
        inject(&mut drives, &faults, clock)?;
        let smu = profile.smu.present.then(|| Smu::new(smu_config(&profile))).transpose();
        let smu = smu.map_err(|e| Error::Profile(e.to_string()))?;

        let saved = match &boot {
            Boot::Checkpoint { dir } => Some(checkpoint::state(dir, &profile)?),
            _ => None,
        };
        let builtin_sbi = match (&boot, &saved) {
            (_, Some(saved)) => saved.builtin_sbi,
            (boot, None) => matches!(boot, Boot::Linux { firmware: None, .. }),
        };
        let costs = cost_table(&profile.core);
        let make = |id: usize| {
            let paging = profile.machine.paging;
            let smu = profile.smu.present;
            let config = HartConfig { costs, smu, sbi_exits: builtin_sbi, paging, ..HartConfig::new(id as u64) };
            Hart::new(config, map::RAM_BASE.0)
        };
        let mut cores: Vec<Hart> = (0..harts).map(make).collect();
        let mut phases = vec![Phase::Running; harts];
        let attribution = attribution.map(|a| Attributed::new(a, &boot, harts, clock)).transpose()?;
        let elf = boot_images(&mut ram, &boot, &profile, &mut cores)?;
        if builtin_sbi {
            phases[1..].fill(Phase::Stopped);
        }
        let aclint = Aclint::new(harts, clock, profile.machine.timebase_hz);
        let mut machine = Machine {
            board: Board::new(ram, aclint, harts, drives, smu.map(|smu| Box::new(smu) as Box<dyn SmuUnit>)),
            clock,
            code: match engine {
                Engine::Interpreter => CodeCache::default(),
                Engine::Translator => CodeCache::translating(cores[0].config()),
            },
            harts: cores,
            phases,
            timers: vec![(u64::MAX, false); harts],
            times: Times::new(harts, threads, profile.machine.walk_cache_entries, profile.core.walk_level),
            slots: Slots::new(harts, threads),
            detail,
            checkpoint: save_at,
            attribution,
            reached: false,
            recorder: Recorder::new(harts),
            tracer: None,
            debug: None,
            atomic: None,
            console,
            builtin_sbi,
            elf,
            next_request: 0,
            now: Cycle(0),
            stale_interrupts: true,
            end: None,
            started: Instant::now(),
            host_seconds: 0.0,
            milestones: Vec::new(),
            open_roi: None,
            rois: Vec::new(),
            automatic_regions: 0,
            region_kept: false,
            marks_ignored: 0,
            profile,
        };
        machine.recorder.installed = machine.attribution.is_some().then(Installed::new);
        if let (Boot::Checkpoint { dir }, Some(saved)) = (&boot, saved) {
            machine.restore(dir, saved)?;
        }
        Ok(machine)
    }
}

/// Opens the drives.
///
/// # Errors
/// One line that names the image or value that is wrong.
pub fn open_drives(disks: &[DiskConfig], profile: &Profile) -> Result<Vec<Controller>, Error> {
    /// Bus 0 has 32 devices, one of them the bridge.
    const MOST: usize = 31;
    if disks.len() > MOST {
        return Err(Error::TooManyDisks(disks.len()));
    }
    let open = |(index, disk): (usize, &DiskConfig)| {
        let ssd = disk.ssd.as_ref().unwrap_or(&profile.ssd);
        let config = ControllerConfig {
            serial: format!("TRAPLESS{index}"),
            max_transfer_pages: ssd.max_transfer_pages,
            max_io_queues: ssd.max_io_queues,
            max_queue_entries: ssd.max_queue_entries,
        };
        if disk.namespaces.is_empty() || disk.namespaces.len() > MAX_NAMESPACES {
            return Err(Error::Namespaces { disk: index + 1, count: disk.namespaces.len() });
        }
        let contents = |ns: &NamespaceConfig| {
            let mode = match ns.writes {
                DiskWrites::ToFile => ImageMode::ReadWrite,
                DiskWrites::Fail => ImageMode::ReadOnly,
                DiskWrites::InMemory => ImageMode::Snapshot,
            };
            let backend = open_image(&ns.path, mode).map_err(|e| Error::Disk(e.to_string()))?;
            Ok((backend, ns.block_bytes.unwrap_or(ssd.block_bytes)))
        };
        let contents = disk.namespaces.iter().map(contents).collect::<Result<_, Error>>()?;
        Ok(Controller::new(config, SsdTiming::new(ssd, profile.clock(), index as u64), contents))
    };
    disks.iter().enumerate().map(open).collect()
}

/// Puts the faults into their drives.
fn inject(drives: &mut [Controller], faults: &[Fault], clock: ClockHz) -> Result<(), Error> {
    let disks = drives.len();
    for fault in faults {
        let wrong = |reason: String| Error::Fault { fault: fault.to_string(), reason };
        let Some(drive) = drives.get_mut(fault.disk() - 1) else {
            return Err(wrong(format!("the last disk is {disks}")));
        };
        drive.inject(fault.clone(), clock).map_err(|e| wrong(e.to_string()))?;
    }
    Ok(())
}

impl Machine {
    /// What its SMU's RTL is built with, if it has one.
    pub fn rtl_parameters(profile: &Profile) -> Option<trapless_smu_rtl::Parameters> {
        profile.smu.present.then(|| RtlSmu::parameters(&smu_config(profile)))
    }

    /// Puts the simulated RTL in the place of the reference model, before the first instruction.
    ///
    /// # Errors
    /// No SMU, no such library, or the machine comes from a checkpoint or is to write one.
    pub fn use_rtl(&mut self, library: &Path) -> Result<(), Error> {
        if self.checkpoint.is_some() || self.now != Cycle(0) {
            return Err(Error::Smu("the SMU's RTL knows no checkpoints".to_owned()));
        }
        if self.board.smu.is_none() {
            return Err(Error::Smu("the machine has no SMU that could be RTL".to_owned()));
        }
        let memory = Memory { latency: smu_timing(&self.profile).ring_read.0, ..Memory::default() };
        let smu = RtlSmu::load(library, smu_config(&self.profile), memory, None);
        self.board.smu = Some(Box::new(smu.map_err(|e| Error::Smu(e.to_string()))?));
        Ok(())
    }
}

fn smu_config(profile: &Profile) -> SmuConfig {
    let s = &profile.smu;
    SmuConfig {
        pmshr_entries: s.pmshr_entries.min(255) as u8,
        prefetch_depth: s.prefetch_entries.min(255) as u8,
        harts: profile.machine.harts.min(255) as u8,
        socket: 0,
        timeout: Cycle(0),
        completion_hints: true,
        timing: smu_timing(profile),
    }
}

/// The SMU's times, memory accesses included.
pub(crate) fn smu_timing(profile: &Profile) -> SmuTiming {
    let s = &profile.smu;
    let ns = |ns: f64| profile.clock().cycles(Picos::from_nanos(ns));
    SmuTiming {
        request: Cycle(s.request_cycles),
        cam: Cycle(s.cam_cycles),
        command_write: ns(s.command_write_ns),
        doorbell: ns(s.doorbell_ns),
        completion: Cycle(s.completion_cycles),
        update: Cycle(s.update_cycles),
        notify: Cycle(s.notify_cycles),
        poll_interval: Cycle(s.poll_interval_cycles),
        first_look: s.first_look_cycles.map(Cycle),
        ring_read: ns(s.ring_read_ns),
    }
}

/// The hart's prices. Every key has to be named here, and a name that is not used is an error of the compiler's.
fn cost_table(costs: &CoreCosts) -> CostTable {
    let CoreCosts {
        alu,
        load,
        store,
        branch,
        branch_taken,
        jump,
        jump_indirect,
        mul,
        div,
        amo,
        fp_move,
        fp_add,
        fp_mul,
        fp_fma,
        fp_convert,
        fp_div,
        fp_sqrt,
        csr,
        fence,
        fence_i,
        sfence,
        xret,
        trap_entry,
        // What walks cost is in `Times`, which knows what the page walk cache has.
        walk_level: _,
        misaligned,
        mmio,
    } = *costs;
    CostTable {
        alu,
        mul,
        div,
        load,
        store,
        amo,
        branch,
        branch_taken: branch_taken.saturating_sub(branch),
        jump,
        jump_indirect,
        csr,
        xret,
        fence,
        fence_i,
        sfence,
        fp_add,
        fp_mul,
        fp_fma,
        fp_convert,
        fp_div,
        fp_sqrt,
        fp_move,
        trap: trap_entry,
        pte_read: walk_cache::HIT,
        misaligned,
        mmio,
    }
}

/// Loads what runs first and sets the harts to it.
fn boot_images(
    ram: &mut Ram,
    boot: &Boot,
    profile: &Profile,
    harts: &mut [Hart],
) -> Result<Option<load::LoadedElf>, Error> {
    let (kernel, initrd, append, firmware) = match boot {
        Boot::Elf { file } => {
            let elf = load::elf(ram, file)?;
            for hart in harts {
                hart.set_pc(elf.entry);
            }
            return Ok(Some(elf));
        }
        Boot::Checkpoint { .. } => return Ok(None),
        Boot::Linux { kernel, initrd, append, firmware } => (kernel, initrd, append, firmware),
    };
    let image = load::linux_image(ram, kernel)?;
    let top = (map::RAM_BASE.0 + ram.size()).saturating_sub(load::DEVICE_TREE_ROOM);
    let initrd = initrd.as_deref().map(|path| load::initrd(ram, path, image.end, top)).transpose()?;
    let floor = initrd.map_or(image.end, |(_, end)| end);
    let tree = fdt::build(&FdtConfig {
        harts: profile.machine.harts,
        threads: profile.machine.threads_per_core.min(profile.machine.harts),
        memory: ram.size(),
        clock_hz: profile.machine.clock_hz,
        timebase_hz: profile.machine.timebase_hz,
        bootargs: append,
        initrd,
        smu: profile.smu.present,
        paging: profile.machine.paging,
    })
    .map_err(|e| Error::CommandLine(e.to_string()))?;
    let dtb = load::device_tree(ram, &tree, floor)?;
    if let Some(path) = firmware {
        load::firmware(ram, path)?;
        for (id, hart) in harts.iter_mut().enumerate() {
            hart.set_x(A0, id as u64);
            hart.set_x(A1, dtb);
        }
    } else {
        harts[0].enter_supervisor(image.entry, dtb);
    }
    Ok(None)
}
