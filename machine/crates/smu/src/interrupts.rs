// SPDX-License-Identifier: Apache-2.0
//! The interrupt output and its causes (REQ: SMU-17).

use serde::{Deserialize, Serialize};
use trapless_smu_regs as regs;

use crate::Smu;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    /// INT_ENABLE.
    pub enabled: u64,
    /// FREE_LOW, in entries.
    pub free_low: u32,
    /// A command has timed out since software last cleared this cause.
    pub timed_out: bool,
}

impl Smu {
    /// Returns the value of INT_CAUSE.
    pub(crate) fn causes(&self) -> u64 {
        let left = self.free.tail.wrapping_sub(self.free.head);
        regs::INT_CAUSE_ERROR.of(self.error.into())
            | regs::INT_CAUSE_FRAMES_LOW.of((self.enabled && left < self.interrupts.free_low).into())
            | regs::INT_CAUSE_RETURNED.of((self.returns.tail != self.returns.head).into())
            | regs::INT_CAUSE_TIMEOUT.of(self.interrupts.timed_out.into())
    }

    pub(crate) fn set_interrupt_enable(&mut self, value: u64) {
        let all = regs::INT_ENABLE_ERROR.mask()
            | regs::INT_ENABLE_FRAMES_LOW.mask()
            | regs::INT_ENABLE_RETURNED.mask()
            | regs::INT_ENABLE_TIMEOUT.mask();
        self.interrupts.enabled = value & all;
    }
}
