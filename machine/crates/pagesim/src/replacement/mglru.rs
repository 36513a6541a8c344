// SPDX-License-Identifier: Apache-2.0
//! Multi-generational LRU, after Linux 6.12 (mm/vmscan.c, mm/workingset.c), without its code.
//!
//! Pages are in two to four generations. A page enters the youngest one. *Aging* looks at the accessed bits of all pages, moves
//! those that were accessed into the youngest generation, and begins a new one. It happens when only two generations are left. It
//! also happens when there are three generations, and either the youngest has more than half of the pages or the oldest less than
//! a quarter. *Eviction* takes pages from the tail of the oldest generation. A page that was accessed since the last look goes to
//! the youngest generation instead. A page of a higher *tier* may be protected: it goes to the next generation once. The tier
//! follows from the number of uses: tier n begins at 2^(n-1) uses, up to tier 3. To decide which tiers are protected, the order
//! keeps a rate for each tier: the share of its evicted pages that are read again while the generation from which they were
//! evicted is still the oldest one. Rates are averaged over generations with a weight of one half (Linux calls this a PID
//! controller). The first tier whose rate is more than twice that of tier 0 is protected, and so are all higher tiers. Tier 3 is
//! always protected.
//!
//! Differences from Linux:
//!
//! - Linux counts uses through file descriptors, and clears the count when a page is promoted by its accessed bit. All accesses
//!   here are through page tables, so tiers would be empty. Here a use is a look that found the accessed bit, at most three, plus
//!   one for a page that was read again soon. Protection clears the count.
//! - All pages are anonymous. There is no swappiness and no choice between two types.
//! - Aging looks at every page in DRAM at once. There are no Bloom filters, no look around a page that eviction finds accessed,
//!   and no batches, with one exception: aging that balances generations waits until 64 pages have been evicted since the last
//!   aging.
//! - Pages move between lists when they are promoted. Linux moves them when eviction meets them.
//! - A prefetched page enters the youngest generation, as after a fault.

use super::{Registration, Replace, entry};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "mglru",
    about: "Linux's multi-generational LRU: two to four generations, aged by accessed bits; tiers protect pages that come back",
    make: |_| Box::new(Mglru::default()),
};

const MOST_GENERATIONS: u32 = 4;
const FEWEST_GENERATIONS: u32 = 2;
const TIERS: usize = 4;
/// Largest number of uses that looks count.
const MOST_USES: u8 = 3;
/// Number of evictions after which generations are balanced again. Also the least number of a tier's evicted pages that must have
/// been read again before the tier is protected.
const BATCH: u64 = 64;

/// The state of a page, in DRAM or evicted.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The generation, modulo four.
    list: u8,
    uses: u8,
    /// Whether it was read again soon after its eviction.
    came_back: bool,
    /// The oldest generation at its eviction, plus one; 0 if it was not evicted.
    evicted: u32,
}

impl Entry {
    fn tier(self) -> usize {
        match self.uses + u8::from(self.came_back) {
            0 => 0,
            1 => 1,
            2..=3 => 2,
            _ => 3,
        }
    }
}

/// Counts of the pages of a tier.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Pages that were read again soon, for the oldest generation, and averaged over the generations before it.
    back: [u64; 2],
    /// Pages that were evicted or protected, for the oldest generation, and averaged over the generations before it.
    all: [u64; 2],
}

/// The generations. Each is a list with the most recently used page first.
#[derive(Debug)]
pub struct Mglru {
    links: Links,
    lists: [List; MOST_GENERATIONS as usize],
    pages: Vec<Entry>,
    used: Vec<bool>,
    oldest: u32,
    youngest: u32,
    rates: [Rate; TIERS],
    gone: u64,
}

impl Default for Mglru {
    fn default() -> Mglru {
        Mglru {
            links: Links::default(),
            lists: [List::default(); 4],
            pages: vec![],
            used: vec![],
            oldest: 0,
            youngest: FEWEST_GENERATIONS - 1,
            rates: [Rate::default(); TIERS],
            gone: 0,
        }
    }
}

fn place(generation: u32) -> usize {
    (generation % MOST_GENERATIONS) as usize
}

impl Mglru {
    fn put(&mut self, id: u32, generation: u32, end: End) {
        let list = place(generation);
        self.pages[id as usize].list = list as u8;
        self.links.insert(&mut self.lists[list], end, id);
    }

    fn drop(&mut self, id: u32) {
        let list = usize::from(self.pages[id as usize].list);
        self.links.remove(&mut self.lists[list], id);
    }

    /// Ends the oldest generation, which has no page left.
    fn end_oldest(&mut self) {
        self.oldest += 1;
        for Rate { back, all } in &mut self.rates {
            *back = [0, back.iter().sum::<u64>() / 2];
            *all = [0, all.iter().sum::<u64>() / 2];
        }
    }

    /// Handles a look that has found the accessed bit.
    fn promote(&mut self, id: u32) {
        let page = &mut self.pages[id as usize];
        page.uses = MOST_USES.min(page.uses + 1);
        self.used[id as usize] = false;
        if usize::from(page.list) != place(self.youngest) {
            self.drop(id);
            self.put(id, self.youngest, End::Head);
        }
    }

    /// Moves a page of the oldest generation into the next one.
    fn protect(&mut self, id: u32) {
        let page = &mut self.pages[id as usize];
        (page.uses, page.came_back) = (0, false);
        self.drop(id);
        self.put(id, self.oldest + 1, End::Tail);
    }

    fn age(&mut self) {
        // There are at most three generations here, so one more makes at most four.
        for generation in self.oldest..=self.youngest {
            let mut at = self.lists[place(generation)].at(End::Tail);
            while let Some(id) = at {
                at = self.links.before(id);
                if self.used[id as usize] {
                    self.promote(id);
                }
            }
        }
        self.youngest += 1;
        self.gone = 0;
    }

    fn end_empty(&mut self) {
        while self.oldest + FEWEST_GENERATIONS <= self.youngest && self.lists[place(self.oldest)].len() == 0 {
            self.end_oldest();
        }
    }

    fn must_age(&self) -> bool {
        if self.oldest + FEWEST_GENERATIONS >= self.youngest && self.gone >= BATCH {
            let (old, young) = (self.lists[place(self.oldest)].len(), self.lists[place(self.youngest)].len());
            if young * FEWEST_GENERATIONS as usize > self.len() || old * (FEWEST_GENERATIONS as usize + 2) < self.len() {
                return true;
            }
        }
        self.oldest + FEWEST_GENERATIONS > self.youngest
    }

    /// The highest tier that is not protected.
    fn unprotected(&self) -> usize {
        let sums = |rate: &Rate| (rate.back.iter().sum::<u64>(), rate.all.iter().sum::<u64>());
        let (back, all) = sums(&self.rates[0]);
        let bad = |rate: &Rate| {
            let (of_back, of_all) = sums(rate);
            of_back >= BATCH && of_back * (all + BATCH) > 2 * (back + 1) * of_all
        };
        self.rates[1..].iter().position(bad).unwrap_or(TIERS - 1)
    }

    /// Looks through the oldest generation. Returns the page to evict, if it finds one.
    fn scan(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<u32> {
        let unprotected = self.unprotected();
        let mut at = self.lists[place(self.oldest)].at(End::Tail);
        while let Some(id) = at {
            at = self.links.before(id);
            if !may(PageId(id)) {
                continue;
            }
            let tier = self.pages[id as usize].tier();
            if tier > unprotected || tier == TIERS - 1 {
                self.rates[tier].all[0] += 1;
                self.protect(id);
            } else if self.used[id as usize] {
                self.promote(id);
            } else {
                return Some(id);
            }
        }
        None
    }

    fn evict(&mut self, id: u32) -> PageId {
        let page = &mut self.pages[id as usize];
        page.evicted = self.oldest + 1;
        self.rates[page.tier()].all[0] += 1;
        self.gone += 1;
        self.drop(id);
        PageId(id)
    }
}

impl Replace for Mglru {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        *entry(&mut self.used, page) = false;
        let soon = self.oldest + 1;
        let known = entry(&mut self.pages, page);
        let came_back = known.evicted == soon;
        let tier = known.tier();
        *known = Entry { came_back, ..Entry::default() };
        if came_back {
            self.rates[tier].back[0] += 1;
        }
        self.put(page.0, self.youngest, End::Head);
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        self.used[page.index()] = true;
    }

    fn demote(&mut self, page: PageId) {
        self.used[page.index()] = false;
        self.drop(page.0);
        self.put(page.0, self.oldest, End::Tail);
    }

    fn remove(&mut self, page: PageId) {
        self.drop(page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        // Each round either ages, or uses up a generation by promotions and protections. A page can be promoted or protected only
        // a few times.
        for _ in 0..8 * MOST_GENERATIONS {
            self.end_empty();
            if self.must_age() {
                self.age();
                continue;
            }
            if let Some(id) = self.scan(may) {
                return Some(self.evict(id));
            }
            if self.lists[place(self.oldest)].len() > 0 {
                break;
            }
        }
        // The oldest generation has only pages that may not be evicted, or there are few pages.
        let pick = |generation| self.links.last(&self.lists[place(generation)], may);
        let page = (self.oldest..=self.youngest).find_map(pick)?;
        Some(self.evict(page.0))
    }

    fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::replacement::testing::{Row, actions, same};

    /// Generations as rows. The counts of the oldest generation and of those before it are in maps.
    #[derive(Default)]
    struct Naive {
        generations: BTreeMap<u32, Row>,
        used: BTreeMap<PageId, bool>,
        uses: BTreeMap<PageId, u8>,
        came_back: BTreeMap<PageId, bool>,
        /// The oldest generation and the page's tier when the page was evicted.
        left: BTreeMap<PageId, (u32, usize)>,
        back: [u64; 4],
        all: [u64; 4],
        average_back: [u64; 4],
        average_all: [u64; 4],
        gone: u64,
    }

    impl Naive {
        fn new() -> Naive {
            Naive { generations: (0..2).map(|n| (n, Row::default())).collect(), ..Naive::default() }
        }
        fn oldest(&self) -> u32 {
            *self.generations.keys().next().unwrap()
        }
        fn youngest(&self) -> u32 {
            *self.generations.keys().last().unwrap()
        }
        fn row(&mut self, generation: u32) -> &mut Row {
            self.generations.get_mut(&generation).unwrap()
        }
        fn take(&mut self, page: PageId) {
            self.generations.values_mut().for_each(|row| _ = row.take(page));
        }
        fn tier(&self, page: PageId) -> usize {
            let uses = self.uses.get(&page).unwrap_or(&0) + u8::from(self.came_back.get(&page) == Some(&true));
            [0, 1, 2, 2, 3][usize::from(uses)]
        }
        fn end_empty(&mut self) {
            while self.generations.len() > 2 && self.row(self.oldest()).len() == 0 {
                self.generations.pop_first();
                for tier in 0..4 {
                    self.average_back[tier] = (self.average_back[tier] + std::mem::take(&mut self.back[tier])) / 2;
                    self.average_all[tier] = (self.average_all[tier] + std::mem::take(&mut self.all[tier])) / 2;
                }
            }
        }
        /// Handles a page that was found accessed.
        fn promote(&mut self, page: PageId) {
            self.used.insert(page, false);
            let uses = self.uses.entry(page).or_default();
            *uses = 3.min(*uses + 1);
            if !self.row(self.youngest()).has(page) {
                self.take(page);
                self.row(self.youngest()).push(page);
            }
        }
        fn age(&mut self) {
            let old: Vec<_> = self.generations.values().flat_map(|row| row.0.iter().rev().copied()).collect();
            for page in old {
                if self.used[&page] {
                    self.promote(page);
                }
            }
            self.generations.insert(self.youngest() + 1, Row::default());
            self.gone = 0;
        }
        fn must_age(&mut self) -> bool {
            let (old, young) = (self.row(self.oldest()).len(), self.row(self.youngest()).len());
            self.generations.len() < 3
                || self.generations.len() == 3 && self.gone >= 64 && (2 * young > self.len() || 4 * old < self.len())
        }
        fn protects(&self, tier: usize) -> bool {
            let back = |tier: usize| self.back[tier] + self.average_back[tier];
            let all = |tier: usize| self.all[tier] + self.average_all[tier];
            // The first tier that is read again too often is protected, and all higher tiers are.
            let bad = |tier| back(tier) >= 64 && back(tier) * (all(0) + 64) > 2 * (back(0) + 1) * all(tier);
            tier == 3 || (1..=tier).any(bad)
        }
        fn go(&mut self, page: PageId) -> PageId {
            let tier = self.tier(page);
            self.left.insert(page, (self.oldest(), tier));
            self.all[tier] += 1;
            self.gone += 1;
            self.take(page);
            page
        }
    }

    impl Replace for Naive {
        fn insert(&mut self, page: PageId, _owner: Pid) {
            let soon = self.left.get(&page).filter(|left| left.0 == self.oldest()).map(|left| left.1);
            if let Some(tier) = soon {
                self.back[tier] += 1;
            }
            self.left.remove(&page);
            self.came_back.insert(page, soon.is_some());
            self.used.insert(page, false);
            self.uses.insert(page, 0);
            self.row(self.youngest()).push(page);
        }
        fn touch(&mut self, page: PageId, _now: Time) {
            self.used.insert(page, true);
        }
        fn demote(&mut self, page: PageId) {
            self.used.insert(page, false);
            self.take(page);
            self.row(self.oldest()).push_oldest(page);
        }
        fn remove(&mut self, page: PageId) {
            self.take(page);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            for _ in 0..32 {
                self.end_empty();
                if self.must_age() {
                    self.age();
                    continue;
                }
                let protects = [0, 1, 2, 3].map(|tier| self.protects(tier));
                let row: Vec<_> = self.row(self.oldest()).0.iter().rev().copied().filter(|page| may(*page)).collect();
                for page in row {
                    let tier = self.tier(page);
                    if protects[tier] {
                        self.all[tier] += 1;
                        self.uses.insert(page, 0);
                        self.came_back.insert(page, false);
                        self.take(page);
                        self.row(self.oldest() + 1).push_oldest(page);
                    } else if self.used[&page] {
                        self.promote(page);
                    } else {
                        return Some(self.go(page));
                    }
                }
                if self.row(self.oldest()).len() > 0 {
                    break;
                }
            }
            let page = self.generations.values().find_map(|row| row.0.iter().rev().copied().find(|page| may(*page)))?;
            Some(self.go(page))
        }
        fn len(&self) -> usize {
            self.generations.values().map(Row::len).sum()
        }
    }

    proptest! {
        #[test]
        fn as_rows_by_generation(
            frames in 1..20_usize, actions in prop::collection::vec(actions(), 1..5).prop_map(|parts| parts.concat()),
        ) {
            let mut mglru = Mglru::default();
            same(&mut mglru, &mut Naive::new(), frames, &actions)?;
            prop_assert!((1..4).contains(&(mglru.youngest - mglru.oldest)));
        }
    }

    /// Four pages, all of which were used when they entered. 0 is used again after the first look and stays longest.
    #[test]
    fn generations_by_hand() {
        let mut mglru = Mglru::default();
        for id in 0..4 {
            mglru.insert(PageId(id), 0);
            mglru.first(PageId(id), 0);
        }
        // The first look finds all pages used. The second one finds none, and evicts 0, which entered first.
        assert_eq!(mglru.victim(&|_| true), Some(PageId(0)));
        mglru.insert(PageId(0), 0);
        mglru.touch(PageId(1), 0);
        assert_eq!(mglru.victim(&|_| true), Some(PageId(2)));
        assert_eq!(mglru.victim(&|_| true), Some(PageId(3)));
    }

    /// Pages that are read again soon get tier 1. When there are enough of them, tier 1 is protected.
    #[test]
    fn a_tier_that_comes_back_is_protected() {
        let mut mglru = Mglru { rates: [Rate::default(); TIERS], ..Mglru::default() };
        assert_eq!(mglru.unprotected(), TIERS - 1);
        mglru.rates[0] = Rate { back: [10, 0], all: [200, 0] };
        mglru.rates[1] = Rate { back: [63, 0], all: [64, 0] };
        assert_eq!(mglru.unprotected(), TIERS - 1, "too few");
        mglru.rates[1].back[1] = 1;
        assert_eq!(mglru.unprotected(), 0);
        mglru.end_oldest();
        assert_eq!(mglru.rates[1].back, [0, 32]);
        assert_eq!(mglru.unprotected(), TIERS - 1);
    }
}
