// SPDX-License-Identifier: Apache-2.0
//! The hart as its owner sees it.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr, Ram};

use crate::{Bus, Env, Exit, HartConfig, Observer, Privilege, Timing, WalkAnswer};

/// Predecoded instructions of guest RAM, shared by all harts.
#[derive(Default)]
pub struct CodeCache {}

/// Interrupt lines and pending bits, by their bit in `mip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interrupt {
    /// SSIP. Software clears it through `sip`.
    SupervisorSoft = 1,
    /// MSIP, from the ACLINT.
    MachineSoft = 3,
    /// STIP.
    SupervisorTimer = 5,
    /// MTIP, from the ACLINT.
    MachineTimer = 7,
    /// SEIP, from the PLIC.
    SupervisorExternal = 9,
    /// MEIP, from the PLIC.
    MachineExternal = 11,
}

/// Everything architectural about a hart, to save and restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartState {
    /// x0..x31.
    pub x: [u64; 32],
    /// f0..f31.
    pub f: [u64; 32],
    /// Program counter.
    pub pc: u64,
}

/// One hart.
pub struct Hart {
    config: HartConfig,
    cycle: u64,
}

#[allow(unused_variables, missing_docs, clippy::missing_errors_doc)]
impl Hart {
    /// A hart out of reset: M-mode, pc as given.
    pub fn new(config: HartConfig, pc: u64) -> Hart {
        Hart { config, cycle: 0 }
    }
    /// Puts the hart where SBI firmware would leave it: S-mode at `pc`, bare satp, a0 = hart id, a1 = `opaque`,
    /// everything delegated, counters readable, PMP open.
    pub fn enter_supervisor(&mut self, pc: u64, opaque: u64) {}
    /// Runs until local time reaches `until` or something else ends the run.
    pub fn run<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>, until: Cycle) -> Exit {
        Exit::QuantumEnd
    }
    /// Executes one instruction, or takes one trap.
    pub fn step<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>) -> Exit {
        Exit::Step
    }
    /// Continues after [`Exit::SmuWait`].
    pub fn resume_walk<O: Observer>(&mut self, answer: WalkAnswer, observer: &mut O) {}
    /// `Some(limit)` when the current mode masks interrupts, so that a wait must end after `limit` cycles (ISA-4).
    pub fn wait_limit(&self) -> Option<Cycle> {
        None
    }
    /// Whether an interrupt is pending that would be taken now.
    pub fn interrupt_pending_enabled(&self) -> bool {
        false
    }
    /// Whether `wfi` would end: something is pending and enabled in `mie`, whatever the global enables say.
    pub fn wakes(&self) -> bool {
        false
    }
    /// Drives an interrupt line (level).
    pub fn set_line(&mut self, line: Interrupt, level: bool) {}
    /// Sets or clears a pending bit that software owns (SSIP, STIP, SEIP).
    pub fn set_pending(&mut self, bit: Interrupt, pending: bool) {}
    /// Local time.
    pub fn now(&self) -> Cycle {
        Cycle(self.cycle)
    }
    /// Lets time pass without executing (idle, waiting). Earlier times do nothing.
    pub fn advance_to(&mut self, at: Cycle) {}
    /// Instructions retired, by mode encoding: `[U, S, -, M]`.
    pub fn retired(&self) -> [u64; 4] {
        [0; 4]
    }
    pub fn config(&self) -> &HartConfig {
        &self.config
    }
    pub fn privilege(&self) -> Privilege {
        Privilege::Machine
    }
    pub fn pc(&self) -> u64 {
        0
    }
    pub fn set_pc(&mut self, pc: u64) {}
    pub fn x(&self, index: u8) -> u64 {
        0
    }
    pub fn set_x(&mut self, index: u8, value: u64) {}
    pub fn f(&self, index: u8) -> u64 {
        0
    }
    pub fn set_f(&mut self, index: u8, value: u64) {}
    /// A CSR as M-mode reads it, without side effects; `None` when there is none.
    pub fn csr(&self, number: u16) -> Option<u64> {
        None
    }
    /// Writes a CSR as M-mode does; false when there is none or it is read-only.
    pub fn set_csr(&mut self, number: u16, value: u64) -> bool {
        false
    }
    /// Remote `sfence.vma`: of all addresses, or of the pages in `[start, start + len)`.
    pub fn fence_vma(&mut self, range: Option<(u64, u64)>) {}
    /// Translates for a debugger: current satp, no permission check, no side effects.
    pub fn translate_debug(&self, ram: &Ram, va: u64) -> Option<PhysAddr> {
        None
    }
    pub fn state(&self) -> HartState {
        HartState { x: [0; 32], f: [0; 32], pc: 0 }
    }
    pub fn restore(&mut self, state: &HartState) {}
}
