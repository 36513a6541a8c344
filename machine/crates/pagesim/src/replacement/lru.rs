// SPDX-License-Identifier: Apache-2.0
//! LRU: the least recently used page goes first (ASPF IV-A).

use super::{Registration, Replace};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "lru",
    about: "the least recently used page goes first",
    make: |_| Box::new(Lru::default()),
};

/// One list with the most recently used page first.
#[derive(Debug, Default)]
pub struct Lru {
    links: Links,
    list: List,
}

impl Replace for Lru {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        self.links.insert(&mut self.list, End::Head, page.0);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        self.links.move_to(&mut self.list, End::Head, page.0);
    }

    fn demote(&mut self, page: PageId) {
        self.links.move_to(&mut self.list, End::Tail, page.0);
    }

    fn remove(&mut self, page: PageId) {
        self.links.remove(&mut self.list, page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let mut at = self.list.at(End::Tail);
        while let Some(id) = at {
            if may(PageId(id)) {
                self.remove(PageId(id));
                return Some(PageId(id));
            }
            at = self.links.before(id);
        }
        None
    }

    fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a search through the times of last use.
        #[test]
        fn as_times_of_last_use(actions in prop::collection::vec((0..8u8, 0..20u32), 0..300)) {
            let (mut lru, mut naive) = (Lru::default(), Vec::<(i64, u32)>::new());
            for (now, (action, id)) in (1_i64..).zip(actions) {
                let (page, at) = (PageId(id), naive.iter().position(|entry| entry.1 == id));
                match (action, at) {
                    (7, _) => {
                        let oldest = naive.iter().copied().filter(|entry| entry.1 % 3 != 0).min();
                        naive.retain(|entry| Some(*entry) != oldest);
                        prop_assert_eq!(lru.victim(&|page| page.0 % 3 != 0), oldest.map(|entry| PageId(entry.1)));
                    }
                    (_, None) => {
                        lru.insert(page, 0);
                        naive.push((now, id));
                    }
                    (0, Some(n)) => {
                        lru.remove(page);
                        naive.remove(n);
                    }
                    (1, Some(n)) => {
                        lru.demote(page);
                        naive[n].0 = -now;
                    }
                    (_, Some(n)) => {
                        lru.touch(page, 0);
                        naive[n].0 = now;
                    }
                }
                prop_assert_eq!(lru.len(), naive.len());
            }
        }
    }
}
