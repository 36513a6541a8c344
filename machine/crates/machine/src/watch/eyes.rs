// SPDX-License-Identifier: Apache-2.0
//! Observers of a running hart: of what is measured, of each of its jumps, or of its instructions and accesses.

use trapless_memory::Ram;
use trapless_riscv::{Access, Fill, Hart, Observer, TrapInfo};

use super::attribute::Jumps;
use super::debug::Debugging;
use super::recorder::Recorder;
use super::tracer::Tracer;

/// The observer of a hart.
pub enum Eyes<'a> {
    /// Only the recorder, as in most runs.
    Plain(&'a mut Recorder),
    /// The recorder and the attribution, which sees each jump.
    Jumps(Jumps<'a>),
    /// The recorder and a trace or a debugger, which see each instruction and access.
    Each(Each<'a>),
}

/// The recorder, and the observers that see everything.
pub struct Each<'a> {
    pub recorder: &'a mut Recorder,
    pub tracer: Option<&'a mut Tracer>,
    pub debug: Option<&'a mut Debugging>,
    /// Number of the hart that is running.
    pub id: usize,
    /// The harts before and after it, which a debugger sees as well.
    pub others: [&'a mut [Hart]; 2],
}

impl<'a> Each<'a> {
    /// Sets the harts before and after the one that is running.
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
