// SPDX-License-Identifier: Apache-2.0
//! Events of a hart, as observers receive them and as caches report them.

use trapless_memory::{Cycle, PhysAddr};

use crate::exit::{Access, Privilege};

/// A trap that a hart takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapInfo {
    /// Value of `xcause`, with the interrupt bit.
    pub cause: u64,
    /// Value of `xtval`.
    pub tval: u64,
    /// The instruction that trapped, or the first one that was not executed.
    pub pc: u64,
    /// Mode before the trap was taken.
    pub from: Privilege,
    /// Mode of the handler.
    pub to: Privilege,
    /// `satp`'s root page number.
    pub root_ppn: u64,
    /// For a page fault, the access and what the walk found.
    pub page_fault: Option<(Access, PageFault)>,
    /// The hart's local time.
    pub now: Cycle,
}

/// Why a walk ended in a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// The entry is invalid and not armed, or no entry can map the address.
    Absent,
    /// The entry is armed, but hardware does not handle it now: the extension is off, or the access is not from user mode.
    Armed,
    /// The entry, armed or not, does not allow the access.
    Permission,
    /// The entry is valid, but its A bit is clear, or its D bit is clear and the access is a store.
    AccessedDirty,
    /// The entry is valid, but not a legal one.
    Malformed,
    /// The SMU did not serve the miss.
    Refused,
    /// The entry changed too often while the walker was asking for it.
    Changed,
}

/// A translation to a user page entered a hart's translation cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// `satp`'s root page number.
    pub root_ppn: u64,
    /// The address accessed.
    pub va: u64,
    /// The leaf entry.
    pub pte: u64,
    /// Address of the leaf entry.
    pub at: PhysAddr,
    /// Kind of access.
    pub access: Access,
    /// Effective mode of the access. It is not always user mode: the kernel also accesses user pages.
    pub privilege: Privilege,
    /// The hart's local time.
    pub now: Cycle,
}

/// Why the next instruction is not the one that follows in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// A branch that was taken.
    Branch,
    /// A jump that leaves a return address behind, which is given.
    Call(u64),
    /// A jump to a return address.
    Return,
    /// Any other jump.
    Jump,
    /// A trap was taken.
    Trap {
        /// Value of `xcause`, with the interrupt bit.
        cause: u64,
        /// Value of `xtval`.
        tval: u64,
        /// Mode before.
        from: Privilege,
    },
    /// `sret` or `mret`.
    TrapReturn,
}

/// A jump, branch or trap: the next instruction is not the one that follows in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Why.
    pub kind: JumpKind,
    /// Address of the next instruction.
    pub to: u64,
    /// Mode after the jump.
    pub privilege: Privilege,
    /// Register tp. In Linux it identifies the task while in supervisor mode.
    pub tp: u64,
    /// Register a0: the first argument of a function.
    pub a0: u64,
    /// The hart's local time after the jump, without the cost of taking a trap.
    pub now: Cycle,
    /// Instructions retired by the hart, including the jump.
    pub retired: u64,
    /// Number of mispredicted branches and jumps of the hart, if timing is detailed.
    pub mispredicted: u64,
}

/// A loss of a core's caches or TLBs, after which its harts must not expect a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The first-level data cache has lost the line with this number (physical address / 64).
    Data(u64),
    /// The first-level data cache has lost the right to write the line with this number.
    Right(u64),
    /// The first-level code cache has lost the line with this number.
    Code(u64),
    /// The data TLB has lost the page at this virtual address.
    DataPage(u64),
    /// The code TLB has lost the page at this virtual address.
    CodePage(u64),
    /// More was lost than can be reported one by one.
    Everything,
}
