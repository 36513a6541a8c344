// SPDX-License-Identifier: Apache-2.0
//! Compares an order of replacement with a slow and simple model of it.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::Replace;
use crate::pages::PageId;

/// A sequence of pages with the newest one in front.
#[derive(Clone, Debug, Default)]
pub struct Row(pub VecDeque<PageId>);

impl Row {
    pub fn push(&mut self, page: PageId) {
        self.0.push_front(page);
    }

    pub fn push_oldest(&mut self, page: PageId) {
        self.0.push_back(page);
    }

    pub fn has(&self, page: PageId) -> bool {
        self.0.contains(&page)
    }

    /// Takes a page out. Returns whether it was there.
    pub fn take(&mut self, page: PageId) -> bool {
        let before = self.0.len();
        self.0.retain(|other| *other != page);
        self.0.len() < before
    }

    /// Takes out the oldest page that may be evicted.
    pub fn take_oldest(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let page = self.0.iter().rev().copied().find(|page| may(*page))?;
        self.take(page);
        Some(page)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A kind of event, and its page.
pub type Action = (u8, u32);

/// A random sequence of actions, most of which are accesses. A few pages are used often, and many pages now and then.
pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec((0..20_u8, prop_oneof![0..6_u32, 0..30_u32]), 0..600)
}

/// Performs the same actions on both orders, and checks that they evict the same pages.
pub fn same(
    order: &mut dyn Replace,
    naive: &mut dyn Replace,
    frames: usize,
    actions: &[Action],
) -> Result<(), TestCaseError> {
    let mut held = BTreeSet::new();
    for (now, (action, id)) in (1..).zip(actions) {
        let (page, there) = (PageId(*id), held.contains(id));
        let mut go = |held: &mut BTreeSet<u32>, may: &dyn Fn(PageId) -> bool| {
            let victim = order.victim(may);
            prop_assert_eq!(victim, naive.victim(may));
            let any = held.iter().any(|id| may(PageId(*id)));
            prop_assert_eq!(victim.is_some(), any, "a page goes if one may");
            prop_assert!(victim.is_none_or(|page| may(page) && held.remove(&page.0)));
            Ok(())
        };
        match action {
            0 if there => {
                order.remove(page);
                naive.remove(page);
                held.remove(id);
            }
            1 if there => {
                order.demote(page);
                naive.demote(page);
            }
            2 => go(&mut held, &|page| page.0 % 3 != id % 3)?,
            3 => go(&mut held, &|_| true)?,
            // A page returns without a fault (it was rescued while it was being written), or is prefetched.
            4 | 5 if !there && held.len() < frames => {
                if *action == 5 {
                    order.miss(page);
                    naive.miss(page);
                }
                order.insert(page, 0);
                naive.insert(page, 0);
                held.insert(*id);
            }
            _ if there => {
                order.touch(page, now);
                naive.touch(page, now);
            }
            _ => {
                order.miss(page);
                naive.miss(page);
                if held.len() == frames {
                    let victim = order.victim(&|_| true);
                    prop_assert_eq!(victim, naive.victim(&|_| true));
                    prop_assert!(victim.is_some_and(|page| held.remove(&page.0)));
                }
                order.insert(page, 0);
                naive.insert(page, 0);
                held.insert(*id);
                if action % 2 == 0 {
                    order.first(page, now);
                    naive.first(page, now);
                }
            }
        }
        prop_assert_eq!((order.len(), naive.len()), (held.len(), held.len()));
    }
    // At the end, all pages are evicted in the same order.
    while let Some(page) = order.victim(&|_| true) {
        prop_assert_eq!(naive.victim(&|_| true), Some(page));
    }
    prop_assert_eq!((order.len(), naive.len()), (0, 0));
    Ok(())
}
