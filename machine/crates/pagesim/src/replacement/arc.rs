// SPDX-License-Identifier: Apache-2.0
//! ARC: Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003.
//!
//! Pages used once since they entered (T1) and pages used more often (T2) are two LRU lists. Each has a list of the pages that it
//! has lost (B1, B2). A miss of a page in B1 makes T1's target larger; a miss of a page in B2 makes it smaller. The code follows
//! the paper's figure 4 with these choices, which libCacheSim makes:
//!
//! - The target is a real number. It moves by the ratio of the lists' lengths, at least by 1.
//! - If T1 is empty or does not exceed its target, the victim comes from T2, unless T2 is empty.
//! - Lists are only cut when a victim is needed and the missing page is in none of them.
//!
//! The paging simulator may evict before it knows the next missing page (`memory.reserve`). The victim is then the same as for a
//! page in none of the lists. B1 and B2 are cut once more when a page enters without a victim. So all four lists together never
//! have more than twice as many pages as there are frames.

use super::{Registration, Replace, entry};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "arc",
    about: "ARC: one LRU list for pages used once, one for pages used again; lost pages that are wanted again move the border",
    make: |room| Box::new(Arc::new(room.frames)),
};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// The four lists, each with the most recently used page first.
#[derive(Debug)]
pub struct Arc {
    frames: usize,
    links: Links,
    lists: [List; 4],
    /// For each page: the list that it is in, if any.
    place: Vec<u8>,
    /// Number of pages that T1 should have.
    target: f64,
    /// The missing page, and the list of lost pages that contains it.
    wanted: Option<(u32, usize)>,
}

impl Arc {
    /// Makes empty lists for this number of frames.
    pub fn new(frames: usize) -> Arc {
        let lists = [List::default(); 4];
        Arc { frames: frames.max(1), links: Links::default(), lists, place: vec![], target: 0.0, wanted: None }
    }

    /// Finds the list of lost pages that contains a page.
    fn lost(&self, page: PageId) -> Option<usize> {
        let list = usize::from(*self.place.get(page.index())?);
        (self.links.is_linked(page.0) && list >= B1).then_some(list)
    }

    fn put(&mut self, page: PageId, list: usize, end: End) {
        *entry(&mut self.place, page) = list as u8;
        self.links.insert(&mut self.lists[list], end, page.0);
    }

    fn drop(&mut self, page: PageId) {
        let list = usize::from(self.place[page.index()]);
        self.links.remove(&mut self.lists[list], page.0);
    }

    fn forget_oldest(&mut self, list: usize) {
        if let Some(id) = self.lists[list].at(End::Tail) {
            self.drop(PageId(id));
        }
    }

    /// Moves the target after a miss of a lost page.
    fn adapt(&mut self, lost: usize) {
        let (own, other) = (self.lists[lost].len() as f64, self.lists[B1 + B2 - lost].len() as f64);
        let step = (other / own).max(1.0);
        let target = if lost == B1 { self.target + step } else { self.target - step };
        self.target = target.clamp(0.0, self.frames as f64);
    }

    fn len_of(&self, lists: &[usize]) -> usize {
        lists.iter().map(|list| self.lists[*list].len()).sum()
    }
}

impl Replace for Arc {
    fn miss(&mut self, page: PageId) {
        self.wanted = self.lost(page).map(|list| (page.0, list));
        if let Some((_, list)) = self.wanted {
            self.adapt(list);
        }
    }

    fn insert(&mut self, page: PageId, _owner: Pid) {
        let wanted = self.wanted.take();
        match self.lost(page) {
            Some(list) => {
                if wanted.is_none_or(|(id, _)| id != page.0) {
                    self.adapt(list);
                }
                self.drop(page);
                self.put(page, T2, End::Head);
            }
            None => self.put(page, T1, End::Head),
        }
        while self.len_of(&[T1, B1]) > self.frames && self.lists[B1].len() > 0 {
            self.forget_oldest(B1);
        }
        while self.len_of(&[T1, T2, B1, B2]) > 2 * self.frames && self.lists[B2].len() > 0 {
            self.forget_oldest(B2);
        }
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        if usize::from(self.place[page.index()]) == T2 {
            self.links.move_to(&mut self.lists[T2], End::Head, page.0);
        } else {
            self.drop(page);
            self.put(page, T2, End::Head);
        }
    }

    fn first(&mut self, _page: PageId, _now: Time) {}

    fn demote(&mut self, page: PageId) {
        self.drop(page);
        self.put(page, T1, End::Tail);
    }

    fn remove(&mut self, page: PageId) {
        self.drop(page);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let wanted = self.wanted.map(|(_, list)| list);
        let mut forget = false;
        if wanted.is_none() {
            if self.len_of(&[T1, B1]) + 1 > self.frames {
                forget = self.lists[B1].len() == 0;
                self.forget_oldest(B1);
            } else if self.len_of(&[T1, T2, B1, B2]) >= 2 * self.frames {
                self.forget_oldest(B2);
            }
        }
        let (ones, target) = (self.lists[T1].len() as f64, self.target);
        let from_ones = ones > 0.0 && (ones > target || (ones == target && wanted == Some(B2)));
        let list = if forget || from_ones || self.lists[T2].len() == 0 { T1 } else { T2 };
        let pick = |list: usize| self.links.last(&self.lists[list], may).map(|page| (page, list));
        let (page, list) = pick(list).or_else(|| pick(T1 + T2 - list))?;
        self.drop(page);
        if !forget || list == T2 {
            self.put(page, B1 + list, End::Head);
        }
        Some(page)
    }

    fn len(&self) -> usize {
        self.len_of(&[T1, T2])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::replacement::testing::{Row, actions, same};

    /// Figure 4 of the paper with the choices above. `x` is the missing page.
    #[derive(Default)]
    struct Naive {
        c: usize,
        p: f64,
        t1: Row,
        t2: Row,
        b1: Row,
        b2: Row,
        x: Option<PageId>,
    }

    impl Naive {
        fn case_2_or_3(&mut self, x: PageId) {
            let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
            if self.b1.has(x) {
                self.p = (self.p + (b2 / b1).max(1.0)).min(self.c as f64);
            } else if self.b2.has(x) {
                self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            }
        }
    }

    impl Replace for Naive {
        fn miss(&mut self, page: PageId) {
            self.x = Some(page);
            self.case_2_or_3(page);
        }
        fn insert(&mut self, page: PageId, _owner: Pid) {
            if self.x.take() != Some(page) {
                self.case_2_or_3(page);
            }
            if self.b1.take(page) | self.b2.take(page) {
                self.t2.push(page);
            } else {
                self.t1.push(page);
            }
            while self.t1.len() + self.b1.len() > self.c && self.b1.len() > 0 {
                self.b1.0.pop_back();
            }
            while self.t1.len() + self.b1.len() + self.t2.len() + self.b2.len() > 2 * self.c && self.b2.len() > 0 {
                self.b2.0.pop_back();
            }
        }
        fn touch(&mut self, page: PageId, _now: Time) {
            self.t1.take(page);
            self.t2.take(page);
            self.t2.push(page);
        }
        fn first(&mut self, _page: PageId, _now: Time) {}
        fn demote(&mut self, page: PageId) {
            self.remove(page);
            self.t1.push_oldest(page);
        }
        fn remove(&mut self, page: PageId) {
            self.t1.take(page);
            self.t2.take(page);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            let of = |row: &Row| self.x.is_some_and(|x| row.has(x));
            let (in_b1, in_b2) = (of(&self.b1), of(&self.b2));
            let (l1, l2) = (self.t1.len() + self.b1.len(), self.t2.len() + self.b2.len());
            let mut kept = true;
            if !in_b1 && !in_b2 {
                if l1 >= self.c {
                    kept = self.b1.0.pop_back().is_some();
                } else if l1 + l2 >= 2 * self.c {
                    self.b2.0.pop_back();
                }
            }
            let t1 = self.t1.len() as f64;
            let first = !kept || self.t2.len() == 0 || (t1 > 0.0 && (t1 > self.p || (in_b2 && t1 == self.p)));
            for ones in [first, !first] {
                let (from, to) = if ones { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
                if let Some(page) = from.take_oldest(may) {
                    if kept || !ones {
                        to.push(page);
                    }
                    return Some(page);
                }
            }
            None
        }
        fn len(&self) -> usize {
            self.t1.len() + self.t2.len()
        }
    }

    proptest! {
        #[test]
        fn as_four_rows(frames in 1..12_usize, actions in actions()) {
            let mut naive = Naive { c: frames, ..Naive::default() };
            let mut arc = Arc::new(frames);
            same(&mut arc, &mut naive, frames, &actions)?;
            prop_assert!(arc.len_of(&[T1, T2, B1, B2]) <= 2 * frames);
            prop_assert!((arc.target - naive.p).abs() < 1e-9);
        }
    }

    /// Four frames. 0 and 1 are used twice and are in T2; 2 and 3 are in T1. 4 evicts 2 into B1. Then 2 misses: T1's target
    /// becomes 1. T1 has two pages, so it gives up 3, and 2 enters T2 at once. Then 3 misses: the target becomes 2. T1 has one
    /// page, so T2 gives up its oldest page, 0.
    #[test]
    fn a_few_misses_by_hand() {
        let mut arc = Arc::new(4);
        let mut gone = vec![];
        for id in [0, 1, 0, 1, 2, 3, 4, 2, 3] {
            let page = PageId(id);
            if arc.links.is_linked(id) && usize::from(arc.place[page.index()]) < B1 {
                arc.touch(page, 0);
                continue;
            }
            arc.miss(page);
            if arc.len() == 4 {
                gone.extend(arc.victim(&|_| true).map(|page| page.0));
            }
            arc.insert(page, 0);
        }
        assert_eq!(gone, [2, 3, 0]);
    }
}
