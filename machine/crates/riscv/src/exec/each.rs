// SPDX-License-Identifier: Apache-2.0
//! What an observer that wants to know of each instruction and each access is told ([`Observer::EACH`]).

use crate::code::CodePage;
use crate::decode::is_wide;
use crate::{Access, Bus, Env, Hart, Observer, Timing};

impl Hart {
    /// The instruction at `pc`, in `page`, comes next; true if it must be fetched anew, because the observer has changed
    /// something.
    #[inline(never)]
    pub(super) fn begin_instruction<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
    ) -> bool {
        let here = (self.pc, self.instructions());
        if self.begun == here {
            // It has waited for the SMU, and did not retire.
            return false;
        }
        self.begun = here;
        if env.observer.instruction(self, env.bus.ram()) {
            self.begun.0 = self.pc;
            env.code.drop_overwritten(env.bus.ram());
            return true;
        }
        let len = if is_wide(self.raw_instruction(env, page) as u16) { 4 } else { 2 };
        env.observer.access(self, Access::Fetch, self.pc, len);
        false
    }

    /// The instruction at hand has accessed memory, not by the interpreter's fast path.
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
