// SPDX-License-Identifier: Apache-2.0
//! This project's valgrind tool. It is compiled for each recording, against the installed valgrind.
//!
//! Compiling takes a quarter of a second. The compiled tool is not kept, so it always fits the installed valgrind.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::record::found;

/// Source of the tool.
const SOURCE: &str = include_str!("tracer.c");
/// Address of valgrind's tools in memory, away from programs (`valt_load_address` of its configure script).
const TEXT: &str = "-Wl,-Ttext=0x58001000";
/// Folders under valgrind's prefix that may have the libraries of its core.
const LIBRARIES: [&str; 4] = ["lib/x86_64-linux-gnu/valgrind", "lib64/valgrind", "lib/valgrind", "libexec/valgrind"];
const CORE: &str = "coregrind-amd64-linux";
const VEX: &str = "vex-amd64-linux";
/// Functions that gcc's own library may lack. Not every valgrind has this library.
const SUPPLEMENT: &str = "gcc-sup-amd64-linux";
/// Valgrind's environment variable with the path of the program `valgrind`.
const LAUNCHER: &str = "VALGRIND_LAUNCHER";

/// Compiles the tool in the folder `dir`. Returns the command that starts it.
///
/// # Errors
/// The installed valgrind or compiler is not suitable, or `program` is not for x86-64.
pub fn build(dir: &Path, program: &Path) -> Result<Command> {
    if !cfg!(target_arch = "x86_64") || is_32_bit(program) {
        bail!("tracer records only programs of x86-64");
    }
    let valgrind = found(Path::new("valgrind")).context("valgrind is not installed (Debian package valgrind)")?;
    let real = valgrind.canonicalize().with_context(|| valgrind.display().to_string())?;
    let prefix = real.parent().and_then(Path::parent).context("valgrind is in the root folder, not in PREFIX/bin")?;
    let library = |folder: &Path, name: &str| folder.join(format!("lib{name}.a")).is_file();
    let folder = LIBRARIES.iter().map(|place| prefix.join(place)).find(|folder| library(folder, CORE));
    let folder = folder.with_context(|| format!("valgrind's library lib{CORE}.a is not under {}", prefix.display()))?;
    let (source, tool) = (dir.join("tracer.c"), dir.join("valgrind.bin"));
    std::fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-w", "-std=gnu11", "-fno-stack-protector", "-fno-pie", "-fno-strict-aliasing", "-fno-builtin"])
        .args(["-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1", "-DVGPV_amd64_linux_vanilla=1"])
        .arg("-I")
        .arg(prefix.join("include/valgrind"))
        .args([
            "-static",
            "-no-pie",
            "-nodefaultlibs",
            "-nostartfiles",
            "-u",
            "_start",
            TEXT,
            "-Wl,--build-id=none",
            "-o",
        ])
        .args([&tool, &source])
        .arg("-L")
        .arg(&folder)
        .args([format!("-l{CORE}"), format!("-l{VEX}")]);
    if library(&folder, SUPPLEMENT) {
        compiler.arg(format!("-l{SUPPLEMENT}"));
    }
    let done = compiler.arg("-lgcc").output().context("no C compiler (Debian package gcc)")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let line = said.lines().find(|line| line.contains("error") || line.contains("undefined")).unwrap_or_default();
        bail!("cc cannot compile tracer: {}", line.trim());
    }
    Ok(command(dir, &tool, &real))
}

/// Makes the command that starts the tool. Debian's `valgrind` is a script that sets variables and then runs the program
/// `$0.bin`. A symbolic link to this script, beside our tool with the name `valgrind.bin`, runs our tool. So the recorded program
/// has the same environment as under valgrind's own tools.
fn command(dir: &Path, tool: &Path, valgrind: &Path) -> Command {
    let mut launcher = valgrind.to_owned().into_os_string();
    let script = dir.join("valgrind");
    let plain = !dir.as_os_str().to_string_lossy().contains(|c: char| c.is_whitespace() || "*?[$".contains(c));
    let wrapped = plain && first_bytes::<2>(valgrind) == Some(*b"#!") && symlink(valgrind, &script).is_ok();
    if wrapped {
        launcher.push(".bin");
    }
    let mut command = Command::new(if wrapped { &script } else { tool });
    command.arg("--tool=trapless").env(LAUNCHER, launcher);
    command
}

/// The options that send the tool's records to the pipe, and discard valgrind's own messages.
pub fn outputs(pipe: &Path) -> [OsString; 2] {
    let mut records = OsString::from("--records=");
    records.push(pipe);
    [records, "--log-file=/dev/null".into()]
}

fn is_32_bit(program: &Path) -> bool {
    let file: Option<PathBuf> = found(program);
    // The byte after ELF's magic number is 1 for 32 bits and 2 for 64 bits.
    file.and_then(|file| first_bytes::<5>(&file)).is_some_and(|bytes| bytes == *b"\x7fELF\x01")
}

fn first_bytes<const N: usize>(file: &Path) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    File::open(file).ok()?.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
