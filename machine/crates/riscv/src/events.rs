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
    /// Instruction that trapped, or the first that did not run.
    pub pc: u64,
    /// Mode before the trap.
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

/// What makes a walk end in a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// An invalid entry that is not armed, or an address that no entry is for.
    Absent,
    /// An armed entry that hardware does not handle now: the extension is off, or the access is not user mode's.
    Armed,
    /// An entry, armed or not, that does not allow the access.
    Permission,
    /// A valid entry that was not accessed, or is not dirty and is written.
    AccessedDirty,
    /// A valid entry that makes no sense.
    Malformed,
    /// The SMU did not serve the miss.
    Refused,
    /// The entry changed too often under the walker's requests.
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
    /// Where it is.
    pub at: PhysAddr,
    /// What for.
    pub access: Access,
    /// Effective mode of the access: the kernel also touches user pages.
    pub privilege: Privilege,
    /// The hart's local time.
    pub now: Cycle,
}

/// Why control went elsewhere than to the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpKind {
    /// A branch that was taken.
    Branch,
    /// A jump that leaves a return address behind: where it returns to.
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

/// Control went elsewhere than to the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Why.
    pub kind: JumpKind,
    /// Where it goes on.
    pub to: u64,
    /// Mode there.
    pub privilege: Privilege,
    /// Register tp: in Linux' supervisor mode, the task.
    pub tp: u64,
    /// Register a0: a function's first argument.
    pub a0: u64,
    /// The hart's local time after the jump; before the cost of taking a trap.
    pub now: Cycle,
    /// Instructions retired by the hart, the jump included.
    pub retired: u64,
    /// Branches and jumps that the hart has predicted wrong, if timing is detailed.
    pub mispredicted: u64,
}

/// What a core's caches or TLBs have lost, and its harts must not take for granted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The line with this number (physical address / 64) from the first-level data cache.
    Data(u64),
    /// The right to write that line.
    Right(u64),
    /// That line from the first-level code cache.
    Code(u64),
    /// The page at this virtual address from the data TLB.
    DataPage(u64),
    /// The page at this virtual address from the code TLB.
    CodePage(u64),
    /// More than can be told one by one.
    Everything,
}
