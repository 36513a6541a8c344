// SPDX-License-Identifier: Apache-2.0
//! QEMU, with the extensions that the machine has.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::layout::*;

/// CPU options that turn on the machine's extensions, from a base that has no others, however new QEMU is.
const NAMED: &str = "rv64i,m=true,a=true,f=true,d=true,c=true,s=true,u=true,zicsr=true,zifencei=true,zicntr=true,zihpm=true,\
                     mmu=true,pmp=true,sv57=true";
/// CPU options for QEMU 7.2, which lacks that base: they turn off what its generic CPU has beyond the machine. The generic CPU of
/// versions 8 has more.
const FROM_GENERIC: &str =
    "rv64,h=false,v=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false,svinval=false,svnapot=false,svpbmt=false";
/// Limit for a run. A program of ordinary size ends within seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program of QEMU for RISC-V.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    path: PathBuf,
    cpu: &'static str,
    /// Its version, in its own words. The list of what is not compared is for 7.2 and 10.0; other versions may differ elsewhere.
    pub version: String,
}

impl Qemu {
    /// Finds out what the QEMU at `path` is.
    ///
    /// # Errors
    /// QEMU cannot be started, or does not know the machine `virt`.
    pub fn at(path: &Path) -> Result<Self> {
        let say = |words: &[&str]| -> Result<String> {
            let out = Command::new(path).args(words).output();
            let out = out.with_context(|| format!("cannot start {}", path.display()))?;
            if !out.status.success() {
                bail!("{} {}: {}", path.display(), words.join(" "), String::from_utf8_lossy(&out.stderr).trim());
            }
            Ok(String::from_utf8_lossy(&out.stdout).into_owned())
        };
        let version = say(&["--version"])?.lines().next().unwrap_or_default().to_owned();
        let bare = say(&["-machine", "virt", "-cpu", "help"])?.lines().any(|line| line.trim() == "rv64i");
        Ok(Self { path: path.to_owned(), cpu: if bare { NAMED } else { FROM_GENERIC }, version })
    }

    /// Runs the program at `elf`. Returns `length` bytes from [`DATA`] on.
    ///
    /// # Errors
    /// QEMU cannot be started, fails, or does not end.
    pub fn run(&self, elf: &Path, folder: &Path, length: usize) -> Result<Vec<u8>> {
        // QEMU's memory is a file in a folder that is removed even if QEMU has to be killed.
        let scratch = tempfile::tempdir_in(folder).context("cannot make a folder for QEMU's memory")?;
        let memory = scratch.path().join("memory");
        // With two harts QEMU executes AMOs as it does for parallel harts; their faults are then store faults.
        let mut child = Command::new(&self.path)
            .args(["-machine", "virt,memory-backend=ram", "-smp", "2", "-cpu", self.cpu, "-bios", "none"])
            .arg("-object")
            .arg(format!("memory-backend-file,id=ram,size={MEMORY},share=on,mem-path={}", memory.display()))
            .args([
                "-m",
                &format!("{}M", MEMORY >> 20),
                "-display",
                "none",
                "-serial",
                "null",
                "-monitor",
                "none",
                "-no-reboot",
            ])
            .arg("-kernel")
            .arg(elf)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        let started = Instant::now();
        let status = loop {
            match child.try_wait().context("cannot wait for QEMU")? {
                Some(status) => break status,
                None if started.elapsed() > TIMEOUT => {
                    child.kill().context("cannot end QEMU")?;
                    child.wait().context("cannot end QEMU")?;
                    bail!("QEMU did not end within {} s", TIMEOUT.as_secs());
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        if !status.success() {
            let mut text = String::new();
            let _ = child.stderr.take().map(|mut e| e.read_to_string(&mut text));
            bail!("QEMU failed ({status}): {}", text.trim());
        }
        let mut bytes = vec![0; length];
        File::open(&memory)
            .and_then(|f| f.read_exact_at(&mut bytes, DATA - RUNTIME))
            .with_context(|| format!("cannot read {}", memory.display()))?;
        Ok(bytes)
    }
}
