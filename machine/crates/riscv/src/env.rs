// SPDX-License-Identifier: Apache-2.0
//! What surrounds a hart: memory and devices, observers, and costs of memory accesses.

use trapless_memory::{BusError, Cycle, MmioEffect, PhysAddr, Ram};

use crate::code::CodeCache;
use crate::events::{Fill, Jump, Loss, TrapInfo};
use crate::exit::{Access, Privilege};
use crate::hart::Hart;

/// RAM and devices, as a hart reaches them.
pub trait Bus {
    /// Guest RAM. It must always be the same: harts keep host addresses of it.
    fn ram(&mut self) -> &mut Ram;

    /// Reads `size` (1, 2, 4, 8) naturally aligned bytes outside RAM; the value is zero-extended.
    ///
    /// # Errors
    /// Nothing answers at this address; the hart takes an access fault.
    fn mmio_read(&mut self, at: PhysAddr, size: u8, now: Cycle) -> Result<(u64, MmioEffect), BusError>;

    /// Writes `size` (1, 2, 4, 8) naturally aligned bytes outside RAM.
    ///
    /// # Errors
    /// Nothing answers at this address; the hart takes an access fault.
    fn mmio_write(&mut self, at: PhysAddr, size: u8, value: u64, now: Cycle) -> Result<MmioEffect, BusError>;

    /// The `time` CSR: `mtime` at cycle `now`.
    fn time(&mut self, now: Cycle) -> u64;
}

/// Receives the events of harts. An observer that does nothing costs nothing.
pub trait Observer {
    /// Whether [`Observer::instruction`] and [`Observer::access`] are called. Harts then interpret all code, which takes
    /// the same cycles as translated code.
    const EACH: bool = false;

    /// Whether the observer wants [`Observer::jumped`] for every jump. Its harts then interpret all code, at the same cycles.
    const FOLLOWS: bool = false;
    /// The next instruction is not the one that follows in memory. Called only if the observer `FOLLOWS`.
    fn jumped(&mut self, _jump: &Jump) {}
    /// A trap is taken.
    fn trap(&mut self, _trap: &TrapInfo) {}
    /// A walk has found the entry of a user page (U=1). If an entry has changed and was fenced, this is called at least once
    /// before the first access.
    fn fill(&mut self, _fill: &Fill) {}
    /// The instruction at `hart.pc()` is fetched and about to be executed. Called once even if it waits for the SMU. Returns
    /// true if the observer has changed registers or memory; the hart then fetches the instruction again.
    fn instruction(&mut self, _hart: &mut Hart, _ram: &mut Ram) -> bool {
        false
    }
    /// The current instruction has accessed all `len` bytes at `va`. Called for fetches before the instruction is counted as
    /// retired, for data accesses afterwards.
    fn access(&mut self, _hart: &Hart, _access: Access, _va: u64, _len: u64) {}
}

impl Observer for () {}

/// Gives the cycles beyond the [`crate::CostTable`], for accesses that the hart does not know to be hits.
///
/// Only `pte_read` and `fence` are always called; the others belong to detailed timing ([`crate::Hart::set_detail`]).
pub trait Timing {
    /// The hart reads the page-table entry of `level` (0 is the leaf level) at `at`. Returns the cycles it takes.
    fn pte_read(&mut self, _at: PhysAddr, _level: u32, _now: Cycle) -> u64 {
        0
    }
    /// `sfence.vma` of one page, or of all pages (`None`): what walks have cached is out of date.
    fn fence(&mut self, _page: Option<u64>) {}
    /// `satp` was written.
    fn switched(&mut self) {}
    /// Looks for the translation of `va` in the TLBs. Returns the cycles, and whether it was found; if not, the hart walks.
    fn find(&mut self, _access: Access, _va: u64, _by: Privilege) -> (u64, bool) {
        (0, true)
    }
    /// A walk has found the translation of `va`, which maps a page of 2^`size` bytes.
    fn walked(&mut self, _access: Access, _va: u64, _size: u32) {}
    /// A load or store reaches the line of `at`. Returns the cycles, and whether stores may follow without asking. The core does
    /// not wait for the line of a store, except if `waits`, as for an atomic operation.
    fn data(&mut self, _access: Access, _waits: bool, _at: PhysAddr, _now: Cycle, _by: Privilege) -> (u64, bool) {
        (0, true)
    }
    /// The hart executes code in the line of `at`. Returns the cycles.
    fn code(&mut self, _at: PhysAddr, _now: Cycle, _by: Privilege) -> u64 {
        0
    }
    /// Takes the next loss of this hart's core that the hart does not know yet.
    fn lost(&mut self) -> Option<Loss> {
        None
    }
}

impl Timing for () {}

/// What [`crate::Hart::run`] borrows for a run.
pub struct Env<'a, B, O, T> {
    /// RAM and devices.
    pub bus: &'a mut B,
    /// Predecoded code, shared by all harts of one RAM.
    pub code: &'a mut CodeCache,
    /// Receives the events.
    pub observer: &'a mut O,
    /// Gives extra cycles.
    pub timing: &'a mut T,
}
