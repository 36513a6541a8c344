// SPDX-License-Identifier: Apache-2.0
//! Spin or switch, decided for each fault: keep the processor where the wait is shorter than what a switch costs, or where nobody
//! else could use it.

use super::{Policy, Wait};
use crate::core::Core;
use crate::pages::{PageId, Pid};
use crate::settings::{Time, us};

/// The cheaper of the two baselines, fault by fault; nothing is read ahead.
///
/// A process that sleeps costs one context switch (whoever runs next has to be switched to, and runs until it faults itself), and
/// gains what others do in the meantime. How long the wait will be the kernel cannot know; it is estimated by the waits before it
/// (a moving average, as blk-mq's hybrid polling had).
#[derive(Debug, Default)]
pub struct Adaptive {
    waits: Waits,
}

/// A moving average of how long reads take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    average: Option<Time>,
}

impl Waits {
    /// Weight of the average against a new value.
    const MEMORY: u64 = 7;

    /// A process waits `wait`; what it had been taken to be is what decides, and the first one is spun for.
    pub fn decide(&mut self, core: &Core, wait: Time) -> Wait {
        let expected = self.average.unwrap_or(0);
        self.average = Some(match self.average {
            Some(average) => (average * Waits::MEMORY + wait) / (Waits::MEMORY + 1),
            None => wait,
        });
        let switch = us(core.settings.cpu.context_switch_us);
        // Who sleeps already has its page first.
        let others = core.asleep > 0 || core.sched.next().is_some();
        if expected > switch && others { Wait::Switch } else { Wait::Spin }
    }
}

impl Policy for Adaptive {
    fn fault(&mut self, _core: &mut Core, _pid: Pid, _page: PageId) {}

    fn wait(&mut self, core: &mut Core, _pid: Pid, until: Time) -> Wait {
        let wait = until - core.now();
        self.waits.decide(core, wait)
    }
}
