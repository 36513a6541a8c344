// SPDX-License-Identifier: Apache-2.0
//! FIFO: the page that entered first goes first.

use super::{Registration, Replace};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "fifo",
    about: "the page that came first goes first",
    make: |_| Box::new(Fifo::default()),
};

/// One queue with the newest page first.
#[derive(Debug, Default)]
pub struct Fifo {
    links: Links,
    queue: List,
}

impl Replace for Fifo {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        self.links.insert(&mut self.queue, End::Head, page.0);
    }

    #[inline]
    fn touch(&mut self, _page: PageId, _now: Time) {}

    fn demote(&mut self, page: PageId) {
        self.links.move_to(&mut self.queue, End::Tail, page.0);
    }

    fn remove(&mut self, page: PageId) {
        self.links.remove(&mut self.queue, page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let page = self.links.last(&self.queue, may)?;
        self.remove(page);
        Some(page)
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
    struct Naive(Row);

    impl Replace for Naive {
        fn insert(&mut self, page: PageId, _owner: Pid) {
            self.0.push(page);
        }
        fn touch(&mut self, _page: PageId, _now: Time) {}
        fn demote(&mut self, page: PageId) {
            self.0.take(page);
            self.0.push_oldest(page);
        }
        fn remove(&mut self, page: PageId) {
            self.0.take(page);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            self.0.take_oldest(may)
        }
        fn len(&self) -> usize {
            self.0.len()
        }
    }

    proptest! {
        #[test]
        fn as_a_queue(frames in 1..12_usize, actions in actions()) {
            same(&mut Fifo::default(), &mut Naive::default(), frames, &actions)?;
        }
    }
}
