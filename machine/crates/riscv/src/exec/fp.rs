// SPDX-License-Identifier: Apache-2.0
//! Floating-point instructions.

use crate::Hart;
use crate::op::Slot;

impl Hart {
    /// Executes a floating-point computation; false when it is illegal (rounding mode).
    #[inline(never)]
    pub(super) fn fp_execute(&mut self, _s: Slot) -> bool {
        false
    }
}
