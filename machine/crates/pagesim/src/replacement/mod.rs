// SPDX-License-Identifier: Apache-2.0
//! Orders of replacement, which choose the page to evict. Each order has one file, and one line here.

mod forever;
mod groups;
#[cfg(test)]
mod testing;

pub use forever::Forever;
pub use groups::Groups;
pub use lru::Lru;
pub use virtual_time::VirtualTime;

use crate::Error;
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// An order of the pages in DRAM.
pub trait Replace {
    /// A page without a frame is needed. [`Replace::insert`] follows. If no frame is free, a victim leaves before that.
    fn miss(&mut self, _page: PageId) {}
    /// A page of a process has got a frame.
    fn insert(&mut self, page: PageId, owner: Pid);
    /// A page in DRAM is accessed at the time `now`.
    fn touch(&mut self, page: PageId, now: Time);
    /// The first access to a page since it was inserted. The page was read or prefetched for this access.
    fn first(&mut self, page: PageId, now: Time) {
        self.touch(page, now);
    }
    /// A page should lose its frame soon if it is not used again (Linux: move to the tail of the inactive list).
    fn demote(&mut self, page: PageId);
    /// A page leaves.
    fn remove(&mut self, page: PageId);
    /// Takes out the page to evict: the first one that `may` be evicted.
    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId>;
    /// Takes out the page to evict among those of a group of processes ([`Groups`]).
    fn victim_of(&mut self, _group: usize, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        self.victim(may)
    }
    /// A process begins a turn.
    fn enter(&mut self, _pid: Pid, _now: Time) {}
    /// A process ends a turn.
    fn leave(&mut self, _pid: Pid, _now: Time) {}
    /// Gives the time until the next turn of each process.
    fn expect(&mut self, _waits: &[Time]) {}
    /// Number of pages.
    fn len(&self) -> usize;
    /// Whether there is no page.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The values on which an order of replacement may depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of frames, at least one. The order never has more pages than this.
    pub frames: usize,
    /// Number of processes.
    pub processes: usize,
}

/// The name of an order of replacement, its description, and the function that makes it.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The name in configurations (`memory.replacement`).
    pub name: &'static str,
    /// One line for the list of all orders (docs/reference/pagesim.md), in Markdown.
    pub about: &'static str,
    /// Makes the order for one memory.
    pub make: fn(Room) -> Box<dyn Replace>,
}

/// Declares the files of orders. Each file has its order in `REGISTRATION`.
macro_rules! orders {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// All orders of replacement, as lists show them.
        pub const BUILT_IN: &[Registration] = &[$($file::REGISTRATION),*];
    };
}

orders! {
    lru,
    fifo,
    clock,
    two_lists,
    mglru,
    clock_pro,
    arc,
    s3_fifo,
    virtual_time,
}

/// Finds an order of replacement by name.
///
/// # Errors
/// No order has this name.
pub fn find(name: &str) -> Result<Registration, Error> {
    BUILT_IN.iter().find(|order| order.name == name).copied().ok_or_else(|| {
        let names = BUILT_IN.iter().map(|order| order.name).collect::<Vec<_>>().join(", ");
        Error::Settings(format!("replacement must be one of {names}, not {name}"))
    })
}

/// The entry of a page in a table that grows when new pages appear.
fn entry<T: Clone + Default>(values: &mut Vec<T>, page: PageId) -> &mut T {
    if values.len() <= page.index() {
        values.resize(page.index() + 1, T::default());
    }
    &mut values[page.index()]
}
