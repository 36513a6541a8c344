// SPDX-License-Identifier: Apache-2.0
//! CSR instructions, environment calls, fences, returns, `wfi`.

use super::flow::Flow;
use super::slow::illegal;
use crate::csr::{CsrContext, number, status};
use crate::op::{Op, Slot};
use crate::trap::{Stop, cause};
use crate::{Bus, Env, Exit, Hart, JumpKind, Observer, Privilege, Timing};

impl Hart {
    /// Executes csrrw, csrrs, csrrc or one of their immediate forms.
    pub(super) fn csr_op<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        s: Slot,
    ) -> Result<Flow, Stop> {
        let n = (s.imm & 0xfff) as u16;
        let funct3 = s.imm >> 12;
        let source = if funct3 & 4 != 0 { u64::from(s.rs1) } else { self.regs[s.rs1 as usize] };
        let swap = funct3 & 3 == 1;
        let writes = swap || s.rs1 != 0;
        if !self.csr.accessible(n, self.privilege, writes) {
            return Err(illegal());
        }
        let mut context = self.csr_context();
        if n == number::TIME {
            context.time = env.bus.time(self.local_now());
        }
        let old = self.csr.read(n, &context).ok_or_else(illegal)?;
        if writes {
            // Setting or clearing a bit of mip must not copy the levels of the lines into the bits that software owns.
            let base = if matches!(n, number::MIP | number::SIP) { self.csr.mip_soft } else { old };
            let new = match funct3 & 3 {
                1 => source,
                2 => base | source,
                _ => base & !source,
            };
            self.csr.write(n, new, &context);
        }
        self.regs[s.rd as usize] = old;
        if !writes {
            return Ok(Flow::Next(2));
        }
        match n {
            number::FFLAGS | number::FRM | number::FCSR => self.set_fp_dirty(),
            number::SATP | 0x3a0..=0x3ef => {
                env.timing.switched();
                // Accesses that were translated and allowed before may be forbidden now, fetches included.
                self.tlb.flush();
                self.pc = self.pc.wrapping_add(4);
                return Ok(Flow::Fetch);
            }
            number::MSTATUS | number::SSTATUS if (old ^ self.csr.mstatus) & status::MXR != 0 => self.tlb.flush(),
            _ => {}
        }
        self.refresh();
        if self.interrupt_pending_enabled() {
            self.pc = self.pc.wrapping_add(4);
            self.take_interrupt(env.observer);
            return Ok(Flow::Fetch);
        }
        Ok(Flow::Next(2))
    }

    pub(super) fn system_op<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        s: Slot,
    ) -> Result<Flow, Stop> {
        let p = self.privilege;
        let trapped_in_s = |bit: u64| p == Privilege::Supervisor && self.csr.mstatus & bit != 0;
        match s.op {
            Op::FenceI => {
                // The hart's own stores take effect at once; this is for writes by others.
                env.code.drop_overwritten(env.bus.ram());
                Ok(Flow::Next(2))
            }
            Op::SfenceVma => {
                if p == Privilege::User || trapped_in_s(status::TVM) {
                    return Err(illegal());
                }
                let page = (s.rs1 != 0).then(|| self.regs[s.rs1 as usize]);
                match page {
                    None => self.tlb.flush(),
                    Some(va) => self.tlb.flush_range(va, va),
                }
                self.changed_pte = None;
                env.timing.fence(page);
                self.take_losses(env.timing);
                self.pc = self.pc.wrapping_add(4);
                Ok(Flow::Fetch)
            }
            Op::Ecall => {
                let cause = match p {
                    Privilege::User => cause::ECALL_U,
                    Privilege::Supervisor if self.config.sbi_exits => {
                        self.pc = self.pc.wrapping_add(4);
                        return Ok(Flow::Exit(Exit::SbiCall));
                    }
                    Privilege::Supervisor => cause::ECALL_S,
                    Privilege::Machine => cause::ECALL_M,
                };
                Err(Stop::Trap { cause, tval: 0 })
            }
            Op::Ebreak => Err(Stop::Trap { cause: cause::BREAKPOINT, tval: self.pc }),
            Op::Mret if p == Privilege::Machine => {
                self.return_from_m();
                if O::FOLLOWS {
                    self.follow(env.observer, JumpKind::TrapReturn, self.pc, 0);
                }
                self.take_interrupt(env.observer);
                Ok(Flow::Fetch)
            }
            Op::Sret if p >= Privilege::Supervisor && !trapped_in_s(status::TSR) => {
                self.return_from_s();
                if O::FOLLOWS {
                    self.follow(env.observer, JumpKind::TrapReturn, self.pc, 0);
                }
                self.take_interrupt(env.observer);
                Ok(Flow::Fetch)
            }
            Op::Wfi if p >= Privilege::Supervisor && !trapped_in_s(status::TW) => {
                self.pc = self.pc.wrapping_add(4);
                if self.wakes() { Ok(Flow::Fetch) } else { Ok(Flow::Exit(Exit::Wfi)) }
            }
            _ => Err(illegal()),
        }
    }

    /// Collects what CSR accesses need from outside the register file.
    pub(crate) fn csr_context(&self) -> CsrContext {
        CsrContext {
            hart_id: self.config.id,
            smu: self.config.smu,
            paging: self.config.paging,
            cycle: self.local_now().0,
            // acc already counts the current instruction.
            instret: self.retired.iter().sum::<u64>() + (self.acc >> 32).saturating_sub(1),
            time: 0,
        }
    }
}
