// SPDX-License-Identifier: Apache-2.0
//! Bare-metal programs, and runs of the machine.
#![allow(dead_code)] // Each test program uses some of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Assembles tests-bare/`name`.S into `dir`.
pub fn assemble(name: &str, dir: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-bare");
    let out = dir.join(name);
    let status = Command::new("riscv64-linux-gnu-gcc")
        .args("-march=rv64gc -mabi=lp64d -mcmodel=medany -nostdlib -static -no-pie".split(' '))
        .args("-Wl,--build-id=none -Wl,--no-warn-rwx-segments -T link.ld".split(' '))
        .arg(format!("{name}.S"))
        .arg("-o")
        .arg(&out)
        .current_dir(sources)
        .status()
        .expect("riscv64-linux-gnu-gcc runs");
    assert!(status.success(), "{name} does not assemble");
    out
}

/// Address of a symbol.
pub fn symbol(elf: &Path, name: &str) -> u64 {
    let out = Command::new("riscv64-linux-gnu-nm").arg(elf).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find(|l| l.ends_with(&format!(" {name}"))).unwrap();
    u64::from_str_radix(&line[..16], 16).unwrap()
}

/// A command that runs the machine.
pub fn machine() -> Command {
    Command::new(env!("CARGO_BIN_EXE_trapless-machine"))
}

/// Runs the machine with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    machine().args(arguments).output().unwrap()
}

/// The parts of a record that depend on simulated things only.
pub fn record(file: &Path) -> serde_json::Value {
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for host in ["host_seconds", "host_peak_bytes", "mips"] {
        record.as_object_mut().unwrap().remove(host);
    }
    record
}
