// SPDX-License-Identifier: Apache-2.0
//! LRU stack distances (Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970). The distance
//! of an access is the number of pages that an LRU memory needs to still hold its page.

use std::collections::HashMap;

/// Length of the list of the pages used last. Most accesses hit there.
const FRONT: usize = 8;
/// Smallest number of places in the tree.
const SMALLEST: usize = 1 << 10;

/// Counts accesses by stack distance. An access takes time logarithmic in the number of pages; memory use is linear in it.
pub struct Distances {
    /// The pages used last, the most recent one first.
    front: Vec<u64>,
    /// The other pages, with their places in the tree. A page used later has a higher place.
    places: HashMap<u64, usize>,
    /// Fenwick tree of the places that are taken.
    tree: Vec<u32>,
    /// The next place.
    next: usize,
    /// Number of accesses by distance; the first entry counts distance 1.
    counts: Vec<u64>,
}

impl Default for Distances {
    fn default() -> Distances {
        let (front, tree) = (Vec::with_capacity(FRONT + 1), vec![0; SMALLEST + 1]);
        Distances { front, places: HashMap::new(), tree, next: 0, counts: Vec::new() }
    }
}

impl Distances {
    /// Adds an access to a page.
    #[inline]
    pub fn access(&mut self, page: u64) {
        match self.front.iter().position(|p| *p == page) {
            Some(at) => {
                self.front.copy_within(..at, 1);
                self.front[0] = page;
                self.counts[at] += 1;
            }
            None => self.deep(page),
        }
    }

    fn deep(&mut self, page: u64) {
        match self.places.remove(&page) {
            Some(place) => {
                let above = self.places.len() + 1 - self.up_to(place);
                self.change(place, u32::wrapping_sub, 1);
                self.counts[FRONT + above] += 1;
            }
            // The first access to a page has no distance. Later accesses may have a distance that is one greater than before.
            None => self.counts.push(0),
        }
        self.front.insert(0, page);
        if self.front.len() > FRONT
            && let Some(out) = self.front.pop()
        {
            if self.next + 1 == self.tree.len() {
                self.renumber();
            }
            self.places.insert(out, self.next);
            self.change(self.next, u32::wrapping_add, 1);
            self.next += 1;
        }
    }

    /// Moves the pages to the lowest places and doubles the number of places.
    fn renumber(&mut self) {
        let mut places: Vec<&mut usize> = self.places.values_mut().collect();
        places.sort_unstable();
        self.next = places.len();
        places.into_iter().enumerate().for_each(|(to, place)| *place = to);
        self.tree.clear();
        self.tree.resize((2 * self.next).max(SMALLEST) + 1, 0);
        (0..self.next).for_each(|place| self.change(place, u32::wrapping_add, 1));
    }

    /// Number of taken places up to and including this one.
    fn up_to(&self, place: usize) -> usize {
        let (mut at, mut sum) = (place + 1, 0);
        while at > 0 {
            sum += self.tree[at] as usize;
            at &= at - 1;
        }
        sum
    }

    fn change(&mut self, place: usize, by: impl Fn(u32, u32) -> u32, n: u32) {
        let mut at = place + 1;
        while at < self.tree.len() {
            self.tree[at] = by(self.tree[at], n);
            at += at & at.wrapping_neg();
        }
    }

    /// Number of different pages so far.
    pub fn pages(&self) -> u64 {
        self.counts.len() as u64
    }

    /// The different pages, sorted.
    pub fn sorted(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.front.iter().chain(self.places.keys()).copied().collect();
        pages.sort_unstable();
        pages
    }

    /// Returns the smallest LRU memory, in pages, with at least `wanted` hits. `more` accesses hit in any memory, and the first
    /// access to a page never does. Returns `None` if no size is enough.
    pub fn fewest(&self, wanted: u64, more: u64) -> Option<u64> {
        let mut hits = more;
        let enough = |n: &u64| {
            hits += n;
            hits >= wanted
        };
        self.counts.iter().position(enough).map(|at| at as u64 + 1)
    }

    /// Number of accesses by distance; the first entry counts distance 1. First accesses to a page are not counted.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of accesses without the first one to each page.
    pub fn again(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a list of pages, the last used one first.
        #[test]
        fn they_are_those_of_a_list(
            pages in prop::collection::vec(prop_oneof![0..6u64, 0..40u64, 0..4000u64], 1..6000),
            more in 0..100u64,
            share in 1..=100u64,
        ) {
            let (mut distances, mut list, mut counts) = (Distances::default(), Vec::new(), vec![0; 4000]);
            for page in pages {
                distances.access(page);
                if let Some(at) = list.iter().position(|p| *p == page) {
                    counts[at] += 1;
                    list.remove(at);
                }
                list.insert(0, page);
            }
            prop_assert_eq!(&distances.counts[..], &counts[..list.len()]);
            let again: u64 = counts.iter().sum();
            prop_assert_eq!((distances.pages(), distances.again()), (list.len() as u64, again));
            let wanted = (again + more) * share / 100;
            let naive = (1..=list.len()).find(|n| more + counts[..*n].iter().sum::<u64>() >= wanted);
            prop_assert_eq!(distances.fewest(wanted, more), naive.map(|n| n as u64));
            list.sort_unstable();
            prop_assert_eq!(distances.sorted(), list);
        }
    }
}
