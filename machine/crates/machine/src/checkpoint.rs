// SPDX-License-Identifier: Apache-2.0
//! Checkpoints: a folder from which a machine continues where another one stopped.
//!
//! The folder holds two files: `memory` is guest RAM, as a sparse file that machines map copy-on-write; `state` is everything
//! else. The folder appears completely or not at all. Only the same build of the program can read it. Caches, TLBs,
//! translations and measurements are not included: every machine that continues, the writer too, begins with these empty.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, Paging, Ram};
use trapless_timing::Profile;

use crate::board::{BoardState, map};
use crate::boot::load::LoadedElf;
use crate::cores::CoresState;
use crate::error::Error;

const STATE: &str = "state";
const MEMORY: &str = "memory";

/// The content of `state`, which follows the writer's fingerprint and a checksum.
#[derive(Serialize, Deserialize)]
struct Saved {
    harts: u32,
    threads_per_core: u32,
    memory_bytes: u64,
    clock_hz: u64,
    timebase_hz: u64,
    paging: Paging,
    state: State,
}

/// The state of a machine, without RAM.
#[derive(Serialize, Deserialize)]
pub struct State {
    /// Whether the machine itself serves SBI calls.
    pub builtin_sbi: bool,
    /// The time.
    pub now: Cycle,
    /// Number of the last request to the SMU.
    pub next_request: u64,
    /// The program, if it runs without an operating system.
    pub elf: Option<LoadedElf>,
    /// The harts.
    pub cores: CoresState,
    /// The devices.
    pub board: BoardState,
}

/// The error for a wrong checkpoint in the folder `dir`.
fn wrong(dir: &Path, reason: impl Into<String>) -> Error {
    Error::Checkpoint { path: dir.into(), reason: reason.into() }
}

/// Identifies the program that is running.
fn fingerprint(dir: &Path) -> Result<u64, Error> {
    let program = std::env::current_exe().and_then(fs::read).map_err(|e| wrong(dir, e.to_string()))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&program);
    Ok(hasher.finish())
}

/// Detects a state that was changed after it was written: devices do not check again what they saved.
fn checksum(state: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(state);
    hasher.finish()
}

/// Reads guest RAM from a checkpoint, for a machine with this profile.
pub fn memory(dir: &Path, profile: &Profile) -> Result<Ram, Error> {
    let file = File::open(dir.join(MEMORY)).map_err(|e| wrong(dir, format!("{MEMORY}: {e}")))?;
    Ram::restore(map::RAM_BASE, profile.machine.memory_bytes, file).map_err(|e| wrong(dir, e.to_string()))
}

/// Reads everything except RAM from a checkpoint, for a machine with this profile.
pub fn state(dir: &Path, profile: &Profile) -> Result<State, Error> {
    let bytes = fs::read(dir.join(STATE)).map_err(|e| wrong(dir, format!("{STATE}: {e}")))?;
    let (writer, rest) = bytes.split_first_chunk().ok_or_else(|| wrong(dir, "state: cut short"))?;
    let (sum, rest) = rest.split_first_chunk().ok_or_else(|| wrong(dir, "state: cut short"))?;
    if u64::from_le_bytes(*writer) != fingerprint(dir)? {
        return Err(wrong(dir, "was written by another build of this program: write it again"));
    }
    if u64::from_le_bytes(*sum) != checksum(rest) {
        return Err(wrong(dir, format!("{STATE}: damaged")));
    }
    let saved: Saved = postcard::from_bytes(rest).map_err(|e| wrong(dir, format!("{STATE}: {e}")))?;
    let m = &profile.machine;
    let sizes = [
        ("machine.harts", saved.harts.into(), m.harts.into()),
        ("machine.threads_per_core", saved.threads_per_core.into(), m.threads_per_core.into()),
        ("machine.memory_bytes", saved.memory_bytes, m.memory_bytes),
        ("machine.clock_hz", saved.clock_hz, m.clock_hz),
        ("machine.timebase_hz", saved.timebase_hz, m.timebase_hz),
    ];
    if saved.paging != m.paging {
        return Err(wrong(dir, format!("was written with machine.paging = {}, not {}", saved.paging, m.paging)));
    }
    match sizes.into_iter().find(|(_, had, has)| had != has) {
        Some((key, had, has)) => Err(wrong(dir, format!("was written with {key} = {had}, not {has}"))),
        None => Ok(saved.state),
    }
}

/// A checkpoint that is being written. Its folder appears completely or not at all.
pub struct Folder {
    dir: PathBuf,
    partial: PathBuf,
}

impl Folder {
    /// Begins a checkpoint.
    ///
    /// # Errors
    /// The folder exists already, or cannot be made.
    pub fn new(dir: &Path) -> Result<Folder, Error> {
        let failed = |e: std::io::Error| wrong(dir, e.to_string());
        if dir.exists() {
            return Err(wrong(dir, "already exists: remove it or give another folder"));
        }
        let mut partial = dir.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(failed)?;
        }
        fs::create_dir(&partial).map_err(failed)?;
        Ok(Folder { dir: dir.to_owned(), partial })
    }

    /// The error for a board that cannot be saved because this disk was written to.
    pub fn disk_written(&self, disk: usize) -> Error {
        wrong(&self.dir, format!("disk {disk} was written to, and only writes to a snapshot can be saved"))
    }

    /// Writes the checkpoint.
    ///
    /// # Errors
    /// The host cannot write a file.
    pub fn write(self, profile: &Profile, state: State, ram: &mut Ram) -> Result<(), Error> {
        let Folder { dir, partial } = self;
        let failed = |e: std::io::Error| wrong(&dir, e.to_string());
        let m = &profile.machine;
        let saved = Saved {
            harts: m.harts,
            threads_per_core: m.threads_per_core,
            memory_bytes: m.memory_bytes,
            clock_hz: m.clock_hz,
            timebase_hz: m.timebase_hz,
            paging: m.paging,
            state,
        };
        let mut bytes = fingerprint(&dir)?.to_le_bytes().to_vec();
        let state = postcard::to_stdvec(&saved).map_err(|e| wrong(&dir, e.to_string()))?;
        bytes.extend(checksum(&state).to_le_bytes());
        bytes.extend(state);
        let memory = File::create(partial.join(MEMORY)).map_err(failed)?;
        ram.save(&memory).map_err(failed)?;
        fs::write(partial.join(STATE), bytes).map_err(failed)?;
        fs::rename(&partial, &dir).map_err(failed)
    }
}

/// The error for a state that does not fit the machine.
pub fn does_not_fit(dir: &Path, what: String) -> Error {
    wrong(dir, what)
}
