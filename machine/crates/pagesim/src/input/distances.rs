// SPDX-License-Identifier: Apache-2.0
//! LRU stack distances (Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970): how
//! many pages an LRU memory must have to still hold the page of an access.

use std::collections::HashMap;

/// Pages used last that are looked for in a row; most accesses are to these.
const FRONT: usize = 8;
/// Places of the tree at least.
const SMALLEST: usize = 1 << 10;

/// Accesses by stack distance. An access takes time logarithmic in the number of pages, and all takes memory linear in it.
pub struct Distances {
    /// The pages used last, the very last one first.
    front: Vec<u64>,
    /// The others, and the places that they have in the tree: the later used, the higher.
    places: HashMap<u64, usize>,
    /// Fenwick tree of the places that are taken.
    tree: Vec<u32>,
    /// The next place.
    next: usize,
    /// Accesses by distance less 1.
    counts: Vec<u64>,
}

impl Default for Distances {
    fn default() -> Distances {
        let (front, tree) = (Vec::with_capacity(FRONT + 1), vec![0; SMALLEST + 1]);
        Distances { front, places: HashMap::new(), tree, next: 0, counts: Vec::new() }
    }
}

impl Distances {
    /// An access to a page.
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
            // The first access has no distance; there is one distance more for later ones.
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

    /// Moves the pages together to the lowest places, and makes as many more.
    fn renumber(&mut self) {
        let mut places: Vec<&mut usize> = self.places.values_mut().collect();
        places.sort_unstable();
        self.next = places.len();
        places.into_iter().enumerate().for_each(|(to, place)| *place = to);
        self.tree.clear();
        self.tree.resize((2 * self.next).max(SMALLEST) + 1, 0);
        (0..self.next).for_each(|place| self.change(place, u32::wrapping_add, 1));
    }

    /// Taken places up to this one.
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

    /// Different pages so far.
    pub fn pages(&self) -> u64 {
        self.counts.len() as u64
    }

    /// The pages themselves, rising.
    pub fn sorted(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.front.iter().chain(self.places.keys()).copied().collect();
        pages.sort_unstable();
        pages
    }

    /// The fewest pages of an LRU memory in which `wanted` accesses hit, where `more` accesses hit in any memory; first
    /// accesses never do. `None` if there is no such number.
    pub fn fewest(&self, wanted: u64, more: u64) -> Option<u64> {
        let mut hits = more;
        let enough = |n: &u64| {
            hits += n;
            hits >= wanted
        };
        self.counts.iter().position(enough).map(|at| at as u64 + 1)
    }

    /// Accesses by distance less 1; first accesses have none.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Accesses but the first ones to their pages.
    pub fn again(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list of pages, the last used one first.
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
