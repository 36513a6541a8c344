// SPDX-License-Identifier: Apache-2.0
//! The content of RAM when the core starts.

use trapless_machine::fdt::{self, FdtConfig};
use trapless_machine::{Error, load, map};
use trapless_memory::{Dma, Paging, PhysAddr, Ram};
use trapless_timing::Profile;

use crate::args::Args;

/// Offset of the stub from the device tree, in the room reserved for the tree.
const STUB_OFFSET: u64 = 0x10_0000;

/// First code of the core: a0 = hart, a1 = device tree, a2 = OpenSBI's `fw_dynamic_info`, then a jump to the firmware. The
/// values follow at offset 32.
const STUB: [u32; 8] = [
    0x0000_0297, // auipc t0, 0
    0x0202_b583, // ld    a1, 32(t0)
    0x0282_b303, // ld    t1, 40(t0)
    0x0302_8613, // addi  a2, t0, 48
    0xf140_2573, // csrr  a0, mhartid
    0x0003_0067, // jr    t1
    0,
    0,
];
/// Magic number of OpenSBI's include/sbi/fw_dynamic.h.
const DYNAMIC_MAGIC: u64 = 0x4942_534f;
const DYNAMIC_VERSION: u64 = 2;
const NEXT_SUPERVISOR: u64 = 1;
const OPTION_NO_PRINTS: u64 = 1;

/// Where the core starts, and the address of `tohost`.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Address of the first instruction.
    pub address: u64,
    /// Address of `tohost`.
    pub to_host: Option<u64>,
}

/// Loads the programs that the command line names.
///
/// # Errors
/// One line that names the file or value that is wrong.
pub fn load(ram: &mut Ram, args: &Args, profile: &Profile) -> Result<Start, Error> {
    if let Some(file) = &args.elf {
        let elf = load::elf(ram, file)?;
        return Ok(Start { address: elf.entry, to_host: elf.tohost });
    }
    let (Some(kernel), Some(firmware)) = (&args.kernel, &args.firmware) else {
        return Err(Error::CommandLine("nothing to run: --elf, --kernel or --resume".to_owned()));
    };
    let image = load::linux_image(ram, kernel)?;
    let top = (map::RAM_BASE.0 + ram.size()).saturating_sub(load::DEVICE_TREE_ROOM);
    let initrd = args.initrd.as_deref().map(|path| load::initrd(ram, path, image.end, top)).transpose()?;
    let tree = fdt::build(&FdtConfig {
        harts: 1,
        threads: 1,
        memory: ram.size(),
        clock_hz: profile.machine.clock_hz,
        timebase_hz: profile.machine.timebase_hz,
        bootargs: &args.append,
        initrd,
        smu: args.smu,
        // CVA6 has no other mode.
        paging: Paging::Sv39,
    })
    .map_err(|e| Error::CommandLine(e.to_string()))?;
    let dtb = load::device_tree(ram, &tree, initrd.map_or(image.end, |(_, end)| end))?;
    load::firmware(ram, firmware)?;

    let options = if args.firmware_prints { 0 } else { OPTION_NO_PRINTS };
    let values = [
        dtb,
        map::RAM_BASE.0,
        DYNAMIC_MAGIC,
        DYNAMIC_VERSION,
        image.entry,
        NEXT_SUPERVISOR,
        options,
        0, // number of the hart that boots
    ];
    let mut stub: Vec<u8> = STUB.iter().flat_map(|word| word.to_le_bytes()).collect();
    stub.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    let address = dtb + STUB_OFFSET;
    ram.write(PhysAddr(address), &stub).map_err(|_| Error::MemoryTooSmall { memory: ram.size() })?;
    Ok(Start { address, to_host: None })
}
