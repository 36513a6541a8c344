// SPDX-License-Identifier: Apache-2.0
//! Which page has to go: one file for each order of replacement, and one line here.

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
    /// A page without a frame is wanted. [`Replace::insert`] follows, after a victim has gone if there is no free frame.
    fn miss(&mut self, _page: PageId) {}
    /// A page of a process has got a frame.
    fn insert(&mut self, page: PageId, owner: Pid);
    /// A page in DRAM is accessed, at a time.
    fn touch(&mut self, page: PageId, now: Time);
    /// The first access to a page since it was inserted: the one that it was read for, or was read ahead for.
    fn first(&mut self, page: PageId, now: Time) {
        self.touch(page, now);
    }
    /// A page is to lose its frame soon, if it is not used again (Linux: to the tail of the inactive list).
    fn demote(&mut self, page: PageId);
    /// A page leaves.
    fn remove(&mut self, page: PageId);
    /// Takes out the page that goes first, of those that `may` go.
    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId>;
    /// Takes out the page of a group of processes ([`Groups`]) that goes first.
    fn victim_of(&mut self, _group: usize, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        self.victim(may)
    }
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

/// What an order of replacement may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Frames, at least one. More pages than this are never in the order at a time.
    pub frames: usize,
    /// Number of processes.
    pub processes: usize,
}

/// How an order of replacement is known and made.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// What configurations call it (`memory.replacement`).
    pub name: &'static str,
    /// One line for the list of all of them (docs/reference/pagesim.md), in Markdown.
    pub about: &'static str,
    /// Makes it for one memory.
    pub make: fn(Room) -> Box<dyn Replace>,
}

/// The files of orders: each has its order in `REGISTRATION`.
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
/// There is none of this name.
pub fn find(name: &str) -> Result<Registration, Error> {
    BUILT_IN.iter().find(|order| order.name == name).copied().ok_or_else(|| {
        let names = BUILT_IN.iter().map(|order| order.name).collect::<Vec<_>>().join(", ");
        Error::Settings(format!("replacement must be one of {names}, not {name}"))
    })
}

/// The entry of a page in a table that grows as pages are met.
fn entry<T: Clone + Default>(values: &mut Vec<T>, page: PageId) -> &mut T {
    if values.len() <= page.index() {
        values.resize(page.index() + 1, T::default());
    }
    &mut values[page.index()]
}
