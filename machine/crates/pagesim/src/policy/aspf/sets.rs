// SPDX-License-Identifier: Apache-2.0
//! Fault-aware prefetch sets: pages that faulted one after the other are read together the next time (ASPF III-B1, algorithm 1).

use crate::links::{End, Links, List};
use crate::pages::PageId;
use crate::policy::Bookkeeping;
use crate::policy::aspf::settings::{Aspf, FullSet};

/// Sizes in bytes that the paper states (IV-C2).
const SET_STRUCT: u64 = 20;
const SET_NODE: u64 = 12;

/// `set_node`: the state of a page. A page without a set has `NO_SET`, or was never grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// `set_id`.
    pub set: Option<u32>,
    /// `gen_id`: the generation of the set when the page was last placed in it.
    pub generation: u32,
}

/// `set_struct`.
#[derive(Clone, Debug, Default)]
struct Set {
    generation: u32,
    /// `prefetch_count`.
    prefetched: u32,
    /// `prefetch_miss`.
    missed: u32,
    list: List,
}

/// All sets.
#[derive(Debug)]
pub struct Sets {
    sets: Vec<Set>,
    nodes: Vec<Node>,
    links: Links,
    capacity: usize,
    full_set: FullSet,
    pages: u32,
    min_accuracy: f64,
    operations: u64,
}

impl Sets {
    /// Makes empty sets. At most `pages` are read at a time.
    pub fn new(settings: &Aspf, pages: u32) -> Sets {
        Sets {
            sets: vec![],
            nodes: vec![],
            links: Links::default(),
            capacity: settings.set_capacity as usize,
            full_set: settings.full_set,
            pages,
            min_accuracy: settings.min_accuracy,
            operations: 0,
        }
    }

    /// The state of a page.
    pub fn node(&self, page: PageId) -> Node {
        self.nodes.get(page.index()).copied().unwrap_or_default()
    }

    /// The pages of a set, beginning at its head.
    #[cfg(test)]
    pub fn members(&self, set: u32) -> Vec<PageId> {
        self.links.iter(&self.sets[set as usize].list).map(PageId).collect()
    }

    /// Handles a fault on `page` after a fault on `previous` (algorithm 1). `accessed` is the page's PG_ACCESSED bit: it decides
    /// whether the page goes to the head or to the tail of its set.
    pub fn group(&mut self, previous: Option<PageId>, page: PageId, accessed: bool) {
        self.operations += 1;
        let len = self.nodes.len().max(page.index() + 1);
        self.nodes.resize(len, Node::default());
        let Some(previous) = previous.filter(|previous| *previous != page) else {
            // Steps 1 to 3. Also a page that faults twice in a row.
            return self.place(page, accessed);
        };
        let (before, here) = (self.node(previous).set, self.node(page).set);
        match (before, here) {
            // Steps 4 and 5.
            (Some(_), Some(_)) => {}
            // Steps 6 to 10.
            (None, None) => {
                let new = self.sets.len() as u32;
                self.sets.push(Set::default());
                self.join(previous, new, true);
                self.join(page, new, accessed);
                return;
            }
            // Steps 11 to 13.
            (Some(set), None) if !self.is_full(set) => self.nodes[page.index()].set = Some(set),
            // Steps 14 to 16.
            (None, Some(set)) if !self.is_full(set) => self.join(previous, set, true),
            (Some(_), None) | (None, Some(_)) if self.full_set == FullSet::Leave => {}
            // The paper's "otherwise": the page at the set's tail makes room.
            (Some(set), None) => {
                self.drop_tail(set);
                self.nodes[page.index()].set = Some(set);
            }
            (None, Some(set)) => {
                self.drop_tail(set);
                // The page at the tail may have been `page` itself.
                self.nodes[page.index()].set = Some(set);
                self.join(previous, set, true);
            }
        }
        self.place(page, accessed);
    }

    fn is_full(&self, set: u32) -> bool {
        self.sets[set as usize].list.len() >= self.capacity
    }

    fn join(&mut self, page: PageId, set: u32, accessed: bool) {
        self.nodes[page.index()].set = Some(set);
        self.place(page, accessed);
    }

    fn drop_tail(&mut self, set: u32) {
        let list = &mut self.sets[set as usize].list;
        if let Some(last) = list.at(End::Tail) {
            self.links.remove(list, last);
            self.nodes[last as usize] = Node::default();
        }
    }

    /// Puts a page at an end of its set, and gives it the set's generation.
    fn place(&mut self, page: PageId, accessed: bool) {
        let Some(set) = self.node(page).set else { return };
        let Set { list, generation, .. } = &mut self.sets[set as usize];
        self.nodes[page.index()].generation = *generation;
        if self.links.is_linked(page.0) {
            self.links.remove(list, page.0);
        }
        self.links.insert(list, if accessed { End::Head } else { End::Tail }, page.0);
    }

    /// The pages to read together with a page: those of its set from the head that have the set's generation and are out of DRAM.
    /// Their number rises with the accuracy of the set's prefetches.
    pub fn candidates(&self, page: PageId, is_out: impl Fn(PageId) -> bool) -> Vec<PageId> {
        let Some(set) = self.node(page).set else { return vec![] };
        let Set { list, generation, prefetched, missed } = &self.sets[set as usize];
        let accuracy = if *prefetched == 0 { 1.0 } else { 1.0 - f64::from(*missed) / f64::from(*prefetched) };
        let count = (f64::from(self.pages) * accuracy).round() as usize;
        self.links
            .iter(list)
            .map(PageId)
            .filter(|other| *other != page && self.nodes[other.index()].generation == *generation && is_out(*other))
            .take(count)
            .collect()
    }

    /// Notes that a page was read as a member of its set.
    pub fn prefetched(&mut self, page: PageId) {
        self.operations += 1;
        if let Some(set) = self.node(page).set {
            self.sets[set as usize].prefetched += 1;
        }
    }

    /// Notes that a page, read as a member of its set, has left DRAM without being accessed.
    pub fn missed(&mut self, page: PageId) {
        self.operations += 1;
        let Some(set) = self.node(page).set else { return };
        let enough = self.capacity as u32;
        let set = &mut self.sets[set as usize];
        set.missed = (set.missed + 1).min(set.prefetched);
        let accuracy = 1.0 - f64::from(set.missed) / f64::from(set.prefetched.max(1));
        if set.prefetched >= enough && accuracy < self.min_accuracy {
            // All pages of the set are outdated now. It begins anew.
            set.generation += 1;
            (set.prefetched, set.missed) = (0, 0);
        }
    }

    /// Bytes and operations, counted as in IV-C.
    pub fn cost(&self) -> Bookkeeping {
        let bytes = self.sets.len() as u64 * SET_STRUCT + self.nodes.len() as u64 * SET_NODE;
        Bookkeeping { bytes, operations: self.operations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(capacity: u32, pages: u32) -> Sets {
        Sets::new(&Aspf { set_capacity: capacity, full_set: FullSet::Replace, ..Aspf::default() }, pages)
    }

    /// Feeds a sequence of faults. Returns the members of each set, from the head.
    fn after(sets: &mut Sets, faults: &[(u32, bool)]) -> Vec<Vec<u32>> {
        let mut previous = None;
        for (page, accessed) in faults {
            sets.group(previous, PageId(*page), *accessed);
            previous = Some(PageId(*page));
        }
        (0..sets.sets.len() as u32).map(|set| sets.members(set).iter().map(|page| page.0).collect()).collect()
    }

    /// Algorithm 1 by hand: a dozen faults and sets of three pages.
    ///
    /// | fault | case | sets from the head |
    /// | --- | --- | --- |
    /// | 1 | no previous one | |
    /// | 2 | none has a set: a new one, A | A: 2 1 |
    /// | 3 | the previous one has A, not full | A: 3 2 1 |
    /// | 4 | the previous one has A, full: its tail 1 goes | A: 4 3 2 |
    /// | 1 | A is full again: 2 goes | A: 1 4 3 |
    /// | 3 | both have a set: 3 moves to the head | A: 3 1 4 |
    /// | 3 | the same page faults again | A: 3 1 4 |
    /// | 5 | A is full: 4 goes | A: 5 3 1 |
    /// | 2, not accessed | A is full: 1 goes; 2 to the tail | A: 5 3 2 |
    /// | 4 | 2 has A, full: the tail is 2 itself, which goes | A: 4 5 3 |
    /// | 2 | A is full: 3 goes | A: 2 4 5 |
    /// | 5, not accessed | both have a set: to the tail | A: 2 4 5 |
    #[test]
    fn algorithm_1_by_hand() {
        let steps: &[(u32, bool, &[u32])] = &[
            (1, true, &[]),
            (2, true, &[2, 1]),
            (3, true, &[3, 2, 1]),
            (4, true, &[4, 3, 2]),
            (1, true, &[1, 4, 3]),
            (3, true, &[3, 1, 4]),
            (3, true, &[3, 1, 4]),
            (5, true, &[5, 3, 1]),
            (2, false, &[5, 3, 2]),
            (4, true, &[4, 5, 3]),
            (2, true, &[2, 4, 5]),
            (5, false, &[2, 4, 5]),
        ];
        for count in 1..=steps.len() {
            let faults: Vec<_> = steps[..count].iter().map(|(page, accessed, _)| (*page, *accessed)).collect();
            let found = after(&mut sets(3, 4), &faults);
            let expected = steps[count - 1].2;
            assert_eq!(found.first().map_or(&[][..], |set| &set[..]), expected, "after {count} faults");
            assert!(found.len() <= 1);
        }
    }

    /// Steps 14 to 16: the page that faults takes the previous page into its set. Pages 1 and 2 are the set A of one process.
    /// Another sequence begins with page 9, which 1 follows.
    #[test]
    fn the_page_before_joins_the_set_of_the_one_that_faults() {
        let mut sets = sets(3, 4);
        after(&mut sets, &[(1, true), (2, true)]);
        assert_eq!(after(&mut sets, &[(9, true), (1, true)]), [[1, 9, 2]]);
        // A is full: 2 at the tail makes room for 8.
        assert_eq!(after(&mut sets, &[(8, true), (9, true)]), [[9, 8, 1]]);
    }

    #[test]
    fn a_set_is_read_from_its_head_as_far_as_it_was_right() {
        let mut sets = sets(8, 4);
        after(&mut sets, &[(1, true), (2, true), (3, true), (4, true), (5, true), (6, true)]);
        let read = |sets: &Sets, is_out: &dyn Fn(u32) -> bool| {
            sets.candidates(PageId(1), |page| is_out(page.0)).iter().map(|page| page.0).collect::<Vec<_>>()
        };
        assert_eq!(read(&sets, &|_| true), [6, 5, 4, 3]);
        assert_eq!(read(&sets, &|page| page != 5), [6, 4, 3, 2]);
        // One of four was read in vain: 4 pages * 0.75.
        (2..6).for_each(|page| sets.prefetched(PageId(page)));
        sets.missed(PageId(3));
        assert_eq!(read(&sets, &|_| true), [6, 5, 4]);
    }

    #[test]
    fn a_set_that_was_wrong_is_outdated_until_its_pages_fault_again() {
        let mut sets = sets(4, 4);
        after(&mut sets, &[(1, true), (2, true), (3, true), (4, true)]);
        (1..5).for_each(|page| sets.prefetched(PageId(page)));
        (1..4).for_each(|page| sets.missed(PageId(page)));
        assert_eq!(sets.candidates(PageId(1), |_| true), []);
        after(&mut sets, &[(2, true), (1, true)]);
        assert_eq!(sets.candidates(PageId(1), |_| true), [PageId(2)]);
    }
}
