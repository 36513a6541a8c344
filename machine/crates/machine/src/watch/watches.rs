// SPDX-License-Identifier: Apache-2.0
//! Watched mappings: which pages of each address space are watched, and which accesses to them there have been.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use trapless_memory::PAGE_SHIFT;

/// Flags of a page: user code has touched it, or a walker has asked the SMU for it.
const TOUCHED: u8 = 1;
const REQUESTED: u8 = 2;

/// Number of pages whose flags are kept together.
const CHUNK: u64 = 512;
/// Maximum number of chunks that are kept, so that the guest cannot fill the host's memory. They cover 1 TiB of accessed pages.
const MOST_CHUNKS: usize = 1 << 19;
/// Maximum number of areas that are watched at a time.
const MOST_AREAS: usize = 1 << 20;
/// Maximum number of address spaces that are remembered until a child process says that it has a copy.
const MOST_FORKS: usize = 64;
/// End of the user pages of all paging modes.
const PAGES_END: u64 = 1 << (56 - PAGE_SHIFT);

/// Counts of a watched mapping. For first touches, `hw_misses + os_faults + resident == pages_touched`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WatchCounts {
    /// Number given by the marker or by the machine; none for the sum of several watches.
    pub number: Option<u64>,
    /// Number of watches in this sum; 1 for a single watch.
    pub watches: u64,
    /// Virtual address where the mapping was first watched; 0 in a sum.
    pub va: u64,
    /// Length in bytes when the mapping was first watched.
    pub len: u64,
    /// Number of distinct pages that user code accessed, counted in each address space.
    pub pages_touched: u64,
    /// First touches served by the SMU.
    pub hw_misses: u64,
    /// First touches that raised a page fault.
    pub os_faults: u64,
    /// First touches that found the page present.
    pub resident: u64,
    /// Requests to the SMU, first touches or not.
    pub hw_misses_total: u64,
    /// Page faults, first touches or not.
    pub os_faults_total: u64,
}

impl WatchCounts {
    fn add(&mut self, other: &WatchCounts) {
        self.watches += other.watches;
        self.len = self.len.saturating_add(other.len);
        self.hw_misses += other.hw_misses;
        self.os_faults += other.os_faults;
        self.resident += other.resident;
        self.hw_misses_total += other.hw_misses_total;
        self.os_faults_total += other.os_faults_total;
    }

    /// Adds `pages_touched`, the sum of three other counts.
    fn summed(&self) -> WatchCounts {
        WatchCounts { pages_touched: self.hw_misses + self.os_faults + self.resident, ..self.clone() }
    }
}

/// Marks a page as accessed. Returns whether this is the first access.
fn first_touch(state: &mut u8) -> bool {
    let first = *state & TOUCHED == 0;
    *state |= TOUCHED;
    first
}

/// Consecutive pages of one watch. The first page is the key in the map of areas.
#[derive(Clone, Copy, Debug)]
struct Area {
    end: u64,
    watch: u64,
    /// Whether these pages keep a region of interest open.
    keeps_region: bool,
}

/// The watched pages of one address space.
#[derive(Clone, Default)]
struct Space {
    areas: BTreeMap<u64, Area>,
    /// Flags of pages, by page number / [`CHUNK`]; none where nothing was accessed. Copied only when a forked space changes.
    states: BTreeMap<u64, Arc<[u8; CHUNK as usize]>>,
}

impl Space {
    /// Removes the areas in `range` and returns them; cuts areas at its ends.
    fn take_areas(&mut self, range: &Range<u64>) -> Vec<(u64, Area)> {
        let mut taken = Vec::new();
        let before = self.areas.range(..range.start).next_back().map(|(first, area)| (*first, *area));
        if let Some((first, area)) = before.filter(|(_, area)| area.end > range.start) {
            self.areas.insert(first, Area { end: range.start, ..area });
            taken.push((range.start, area));
        }
        while let Some(first) = self.areas.range(range.clone()).next().map(|(first, _)| *first) {
            taken.extend(self.areas.remove(&first).map(|area| (first, area)));
        }
        for (_, area) in &mut taken {
            if area.end > range.end {
                self.areas.insert(range.end, *area);
                area.end = range.end;
            }
        }
        taken
    }

    /// Removes the flags of the pages in `range` and returns those that are set.
    fn take_states(&mut self, range: &Range<u64>) -> Vec<(u64, u8)> {
        let mut taken = Vec::new();
        let chunks: Vec<u64> =
            self.states.range(range.start / CHUNK..range.end.div_ceil(CHUNK)).map(|c| *c.0).collect();
        for number in chunks {
            let Some(mut chunk) = self.states.remove(&number) else { continue };
            let states = Arc::make_mut(&mut chunk);
            for (page, state) in (number * CHUNK..).zip(states.iter_mut()) {
                if *state != 0 && range.contains(&page) {
                    taken.push((page, std::mem::take(state)));
                }
            }
            if states.iter().any(|state| *state != 0) {
                self.states.insert(number, chunk);
            }
        }
        taken
    }

    /// The flags of a page, mutable.
    fn state(&mut self, page: u64) -> &mut u8 {
        let chunk = self.states.entry(page / CHUNK).or_insert_with(|| Arc::new([0; CHUNK as usize]));
        &mut Arc::make_mut(chunk)[(page % CHUNK) as usize]
    }
}

/// A watch that still has pages.
struct Live {
    counts: WatchCounts,
    /// Number of its pages in all address spaces, including those remembered for a fork.
    pages: u64,
}

/// All watched mappings of a run.
#[derive(Default)]
pub struct Watches {
    /// Address spaces, by the page number of the root table.
    spaces: BTreeMap<u64, Space>,
    /// Address spaces remembered for a fork, each with its token; the oldest first.
    forks: VecDeque<(u64, Space)>,
    live: BTreeMap<u64, Live>,
    /// Watches without pages, each with its number in the order of all watches. `older`: the sum of still older ones.
    ended: VecDeque<(u64, WatchCounts)>,
    older: WatchCounts,
    /// Number of watches so far. `numbered`: how many of them the machine has numbered.
    begun: u64,
    numbered: u64,
    /// Number of pages that keep a region of interest open. `unmapping`: how many unmappings of such pages are under way.
    region_pages: u64,
    unmapping: u64,
    ignored: u64,
}

/// The pages that contain the `len` bytes from `va` on, as far as they are user pages.
fn pages(va: u64, len: u64) -> Range<u64> {
    let first = (va >> PAGE_SHIFT).min(PAGES_END);
    let end = if len == 0 { first } else { (va.saturating_add(len - 1) >> PAGE_SHIFT) + 1 };
    first..end.clamp(first, PAGES_END)
}

/// The same pages, if an address space can have them all.
fn sound_pages(va: u64, len: u64) -> Option<Range<u64>> {
    let last = va.checked_add(len.checked_sub(1)?)?;
    (last >> PAGE_SHIFT < PAGES_END).then(|| pages(va, len))
}

impl Watches {
    /// Maximum number of single watches in [`Watches::counts`].
    pub const MOST: usize = 1000;

    /// Watches `[va, va + len)` of the address space whose root table is page `root`. This replaces other watches there. Returns
    /// false if the size is impossible or there are too many areas.
    pub fn add(&mut self, number: u64, root: u64, va: u64, len: u64) -> bool {
        self.begin(Some(number), root, va, len)
    }

    /// Does the same with the machine's next number. The watch keeps a region of interest open.
    pub fn add_to_region(&mut self, root: u64, va: u64, len: u64) -> bool {
        self.begin(None, root, va, len)
    }

    fn begin(&mut self, number: Option<u64>, root: u64, va: u64, len: u64) -> bool {
        let Some(range) = sound_pages(va, len).filter(|_| self.has_room()) else {
            self.ignored += 1;
            return false;
        };
        self.drop_range(root, &range);
        let (watch, keeps_region) = (self.begun, number.is_none());
        let number = number.unwrap_or(self.numbered);
        self.begun += 1;
        self.numbered += u64::from(keeps_region);
        let counts = WatchCounts { number: Some(number), watches: 1, va, len, ..WatchCounts::default() };
        self.live.insert(watch, Live { counts, pages: 0 });
        self.put(root, range.start, Area { end: range.end, watch, keeps_region });
        true
    }

    fn has_room(&self) -> bool {
        self.spaces.values().map(|space| space.areas.len()).sum::<usize>() < MOST_AREAS
    }

    /// Adds an area where nothing is watched.
    fn put(&mut self, root: u64, first: u64, area: Area) {
        let pages = area.end - first;
        self.spaces.entry(root).or_default().areas.insert(first, area);
        self.live.get_mut(&area.watch).into_iter().for_each(|live| live.pages += pages);
        self.region_pages += if area.keeps_region { pages } else { 0 };
    }

    /// Updates the counts for areas that were removed from an address space.
    fn taken(&mut self, areas: &[(u64, Area)]) {
        let kept = areas.iter().filter(|(_, area)| area.keeps_region).map(|(first, area)| area.end - first);
        self.region_pages -= kept.sum::<u64>();
        self.release(areas.iter().map(|(first, area)| (*first, *area)));
    }

    /// Removes pages from their watches.
    fn release(&mut self, areas: impl Iterator<Item = (u64, Area)>) {
        for (first, area) in areas {
            let Some(live) = self.live.get_mut(&area.watch) else { continue };
            live.pages -= area.end - first;
            if live.pages == 0 {
                self.ended.extend(self.live.remove(&area.watch).map(|live| (area.watch, live.counts)));
            }
        }
        while self.ended.len() > Self::MOST {
            let oldest = self.ended.pop_front();
            oldest.into_iter().for_each(|(_, counts)| self.older.add(&counts));
        }
    }

    /// Stops watching `range`. If there are too many areas already, an area that would be cut in two is dropped as a whole.
    fn drop_range(&mut self, root: u64, range: &Range<u64>) {
        let room = self.has_room();
        let Some(space) = self.spaces.get_mut(&root) else { return };
        let mut areas = space.take_areas(range);
        if !areas.is_empty() {
            space.take_states(range);
        }
        if !room && let Some(area) = space.areas.remove(&range.end) {
            space.take_states(&(range.end..area.end));
            areas.push((range.end, area));
            self.ignored += 1;
        }
        if space.areas.is_empty() {
            self.spaces.remove(&root);
        }
        self.taken(&areas);
    }

    /// Stops watching the pages in `[va, va + len)`, or the whole address space if the length is `u64::MAX`; counts stay. If
    /// `unmapping`, a region of interest stays open until [`Watches::unmapped`].
    pub fn remove(&mut self, root: u64, va: u64, len: u64, unmapping: bool) {
        self.unmapping += u64::from(unmapping);
        self.drop_range(root, &if len == u64::MAX { 0..PAGES_END } else { pages(va, len) });
    }

    /// Notes that the unmapping that [`Watches::remove`] announced is over.
    pub fn unmapped(&mut self) {
        self.unmapping = self.unmapping.saturating_sub(1);
    }

    /// Notes that `[old, old + old_len)` is now `[new, new + new_len)`, as after mremap(). Pages keep their watch and flags.
    /// New pages after the old ones belong to the watch of the last old page. What was watched at the new place is not watched
    /// any more.
    pub fn moved(&mut self, root: u64, [old, old_len, new, new_len]: [u64; 4]) {
        let (from, to) = (pages(old, old_len), sound_pages(new, new_len));
        if from.is_empty() {
            return;
        }
        let Some(space) = self.spaces.get_mut(&root) else { return };
        let (areas, states) = (space.take_areas(&from), space.take_states(&from));
        let to = to.filter(|_| self.has_room());
        if let Some(to) = to {
            self.drop_range(root, &to);
            let grown = to.end - to.start > from.end - from.start;
            let place = |page: u64| page - from.start + to.start;
            for (first, area) in &areas {
                let end = if grown && area.end == from.end { to.end } else { place(area.end).min(to.end) };
                if place(*first) < end {
                    self.put(root, place(*first), Area { end, ..*area });
                }
            }
            let space = self.spaces.entry(root).or_default();
            for (page, state) in states.into_iter().filter(|(page, _)| place(*page) < to.end) {
                *space.state(place(page)) = state;
            }
        } else if !areas.is_empty() {
            self.ignored += 1;
        }
        if self.spaces.get(&root).is_some_and(|space| space.areas.is_empty()) {
            self.spaces.remove(&root);
        }
        // Last, so that the watches and the region of interest of moved pages do not end in between.
        self.taken(&areas);
    }

    /// Remembers under `token` the watched pages of an address space that is about to fork.
    pub fn forks(&mut self, token: u64, root: u64) {
        if let Some(place) = self.forks.iter().position(|(had, _)| *had == token) {
            self.forget_fork(place);
        }
        let Some(space) = self.spaces.get(&root).cloned() else { return };
        for (first, area) in &space.areas {
            self.live.get_mut(&area.watch).into_iter().for_each(|live| live.pages += area.end - first);
        }
        self.forks.push_back((token, space));
        if self.forks.len() > MOST_FORKS {
            self.ignored += 1;
            self.forget_fork(0);
        }
    }

    fn forget_fork(&mut self, place: usize) {
        if let Some((_, space)) = self.forks.remove(place) {
            self.release(space.areas.into_iter());
        }
    }

    /// Makes `root` the child's copy of the address space that was remembered under `token`. Returns the ranges watched in it.
    pub fn forked(&mut self, token: u64, root: u64) -> Vec<(u64, u64)> {
        self.drop_range(root, &(0..PAGES_END));
        let place = self.forks.iter().position(|(had, _)| *had == token);
        let Some((_, space)) = place.and_then(|place| self.forks.remove(place)) else { return Vec::new() };
        let areas: Vec<(u64, Area)> = space.areas.iter().map(|(first, area)| (*first, *area)).collect();
        if areas.len() > MOST_AREAS / 2 || !self.has_room() {
            self.ignored += 1;
            self.release(areas.into_iter());
            return Vec::new();
        }
        self.region_pages +=
            areas.iter().filter(|(_, area)| area.keeps_region).map(|(at, area)| area.end - at).sum::<u64>();
        self.spaces.insert(root, space);
        areas.iter().map(|(first, area)| (first << PAGE_SHIFT, (area.end - first) << PAGE_SHIFT)).collect()
    }

    /// Stops watching all pages of all address spaces; counts stay.
    pub fn forget(&mut self) {
        self.unmapping = 0;
        while !self.forks.is_empty() {
            self.forget_fork(0);
        }
        while let Some((_, space)) = self.spaces.pop_first() {
            self.taken(&space.areas.into_iter().collect::<Vec<_>>());
        }
    }

    /// Whether pages that keep a region of interest open are watched or being unmapped.
    pub fn keep_region(&self) -> bool {
        self.region_pages + self.unmapping != 0
    }

    /// Number of requests that were ignored because they were too large or too many.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    fn find(&self, root: u64, page: u64) -> Option<(&Space, Area)> {
        let space = self.spaces.get(&root)?;
        let (_, area) = space.areas.range(..=page).next_back().filter(|(_, area)| page < area.end)?;
        Some((space, *area))
    }

    /// Whether a page is watched.
    pub fn has(&self, root: u64, va: u64) -> bool {
        self.find(root, va >> PAGE_SHIFT).is_some()
    }

    /// Calls `then` with the counts and the flags of a page, if the page is watched.
    fn at(&mut self, root: u64, va: u64, then: impl FnOnce(&mut WatchCounts, &mut u8)) -> bool {
        let page = va >> PAGE_SHIFT;
        let Some((space, area)) = self.find(root, page) else { return false };
        let kept = |watches: &Watches| watches.spaces.values().map(|space| space.states.len()).sum::<usize>();
        if !space.states.contains_key(&(page / CHUNK)) && kept(self) >= MOST_CHUNKS {
            self.ignored += 1;
            return false;
        }
        let (Some(space), Some(live)) = (self.spaces.get_mut(&root), self.live.get_mut(&area.watch)) else {
            return false;
        };
        then(&mut live.counts, space.state(page));
        true
    }

    /// Notes that a user access found a translation.
    pub fn touched(&mut self, root: u64, va: u64) {
        self.at(root, va, |counts, state| {
            if first_touch(state) {
                if *state & REQUESTED != 0 {
                    counts.hw_misses += 1;
                } else {
                    counts.resident += 1;
                }
            }
        });
    }

    /// Notes that a user access made the walker ask the SMU.
    pub fn requested(&mut self, root: u64, va: u64) {
        self.at(root, va, |counts, state| {
            *state |= REQUESTED;
            counts.hw_misses_total += 1;
        });
    }

    /// Notes that a user access raised a page fault. Returns false if the page is not watched.
    pub fn faulted(&mut self, root: u64, va: u64) -> bool {
        self.at(root, va, |counts, state| {
            counts.os_faults_total += 1;
            counts.os_faults += u64::from(first_touch(state));
        })
    }

    /// Counts of every mapping watched so far, in the order in which the watches began. The newest
    /// `most` are reported one by one, and after them the sum of the others.
    pub fn counts(&self, most: usize) -> Vec<WatchCounts> {
        let live = self.live.iter().map(|(watch, live)| (*watch, &live.counts));
        let mut all: Vec<_> = self.ended.iter().map(|(watch, counts)| (*watch, counts)).chain(live).collect();
        all.sort_unstable_by_key(|(watch, _)| *watch);
        let (summed, single) = all.split_at(all.len().saturating_sub(most));
        let mut rest = self.older.clone();
        summed.iter().for_each(|(_, counts)| rest.add(counts));
        single.iter().map(|(_, counts)| counts.summed()).chain((rest.watches != 0).then(|| rest.summed())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 1 << PAGE_SHIFT;

    fn of(w: &Watches, number: u64) -> WatchCounts {
        w.counts(Watches::MOST).into_iter().find(|c| c.number == Some(number)).unwrap()
    }

    fn touched(w: &Watches) -> u64 {
        w.counts(Watches::MOST).iter().map(|c| c.pages_touched).sum()
    }

    #[test]
    fn every_first_touch_has_one_cause() {
        let mut w = Watches::default();
        w.add(7, 1, 0x1000, 4 * PAGE);
        w.requested(1, 0x1008); // served by the SMU
        w.touched(1, 0x1008);
        w.faulted(1, 0x2000); // served by the OS
        w.touched(1, 0x2000);
        w.touched(1, 0x3fff); // already present
        w.touched(1, 0x3000);
        w.touched(2, 0x4000); // in another address space
        w.requested(1, 0x4000); // asked the SMU, which failed
        w.faulted(1, 0x4000);
        w.touched(1, 0x5000); // past the end
        let c = of(&w, 7);
        assert_eq!((c.pages_touched, c.hw_misses, c.os_faults, c.resident), (4, 1, 2, 1));
        assert_eq!((c.hw_misses_total, c.os_faults_total), (2, 2));
    }

    #[test]
    fn absurd_watches_are_refused_and_counted() {
        let mut w = Watches::default();
        for (va, len) in [(u64::MAX - 10, 100), (0, u64::MAX), (0, 0), (PAGES_END << PAGE_SHIFT, 1)] {
            assert!(!w.add(1, 1, va, len));
        }
        assert!(w.counts(1).is_empty());
        assert_eq!(w.ignored(), 4);
        w.remove(1, u64::MAX, u64::MAX - 1, false);
        w.moved(1, [u64::MAX; 4]);
        assert_eq!(w.ignored(), 4);
    }

    /// Checks single watches up to a limit, and the sum of the others.
    #[test]
    fn sums_over_all_watches_are_right() {
        let mut w = Watches::default();
        for n in 0..5000 {
            assert!(w.add(n, 1, n << PAGE_SHIFT, 1));
            w.touched(1, n << PAGE_SHIFT);
            if n.is_multiple_of(2) {
                w.remove(1, n << PAGE_SHIFT, PAGE, false);
            }
        }
        for most in [0, 1, 10, 1000] {
            let counts = w.counts(most);
            assert_eq!(counts.len(), most + 1);
            assert_eq!(counts.iter().map(|c| c.pages_touched).sum::<u64>(), 5000);
            assert_eq!(counts.iter().map(|c| c.watches).sum::<u64>(), 5000);
            assert!(counts[..most].iter().all(|c| c.number.is_some()) && counts[most].number.is_none());
        }
        assert_eq!(w.counts(10)[9].number, Some(4999));
        assert_eq!(w.ignored(), 0);
    }

    #[test]
    fn parts_of_watches_can_end() {
        let mut w = Watches::default();
        w.add(0, 1, 0, 4 * PAGE);
        w.add(1, 1, 4 * PAGE, 4 * PAGE);
        w.add(2, 2, 0, 8 * PAGE);
        w.remove(1, PAGE, 5 * PAGE, false); // the end of watch 0, the start of watch 1
        (0..8).for_each(|page| w.touched(1, page * PAGE));
        assert_eq!((of(&w, 0).pages_touched, of(&w, 1).pages_touched), (1, 2));
        w.add(3, 1, 6 * PAGE, PAGE); // replaces a part of watch 1
        (6..8).for_each(|page| w.touched(1, page * PAGE));
        assert_eq!((of(&w, 1).pages_touched, of(&w, 3).pages_touched), (2, 1));
        w.remove(1, 0, u64::MAX, false);
        (0..8).for_each(|page| w.touched(1, page * PAGE));
        assert_eq!(touched(&w), 4);
        w.touched(2, 0);
        assert_eq!(touched(&w), 5);
    }

    #[test]
    fn pages_keep_their_watch_when_they_move() {
        let mut w = Watches::default();
        w.add(5, 1, 0x10 * PAGE, 4 * PAGE);
        w.touched(1, 0x11 * PAGE);
        w.moved(1, [0x10 * PAGE, 4 * PAGE, 0x1000 * PAGE, 6 * PAGE]);
        w.touched(1, 0x10 * PAGE); // no longer watched
        (0..7).for_each(|page| w.touched(1, (0x1000 + page) * PAGE));
        assert_eq!(of(&w, 5).pages_touched, 6);
        // Shrinks and grows in place: pages that are cut off are no longer watched.
        w.moved(1, [0x1000 * PAGE, 6 * PAGE, 0x1000 * PAGE, 2 * PAGE]);
        w.moved(1, [0x1000 * PAGE, 2 * PAGE, 0x1000 * PAGE, 4 * PAGE]);
        (0..7).for_each(|page| w.touched(1, (0x1000 + page) * PAGE));
        assert_eq!(of(&w, 5).pages_touched, 8);
        // Moves over another watch, then to a range that overlaps its own.
        w.add(6, 1, 0x2000 * PAGE, PAGE);
        w.moved(1, [0x1000 * PAGE, 4 * PAGE, 0x2000 * PAGE, 4 * PAGE]);
        w.moved(1, [0x2000 * PAGE, 4 * PAGE, 0x2002 * PAGE, 4 * PAGE]);
        w.touched(1, 0x2000 * PAGE);
        (2..6).for_each(|page| w.touched(1, (0x2000 + page) * PAGE));
        assert_eq!((of(&w, 5).pages_touched, of(&w, 6).pages_touched), (8, 0));
        // Moves pages that are not watched.
        w.moved(1, [0x9000 * PAGE, PAGE, 0xa000 * PAGE, PAGE]);
        w.touched(1, 0xa000 * PAGE);
        assert_eq!((touched(&w), w.ignored()), (8, 0));
        assert!(w.spaces.values().all(|space| space.states.len() == 1));
    }

    #[test]
    fn children_have_the_watches_of_their_parents() {
        let mut w = Watches::default();
        assert!(w.add_to_region(1, 0, 4 * PAGE));
        w.touched(1, 0);
        w.forks(99, 1);
        w.touched(1, PAGE); // after the fork
        w.remove(1, 0, u64::MAX, false);
        assert!(!w.keep_region());
        assert_eq!(w.forked(98, 2), []);
        assert_eq!(w.forked(99, 2), [(0, 4 * PAGE)]);
        assert_eq!(w.forked(99, 3), []);
        assert!(w.keep_region());
        (0..4).for_each(|page| w.touched(2, page * PAGE));
        assert_eq!(of(&w, 0).pages_touched, 5); // the parent's two, and three that the child touched first in its space
        w.forget();
        assert!(!w.keep_region() && w.live.is_empty());
        // Forks without a child do not pile up.
        w.add(1, 1, 0, PAGE);
        (0..200).for_each(|token| w.forks(token, 1));
        assert_eq!((w.forks.len(), w.ignored()), (MOST_FORKS, 200 - MOST_FORKS as u64));
        w.forks(199, 7);
        assert_eq!(w.forks.len(), MOST_FORKS - 1);
    }

    #[test]
    fn the_machine_numbers_watches_that_keep_a_region() {
        let mut w = Watches::default();
        w.add(40, 1, 0, PAGE);
        assert!(!w.keep_region());
        w.add_to_region(1, PAGE, PAGE);
        w.add_to_region(2, PAGE, PAGE);
        assert_eq!(w.counts(9).iter().map(|c| c.number).collect::<Vec<_>>(), [Some(40), Some(0), Some(1)]);
        w.remove(1, 0, 2 * PAGE, false);
        assert!(w.keep_region());
        w.moved(2, [PAGE, PAGE, 8 * PAGE, 2 * PAGE]);
        w.remove(2, 9 * PAGE, PAGE, false);
        assert!(w.keep_region());
        w.remove(2, 8 * PAGE, PAGE, false);
        assert!(!w.keep_region());
        assert_eq!(w.region_pages, 0);
    }
}
