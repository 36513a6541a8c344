// SPDX-License-Identifier: Apache-2.0
//! Executes instructions outside the hot loop.

use super::flow::Flow;
use crate::op::{ONE, Op, Slot};
use crate::page::CodePage;
use crate::trap::{Stop, cause};
use crate::{Bus, Env, Exit, Hart, Observer, Timing};

impl Hart {
    /// Executes the slot at `pc`. `acc` already includes its price.
    #[inline(never)]
    pub(super) fn slow<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
        s: Slot,
    ) -> Flow {
        let done = match s.op {
            Op::Undecoded => {
                self.decode_run(env, page, (self.pc & !crate::entry::PAGE_MASK) as usize / 2);
                return Flow::Again;
            }
            Op::Refetch => return Flow::Fetch,
            Op::Cross => match self.fetch_single(env) {
                Ok(()) => return Flow::Scratch,
                Err(stop) => return self.stopped(env, stop, 0),
            },
            Op::Lb | Op::Lh | Op::Lw | Op::Ld | Op::Lbu | Op::Lhu | Op::Lwu | Op::Flw | Op::Fld => self.load_op(env, s),
            Op::Sb | Op::Sh | Op::Sw | Op::Sd | Op::Fsw | Op::Fsd => self.store_op(env, s),
            Op::Lr | Op::Sc | Op::Amo => self.amo_op(env, s),
            Op::FpAdd | Op::FpMul | Op::FpFma | Op::FpConvert | Op::FpDiv | Op::FpSqrt | Op::FpMove => {
                if self.csr.fs_on() && self.fp_execute(s) { Ok(Flow::Next(2)) } else { Err(illegal()) }
            }
            Op::Marker => {
                self.pc = self.pc.wrapping_add(4);
                return Flow::Exit(Exit::Marker { imm: s.imm as u16 });
            }
            Op::Csr => self.csr_op(env, s),
            Op::SfenceVma | Op::FenceI | Op::Ecall | Op::Ebreak | Op::Mret | Op::Sret | Op::Wfi => {
                self.system_op(env, s)
            }
            // The hot loop handles everything else.
            _ => Err(illegal()),
        };
        match done {
            Ok(flow) => flow,
            Err(Stop::Trap { cause: cause::ILLEGAL, .. }) => {
                let tval = self.raw_instruction(env, page);
                self.stopped(env, Stop::Trap { cause: cause::ILLEGAL, tval }, self.costs[s.op as usize])
            }
            Err(stop) => self.stopped(env, stop, self.costs[s.op as usize]),
        }
    }

    /// Ends the instruction at `pc` without retiring it. `charged` was added to `acc` for it.
    pub(super) fn stopped<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        stop: Stop,
        charged: u64,
    ) -> Flow {
        match stop {
            Stop::Trap { cause, tval } => {
                // The instruction took its time, but does not count as retired.
                self.acc -= charged & !(ONE - 1);
                self.take_trap(cause, tval, env.observer);
                Flow::Fetch
            }
            Stop::Wait(request) => {
                self.acc -= charged;
                self.wait = Some((request, self.local_now().0));
                Flow::Exit(Exit::SmuWait(request))
            }
        }
    }
}

/// An illegal instruction exception; `slow` fills in the instruction's bits.
pub(super) fn illegal() -> Stop {
    Stop::Trap { cause: cause::ILLEGAL, tval: 0 }
}
