// SPDX-License-Identifier: Apache-2.0
//! Spin or switch, decided for each fault: keep the processor where the wait is shorter than what a switch costs, or where nobody
//! else could use it.

use super::{Policy, Registration, Wait};
use crate::core::Core;
use crate::pages::{Origin, PageId, Pid};
use crate::settings::{Time, us};

/// The policy of this file.
pub const POLICIES: &[Registration] = &[Registration {
    name: "adaptive",
    about: "reads nothing ahead; decides for each fault whether the processor spins or switches",
    make: |_| Box::new(Adaptive::default()),
}];

/// The cheaper of the two baselines, fault by fault; nothing is read ahead.
///
/// A process that sleeps costs one context switch (whoever runs next has to be switched to, and runs until it faults itself), and
/// gains what others do in the meantime. How long the wait will be the kernel cannot know; it is estimated by the waits before it
/// (a moving average, as blk-mq's hybrid polling had).
#[derive(Debug, Default)]
pub struct Adaptive {
    waits: Waits,
}

/// Moving averages of how long processes wait: for pages that nobody had read, and for those that were on their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    averages: [Option<Time>; 2],
}

impl Waits {
    /// Weight of the average against a new value.
    const MEMORY: u64 = 7;

    /// Decides how a process waits for a page that arrives at the time `until`. It sleeps if waits of this kind have been
    /// longer, on average, than this number of context `switches`; for the first wait it spins.
    pub fn decide(&mut self, core: &Core, page: PageId, until: Time, switches: f64) -> Wait {
        let wait = until - core.now();
        let average = &mut self.averages[usize::from(core.pages[page].origin != Origin::Demand)];
        let expected = average.unwrap_or(0);
        *average = Some(average.map_or(wait, |average| (average * Waits::MEMORY + wait) / (Waits::MEMORY + 1)));
        // Who sleeps already has its page first.
        let others = core.asleep > 0 || core.sched.next().is_some();
        if expected > us(switches * core.settings.cpu.context_switch_us) && others { Wait::Switch } else { Wait::Spin }
    }
}

impl Policy for Adaptive {
    fn fault(&mut self, _core: &mut Core, _pid: Pid, _page: PageId) {}

    fn wait(&mut self, core: &mut Core, page: PageId, until: Time) -> Wait {
        self.waits.decide(core, page, until, 1.0)
    }
}
