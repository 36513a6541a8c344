// SPDX-License-Identifier: Apache-2.0
//! Entries in which loads and stores look up an address: a page of the translation cache, or a line known to be cached.

use trapless_memory::PAGE_SIZE;

use crate::exit::Privilege;

/// Mask of the page number in an address.
pub const PAGE_MASK: u64 = !(PAGE_SIZE - 1);
/// A tag that matches no address: in all other tags the bits between the alignment bits and the page number are zero.
pub const NO_TAG: u64 = u64::MAX;

/// An entry for the loads and stores of one page, or of one line.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DataEntry {
    /// Virtual page address, if loads may use the entry.
    pub read: u64,
    /// Virtual page address, if stores may use the entry.
    pub write: u64,
    /// Difference between host address and virtual address.
    pub addend: u64,
    /// Physical page address; the low bits hold log2 of the translation's size.
    pub pa_size: u64,
}

pub const NO_DATA: DataEntry = DataEntry { read: NO_TAG, write: NO_TAG, addend: 0, pa_size: 0 };

/// Number of a set of data entries: one for each kind of access rights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DataSet {
    User = 0,
    Supervisor = 1,
    /// S-mode with `sstatus.SUM`.
    SupervisorUser = 2,
    Machine = 3,
}

impl DataSet {
    /// The set for accesses of mode `p`.
    pub fn of(p: Privilege, sum: bool) -> DataSet {
        match p {
            Privilege::User => DataSet::User,
            Privilege::Supervisor if sum => DataSet::SupervisorUser,
            Privilege::Supervisor => DataSet::Supervisor,
            Privilege::Machine => DataSet::Machine,
        }
    }
}
