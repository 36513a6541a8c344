// SPDX-License-Identifier: Apache-2.0
//! The world as a hart sees it.

use trapless_memory::{BusError, Cycle, MmioEffect, PhysAddr, Ram};

use crate::code::CodeCache;
use crate::events::{Fill, Jump, Loss, TrapInfo};
use crate::exit::{Access, Privilege};
use crate::hart::Hart;

/// RAM and devices.
pub trait Bus {
    /// Guest RAM. Always the same one: harts keep host addresses into it.
    fn ram(&mut self) -> &mut Ram;

    /// Reads `size` (1, 2, 4, 8) naturally aligned bytes outside RAM; the value is zero-extended.
    ///
    /// # Errors
    /// Nothing answers: the hart takes an access fault.
    fn mmio_read(&mut self, at: PhysAddr, size: u8, now: Cycle) -> Result<(u64, MmioEffect), BusError>;

    /// Writes `size` (1, 2, 4, 8) naturally aligned bytes outside RAM.
    ///
    /// # Errors
    /// Nothing answers: the hart takes an access fault.
    fn mmio_write(&mut self, at: PhysAddr, size: u8, value: u64, now: Cycle) -> Result<MmioEffect, BusError>;

    /// The `time` CSR: `mtime` at cycle `now`.
    fn time(&mut self, now: Cycle) -> u64;
}

/// Told what happens; costs nothing when it does nothing.
pub trait Observer {
    /// Whether [`Observer::instruction`] and [`Observer::access`] are called. Harts then interpret all code, which takes
    /// the same cycles as translated code.
    const EACH: bool = false;

    /// Whether it wants to know of every jump. What it watches is interpreted, at the same cycles.
    const FOLLOWS: bool = false;
    /// Control went elsewhere than to the next instruction; only if it `FOLLOWS`.
    fn jumped(&mut self, _jump: &Jump) {}
    /// A trap is taken.
    fn trap(&mut self, _trap: &TrapInfo) {}
    /// A user page (U=1) was walked to, successfully. Comes at least once between a change of the entry with its fence
    /// and the first access.
    fn fill(&mut self, _fill: &Fill) {}
    /// The instruction at `hart.pc()` is fetched and about to be executed. One that waited for the SMU is begun once. True if
    /// registers or memory were changed: then it is fetched anew.
    fn instruction(&mut self, _hart: &mut Hart, _ram: &mut Ram) -> bool {
        false
    }
    /// The instruction at hand has accessed `len` bytes at `va`, all of them. Fetches come before, data accesses after the
    /// instruction is counted as retired.
    fn access(&mut self, _hart: &Hart, _access: Access, _va: u64, _len: u64) {}
}

impl Observer for () {}

/// Asked for cycles beyond the [`crate::CostTable`] where the hart itself does not know that an access hits.
///
/// All but `pte_read` and `fence` are for detailed timing ([`crate::Hart::set_detail`]) alone.
pub trait Timing {
    /// The page-table entry of `level` (0 is the leaf level) is read at `at`.
    fn pte_read(&mut self, _at: PhysAddr, _level: u32, _now: Cycle) -> u64 {
        0
    }
    /// `sfence.vma` of one page, or of all: whatever walks have cached is out of date.
    fn fence(&mut self, _page: Option<u64>) {}
    /// `satp` was written.
    fn switched(&mut self) {}
    /// Looks for the translation of `va` in the TLBs: the cycles it takes, and whether it is there; otherwise the hart walks.
    fn find(&mut self, _access: Access, _va: u64, _by: Privilege) -> (u64, bool) {
        (0, true)
    }
    /// A walk has found the translation of `va`, of a page of 2^`size` bytes.
    fn walked(&mut self, _access: Access, _va: u64, _size: u32) {}
    /// A load or store reaches the line of `at`: cycles, and whether stores may follow. The core needs not wait for the line
    /// of a store unless it `waits`, as for an atomic operation.
    fn data(&mut self, _access: Access, _waits: bool, _at: PhysAddr, _now: Cycle, _by: Privilege) -> (u64, bool) {
        (0, true)
    }
    /// Code in the line of `at` is executed.
    fn code(&mut self, _at: PhysAddr, _now: Cycle, _by: Privilege) -> u64 {
        0
    }
    /// Takes one thing that this hart's core has lost.
    fn lost(&mut self) -> Option<Loss> {
        None
    }
}

impl Timing for () {}

/// What [`crate::Hart::run`] borrows for one run.
pub struct Env<'a, B, O, T> {
    /// RAM and devices.
    pub bus: &'a mut B,
    /// Predecoded code, shared by all harts of one RAM.
    pub code: &'a mut CodeCache,
    /// Told what happens.
    pub observer: &'a mut O,
    /// Extra cycles.
    pub timing: &'a mut T,
}
