// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::Parser;
use trapless_machine::{DiskConfig, DiskWrites};

/// Simulates CVA6 in RTL with the Trapless platform around it.
///
/// The exit status is that of the finisher or tohost; 2: bad input; 3: the guest asked for a reset; 4: --max-cycles was reached.
#[derive(Parser, Debug)]
#[command(name = "trapless-cva6", disable_version_flag = true)]
pub struct Args {
    /// Bare-metal ELF. It starts at its entry and ends by the finisher or `tohost`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "resume"])]
    pub elf: Option<PathBuf>,
    /// RISC-V Linux Image; needs --firmware.
    #[arg(long, value_name = "FILE", requires = "firmware")]
    pub kernel: Option<PathBuf>,
    /// Firmware: OpenSBI's fw_dynamic.bin.
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
    /// Let the firmware print messages.
    #[arg(long)]
    pub firmware_prints: bool,
    /// Initial RAM disk.
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Kernel command line.
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub append: String,
    /// Continue from a checkpoint, with the same build and the same disks.
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub resume: Option<PathBuf>,
    /// Write a checkpoint to this folder and end.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Milestone at which to write the checkpoint (1: the guest's first command).
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub checkpoint_at: u64,
    /// End the run at the milestone with this number.
    #[arg(long, value_name = "NUMBER")]
    pub end_at: Option<u64>,
    /// Profile for clock, time base and drive; harts and costs are those of the RTL.
    #[arg(long, default_value = "vc707")]
    pub profile: String,
    /// Guest memory in MiB.
    #[arg(long, default_value_t = 128, value_name = "MIB")]
    pub memory: u64,
    /// Disk image as an NVMe drive; may be repeated. Options: `ro`, `snapshot` (writes are dropped), `block=512|4096`.
    #[arg(long = "disk", value_name = "PATH[,OPTION...]", value_parser = disk)]
    pub disks: Vec<DiskConfig>,
    /// Tell the guest that there is an SMU (the model must have been built with one).
    #[arg(long)]
    pub smu: bool,
    /// Cycles from a read of memory to its first word.
    #[arg(long, default_value_t = 8, value_name = "CYCLES")]
    pub read_latency: u16,
    /// Cycles from a write to memory to its answer.
    #[arg(long, default_value_t = 2, value_name = "CYCLES")]
    pub write_latency: u16,
    /// Cycles of an access to a device.
    #[arg(long, default_value_t = 8, value_name = "CYCLES")]
    pub device_latency: u16,
    /// End the run after this number of cycles.
    #[arg(long, value_name = "CYCLES")]
    pub max_cycles: Option<u64>,
    /// Type this on the guest's console.
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub input: String,
    /// Write the measurements of the guest's regions of interest to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Report where the core is after each MILLIONS million cycles.
    #[arg(long, value_name = "MILLIONS")]
    pub progress: Option<u64>,
}

/// A drive with one namespace.
fn disk(text: &str) -> Result<DiskConfig, String> {
    let mut parts = text.split(',');
    let mut disk = DiskConfig::new(parts.next().unwrap_or_default(), DiskWrites::ToFile);
    let namespace = &mut disk.namespaces[0];
    for part in parts {
        match part {
            "ro" => namespace.writes = DiskWrites::Fail,
            "snapshot" => namespace.writes = DiskWrites::InMemory,
            "block=512" => namespace.block_bytes = Some(512),
            "block=4096" => namespace.block_bytes = Some(4096),
            other => return Err(format!("disk option '{other}' is not one of ro, snapshot, block=512, block=4096")),
        }
    }
    Ok(disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn disks() {
        let namespace = disk("a.img,snapshot,block=512").unwrap().namespaces.remove(0);
        assert_eq!((namespace.writes, namespace.block_bytes), (DiskWrites::InMemory, Some(512)));
        assert!(disk("a.img,size=4").unwrap_err().contains("size=4"));
    }
}
