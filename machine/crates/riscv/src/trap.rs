// SPDX-License-Identifier: Apache-2.0
//! Exceptions, interrupts and returns from them.

use crate::csr::{S_INTERRUPTS, status};
use crate::{Access, Hart, JumpKind, Observer, Privilege, TrapInfo, WalkRequest};

/// Exception codes.
#[allow(missing_docs)]
pub mod cause {
    pub const FETCH_ACCESS: u64 = 1;
    pub const ILLEGAL: u64 = 2;
    pub const BREAKPOINT: u64 = 3;
    pub const LOAD_MISALIGNED: u64 = 4;
    pub const LOAD_ACCESS: u64 = 5;
    pub const STORE_MISALIGNED: u64 = 6;
    pub const STORE_ACCESS: u64 = 7;
    pub const ECALL_U: u64 = 8;
    pub const ECALL_S: u64 = 9;
    pub const ECALL_M: u64 = 11;
    pub const FETCH_PAGE: u64 = 12;
    pub const LOAD_PAGE: u64 = 13;
    pub const STORE_PAGE: u64 = 15;
    /// Set in the cause of an interrupt.
    pub const INTERRUPT: u64 = 1 << 63;
}

/// Why an instruction cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An exception.
    Trap {
        /// Exception code.
        cause: u64,
        /// Value for `xtval`.
        tval: u64,
    },
    /// The walk waits for the SMU.
    Wait(WalkRequest),
}

impl Stop {
    /// The page fault of this kind of access.
    pub fn page_fault(access: Access, va: u64) -> Stop {
        let cause = match access {
            Access::Fetch => cause::FETCH_PAGE,
            Access::Load => cause::LOAD_PAGE,
            Access::Store => cause::STORE_PAGE,
        };
        Stop::Trap { cause, tval: va }
    }

    /// The access fault of this kind of access.
    pub fn access_fault(access: Access, va: u64) -> Stop {
        let cause = match access {
            Access::Fetch => cause::FETCH_ACCESS,
            Access::Load => cause::LOAD_ACCESS,
            Access::Store => cause::STORE_ACCESS,
        };
        Stop::Trap { cause, tval: va }
    }
}

/// The kind of access that raises this page fault.
fn access_of(cause: u64) -> Option<Access> {
    match cause {
        cause::FETCH_PAGE => Some(Access::Fetch),
        cause::LOAD_PAGE => Some(Access::Load),
        cause::STORE_PAGE => Some(Access::Store),
        _ => None,
    }
}

/// Interrupt numbers, the most urgent first.
const PRIORITY: [u32; 6] = [11, 3, 7, 9, 1, 5];

impl Hart {
    /// Interrupts that are pending and enabled, and that would be taken in this mode: all that go to M-mode if there are any,
    /// otherwise all that go to S-mode.
    pub(crate) fn deliverable(&self) -> u64 {
        let interrupts = self.csr.mip() & self.csr.mie;
        let (to_s, to_m) = (interrupts & self.csr.mideleg, interrupts & !self.csr.mideleg);
        let m_open = self.privilege < Privilege::Machine || self.csr.mstatus & status::MIE != 0;
        if to_m != 0 && m_open {
            return to_m;
        }
        let s_open = self.privilege < Privilege::Supervisor
            || (self.privilege == Privilege::Supervisor && self.csr.mstatus & status::SIE != 0);
        if s_open { to_s } else { 0 }
    }

    /// Takes the most urgent interrupt, if there is one. Returns true if it did.
    pub(crate) fn take_interrupt<O: Observer>(&mut self, observer: &mut O) -> bool {
        let ready = self.deliverable();
        let Some(code) = PRIORITY.into_iter().find(|&i| ready >> i & 1 != 0) else { return false };
        self.take_trap(cause::INTERRUPT | u64::from(code), 0, observer);
        true
    }

    /// Enters the handler of `cause`; `pc` is the address to return to.
    pub(crate) fn take_trap<O: Observer>(&mut self, cause: u64, tval: u64, observer: &mut O) {
        let code = cause & 63;
        let interrupt = cause & cause::INTERRUPT != 0;
        let delegated = if interrupt { self.csr.mideleg & S_INTERRUPTS } else { self.csr.medeleg };
        let from = self.privilege;
        let to = if from < Privilege::Machine && delegated >> code & 1 != 0 {
            Privilege::Supervisor
        } else {
            Privilege::Machine
        };
        observer.trap(&TrapInfo {
            cause,
            tval,
            pc: self.pc,
            from,
            to,
            root_ppn: self.root_ppn(),
            page_fault: access_of(cause).map(|access| (access, self.page_fault)),
            now: self.local_now(),
        });
        self.settle();
        let s = self.csr.mstatus;
        let tvec = if to == Privilege::Supervisor {
            self.csr.sepc = self.pc;
            self.csr.scause = cause;
            self.csr.stval = tval;
            let spie = if s & status::SIE != 0 { status::SPIE } else { 0 };
            let spp = if from == Privilege::User { 0 } else { status::SPP };
            self.csr.mstatus = s & !(status::SIE | status::SPIE | status::SPP) | spie | spp;
            self.csr.stvec
        } else {
            self.csr.mepc = self.pc;
            self.csr.mcause = cause;
            self.csr.mtval = tval;
            let mpie = if s & status::MIE != 0 { status::MPIE } else { 0 };
            let mpp = (from as u64) << status::MPP_SHIFT;
            self.csr.mstatus = s & !(status::MIE | status::MPIE | status::MPP) | mpie | mpp;
            self.csr.mtvec
        };
        let vector = if interrupt && tvec & 1 != 0 { 4 * code } else { 0 };
        self.pc = (tvec & !3).wrapping_add(vector);
        self.privilege = to;
        if O::FOLLOWS {
            self.follow(observer, JumpKind::Trap { cause, tval, from }, self.pc, 0);
        }
        self.changed_pte = None;
        // The handler walks the page tables again; so does the access after the return.
        self.walk_answered = false;
        self.retries = (0, 0);
        self.acc += u64::from(self.config.costs.trap.max(1));
        self.refresh();
    }

    /// `sret`.
    pub(crate) fn return_from_s(&mut self) {
        self.settle();
        let s = self.csr.mstatus;
        let sie = if s & status::SPIE != 0 { status::SIE } else { 0 };
        self.privilege = if s & status::SPP != 0 { Privilege::Supervisor } else { Privilege::User };
        self.csr.mstatus = s & !(status::SIE | status::SPP | status::MPRV) | sie | status::SPIE;
        self.pc = self.csr.sepc;
        self.refresh();
    }

    /// `mret`.
    pub(crate) fn return_from_m(&mut self) {
        self.settle();
        let s = self.csr.mstatus;
        let mie = if s & status::MPIE != 0 { status::MIE } else { 0 };
        self.privilege = match s >> status::MPP_SHIFT & 3 {
            0 => Privilege::User,
            1 => Privilege::Supervisor,
            _ => Privilege::Machine,
        };
        let mprv = if self.privilege == Privilege::Machine { 0 } else { status::MPRV };
        self.csr.mstatus = s & !(status::MIE | status::MPP | mprv) | mie | status::MPIE;
        self.pc = self.csr.mepc;
        self.refresh();
    }
}
