// SPDX-License-Identifier: Apache-2.0
//! No page ever goes.

use super::Replace;
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// Knows of no page, so has none to give up.
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
