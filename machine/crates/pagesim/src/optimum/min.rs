// SPDX-License-Identifier: Apache-2.0
//! MIN evicts the page whose next use is furthest away (Belady, "A study of replacement algorithms for a virtual-storage
//! computer", IBM Systems Journal 5(2), 1966). No other choice of pages, with or without prefetching, reads fewer pages for the
//! same string.

use std::collections::BinaryHeap;

/// The next use of a page in a string. Uses are numbered from 1. Pages that are not used again come after all others; among them,
/// the page whose last use was earliest is the furthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next(pub(super) u64);

/// Finds next uses. It goes from the end of a string to its beginning.
#[derive(Debug, Default)]
pub struct Backward {
    /// The latest use found so far of each page, by page number.
    uses: Vec<u64>,
}

impl Backward {
    /// Returns the next use of the page that is used at number `at`.
    pub fn next(&mut self, page: u32, at: u64) -> Next {
        match std::mem::replace(entry(&mut self.uses, page), at) {
            0 => Next(u64::MAX - at),
            next => Next(next),
        }
    }
}

/// The pages in frames, sorted by next use.
#[derive(Debug)]
pub(super) struct Held {
    frames: usize,
    held: usize,
    /// The next use of each page, by page number; 0 if the page is not in memory.
    next: Vec<u64>,
    /// Pages sorted by next use. Some entries are outdated.
    order: BinaryHeap<(u64, u32)>,
}

impl Held {
    pub fn new(frames: usize) -> Held {
        Held { frames, held: 0, next: vec![], order: BinaryHeap::new() }
    }

    pub fn contains(&self, page: u32) -> bool {
        self.next.get(page as usize).is_some_and(|next| *next != 0)
    }

    pub fn is_full(&self) -> bool {
        self.held == self.frames
    }

    /// Sets the next use of a page that is in memory, or that enters memory now.
    pub fn set(&mut self, page: u32, Next(next): Next) {
        self.held += usize::from(std::mem::replace(entry(&mut self.next, page), next) == 0);
        if self.order.len() > 2 * self.frames + 1024 {
            self.order.retain(|(at, page)| self.next[*page as usize] == *at);
        }
        self.order.push((next, page));
    }

    /// The page whose next use is furthest.
    pub fn furthest(&mut self) -> Option<(u32, Next)> {
        while let Some((at, page)) = self.order.peek().copied() {
            if self.next[page as usize] == at {
                return Some((page, Next(at)));
            }
            self.order.pop();
        }
        None
    }

    pub fn remove(&mut self, page: u32) {
        self.held -= usize::from(std::mem::take(entry(&mut self.next, page)) != 0);
    }
}

/// The result of a use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The page is in memory.
    Hit,
    /// The page is read into a frame that was not used before.
    Read,
    /// The page is read and replaces this page.
    Replaced(u32),
}

/// Belady's replacement (MIN) in a fixed number of frames.
#[derive(Debug)]
pub struct Min(Held);

impl Min {
    /// Makes empty frames. There must be at least one.
    pub fn new(frames: usize) -> Min {
        Min(Held::new(frames))
    }

    /// Handles a use of a page.
    pub fn access(&mut self, page: u32, next: Next) -> Outcome {
        let Min(held) = self;
        let outcome = match held.furthest() {
            _ if held.contains(page) => Outcome::Hit,
            Some((victim, _)) if held.is_full() => {
                held.remove(victim);
                Outcome::Replaced(victim)
            }
            _ => Outcome::Read,
        };
        held.set(page, next);
        outcome
    }
}

/// Number of pages that MIN reads for a string of pages.
pub fn reads(string: &[u32], frames: usize) -> u64 {
    let mut backward = Backward::default();
    let mut next: Vec<_> =
        string.iter().enumerate().rev().map(|(before, page)| backward.next(*page, before as u64 + 1)).collect();
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
    /// | 1: page 1 | | read |
    /// | 2: page 2 | 1 at 4 | read |
    /// | 3: page 3 | 1 at 4, 2 at 6 | read |
    /// | 4: page 1 | 1 at 4, 2 at 6, 3 at 10 | hit |
    /// | 5: page 4 | 1 at 7, 2 at 6, 3 at 10 | in place of 3 |
    /// | 6: page 2 | 1 at 7, 2 at 6, 4 at 12 | hit |
    /// | 7: page 1 | 1 at 7, 2 at 9, 4 at 12 | hit |
    /// | 8: page 5 | 1 at 13, 2 at 9, 4 at 12 | in place of 1 |
    /// | 9: page 2 | 2 at 9, 4 at 12, 5 never | hit |
    /// | 10: page 3 | 2 never since 9, 4 at 12, 5 never since 8 | in place of 5 |
    /// | 11: page 6 | 2 never since 9, 3 at 14, 4 at 12 | in place of 2 |
    /// | 12: page 4 | 3 at 14, 4 at 12, 6 never | hit |
    /// | 13: page 1 | 3 at 14, 4 never since 12, 6 never since 11 | in place of 6 |
    /// | 14: page 3 | 1 never, 3 at 14, 4 never | hit |
    #[test]
    fn min_by_hand() {
        use Outcome::{Hit, Read, Replaced};
        let string = [1, 2, 3, 1, 4, 2, 1, 5, 2, 3, 6, 4, 1, 3];
        let mut backward = Backward::default();
        let mut next: Vec<_> =
            (1..=14_u8).rev().map(|at| backward.next(string[usize::from(at) - 1], at.into())).collect();
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

    /// The least number of reads. It tries all choices.
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

        /// The string is long enough that outdated entries are removed.
        #[test]
        fn more_frames_read_no_more(string in prop::collection::vec(0..30_u32, 1500), frames in 1..30_usize) {
            prop_assert!(reads(&string, frames + 1) <= reads(&string, frames));
            prop_assert_eq!(reads(&string, 30), 30);
        }
    }
}
