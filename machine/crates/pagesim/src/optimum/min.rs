// SPDX-License-Identifier: Apache-2.0
//! MIN: the page whose next use is furthest goes (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM
//! Systems Journal 5(2), 1966). No other choice of pages, and no reading ahead, has fewer pages read for the same string.

use std::collections::BinaryHeap;

/// When a page of a string is used next; of two pages the one with the larger value goes first. Pages that are not used again
/// are beyond all others, the one that was used first furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next(pub(super) u64);

/// Finds next uses, from the end of a string to its beginning.
#[derive(Debug, Default)]
pub struct Backward {
    /// Of each page, by number: the use that was met last. None is before the first one, so 0 is nothing.
    uses: Vec<u64>,
}

impl Backward {
    /// The next use of the page that use number `at` is of.
    pub fn next(&mut self, page: u32, at: u64) -> Next {
        match std::mem::replace(entry(&mut self.uses, page), at) {
            0 => Next(u64::MAX - at),
            next => Next(next),
        }
    }
}

/// What a use of a page leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The page is there.
    Hit,
    /// It is read into a frame that was not used yet.
    Read,
    /// It is read in place of this page.
    Replaced(u32),
}

/// Pages in so many frames.
#[derive(Debug)]
pub struct Min {
    frames: usize,
    held: usize,
    /// Of each page, by number: its next use; 0 if it is not there.
    next: Vec<u64>,
    /// Pages by next use, some of them outdated.
    order: BinaryHeap<(u64, u32)>,
}

impl Min {
    /// All frames empty; there is at least one.
    pub fn new(frames: usize) -> Min {
        Min { frames, held: 0, next: vec![], order: BinaryHeap::new() }
    }

    /// A page is used.
    pub fn access(&mut self, page: u32, Next(next): Next) -> Outcome {
        let outcome = if *entry(&mut self.next, page) != 0 {
            Outcome::Hit
        } else if self.held < self.frames {
            self.held += 1;
            Outcome::Read
        } else {
            self.evict().map_or(Outcome::Read, Outcome::Replaced)
        };
        self.next[page as usize] = next;
        if self.order.len() > 2 * self.frames + 1024 {
            self.order.retain(|(at, page)| self.next[*page as usize] == *at);
        }
        self.order.push((next, page));
        outcome
    }

    fn evict(&mut self) -> Option<u32> {
        while let Some((at, page)) = self.order.pop() {
            if self.next[page as usize] == at {
                self.next[page as usize] = 0;
                return Some(page);
            }
        }
        None
    }
}

/// Pages that MIN has to read for a string of pages.
pub fn reads(string: &[u32], frames: usize) -> u64 {
    let mut backward = Backward::default();
    let mut next: Vec<_> = string.iter().enumerate().rev().map(|(at, page)| backward.next(*page, at as u64)).collect();
    next.reverse();
    let mut min = Min::new(frames);
    string.iter().zip(next).filter(|(page, next)| min.access(**page, *next) != Outcome::Hit).count() as u64
}

fn entry(values: &mut Vec<u64>, page: u32) -> &mut u64 {
    let index = page as usize;
    if values.len() <= index {
        values.resize(index + 1, 0);
    }
    &mut values[index]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Fourteen uses, three frames:
    ///
    /// | use | there before, each with its next use | |
    /// | --- | --- | --- |
    /// | 0: page 1 | | read |
    /// | 1: page 2 | 1 at 3 | read |
    /// | 2: page 3 | 1 at 3, 2 at 5 | read |
    /// | 3: page 1 | 1 at 3, 2 at 5, 3 at 9 | hit |
    /// | 4: page 4 | 1 at 6, 2 at 5, 3 at 9 | in place of 3 |
    /// | 5: page 2 | 1 at 6, 2 at 5, 4 at 11 | hit |
    /// | 6: page 1 | 1 at 6, 2 at 8, 4 at 11 | hit |
    /// | 7: page 5 | 1 at 12, 2 at 8, 4 at 11 | in place of 1 |
    /// | 8: page 2 | 2 at 8, 4 at 11, 5 never | hit |
    /// | 9: page 3 | 2 never since 8, 4 at 11, 5 never since 7 | in place of 5 |
    /// | 10: page 6 | 2 never since 8, 3 at 13, 4 at 11 | in place of 2 |
    /// | 11: page 4 | 3 at 13, 4 at 11, 6 never | hit |
    /// | 12: page 1 | 3 at 13, 4 never since 11, 6 never since 10 | in place of 6 |
    /// | 13: page 3 | 1 never, 3 at 13, 4 never | hit |
    #[test]
    fn min_by_hand() {
        use Outcome::{Hit, Read, Replaced};
        let string = [1, 2, 3, 1, 4, 2, 1, 5, 2, 3, 6, 4, 1, 3];
        let mut backward = Backward::default();
        let mut next: Vec<_> = (0..string.len()).rev().map(|at| backward.next(string[at], at as u64)).collect();
        next.reverse();
        let mut min = Min::new(3);
        let outcomes: Vec<_> = string.iter().zip(next).map(|(page, next)| min.access(*page, next)).collect();
        let replaced = |page| Replaced(page);
        assert_eq!(
            outcomes,
            [
                Read,
                Read,
                Read,
                Hit,
                replaced(3),
                Hit,
                Hit,
                replaced(1),
                Hit,
                replaced(5),
                replaced(2),
                Hit,
                replaced(6),
                Hit
            ]
        );
        assert_eq!(reads(&string, 3), 8);
    }

    /// The fewest reads of any choice, all of them tried.
    fn fewest(string: &[u32], held: &[u32], frames: usize) -> u64 {
        let Some((page, rest)) = string.split_first() else { return 0 };
        if held.contains(page) {
            return fewest(rest, held, frames);
        }
        let with = |held: &[u32]| fewest(rest, &[held, &[*page]].concat(), frames);
        if held.len() < frames {
            return 1 + with(held);
        }
        let without = |victim| held.iter().copied().filter(|page| *page != victim).collect::<Vec<_>>();
        1 + held.iter().map(|victim| with(&without(*victim))).min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn no_choice_reads_fewer_pages(string in prop::collection::vec(0..6_u32, 0..14), frames in 1..5_usize) {
            prop_assert_eq!(reads(&string, frames), fewest(&string, &[], frames));
        }

        /// Long enough for outdated entries to be thrown away.
        #[test]
        fn more_frames_read_no_more(string in prop::collection::vec(0..30_u32, 1500), frames in 1..30_usize) {
            prop_assert!(reads(&string, frames + 1) <= reads(&string, frames));
            prop_assert_eq!(reads(&string, 30), 30);
        }
    }
}
