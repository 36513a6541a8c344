// SPDX-License-Identifier: Apache-2.0
//! Decides for each fault whether to spin or to switch. The process keeps the processor if the wait is shorter than the cost of a
//! switch, or if no other process could use the time.

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

/// The cheaper of the two baselines for each fault. Prefetches nothing.
///
/// Letting a process sleep costs one context switch, to the process that runs next, and gains the time in which others run. The
/// kernel cannot know how long the wait will be. So the policy estimates it from the waits so far, by a moving average like that
/// of blk-mq's hybrid polling.
#[derive(Debug, Default)]
pub struct Adaptive {
    waits: Waits,
}

/// Moving averages of how long processes wait. There are two: for pages that were not prefetched, and for prefetched pages that
/// are still on their way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    averages: [Option<Time>; 2],
}

impl Waits {
    /// Weight of the old average. A new value has the weight 1.
    const MEMORY: u64 = 7;

    /// Decides how a process waits for a page that arrives at the time `until`. It sleeps if waits of this kind were on average
    /// longer than this number of context `switches`. It spins for the first wait.
    pub fn decide(&mut self, core: &Core, page: PageId, until: Time, switches: f64) -> Wait {
        let wait = until - core.now();
        let average = &mut self.averages[usize::from(core.pages[page].origin != Origin::Demand)];
        let expected = average.unwrap_or(0);
        *average = Some(average.map_or(wait, |average| (average * Waits::MEMORY + wait) / (Waits::MEMORY + 1)));
        // Processes that sleep already count, because their pages will arrive before this one.
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
