// SPDX-License-Identifier: Apache-2.0
//! Why a run ended, and what the hart and the SMU say to each other.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};

/// Privilege mode; the number is the encoding in `mstatus.MPP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Privilege {
    /// U-mode.
    User = 0,
    /// S-mode.
    Supervisor = 1,
    /// M-mode.
    Machine = 3,
}

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Instruction fetch.
    Fetch,
    /// Load or LR.
    Load,
    /// Store, SC or AMO.
    Store,
}

/// Why [`crate::Hart::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The requested cycle is reached (or passed by a few instructions), or a device asked for a resync.
    QuantumEnd,
    /// `wfi` retired and no interrupt is pending: run again when [`crate::Hart::wakes`] says so.
    Wfi,
    /// `ecall` from S-mode retired, with [`crate::HartConfig::sbi_exits`]. Arguments are in a0..a7; results go to a0 and a1.
    SbiCall,
    /// A marker retired: `slti x0, x0, imm`, imm in 0x7a1..=0x7a8. Arguments are in a0 to a3.
    Marker {
        /// The immediate.
        imm: u16,
    },
    /// The walk found an armed entry. The instruction has not retired; pc points at it. Call
    /// [`crate::Hart::resume_walk`] before the next run.
    SmuWait(WalkRequest),
    /// [`crate::Hart::step`] has executed its instruction or taken its trap.
    Step,
}

/// The walker's request to the SMU, for an access made in U mode (ISA-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkRequest {
    /// Physical address of the armed entry.
    pub pte_pa: PhysAddr,
    /// Physical address of the entry one level above.
    pub pmd_pa: PhysAddr,
    /// Physical address of the entry two levels above.
    pub pud_pa: PhysAddr,
    /// The armed entry as the walker read it.
    pub seen: u64,
    /// Kind of access that missed.
    pub access: Access,
    /// Address that missed. If the access crosses pages, it is the part that missed.
    pub va: u64,
    /// `satp`'s root page number.
    pub root_ppn: u64,
    /// The hart's local time when the access began.
    pub started: Cycle,
}

/// How a waiting walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkAnswer {
    /// The entry is installed: walk again.
    Done,
    /// The entry had changed to this value: walk again with it.
    Changed(u64),
    /// The ordinary page fault is raised.
    Failed,
    /// The ordinary access fault is raised: it has priority over the page fault.
    BusError,
    /// An enabled interrupt ends the wait; the instruction runs again after the handler.
    Interrupted,
}
