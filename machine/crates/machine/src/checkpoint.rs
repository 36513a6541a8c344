// SPDX-License-Identifier: Apache-2.0
//! Checkpoints: a folder from which a machine goes on where another one stopped.
//!
//! The folder holds `memory`, guest RAM as a sparse file that machines map copy-on-write, and `state`, everything else. It
//! appears whole or not at all. Only the program that wrote it takes it back. Caches, TLBs, translations and measurements
//! are not part of it: whoever goes on, the machine that wrote it included, begins with these empty.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, Paging, Ram};
use trapless_riscv::Suspended;
use trapless_timing::Profile;

use crate::board::BoardState;
use crate::load::LoadedElf;
use crate::machine::{Machine, Phase};
use crate::{Error, map};

const STATE: &str = "state";
const MEMORY: &str = "memory";

/// What `state` holds behind the writer's fingerprint and a checksum.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    harts: u32,
    threads_per_core: u32,
    memory_bytes: u64,
    clock_hz: u64,
    timebase_hz: u64,
    paging: Paging,
    /// Harts leave SBI calls to the machine.
    pub(crate) builtin_sbi: bool,
    now: Cycle,
    next_request: u64,
    elf: Option<LoadedElf>,
    phases: Vec<Phase>,
    timers: Vec<(u64, bool)>,
    suspended: Vec<Suspended>,
    board: BoardState,
}

/// Something is wrong with the checkpoint at this place.
fn wrong(dir: &Path, reason: impl Into<String>) -> Error {
    Error::Checkpoint { path: dir.into(), reason: reason.into() }
}

/// Identifies the program that runs.
fn fingerprint(dir: &Path) -> Result<u64, Error> {
    let program = std::env::current_exe().and_then(fs::read).map_err(|e| wrong(dir, e.to_string()))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&program);
    Ok(hasher.finish())
}

/// Tells a state that was written from one that was changed since: devices rely on what they know of themselves.
fn checksum(state: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(state);
    hasher.finish()
}

/// Guest RAM of a checkpoint for a machine with this profile.
pub(crate) fn memory(dir: &Path, profile: &Profile) -> Result<Ram, Error> {
    let file = File::open(dir.join(MEMORY)).map_err(|e| wrong(dir, format!("{MEMORY}: {e}")))?;
    Ram::restore(map::RAM_BASE, profile.machine.memory_bytes, file).map_err(|e| wrong(dir, e.to_string()))
}

/// Everything but RAM of a checkpoint for a machine with this profile.
pub(crate) fn state(dir: &Path, profile: &Profile) -> Result<Saved, Error> {
    let bytes = fs::read(dir.join(STATE)).map_err(|e| wrong(dir, format!("{STATE}: {e}")))?;
    let (writer, rest) = bytes.split_first_chunk().ok_or_else(|| wrong(dir, "cut short"))?;
    let (sum, rest) = rest.split_first_chunk().ok_or_else(|| wrong(dir, "cut short"))?;
    if u64::from_le_bytes(*writer) != fingerprint(dir)? {
        return Err(wrong(dir, "was written by another build of this program"));
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
        None => Ok(saved),
    }
}

impl Machine {
    /// Writes a checkpoint. This machine goes on exactly as one does that is made from it.
    ///
    /// # Errors
    /// The folder is there already or cannot be written, or a disk image was written to.
    pub fn save(&mut self, dir: &Path) -> Result<(), Error> {
        let failed = |e: std::io::Error| wrong(dir, e.to_string());
        if dir.exists() {
            return Err(wrong(dir, "is there already"));
        }
        let mut partial = dir.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(failed)?;
        }
        fs::create_dir(&partial).map_err(failed)?;
        let board = self
            .board
            .save()
            .map_err(|n| wrong(dir, format!("disk {n} was written to, and only writes to a snapshot can be saved")))?;
        self.code.clear();
        self.times.forget(self.profile.detail.as_ref(), self.clock);
        self.slots.forget();
        let m = &self.profile.machine;
        let saved = Saved {
            harts: m.harts,
            threads_per_core: m.threads_per_core,
            memory_bytes: m.memory_bytes,
            clock_hz: m.clock_hz,
            timebase_hz: m.timebase_hz,
            paging: m.paging,
            builtin_sbi: self.builtin_sbi,
            now: self.now,
            next_request: self.next_request,
            elf: self.elf.clone(),
            phases: self.phases.clone(),
            timers: self.timers.clone(),
            suspended: self.harts.iter_mut().map(|h| h.suspend()).collect(),
            board,
        };
        let mut bytes = fingerprint(dir)?.to_le_bytes().to_vec();
        let state = postcard::to_stdvec(&saved).map_err(|e| wrong(dir, e.to_string()))?;
        bytes.extend(checksum(&state).to_le_bytes());
        bytes.extend(state);
        let memory = File::create(partial.join(MEMORY)).map_err(failed)?;
        self.board.ram.save(&memory).map_err(failed)?;
        fs::write(partial.join(STATE), bytes).map_err(failed)?;
        fs::rename(&partial, dir).map_err(failed)?;
        self.stale_interrupts = true;
        Ok(())
    }

    /// Goes on from a checkpoint; RAM is that of [`memory`] already.
    pub(crate) fn restore(&mut self, dir: &Path, saved: Saved) -> Result<(), Error> {
        self.board.restore(saved.board).map_err(|what| wrong(dir, what))?;
        for (hart, from) in self.harts.iter_mut().zip(&saved.suspended) {
            hart.resume(from);
        }
        (self.now, self.next_request) = (saved.now, saved.next_request);
        (self.phases, self.timers, self.elf) = (saved.phases, saved.timers, saved.elf);
        self.stale_interrupts = true;
        Ok(())
    }
}
