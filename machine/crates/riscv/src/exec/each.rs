// SPDX-License-Identifier: Apache-2.0
//! Calls an observer that asks for each instruction and each access ([`Observer::EACH`]).

use trapless_memory::PhysAddr;

use crate::decode::is_wide;
use crate::entry::PAGE_MASK;
use crate::page::CodePage;
use crate::{Access, Bus, Env, Hart, Observer, Timing};

impl Hart {
    /// Reports that the instruction at `pc`, in `page`, comes next. Returns true if the observer has changed something, so that
    /// the instruction must be fetched again.
    #[inline]
    pub(super) fn begin_instruction<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
    ) -> bool {
        let here = (self.pc, self.instructions());
        if self.begun == here {
            // This instruction was reported already: it has waited for the SMU and did not retire.
            return false;
        }
        self.begun = here;
        if env.observer.instruction(self, env.bus.ram()) {
            self.begun.0 = self.pc;
            env.code.drop_overwritten(env.bus.ram());
            return true;
        }
        let low = if std::ptr::eq(page, &raw const *self.scratch) {
            self.scratch_raw as u16
        } else {
            // SAFETY: the page is live (see the hot loop).
            let pa = unsafe { (*page).pa } | self.pc & !PAGE_MASK;
            env.bus.ram().load(PhysAddr(pa)).map_or(0, u16::from_le_bytes)
        };
        env.observer.access(self, Access::Fetch, self.pc, if is_wide(low) { 4 } else { 2 });
        false
    }

    /// Reports an access of the current instruction that the interpreter's fast path did not make.
    #[inline]
    pub(super) fn accessed<B: Bus, O: Observer, T: Timing>(
        &self,
        env: &mut Env<'_, B, O, T>,
        access: Access,
        va: u64,
        len: u64,
    ) {
        if O::EACH {
            env.observer.access(self, access, va, len);
        }
    }
}
