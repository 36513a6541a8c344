// SPDX-License-Identifier: Apache-2.0
//! Makes the parts of a machine from a profile, disk images and what runs first.

use trapless_memory::{ClockHz, Cycle, Picos, Ram};
use trapless_nvme::{Controller, ControllerConfig, Fault, ImageMode, MAX_NAMESPACES, open_image};
use trapless_riscv::{CodeCache, CostTable, Hart, HartConfig};
use trapless_smu::{Smu, SmuConfig, SmuTiming, SmuUnit};
use trapless_timing::{CoreCosts, Profile, SsdTiming};

use super::fdt::{self, FdtConfig};
use super::load;
use crate::board::{Board, Peripherals, map};
use crate::config::{Boot, DiskConfig, DiskWrites, Engine, NamespaceConfig};
use crate::cores::{Cores, WALK_CACHE_HIT};
use crate::error::Error;
use crate::sbi::{A0, A1};

/// Opens the drives.
///
/// # Errors
/// One line that names the image or value that is wrong.
pub fn open_drives(disks: &[DiskConfig], profile: &Profile) -> Result<Vec<Controller>, Error> {
    /// Bus 0 has 32 devices; one of them is the bridge.
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

/// Opens the drives and puts the faults into them.
///
/// # Errors
/// One line that names the image, value or fault that is wrong.
pub fn drives(disks: &[DiskConfig], faults: &[Fault], profile: &Profile) -> Result<Vec<Controller>, Error> {
    let mut drives = open_drives(disks, profile)?;
    inject(&mut drives, faults, profile.clock())?;
    Ok(drives)
}

/// Makes harts and board, and loads what runs first. Returns the ELF too, if that is what runs. `ram`: RAM of a checkpoint.
/// `builtin_sbi`: the machine itself serves SBI calls.
///
/// # Errors
/// One line that names the file or value that is wrong.
pub fn assemble(
    profile: &Profile,
    boot: &Boot,
    ram: Option<Ram>,
    drives: Vec<Controller>,
    engine: Engine,
    builtin_sbi: bool,
) -> Result<(Cores, Board, Option<load::LoadedElf>), Error> {
    let m = &profile.machine;
    let mut ram = ram.map_or_else(|| Ram::new(map::RAM_BASE, m.memory_bytes), Ok)?;
    let smu = profile.smu.present.then(|| Smu::new(smu_config(profile))).transpose();
    let smu = smu.map_err(|e| Error::Profile(e.to_string()))?.map(|smu| Box::new(smu) as Box<dyn SmuUnit>);
    let costs = cost_table(&profile.core);
    let make = |id: u32| {
        let config = HartConfig {
            costs,
            smu: profile.smu.present,
            sbi_exits: builtin_sbi,
            paging: m.paging,
            ..HartConfig::new(id.into())
        };
        Hart::new(config, map::RAM_BASE.0)
    };
    let mut harts: Vec<Hart> = (0..m.harts).map(make).collect();
    let elf = boot_images(&mut ram, boot, profile, &mut harts)?;
    let code = match engine {
        Engine::Interpreter => CodeCache::default(),
        Engine::Translator => CodeCache::translating(harts[0].config()),
    };
    let mut cores = Cores::new(harts, code, m, profile.core.walk_level);
    if builtin_sbi {
        cores.stop_others();
    }
    let peripherals = Peripherals::new(m.harts as usize, profile.clock(), m.timebase_hz, drives);
    Ok((cores, Board::new(ram, peripherals, smu)?, elf))
}

/// Puts the faults into their drives.
fn inject(drives: &mut [Controller], faults: &[Fault], clock: ClockHz) -> Result<(), Error> {
    let disks = drives.len();
    for fault in faults {
        let wrong = |reason: String| Error::Fault { fault: fault.to_string(), reason };
        let Some(drive) = drives.get_mut(fault.disk() - 1) else {
            return Err(wrong(format!("disks are numbered from 1 to {disks}")));
        };
        drive.inject(fault.clone(), clock).map_err(|e| wrong(e.to_string()))?;
    }
    Ok(())
}

/// The SMU's sizes and times.
pub fn smu_config(profile: &Profile) -> SmuConfig {
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
pub fn smu_timing(profile: &Profile) -> SmuTiming {
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

/// The hart's prices. Every key must be named here; the compiler reports a key that is not used.
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
        // `Times` charges for walks, because it knows what the page walk cache holds.
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
        pte_read: WALK_CACHE_HIT,
        misaligned,
        mmio,
    }
}

/// Loads what runs first and sets the harts to its start. Returns the ELF, if that is what runs.
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
