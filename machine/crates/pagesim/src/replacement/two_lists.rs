// SPDX-License-Identifier: Apache-2.0
//! The lists of Linux: an active and an inactive list, and an accessed bit for each page (mm/vmscan.c, without multi-generational
//! LRU).

use super::{Registration, Replace};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "two-lists",
    about: "as Linux without multi-generational LRU: an active and an inactive list, and accessed bits",
    make: |_| Box::new(TwoLists::default()),
};

const INACTIVE: usize = 0;
const ACTIVE: usize = 1;

/// The two lists. New pages are inactive. Eviction looks at pages from the tail of the inactive list: a page that was accessed
/// becomes active, and the first other one is evicted. While the active list is longer than the inactive one, the page at its
/// tail becomes inactive.
#[derive(Debug, Default)]
pub struct TwoLists {
    links: Links,
    lists: [List; 2],
    /// For each page: whether it was accessed since the last look at it, and whether it is in the active list.
    flags: Vec<(bool, bool)>,
}

impl TwoLists {
    fn add(&mut self, page: PageId, list: usize, end: End) {
        if self.flags.len() <= page.index() {
            self.flags.resize(page.index() + 1, (false, false));
        }
        self.flags[page.index()] = (false, list == ACTIVE);
        self.links.insert(&mut self.lists[list], end, page.0);
    }

    fn balance(&mut self) {
        while self.lists[ACTIVE].len() > self.lists[INACTIVE].len() {
            let Some(id) = self.lists[ACTIVE].at(End::Tail) else { break };
            self.remove(PageId(id));
            self.add(PageId(id), INACTIVE, End::Head);
        }
    }
}

impl Replace for TwoLists {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        self.add(page, INACTIVE, End::Head);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        self.flags[page.index()].0 = true;
    }

    fn demote(&mut self, page: PageId) {
        self.remove(page);
        self.add(page, INACTIVE, End::Tail);
    }

    fn remove(&mut self, page: PageId) {
        let list = usize::from(self.flags[page.index()].1);
        self.links.remove(&mut self.lists[list], page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        self.balance();
        let mut at = self.lists[INACTIVE].at(End::Tail);
        // Promotions may make the inactive list the shorter one. Then the search starts again. It looks at each page at most
        // three times.
        for _ in 0..3 * self.len() {
            let Some(id) = at else {
                self.balance();
                at = self.lists[INACTIVE].at(End::Tail);
                continue;
            };
            let page = PageId(id);
            at = self.links.before(id);
            if self.flags[page.index()].0 {
                self.remove(page);
                self.add(page, ACTIVE, End::Head);
            } else if may(page) {
                self.remove(page);
                return Some(page);
            }
        }
        None
    }

    fn len(&self) -> usize {
        self.lists[INACTIVE].len() + self.lists[ACTIVE].len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four pages, of which 0 and 2 are accessed. The look meets 0 first and makes it active, and evicts 1. Then 2 becomes
    /// active, and 3 is evicted.
    #[test]
    fn an_accessed_page_gets_a_second_round() {
        let mut lists = TwoLists::default();
        (0..4).for_each(|id| lists.insert(PageId(id), 0));
        lists.touch(PageId(0), 0);
        lists.touch(PageId(2), 0);
        assert_eq!(lists.victim(&|_| true), Some(PageId(1)));
        assert_eq!(lists.victim(&|_| true), Some(PageId(3)));
        // Both remaining pages are active. The first one was not accessed since the last look at it.
        assert_eq!(lists.victim(&|_| true), Some(PageId(0)));
        assert_eq!(lists.victim(&|page| page != PageId(2)), None);
        assert_eq!(lists.len(), 1);
    }
}
