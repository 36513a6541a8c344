// SPDX-License-Identifier: Apache-2.0
//! S3-FIFO: Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023.
//!
//! New pages enter a small queue. Pages that are used there move to the main queue. The others leave soon, and a ghost queue
//! keeps their numbers. A page whose number is in the ghost queue enters the main queue at once. In the main queue, a page gets
//! one more round for each use, at most three. Sizes and details are those of libCacheSim:
//!
//! - The small queue has a tenth of the frames (rounded down), and the main queue has the others. The ghost queue keeps as many
//!   numbers as nine tenths of the frames.
//! - A page moves to the main queue if it was used twice in the small queue. Its uses count from zero there.
//! - The victim comes from the small queue, unless that is empty or the main queue is longer than its size.
//! - Before the first eviction, pages enter the main queue when the small queue is full.
//! - A page that is evicted from the main queue leaves no number.

use super::{Registration, Replace, entry};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "s3-fifo",
    about: "S3-FIFO: pages used twice in a small queue, and those wanted again soon after it, enter the main queue",
    make: |room| Box::new(S3Fifo::new(room.frames)),
};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
/// Number of uses in the small queue after which a page moves to the main queue.
const ENOUGH: u8 = 2;
/// Largest number of uses that is counted.
const MOST: u8 = 3;

/// The three queues, each with the newest page first.
#[derive(Debug)]
pub struct S3Fifo {
    small: usize,
    main: usize,
    ghosts: usize,
    links: Links,
    queues: [List; 3],
    /// For each page: its number of uses, and its queue.
    pages: Vec<(u8, u8)>,
    /// The missing page, if its number was in the ghost queue.
    back: Option<u32>,
    /// Whether a page was evicted yet.
    evicted: bool,
}

impl S3Fifo {
    /// Makes empty queues for this number of frames.
    pub fn new(frames: usize) -> S3Fifo {
        let small = (frames as f64 * 0.1) as usize;
        S3Fifo {
            small,
            main: frames - small,
            ghosts: (frames as f64 * 0.9) as usize,
            links: Links::default(),
            queues: [List::default(); 3],
            pages: vec![],
            back: None,
            evicted: false,
        }
    }

    fn put(&mut self, page: PageId, queue: usize, end: End) {
        *entry(&mut self.pages, page) = (0, queue as u8);
        self.links.insert(&mut self.queues[queue], end, page.0);
    }

    fn drop(&mut self, page: PageId) {
        let queue = usize::from(self.pages[page.index()].1);
        self.links.remove(&mut self.queues[queue], page.0);
    }

    /// Takes a page's number out of the ghost queue. Returns whether it was there.
    fn leave_ghosts(&mut self, page: PageId) -> bool {
        let ghost = self.links.is_linked(page.0) && usize::from(self.pages[page.index()].1) == GHOST;
        if ghost {
            self.drop(page);
        }
        ghost
    }

    fn take_small(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let mut at = self.queues[SMALL].at(End::Tail);
        while let Some(id) = at {
            let page = PageId(id);
            at = self.links.before(id);
            if !may(page) {
                continue;
            }
            self.drop(page);
            if self.pages[page.index()].0 >= ENOUGH {
                self.put(page, MAIN, End::Head);
                continue;
            }
            if self.ghosts > 0 {
                if self.queues[GHOST].len() == self.ghosts
                    && let Some(oldest) = self.queues[GHOST].at(End::Tail)
                {
                    self.drop(PageId(oldest));
                }
                self.put(page, GHOST, End::Head);
            }
            return Some(page);
        }
        None
    }

    fn take_main(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let mut at = self.queues[MAIN].at(End::Tail);
        while let Some(id) = at {
            let page = PageId(id);
            at = self.links.before(id);
            if !may(page) {
                continue;
            }
            let uses = &mut self.pages[page.index()].0;
            if *uses == 0 {
                self.drop(page);
                return Some(page);
            }
            *uses -= 1;
            self.links.move_to(&mut self.queues[MAIN], End::Head, id);
            // A page that moves to the head is met again, even if it was at the head already.
            at = at.or(Some(id));
        }
        None
    }
}

impl Replace for S3Fifo {
    fn miss(&mut self, page: PageId) {
        self.back = self.leave_ghosts(page).then_some(page.0);
    }

    fn insert(&mut self, page: PageId, _owner: Pid) {
        let back = self.back.take() == Some(page.0) || self.leave_ghosts(page);
        let early = !self.evicted && self.queues[SMALL].len() >= self.small;
        self.put(page, if back || early { MAIN } else { SMALL }, End::Head);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        let uses = &mut self.pages[page.index()].0;
        *uses = MOST.min(*uses + 1);
    }

    fn first(&mut self, _page: PageId, _now: Time) {}

    fn demote(&mut self, page: PageId) {
        self.drop(page);
        self.put(page, SMALL, End::Tail);
    }

    fn remove(&mut self, page: PageId) {
        self.drop(page);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        self.evicted = true;
        let from_main = self.queues[MAIN].len() > self.main || self.queues[SMALL].len() == 0;
        let early = if from_main { self.take_main(may) } else { None };
        early.or_else(|| self.take_small(may)).or_else(|| self.take_main(may))
    }

    fn len(&self) -> usize {
        self.queues[SMALL].len() + self.queues[MAIN].len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::replacement::testing::{Row, actions, same};

    #[derive(Default)]
    struct Naive {
        frames: usize,
        small: Row,
        main: Row,
        ghost: Row,
        uses: BTreeMap<PageId, u32>,
        back: Option<PageId>,
        evicted: bool,
    }

    impl Naive {
        fn small_size(&self) -> usize {
            self.frames / 10
        }
        fn evict_small(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            while let Some(page) = self.small.take_oldest(may) {
                if self.uses.remove(&page).unwrap_or(0) < 2 {
                    self.ghost.push(page);
                    self.ghost.0.truncate(self.frames * 9 / 10);
                    return Some(page);
                }
                self.main.push(page);
            }
            None
        }
        fn evict_main(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            while let Some(page) = self.main.take_oldest(may) {
                let uses = self.uses.remove(&page).unwrap_or(0).min(3);
                if uses == 0 {
                    return Some(page);
                }
                self.uses.insert(page, uses - 1);
                self.main.push(page);
            }
            None
        }
    }

    impl Replace for Naive {
        fn miss(&mut self, page: PageId) {
            self.back = self.ghost.take(page).then_some(page);
        }
        fn insert(&mut self, page: PageId, _owner: Pid) {
            let back = self.back.take() == Some(page);
            if back | self.ghost.take(page) || (!self.evicted && self.small.len() >= self.small_size()) {
                self.main.push(page);
            } else {
                self.small.push(page);
            }
            self.uses.remove(&page);
        }
        fn touch(&mut self, page: PageId, _now: Time) {
            *self.uses.entry(page).or_default() += 1;
        }
        fn first(&mut self, _page: PageId, _now: Time) {}
        fn demote(&mut self, page: PageId) {
            self.remove(page);
            self.small.push_oldest(page);
        }
        fn remove(&mut self, page: PageId) {
            self.uses.remove(&page);
            self.small.take(page);
            self.main.take(page);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            self.evicted = true;
            let main_size = self.frames - self.small_size();
            if self.main.len() > main_size || self.small.len() == 0 {
                self.evict_main(may).or_else(|| self.evict_small(may)).or_else(|| self.evict_main(may))
            } else {
                self.evict_small(may).or_else(|| self.evict_main(may))
            }
        }
        fn len(&self) -> usize {
            self.small.len() + self.main.len()
        }
    }

    proptest! {
        #[test]
        fn as_three_rows(frames in 1..25_usize, actions in actions()) {
            let mut naive = Naive { frames, ..Naive::default() };
            let mut queues = S3Fifo::new(frames);
            same(&mut queues, &mut naive, frames, &actions)?;
            prop_assert_eq!(queues.queues[GHOST].len(), naive.ghost.len());
            prop_assert!(naive.ghost.len() <= frames);
        }
    }
}
