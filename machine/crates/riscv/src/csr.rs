// SPDX-License-Identifier: Apache-2.0
//! Control and status registers: their values, their masks, and which modes may access them.

use serde::{Deserialize, Serialize};
use trapless_memory::Paging;

use crate::Privilege;
use crate::pmp::Pmp;

/// Fields of `mstatus`.
pub mod status {
    #![allow(missing_docs)]
    pub const SIE: u64 = 1 << 1;
    pub const MIE: u64 = 1 << 3;
    pub const SPIE: u64 = 1 << 5;
    pub const MPIE: u64 = 1 << 7;
    pub const SPP: u64 = 1 << 8;
    pub const MPP_SHIFT: u32 = 11;
    pub const MPP: u64 = 3 << MPP_SHIFT;
    pub const FS: u64 = 3 << 13;
    pub const FS_DIRTY: u64 = 3 << 13;
    pub const MPRV: u64 = 1 << 17;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const TVM: u64 = 1 << 20;
    pub const TW: u64 = 1 << 21;
    pub const TSR: u64 = 1 << 22;
    pub const UXL_64: u64 = 2 << 32;
    pub const SXL_64: u64 = 2 << 34;
    pub const SD: u64 = 1 << 63;
    /// Bits that software can write through `mstatus`.
    pub const M_WRITABLE: u64 = SIE | MIE | SPIE | MPIE | SPP | MPP | FS | MPRV | SUM | MXR | TVM | TW | TSR;
    /// Bits that software can write through `sstatus`.
    pub const S_WRITABLE: u64 = SIE | SPIE | SPP | FS | SUM | MXR;
}

/// Numbers of the CSRs that the hart refers to.
#[allow(missing_docs)]
pub mod number {
    pub const FFLAGS: u16 = 0x001;
    pub const FRM: u16 = 0x002;
    pub const FCSR: u16 = 0x003;
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const STVEC: u16 = 0x105;
    pub const SCOUNTEREN: u16 = 0x106;
    pub const SENVCFG: u16 = 0x10a;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const SIP: u16 = 0x144;
    pub const SATP: u16 = 0x180;
    pub const MSTATUS: u16 = 0x300;
    pub const MISA: u16 = 0x301;
    pub const MEDELEG: u16 = 0x302;
    pub const MIDELEG: u16 = 0x303;
    pub const MIE: u16 = 0x304;
    pub const MTVEC: u16 = 0x305;
    pub const MCOUNTEREN: u16 = 0x306;
    pub const MENVCFG: u16 = 0x30a;
    pub const MCOUNTINHIBIT: u16 = 0x320;
    pub const MSCRATCH: u16 = 0x340;
    pub const MEPC: u16 = 0x341;
    pub const MCAUSE: u16 = 0x342;
    pub const MTVAL: u16 = 0x343;
    pub const MIP: u16 = 0x344;
    /// `shwdp`: bit 0 makes the walker handle armed entries.
    pub const SHWDP: u16 = 0x5c0;
    pub const MCYCLE: u16 = 0xb00;
    pub const MINSTRET: u16 = 0xb02;
    pub const CYCLE: u16 = 0xc00;
    pub const TIME: u16 = 0xc01;
    pub const INSTRET: u16 = 0xc02;
    /// `shwdpserved`: misses that the SMU has answered `done`.
    pub const SHWDPSERVED: u16 = 0xdc0;
    /// `shwdpwait`: cycles in which an access waited for the SMU.
    pub const SHWDPWAIT: u16 = 0xdc1;
    pub const MHARTID: u16 = 0xf14;
}
use number::*;

/// Exceptions that can be delegated: all except `ecall` from M-mode.
const MEDELEG_MASK: u64 = 0xb3ff;
/// SSIP, STIP, SEIP.
pub const S_INTERRUPTS: u64 = 0x222;
/// All six interrupts.
const INTERRUPTS: u64 = 0xaaa;
/// RV64 with A, C, D, F, I, M, S, U.
const MISA_VALUE: u64 = 2 << 62 | 0x14_112d;
const SSIP: u64 = 1 << 1;

/// The registers. The hart itself has the counters and `time`, and applies what `satp` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Csrs {
    pub mstatus: u64,
    pub medeleg: u64,
    pub mideleg: u64,
    pub mie: u64,
    /// Pending bits that software sets and clears.
    pub mip_soft: u64,
    /// Pending bits that interrupt lines set and clear.
    pub mip_lines: u64,
    pub mtvec: u64,
    pub mcounteren: u64,
    pub mscratch: u64,
    pub mepc: u64,
    pub mcause: u64,
    pub mtval: u64,
    pub menvcfg: u64,
    pub stvec: u64,
    pub scounteren: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub senvcfg: u64,
    pub satp: u64,
    pub fflags: u8,
    pub frm: u8,
    /// Offset of `mcycle` from the hart's cycle count.
    pub cycle_offset: u64,
    /// Offset of `minstret` from the number of retired instructions.
    pub instret_offset: u64,
    pub shwdp: u64,
    pub shwdpserved: u64,
    pub shwdpwait: u64,
    pub pmp: Pmp,
}

/// Values from outside the register file that a CSR access needs.
#[derive(Clone, Copy, Default)]
pub struct CsrContext {
    pub hart_id: u64,
    /// Whether the CSRs of the paging extension exist.
    pub smu: bool,
    /// The deepest mode that `satp` accepts.
    pub paging: Paging,
    /// Cycles so far.
    pub cycle: u64,
    /// Instructions retired before this one.
    pub instret: u64,
    /// `time`.
    pub time: u64,
}

impl Csrs {
    /// Reset values.
    pub fn reset() -> Csrs {
        Csrs {
            mstatus: status::UXL_64 | status::SXL_64,
            medeleg: 0,
            mideleg: 0,
            mie: 0,
            mip_soft: 0,
            mip_lines: 0,
            mtvec: 0,
            mcounteren: 0,
            mscratch: 0,
            mepc: 0,
            mcause: 0,
            mtval: 0,
            menvcfg: 0,
            stvec: 0,
            scounteren: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            senvcfg: 0,
            satp: 0,
            fflags: 0,
            frm: 0,
            cycle_offset: 0,
            instret_offset: 0,
            shwdp: 0,
            shwdpserved: 0,
            shwdpwait: 0,
            pmp: Pmp::default(),
        }
    }

    /// `mip`.
    #[inline]
    pub fn mip(&self) -> u64 {
        self.mip_soft | self.mip_lines
    }

    /// Whether floating point is on.
    pub fn fs_on(&self) -> bool {
        self.mstatus & status::FS != 0
    }

    fn mstatus_read(&self) -> u64 {
        let dirty = self.mstatus & status::FS == status::FS_DIRTY;
        self.mstatus | if dirty { status::SD } else { 0 }
    }

    /// Whether mode `p` may access CSR `n`. Does not check that `n` exists: [`Csrs::read`] does.
    pub fn accessible(&self, n: u16, p: Privilege, write: bool) -> bool {
        if (p as u16) < (n >> 8 & 3) || (write && n >> 10 == 3) {
            return false;
        }
        match n {
            FFLAGS | FRM | FCSR => self.fs_on(),
            SATP => !(p == Privilege::Supervisor && self.mstatus & status::TVM != 0),
            0xc00..=0xc1f => {
                let bit = 1 << (n & 31);
                let m = self.mcounteren & bit != 0;
                let s = self.scounteren & bit != 0;
                match p {
                    Privilege::Machine => true,
                    Privilege::Supervisor => m,
                    Privilege::User => m && s,
                }
            }
            _ => true,
        }
    }

    /// Reads CSR `n`; `None` if it does not exist.
    pub fn read(&self, n: u16, c: &CsrContext) -> Option<u64> {
        Some(match n {
            FFLAGS => u64::from(self.fflags),
            FRM => u64::from(self.frm),
            FCSR => u64::from(self.frm) << 5 | u64::from(self.fflags),
            SSTATUS => self.mstatus_read() & (status::S_WRITABLE | status::UXL_64 | status::SD),
            SIE => self.mie & self.mideleg,
            STVEC => self.stvec,
            SCOUNTEREN => self.scounteren,
            SENVCFG => self.senvcfg,
            SSCRATCH => self.sscratch,
            SEPC => self.sepc,
            SCAUSE => self.scause,
            STVAL => self.stval,
            SIP => self.mip() & self.mideleg,
            SATP => self.satp,
            MSTATUS => self.mstatus_read(),
            MISA => MISA_VALUE,
            MEDELEG => self.medeleg,
            MIDELEG => self.mideleg,
            MIE => self.mie,
            MTVEC => self.mtvec,
            MCOUNTEREN => self.mcounteren,
            MENVCFG => self.menvcfg,
            MSCRATCH => self.mscratch,
            MEPC => self.mepc,
            MCAUSE => self.mcause,
            MTVAL => self.mtval,
            MIP => self.mip(),
            SHWDP if c.smu => self.shwdp,
            SHWDPSERVED if c.smu => self.shwdpserved,
            SHWDPWAIT if c.smu => self.shwdpwait,
            0x3a0..=0x3ae if n & 1 == 0 => self.pmp.read_cfg((n & 15) as usize),
            0x3b0..=0x3ef => self.pmp.read_addr((n - 0x3b0) as usize),
            MCYCLE | CYCLE => c.cycle.wrapping_add(self.cycle_offset),
            TIME => c.time,
            MINSTRET | INSTRET => c.instret.wrapping_add(self.instret_offset),
            // Event counters and selectors exist, but count nothing.
            0xb03..=0xb1f | 0xc03..=0xc1f | 0x323..=0x33f | MCOUNTINHIBIT => 0,
            MHARTID => c.hart_id,
            // mvendorid, marchid, mimpid, mconfigptr: zero means not implemented.
            0xf11..=0xf13 | 0xf15 => 0,
            _ => return None,
        })
    }

    /// Writes CSR `n`, which must exist and be writable. Fields take only legal values.
    pub fn write(&mut self, n: u16, v: u64, c: &CsrContext) {
        let merge = |old: u64, mask: u64| old & !mask | v & mask;
        match n {
            FFLAGS => self.fflags = v as u8 & 31,
            FRM => self.frm = v as u8 & 7,
            FCSR => {
                self.fflags = v as u8 & 31;
                self.frm = (v >> 5) as u8 & 7;
            }
            SSTATUS => self.mstatus = merge(self.mstatus, status::S_WRITABLE),
            SIE => self.mie = merge(self.mie, self.mideleg & INTERRUPTS),
            SIP => self.mip_soft = merge(self.mip_soft, self.mideleg & SSIP),
            STVEC if v & 2 == 0 => self.stvec = v,
            SCOUNTEREN => self.scounteren = v & 0xffff_ffff,
            SENVCFG => self.senvcfg = v & 1,
            SSCRATCH => self.sscratch = v,
            SEPC => self.sepc = v & !1,
            SCAUSE => self.scause = v,
            STVAL => self.stval = v,
            // Writing a mode that does not exist has no effect at all (privileged specification, "satp").
            SATP if v >> 60 == 0 || Paging::of(v).is_some_and(|mode| mode <= c.paging) => {
                // There are no ASIDs: the field reads zero.
                self.satp = v & (0xf << 60 | ((1 << 44) - 1));
            }
            MSTATUS => {
                let mut mask = status::M_WRITABLE;
                if v >> status::MPP_SHIFT & 3 == 2 {
                    mask &= !status::MPP;
                }
                self.mstatus = merge(self.mstatus, mask);
            }
            MEDELEG => self.medeleg = v & MEDELEG_MASK,
            MIDELEG => self.mideleg = v & S_INTERRUPTS,
            MIE => self.mie = v & INTERRUPTS,
            MIP => self.mip_soft = merge(self.mip_soft, S_INTERRUPTS),
            MTVEC if v & 2 == 0 => self.mtvec = v,
            MCOUNTEREN => self.mcounteren = v & 0xffff_ffff,
            MENVCFG => self.menvcfg = v & 1,
            MSCRATCH => self.mscratch = v,
            MEPC => self.mepc = v & !1,
            MCAUSE => self.mcause = v,
            MTVAL => self.mtval = v,
            SHWDP => self.shwdp = v & 1,
            0x3a0..=0x3ae => self.pmp.write_cfg((n & 15) as usize, v),
            0x3b0..=0x3ef => self.pmp.write_addr((n - 0x3b0) as usize, v),
            MCYCLE => self.cycle_offset = v.wrapping_sub(c.cycle),
            // The next instruction must read the written value, so this instruction does not count itself.
            MINSTRET => self.instret_offset = v.wrapping_sub(c.instret + 1),
            _ => {}
        }
    }
}
