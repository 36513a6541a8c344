// SPDX-License-Identifier: Apache-2.0
//! CLOCK-Pro: Jiang, Chen and Zhang, "CLOCK-Pro: An Effective Improvement of the CLOCK Replacement", USENIX ATC 2005.
//!
//! Hot pages and cold pages are on one clock and have accessed bits. A cold page has a test period. The period may last longer
//! than the page's stay in memory: then its number stays on the clock without a frame. A cold page that is used in its test
//! period becomes hot, and cold pages get one frame more. If the test period ends without a use, they get one less.
//!
//! New pages enter at the hand of hot pages. This hand turns hot pages cold if they were not used since its last round, and ends
//! the test periods that it meets. The hand of cold pages finds the page to evict. The third hand ends test periods when the
//! clock has more numbers without a frame than there are frames. The paper leaves some choices open:
//!
//! - At first all frames except one are for cold pages.
//! - If the page at a hand leaves, or moves to where new pages enter, the hand moves to the next page. A hand that has passed the
//!   newest page starts again at the hand of hot pages.
//! - If all pages are hot, the hand of hot pages moves until one page is cold.
//! - The access for which a page was read is not a use. A prefetched page enters like a page that was missing.

use super::{Registration, Replace, entry};
use crate::links::{End, Links, List};
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The order of this file.
pub const REGISTRATION: Registration = Registration {
    name: "clock-pro",
    about: "CLOCK-Pro: hot and cold pages on a clock; a cold page that is used again within a test period becomes hot",
    make: |room| Box::new(ClockPro::new(room.frames)),
};

/// The state of a page on the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Hot,
    #[default]
    Cold,
    /// A cold page that was evicted in its test period. Its number stays.
    Gone,
}

/// A page on the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    kind: Kind,
    /// Whether the page is in its test period.
    test: bool,
}

/// The clock, from the newest page to the hand of hot pages.
#[derive(Debug)]
pub struct ClockPro {
    frames: usize,
    links: Links,
    clock: List,
    pages: Vec<Entry>,
    used: Vec<bool>,
    /// The other hands. `None` means the place of the hand of hot pages.
    cold_hand: Option<u32>,
    test_hand: Option<u32>,
    hot: usize,
    cold: usize,
    gone: usize,
    /// Number of frames for cold pages.
    target: usize,
}

impl ClockPro {
    /// Makes an empty clock for this number of frames.
    pub fn new(frames: usize) -> ClockPro {
        ClockPro {
            frames,
            links: Links::default(),
            clock: List::default(),
            pages: vec![],
            used: vec![],
            cold_hand: None,
            test_hand: None,
            hot: 0,
            cold: 0,
            gone: 0,
            target: frames.saturating_sub(1).max(1),
        }
    }

    fn count(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Hot => &mut self.hot,
            Kind::Cold => &mut self.cold,
            Kind::Gone => &mut self.gone,
        }
    }

    fn set(&mut self, id: u32, kind: Kind, test: bool) {
        let old = std::mem::replace(&mut self.pages[id as usize], Entry { kind, test });
        *self.count(old.kind) -= 1;
        *self.count(kind) += 1;
    }

    /// Moves hands away from a page.
    fn step_off(&mut self, id: u32) {
        for hand in [&mut self.cold_hand, &mut self.test_hand] {
            if *hand == Some(id) {
                *hand = self.links.before(id);
            }
        }
    }

    fn enter(&mut self, id: u32, kind: Kind, test: bool) {
        self.pages[id as usize] = Entry { kind, test };
        self.used[id as usize] = false;
        *self.count(kind) += 1;
        self.links.insert(&mut self.clock, End::Head, id);
    }

    fn leave(&mut self, id: u32) {
        self.step_off(id);
        *self.count(self.pages[id as usize].kind) -= 1;
        self.links.remove(&mut self.clock, id);
    }

    /// Moves a page to where new pages enter.
    fn renew(&mut self, id: u32) {
        self.step_off(id);
        self.links.move_to(&mut self.clock, End::Head, id);
    }

    fn more_cold(&mut self) {
        self.target = (self.target + 1).min(self.frames.saturating_sub(1)).max(1);
    }

    fn less_cold(&mut self) {
        self.target = (self.target - 1).max(1);
    }

    /// Ends the test period of a cold page, which may have left memory.
    fn end_test(&mut self, id: u32) {
        match self.pages[id as usize] {
            Entry { kind: Kind::Gone, .. } => {
                self.less_cold();
                self.leave(id);
            }
            Entry { kind: Kind::Cold, test: true } => {
                if !self.used[id as usize] {
                    self.less_cold();
                }
                self.pages[id as usize].test = false;
            }
            Entry { .. } => {}
        }
    }

    /// Moves the hand of hot pages until at most this many pages are hot.
    fn cool(&mut self, most: usize) {
        while self.hot > most {
            let Some(id) = self.clock.at(End::Tail) else { return };
            match self.pages[id as usize].kind {
                Kind::Hot if !std::mem::take(&mut self.used[id as usize]) => self.set(id, Kind::Cold, false),
                Kind::Hot => {}
                Kind::Cold | Kind::Gone => self.end_test(id),
            }
            if self.links.is_linked(id) {
                self.renew(id);
            }
        }
    }

    fn balance(&mut self) {
        self.cool(self.frames.saturating_sub(self.target));
    }

    /// Moves the third hand until the clock has at most as many numbers without a frame as there are frames.
    fn forget(&mut self) {
        while self.gone > self.frames {
            let Some(id) = self.test_hand.or(self.clock.at(End::Tail)) else { return };
            self.test_hand = self.links.before(id);
            self.end_test(id);
        }
    }

    fn evict(&mut self, id: u32) {
        if self.pages[id as usize].test {
            self.set(id, Kind::Gone, true);
            self.forget();
        } else {
            self.leave(id);
        }
    }
}

impl Replace for ClockPro {
    fn insert(&mut self, page: PageId, _owner: Pid) {
        entry(&mut self.pages, page);
        entry(&mut self.used, page);
        if self.links.is_linked(page.0) {
            self.leave(page.0);
            self.more_cold();
            self.enter(page.0, Kind::Hot, false);
            self.balance();
        } else {
            self.enter(page.0, Kind::Cold, true);
        }
    }

    #[inline]
    fn touch(&mut self, page: PageId, _now: Time) {
        self.used[page.index()] = true;
    }

    fn first(&mut self, _page: PageId, _now: Time) {}

    fn demote(&mut self, page: PageId) {
        self.set(page.0, Kind::Cold, false);
        self.used[page.index()] = false;
        self.cold_hand = Some(page.0);
    }

    fn remove(&mut self, page: PageId) {
        self.leave(page.0);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        // No page is used meanwhile. So each page at most becomes hot once, or begins one test period, and goes in the next
        // round.
        for _ in 0..3 * (self.clock.len() + 1) {
            if self.cold == 0 {
                self.cool(self.hot.saturating_sub(1));
            }
            let id = self.cold_hand.or(self.clock.at(End::Tail))?;
            self.cold_hand = self.links.before(id);
            let Entry { kind, test } = self.pages[id as usize];
            if kind != Kind::Cold || !may(PageId(id)) {
                continue;
            }
            if !std::mem::take(&mut self.used[id as usize]) {
                self.evict(id);
                return Some(PageId(id));
            }
            self.renew(id);
            if test {
                self.more_cold();
                self.set(id, Kind::Hot, false);
                self.balance();
            } else {
                self.pages[id as usize].test = true;
            }
        }
        // No cold page may be evicted.
        let page = self.links.last(&self.clock, &|page| self.pages[page.index()].kind != Kind::Gone && may(page))?;
        self.leave(page.0);
        Some(page)
    }

    fn len(&self) -> usize {
        self.hot + self.cold
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::replacement::testing::{actions, same};

    /// A page on the naive clock.
    #[derive(Clone, Copy, Debug)]
    struct On {
        page: PageId,
        hot: bool,
        here: bool,
        test: bool,
        used: bool,
    }

    /// The clock as a sequence, from the hand of hot pages to the newest page. A hand is an index.
    #[derive(Debug)]
    struct Naive {
        m: usize,
        cold_target: usize,
        row: Vec<On>,
        cold_at: usize,
        test_at: usize,
    }

    impl Naive {
        fn at(&self, page: PageId) -> Option<usize> {
            self.row.iter().position(|on| on.page == page)
        }
        fn hot(&self) -> usize {
            self.row.iter().filter(|on| on.hot).count()
        }
        fn take(&mut self, place: usize) -> On {
            for hand in [&mut self.cold_at, &mut self.test_at] {
                if *hand > place {
                    *hand -= 1;
                }
            }
            let on = self.row.remove(place);
            // The place of the hand of hot pages comes after the newest page.
            for hand in [&mut self.cold_at, &mut self.test_at] {
                if *hand >= self.row.len() {
                    *hand = 0;
                }
            }
            on
        }
        fn add(&mut self, on: On) {
            self.row.push(on);
        }
        /// Makes the oldest page the newest one. Moves hands away from it.
        fn hot_hand_passes(&mut self) {
            let on = self.row.remove(0);
            self.row.push(on);
            for hand in [&mut self.cold_at, &mut self.test_at] {
                *hand = hand.saturating_sub(1);
            }
        }
        fn change(&mut self, by: isize) {
            let most = self.m.saturating_sub(1).max(1) as isize;
            self.cold_target = (self.cold_target as isize + by).clamp(1, most) as usize;
        }
        /// Returns whether the page is still on the clock.
        fn end_test(&mut self, place: usize) -> bool {
            let on = self.row[place];
            if !on.hot && on.test && !on.used {
                self.change(-1);
            }
            self.row[place].test = false;
            if on.here {
                return true;
            }
            self.take(place);
            false
        }
        fn run_hot(&mut self, most: usize) {
            while self.hot() > most {
                let on = self.row[0];
                let mut stays = true;
                if on.hot && on.used {
                    self.row[0].used = false;
                } else if on.hot {
                    self.row[0].hot = false;
                } else {
                    stays = self.end_test(0);
                }
                if stays {
                    self.hot_hand_passes();
                }
            }
        }
    }

    impl Replace for Naive {
        fn insert(&mut self, page: PageId, _owner: Pid) {
            let known = self.at(page);
            let hot = known.is_some();
            if let Some(place) = known {
                self.take(place);
                self.change(1);
            }
            self.add(On { page, hot, here: true, test: !hot, used: false });
            if hot {
                self.run_hot(self.m.saturating_sub(self.cold_target));
            }
        }
        fn touch(&mut self, page: PageId, _now: Time) {
            let place = self.at(page).unwrap();
            self.row[place].used = true;
        }
        fn first(&mut self, _page: PageId, _now: Time) {}
        fn demote(&mut self, page: PageId) {
            let place = self.at(page).unwrap();
            self.row[place] = On { page, hot: false, here: true, test: false, used: false };
            self.cold_at = place;
        }
        fn remove(&mut self, page: PageId) {
            let place = self.at(page).unwrap();
            self.take(place);
        }
        fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
            for _ in 0..3 * (self.row.len() + 1) {
                if self.hot() == self.len() {
                    self.run_hot(self.hot().saturating_sub(1));
                }
                let place = self.cold_at;
                let on = *self.row.get(place)?;
                self.cold_at = (place + 1) % self.row.len();
                if on.hot || !on.here || !may(on.page) {
                    continue;
                }
                if !on.used && on.test {
                    self.row[place].here = false;
                    while self.row.iter().filter(|on| !on.here).count() > self.m {
                        let place = self.test_at;
                        self.test_at = (place + 1) % self.row.len();
                        self.end_test(place);
                    }
                    return Some(on.page);
                } else if !on.used {
                    self.take(place);
                    return Some(on.page);
                }
                // The page enters again.
                self.take(place);
                if on.test {
                    self.change(1);
                    self.add(On { hot: true, test: false, used: false, ..on });
                    self.run_hot(self.m.saturating_sub(self.cold_target));
                } else {
                    self.add(On { test: true, used: false, ..on });
                }
            }
            let place = self.row.iter().position(|on| on.here && may(on.page))?;
            Some(self.take(place).page)
        }
        fn len(&self) -> usize {
            self.row.iter().filter(|on| on.here).count()
        }
    }

    proptest! {
        #[test]
        fn as_a_row_with_hands(frames in 1..12_usize, actions in actions()) {
            let most = frames.saturating_sub(1).max(1);
            let mut naive = Naive { m: frames, cold_target: most, row: vec![], cold_at: 0, test_at: 0 };
            let mut clock = ClockPro::new(frames);
            same(&mut clock, &mut naive, frames, &actions)?;
            prop_assert!(clock.gone <= frames);
            prop_assert_eq!((clock.target, clock.gone), (naive.cold_target, naive.row.len()));
        }
    }

    /// Three frames. 0 to 2 enter. 3 evicts 0, whose number stays. 0 misses in its test period and becomes hot.
    #[test]
    fn a_page_becomes_hot_by_hand() {
        let mut clock = ClockPro::new(3);
        for id in 0..3 {
            clock.insert(PageId(id), 0);
        }
        assert_eq!(clock.victim(&|_| true), Some(PageId(0)));
        clock.insert(PageId(3), 0);
        assert_eq!(clock.victim(&|_| true), Some(PageId(1)));
        clock.insert(PageId(0), 0);
        assert_eq!((clock.hot, clock.cold, clock.gone), (1, 2, 1));
        assert_eq!(clock.victim(&|_| true), Some(PageId(2)));
        assert_eq!(clock.victim(&|_| true), Some(PageId(3)));
    }
}
