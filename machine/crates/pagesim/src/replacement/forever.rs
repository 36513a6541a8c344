// SPDX-License-Identifier: Apache-2.0
//! Never evicts a page.

use super::Replace;
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// An order that contains no page, and so has no victim.
#[derive(Debug)]
pub struct Forever;

impl Replace for Forever {
    fn insert(&mut self, _page: PageId, _owner: Pid) {}
    fn touch(&mut self, _page: PageId, _now: Time) {}
    fn demote(&mut self, _page: PageId) {}
    fn remove(&mut self, _page: PageId) {}

    fn victim(&mut self, _may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        None
    }

    fn len(&self) -> usize {
        0
    }
}
