// SPDX-License-Identifier: Apache-2.0
//! Hardware threads: two harts of a core share its issue slots, of which there is one per cycle (decision 047).

use trapless_memory::Cycle;

/// log2 of the number of parts of a cycle.
const FRACTION: u32 = 16;
const ONE: u64 = 1 << FRACTION;

/// A hart's use of its core.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Part of its last turn in which it had an instruction to issue, including waiting for a slot; in units of 1 / [`ONE`].
    busy: u64,
    /// The fraction of a cycle for which it has yet to wait.
    rest: u64,
}

/// Issue slots of all cores.
///
/// While both harts of a core have something to issue, each gets every other slot. A hart that waits for memory, for the
/// SMU or for an interrupt leaves all slots to the other. The other hart's last turn tells how often it has something to
/// issue.
#[derive(Clone, Debug)]
pub struct Slots {
    threads: usize,
    uses: Vec<Use>,
}

impl Slots {
    /// Slots for this number of `harts`, with one or two (`threads`) on each core.
    pub fn new(harts: usize, threads: usize) -> Slots {
        Slots { threads, uses: vec![Use::default(); harts] }
    }

    /// Forgets how the harts used their cores.
    pub fn forget(&mut self) {
        self.uses.fill(Use::default());
    }

    /// The other hart of the core.
    pub fn sibling(&self, hart: usize) -> Option<usize> {
        let other = hart ^ 1;
        (self.threads == 2 && other < self.uses.len()).then_some(other)
    }

    /// Until when a hart may run from `now` on, so that it does not pass `end` even if it has to wait for every second slot.
    /// `beside`: the sibling is running.
    pub fn reach(&self, hart: usize, now: Cycle, end: Cycle, beside: bool) -> Cycle {
        let Some(sibling) = self.sibling(hart).filter(|_| beside) else { return end };
        let cycles = u128::from((end - now).0) * u128::from(2 * ONE - self.uses[sibling].busy) / u128::from(2 * ONE);
        now + Cycle(cycles as u64).max(Cycle(1))
    }

    /// Ends a turn of `cycles` in which the hart issued this number of `instructions`. Returns the additional cycles that it
    /// waited for slots. `beside`: the sibling is running.
    pub fn turn(&mut self, hart: usize, instructions: u64, cycles: Cycle, beside: bool) -> Cycle {
        let Some(sibling) = self.sibling(hart).filter(|_| cycles > Cycle(0)) else { return Cycle(0) };
        let other = if beside { self.uses[sibling].busy } else { 0 };
        // The hart gets each slot while the other is idle, and every second one while it is busy: n slots take it
        // n / (1 - other / 2) cycles.
        let issued = u128::from(instructions.min(cycles.0)) << FRACTION;
        let wait = (issued * u128::from(other) / u128::from(2 * ONE - other)) as u64;
        let own = &mut self.uses[hart];
        let all = own.rest + wait;
        own.rest = all % ONE;
        let share =
            (issued as u64 + wait) as u128 * u128::from(ONE) / ((u128::from(cycles.0) << FRACTION) + u128::from(wait));
        own.busy = share as u64;
        Cycle(all >> FRACTION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles of each of two harts beside the other, after many turns. `needs`: slots and cycles of each hart alone.
    fn together(needs: [(u64, u64); 2]) -> [u64; 2] {
        let mut slots = Slots::new(2, 2);
        let mut last = [0; 2];
        for _ in 0..100 {
            for (hart, (instructions, cycles)) in needs.into_iter().enumerate() {
                last[hart] = cycles + slots.turn(hart, instructions, Cycle(cycles), true).0;
            }
        }
        last
    }

    #[test]
    fn two_busy_harts_share_the_core_in_halves() {
        assert_eq!(together([(1000, 1000), (1000, 1000)]), [2000, 2000]);
    }

    #[test]
    fn a_stalled_hart_leaves_its_slots_to_the_other() {
        assert_eq!(together([(1000, 1000), (0, 1000)]), [1000, 1000]);
        // The second issues 100 slots, each of them beside the first: 200 cycles. The first loses 100 slots in 1100 cycles.
        assert_eq!(together([(1000, 1000), (100, 1000)]), [1100, 1100]);
        // Both stall half of the time: each is busy for b = (1/2) / (1 - b/2) cycles out of (1/2 + that).
        assert_eq!(together([(500, 1000), (500, 1000)]), [1207, 1207]);
    }

    #[test]
    fn a_hart_alone_never_waits() {
        let mut slots = Slots::new(3, 2);
        assert_eq!(slots.turn(2, 100, Cycle(100), false), Cycle(0));
        slots.turn(0, 100, Cycle(100), true);
        assert_eq!(slots.turn(1, 100, Cycle(100), false), Cycle(0));
        let mut apart = Slots::new(2, 1);
        apart.turn(0, 100, Cycle(100), true);
        assert_eq!(apart.turn(1, 100, Cycle(100), true), Cycle(0));
    }

    #[test]
    fn a_turn_ends_with_its_window_however_much_is_issued() {
        let mut slots = Slots::new(2, 2);
        let (mut now, end) = ([0; 2], 1_000_000);
        while now.iter().any(|n| *n < end) {
            for (hart, now) in now.iter_mut().enumerate() {
                let window = (*now / 1000 + 1) * 1000;
                let until = slots.reach(hart, Cycle(*now), Cycle(window), true).0;
                // Issues all the time, or stalls now and then.
                let issued = if (*now / 1000).is_multiple_of(3) { (until - *now) / 4 } else { until - *now };
                *now = until + slots.turn(hart, issued, Cycle(until - *now), true).0;
                assert!(*now <= window + 1, "{} of {window}", *now);
            }
        }
    }

    #[test]
    fn parts_of_cycles_add_up() {
        let mut slots = Slots::new(2, 2);
        slots.turn(0, 1000, Cycle(1000), true);
        slots.turn(1, 1, Cycle(1), true);
        // Turns of one instruction, beside a hart that is always busy.
        let waited: u64 = (0..1000).map(|_| slots.turn(1, 1, Cycle(1), true).0).sum();
        assert!((990..=1000).contains(&waited), "{waited}");
    }
}
