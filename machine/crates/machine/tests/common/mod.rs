// SPDX-License-Identifier: Apache-2.0
//! Bare-metal programs in C: how they are built and run.
#![allow(dead_code)] // Each test program uses some of it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use trapless_machine::{Boot, Console, DetailFrom, DiskConfig, End, Engine, Limits, Machine, MachineConfig};
use trapless_memory::Cycle;
use trapless_timing::Profile;

/// Builds tests/bare/`program`.c into `dir`.
pub fn build(program: &str, dir: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = dir.join(program);
    let status = Command::new("riscv64-linux-gnu-gcc")
        .args("-O1 -march=rv64gc -mabi=lp64d -mcmodel=medany -nostdlib -static -ffreestanding -fno-stack-protector".split(' '))
        .args("-fno-pie -no-pie -Wall -Werror -Wl,--build-id=none -T link.ld start.S bare.c -I ../../../../../spec/generated".split(' '))
        .arg(format!("{program}.c"))
        .arg("-o")
        .arg(&out)
        .current_dir(here.join("tests/bare"))
        .status()
        .expect("riscv64-linux-gnu-gcc runs");
    assert!(status.success(), "{program} does not build");
    out
}

/// Builds tests/bare/`program`.S, which has the header of a Linux Image, into `dir`.
pub fn build_image(program: &str, dir: &Path) -> PathBuf {
    let (elf, image) = (dir.join(format!("{program}.elf")), dir.join(program));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bare").join(format!("{program}.S"));
    let mut cc = Command::new("riscv64-linux-gnu-gcc");
    cc.args(["-nostdlib", "-static", "-Wl,--build-id=none,-Ttext=0"]).arg(source).arg("-o").arg(&elf);
    let mut objcopy = Command::new("riscv64-linux-gnu-objcopy");
    objcopy.args(["-O", "binary"]).args([&elf, &image]);
    for command in [&mut cc, &mut objcopy] {
        assert!(command.status().expect("the RISC-V tools run").success(), "{program} does not build");
    }
    image
}

const BLOCK: usize = 512;
const BLOCKS: usize = 8192;

/// Makes a drive whose block `n` is filled with 64-bit words of value `n`.
pub fn disk(dir: &Path) -> PathBuf {
    let path = dir.join("disk.img");
    let mut data = Vec::with_capacity(BLOCK * BLOCKS);
    for block in 0..BLOCKS as u64 {
        data.extend(block.to_le_bytes().repeat(BLOCK / 8));
    }
    std::fs::File::create(&path).unwrap().write_all(&data).unwrap();
    path
}

/// Runs an ELF to its end.
pub fn run_elf(
    file: PathBuf,
    profile: Profile,
    engine: Engine,
    detail: DetailFrom,
    disks: Vec<DiskConfig>,
) -> (End, Machine) {
    run(Boot::Elf { file }, profile, engine, detail, disks)
}

/// Runs what `boot` says to its end.
pub fn run(boot: Boot, profile: Profile, engine: Engine, detail: DetailFrom, disks: Vec<DiskConfig>) -> (End, Machine) {
    let config =
        MachineConfig { profile, boot, disks, faults: Vec::new(), engine, detail, checkpoint: None, attribution: None };
    let mut machine = Machine::new(config, Console { output: Box::new(std::io::sink()), input: None }).unwrap();
    let limits = Limits { max_cycle: Cycle(2_000_000_000), window: None, stop: &AtomicBool::new(false) };
    let end = machine.run(&limits).unwrap();
    (end, machine)
}
