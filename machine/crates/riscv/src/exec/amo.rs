// SPDX-License-Identifier: Apache-2.0
//! LR, SC and AMO. Harts run in turn, so every instruction is atomic; a reservation is lost at the end of a run.

use trapless_memory::PhysAddr;

use super::flow::Flow;
use crate::atomic::combine;
use crate::op::{Op, Slot};
use crate::trap::{Stop, cause};
use crate::{Access, Bus, Env, Hart, Observer, Timing};

impl Hart {
    pub(super) fn amo_op<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        s: Slot,
    ) -> Result<Flow, Stop> {
        let va = self.regs[s.rs1 as usize];
        let size = 1u64 << (s.imm & 3);
        let access = if s.op == Op::Lr { Access::Load } else { Access::Store };
        if va & (size - 1) != 0 {
            let cause = if s.op == Op::Lr { cause::LOAD_MISALIGNED } else { cause::STORE_MISALIGNED };
            return Err(Stop::Trap { cause, tval: va });
        }
        self.atomic = true;
        let found = self.locate(env, va, size, access);
        self.atomic = false;
        let pa = found?;
        let old = read(env, pa, size).ok_or(Stop::access_fault(access, va))?;
        self.accessed(env, access, va, size);
        let b = self.regs[s.rs2 as usize];
        let write = |hart: &mut Hart, env: &mut Env<'_, B, O, T>, v: u64| {
            hart.write_ram(env, pa, &v.to_le_bytes()[..size as usize]);
        };
        self.regs[s.rd as usize] = match s.op {
            Op::Lr => {
                self.reservation = Some(pa.0);
                self.reserved_at = self.local_now().0;
                old
            }
            Op::Sc => {
                let held = self.reservation.take() == Some(pa.0);
                if held {
                    write(self, env, b);
                }
                u64::from(!held)
            }
            _ => {
                write(self, env, combine(s, old, b));
                old
            }
        };
        Ok(Flow::Next(2))
    }
}

/// Reads the value at `pa`; words are sign-extended. `None` outside RAM, where atomic operations do not exist.
fn read<B: Bus, O: Observer, T: Timing>(env: &mut Env<'_, B, O, T>, pa: PhysAddr, size: u64) -> Option<u64> {
    let ram = env.bus.ram();
    if size == 4 {
        ram.load::<4>(pa).map(|b| i32::from_le_bytes(b) as u64)
    } else {
        ram.load::<8>(pa).map(u64::from_le_bytes)
    }
}
