// SPDX-License-Identifier: Apache-2.0
//! A core's store buffer: stores wait for their lines, in order, while the core goes on.

use std::collections::VecDeque;

use trapless_memory::Cycle;

/// The store buffer of a core.
#[derive(Clone, Debug)]
pub struct StoreBuffer {
    entries: usize,
    /// The time at which each store is done.
    done: VecDeque<u64>,
}

impl StoreBuffer {
    /// Creates an empty store buffer. With 0 entries the core waits for every store.
    pub fn new(entries: usize) -> StoreBuffer {
        StoreBuffer { entries, done: VecDeque::with_capacity(entries) }
    }

    /// Adds a store at `now` that needs `cycles` for its line. Returns the cycles that the core waits for a free entry.
    pub fn push(&mut self, now: Cycle, cycles: u64) -> u64 {
        if self.entries == 0 {
            return cycles;
        }
        while self.done.front().is_some_and(|done| *done <= now.0) {
            self.done.pop_front();
        }
        let wait =
            if self.done.len() < self.entries { 0 } else { self.done.pop_front().map_or(0, |done| done - now.0) };
        // Stores become visible in order.
        let done = (now.0 + wait + cycles).max(self.done.back().copied().unwrap_or(0));
        self.done.push_back(done);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_waits_for_the_oldest_when_all_are_taken() {
        let mut b = StoreBuffer::new(2);
        assert_eq!(b.push(Cycle(0), 100), 0);
        // A store is done no earlier than the store before it.
        assert_eq!(b.push(Cycle(10), 50), 0);
        assert_eq!(b.push(Cycle(20), 100), 80);
        assert_eq!(b.push(Cycle(101), 100), 0);
        assert_eq!(b.push(Cycle(500), 100), 0);
    }

    #[test]
    fn without_entries_it_waits_for_each() {
        let mut b = StoreBuffer::new(0);
        assert_eq!((b.push(Cycle(0), 100), b.push(Cycle(1), 7)), (100, 7));
    }
}
