// SPDX-License-Identifier: Apache-2.0
//! Who looks at a hart while it runs: at what is measured, at each of its jumps, or at its instructions and accesses.

use trapless_memory::Ram;
use trapless_riscv::{Access, Fill, Hart, Observer, TrapInfo};

use super::attribute::Jumps;
use super::debug::Debugging;
use super::recorder::Recorder;
use super::tracer::Tracer;

/// Who looks at a hart.
pub enum Eyes<'a> {
    /// The recorder alone, as in most runs.
    Plain(&'a mut Recorder),
    /// The attribution, too: at each jump.
    Jumps(Jumps<'a>),
    /// A trace or a debugger, too: at each instruction and access.
    Each(Each<'a>),
}

/// The recorder, and those who look at everything.
pub struct Each<'a> {
    pub recorder: &'a mut Recorder,
    pub tracer: Option<&'a mut Tracer>,
    pub debug: Option<&'a mut Debugging>,
    /// Number of the hart that runs.
    pub id: usize,
    /// The harts before and behind it, which a debugger sees, too.
    pub others: [&'a mut [Hart]; 2],
}

impl<'a> Each<'a> {
    /// With the harts before and behind the one that runs.
    pub fn among(self, others: [&'a mut [Hart]; 2]) -> Each<'a> {
        Each { others, ..self }
    }
}

impl Observer for Each<'_> {
    const EACH: bool = true;

    fn trap(&mut self, trap: &TrapInfo) {
        self.recorder.trap(trap);
    }

    fn fill(&mut self, fill: &Fill) {
        self.recorder.fill(fill);
    }

    #[inline]
    fn instruction(&mut self, hart: &mut Hart, ram: &mut Ram) -> bool {
        let Some(debug) = &mut self.debug else { return false };
        let Some(stop) = debug.instruction(self.id, hart) else { return false };
        let [before, behind] = &mut self.others;
        let harts = before.iter_mut().chain([hart]).chain(behind.iter_mut()).collect();
        debug.stop(stop, harts, ram)
    }

    #[inline]
    fn access(&mut self, hart: &Hart, access: Access, va: u64, len: u64) {
        if let Some(tracer) = &mut self.tracer {
            tracer.access(self.id, hart, access, va, len);
        }
        if let Some(debug) = &mut self.debug {
            debug.access(self.id, access, va, len);
        }
    }
}
