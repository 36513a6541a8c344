// SPDX-License-Identifier: Apache-2.0
//! A clock with one accessed bit for each page: FIFO with a second chance.
//!
//! A page enters with its bit clear. The access for which it was read does not set the bit; later accesses do. The hand clears
//! the bits that are set and takes the first page whose bit is clear. libCacheSim's `Clock` makes the same choices.

use super::{Registration, Replace, entry};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "clock",
    about: "FIFO with a second chance: a page whose accessed bit is set stays for one more round, without the bit",
    make: |_| Box::new(Clock::default()),
};

/// A queue. The hand is at its tail.
#[derive(Debug, Default)]
pub struct Clock {
    links: Links,
    queue: List,
    used: Vec<bool>,
}

impl Replace for Clock {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        *entry(&mut self.used, page) = false;
        self.links.insert(&mut self.queue, End::Head, page.0);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        self.used[page.index()] = true;
    }

    fn first(&mut self, _page: PageId, _now: Time) {}

    fn demote(&mut self, page: PageId) {
        self.used[page.index()] = false;
        self.links.move_to(&mut self.queue, End::Tail, page.0);
    }

    fn remove(&mut self, page: PageId) {
        self.links.remove(&mut self.queue, page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let mut at = self.queue.at(End::Tail);
        while let Some(id) = at {
            let page = PageId(id);
            at = self.links.before(id);
            if !may(page) {
                continue;
            }
            if !std::mem::take(&mut self.used[page.index()]) {
                self.remove(page);
                return Some(page);
            }
            self.links.move_to(&mut self.queue, End::Head, id);
            // A page that moves to the head is met again, even if it was at the head already.
            at = at.or(Some(id));
        }
        None
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::replacement::testing::{Row, actions, same};

    #[derive(Default)]
    struct Naive {
        row: Row,
        used: Vec<PageId>,
    }

    impl Replace for Naive {
        fn insert(&mut self, page: PageId, _owner: Pid) {
            self.used.retain(|other| *other != page);
            self.row.push(page);
        }
        fn touch(&mut self, page: PageId, _now: Time) {
            self.used.push(page);
        }
        fn first(&mut self, _page: PageId, _now: Time) {}
        fn demote(&mut self, page: PageId) {
            self.used.retain(|other| *other != page);
            self.row.take(page);
            self.row.push_oldest(page);
        }
        fn remove(&mut self, page: PageId) {
            self.row.take(page);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            loop {
                let page = self.row.take_oldest(may)?;
                if !self.used.contains(&page) {
                    return Some(page);
                }
                self.used.retain(|other| *other != page);
                self.row.push(page);
            }
        }
        fn len(&self) -> usize {
            self.row.len()
        }
    }

    proptest! {
        #[test]
        fn as_a_queue_with_bits(frames in 1..12_usize, actions in actions()) {
            same(&mut Clock::default(), &mut Naive::default(), frames, &actions)?;
        }
    }

    /// Pages 0 to 2 are in three frames, and 0 is accessed again: 1 goes, then 2, then 0, whose bit was cleared.
    #[test]
    fn a_second_chance_by_hand() {
        let mut clock = Clock::default();
        for id in 0..3 {
            clock.insert(PageId(id), 0);
            clock.first(PageId(id), 0);
        }
        clock.touch(PageId(0), 1);
        let order: Vec<_> = std::iter::from_fn(|| clock.victim(&|_| true)).map(|page| page.0).collect();
        assert_eq!(order, [1, 2, 0]);
    }
}
