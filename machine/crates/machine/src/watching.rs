// SPDX-License-Identifier: Apache-2.0
//! Running a hart: plainly, or with somebody who looks at each of its jumps, or of its instructions and accesses.

use trapless_memory::{Cycle, Ram};
use trapless_riscv::{Access, Env, Exit, Fill, Hart, Observer, TrapInfo};

use crate::debug::Debugging;
use crate::machine::{Machine, Phase};
use crate::recorder::Recorder;
use crate::tracer::Tracer;

/// The recorder, and those who look at everything.
struct Watching<'a> {
    recorder: &'a mut Recorder,
    tracer: Option<&'a mut Tracer>,
    debug: Option<&'a mut Debugging>,
    /// Number of the hart that runs, and the others.
    id: usize,
    before: &'a mut [Hart],
    after: &'a mut [Hart],
}

impl Observer for Watching<'_> {
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
        let harts = self.before.iter_mut().chain([hart]).chain(self.after.iter_mut()).collect();
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

impl Machine {
    /// Runs a hart up to `end`.
    pub(crate) fn run_hart(&mut self, id: usize, end: Cycle) -> Exit {
        if let Some(exit) = self.follow_hart(id, end) {
            return exit;
        }
        let Machine { recorder, board, code, times, harts, tracer, debug, .. } = self;
        let tracer = tracer.as_mut().filter(|t| t.is_on());
        let debug = debug.as_mut().filter(|d| d.looks());
        let timing = &mut times.of(id);
        recorder.select(id);
        if tracer.is_none() && debug.is_none() {
            return harts[id].run(&mut Env { bus: board, code, observer: recorder, timing }, end);
        }
        let (before, rest) = harts.split_at_mut(id);
        let [hart, after @ ..] = rest else { unreachable!("harts are numbered from 0") };
        let observer = &mut Watching { recorder, tracer, debug, id, before, after };
        hart.run(&mut Env { bus: board, code, observer, timing }, end)
    }

    /// The running hart that is furthest behind, or the first hart.
    pub(crate) fn first_to_run(&self) -> usize {
        let running = (0..self.harts.len()).filter(|&h| matches!(self.phases[h], Phase::Running));
        running.min_by_key(|&h| self.harts[h].now()).unwrap_or(0)
    }
}
