// SPDX-License-Identifier: Apache-2.0
//! Which page has to go: one list for the pages of all processes.

mod forever;
mod lru;
mod two_lists;
mod virtual_time;

pub use forever::Forever;
pub use lru::Lru;
pub use two_lists::TwoLists;
pub use virtual_time::VirtualTime;

use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// An order of the pages in DRAM.
pub trait Replace {
    /// A page of a process has got a frame.
    fn insert(&mut self, page: PageId, owner: Pid);
    /// A page in DRAM is accessed, at a time.
    fn touch(&mut self, page: PageId, now: Time);
    /// A page is to lose its frame soon, if it is not used again (Linux: to the tail of the inactive list).
    fn demote(&mut self, page: PageId);
    /// A page leaves.
    fn remove(&mut self, page: PageId);
    /// Takes out the page that goes first, of those that `may` go.
    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId>;
    /// A process gets the processor.
    fn enter(&mut self, _pid: Pid, _now: Time) {}
    /// A process loses the processor.
    fn leave(&mut self, _pid: Pid, _now: Time) {}
    /// How long each process will have to wait for its next turn.
    fn expect(&mut self, _waits: &[Time]) {}
    /// Number of pages.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
