// SPDX-License-Identifier: Apache-2.0
//! What watchers see of the machine.

use trapless_memory::Cycle;
use trapless_riscv::Hart;

use super::report::Instructions;
use crate::board::Board;
use crate::cores::{Cores, Misses};

/// The machine at a moment, read-only.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The harts.
    pub cores: &'a Cores,
    /// RAM and devices.
    pub board: &'a Board,
    /// The time up to which the machine has run.
    pub now: Cycle,
}

impl Scene<'_> {
    /// Instructions retired so far, by hart.
    pub fn instructions_by_hart(&self) -> impl Iterator<Item = Instructions> {
        self.cores.harts().iter().map(|h| {
            let [user, supervisor, _, machine] = h.retired();
            Instructions { user, supervisor, machine }
        })
    }

    /// Instructions retired so far by all harts.
    pub fn instructions(&self) -> Instructions {
        Instructions::sum(self.instructions_by_hart())
    }

    /// Misses of caches, TLBs and predictors, if timing is detailed.
    pub fn misses(&self) -> Option<Misses> {
        let mut misses = self.cores.times().misses()?;
        for [user, supervisor, _, machine] in self.cores.harts().iter().map(Hart::mispredicted) {
            misses.user.branches += user;
            misses.kernel.branches += supervisor + machine;
        }
        Some(misses)
    }
}
