// SPDX-License-Identifier: Apache-2.0
//! Which page has to go: one list for the pages of all processes.

mod lru;
mod two_lists;

pub use lru::Lru;
pub use two_lists::TwoLists;

use crate::pages::PageId;

/// An order of the pages in DRAM.
pub trait Replace {
    /// A page has got a frame.
    fn insert(&mut self, page: PageId);
    /// A page in DRAM is accessed.
    fn touch(&mut self, page: PageId);
    /// A page is to lose its frame soon, if it is not used again (Linux: to the tail of the inactive list).
    fn demote(&mut self, page: PageId);
    /// A page leaves.
    fn remove(&mut self, page: PageId);
    /// Takes out the page that goes first, of those that `may` go.
    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId>;
    /// Number of pages.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
