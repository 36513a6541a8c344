// SPDX-License-Identifier: Apache-2.0
//! One cache: which lines it holds, and no data. It only decides time.

use trapless_memory::PhysAddr;

/// log2 of the size of a line.
pub const LINE_SHIFT: u32 = 6;

/// Number of a line of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u64);

impl Line {
    /// The line of an address.
    #[inline]
    pub fn of(at: PhysAddr) -> Line {
        Line(at.0 >> LINE_SHIFT)
    }
}

/// How a cache stores the numbers of its lines, in as few bytes as possible.
pub trait Key: Copy + PartialEq {
    /// The number that means no line.
    const NONE: Self;
    /// The form in which a cache keeps the line.
    fn of(line: Line) -> Self;
    /// The line of this form.
    fn line(self) -> Line;
}

/// Form for lines of memory below 256 GiB.
impl Key for u32 {
    const NONE: u32 = u32::MAX;
    #[inline]
    fn of(line: Line) -> u32 {
        line.0 as u32
    }
    #[inline]
    fn line(self) -> Line {
        Line(self.into())
    }
}

/// Any.
impl Key for u64 {
    const NONE: u64 = u64::MAX;
    #[inline]
    fn of(line: Line) -> u64 {
        line.0
    }
    #[inline]
    fn line(self) -> Line {
        Line(self)
    }
}

/// A set-associative cache. Each line carries a state `S`; the least recently used line of a set goes first.
#[derive(Clone, Debug)]
pub struct Cache<S, K = u32> {
    ways: usize,
    mask: u64,
    /// The sets one after the other, in each the lines as they were used, the last one first, and behind them no lines.
    lines: Vec<K>,
    /// The lines' states.
    states: Vec<S>,
}

impl<S: Copy + Default, K: Key> Cache<S, K> {
    /// An empty cache of `sets` (a power of two) times `ways` lines.
    pub fn new(sets: usize, ways: usize) -> Cache<S, K> {
        debug_assert!(sets.is_power_of_two() && ways > 0);
        let size = sets * ways;
        Cache { ways, mask: sets as u64 - 1, lines: vec![K::NONE; size], states: vec![S::default(); size] }
    }

    /// Where the set of a line begins.
    #[inline]
    fn first(&self, line: Line) -> usize {
        (line.0 & self.mask) as usize * self.ways
    }

    /// Where a line is.
    #[inline]
    fn find(&self, line: Line) -> Option<usize> {
        let (first, key) = (self.first(line), K::of(line));
        self.lines[first..first + self.ways].iter().position(|l| *l == key).map(|at| first + at)
    }

    /// Puts a line where the set begins; those up to `at` move on by one.
    #[inline]
    fn put_first(&mut self, first: usize, at: usize, key: K, state: S) -> &mut S {
        if at > first {
            self.lines.copy_within(first..at, first + 1);
            self.states.copy_within(first..at, first + 1);
        }
        self.lines[first] = key;
        self.states[first] = state;
        &mut self.states[first]
    }

    /// The state of a line, which becomes the most recently used one of its set.
    #[inline]
    pub fn touch(&mut self, line: Line) -> Option<&mut S> {
        let at = self.find(line)?;
        Some(self.put_first(self.first(line), at, K::of(line), self.states[at]))
    }

    /// The state of a line, without using it.
    #[inline]
    pub fn peek(&mut self, line: Line) -> Option<&mut S> {
        let at = self.find(line)?;
        Some(&mut self.states[at])
    }

    /// Enters a line that is not there; the line that had to go for it.
    #[inline]
    pub fn insert(&mut self, line: Line, state: S) -> Option<(Line, S)> {
        let first = self.first(line);
        let last = first + self.ways - 1;
        let out = (self.lines[last], self.states[last]);
        self.put_first(first, last, K::of(line), state);
        (out.0 != K::NONE).then(|| (out.0.line(), out.1))
    }

    /// Takes a line out.
    pub fn remove(&mut self, line: Line) -> Option<S> {
        let at = self.find(line)?;
        let (state, last) = (self.states[at], self.first(line) + self.ways - 1);
        self.lines.copy_within(at + 1..=last, at);
        self.states.copy_within(at + 1..=last, at);
        self.lines[last] = K::NONE;
        Some(state)
    }

    /// Takes out the lines that `stays` does not want.
    pub fn retain(&mut self, stays: impl Fn(Line) -> bool) {
        for first in (0..self.lines.len()).step_by(self.ways) {
            let mut to = first;
            for at in first..first + self.ways {
                let key = std::mem::replace(&mut self.lines[at], K::NONE);
                if key != K::NONE && stays(key.line()) {
                    (self.lines[to], self.states[to]) = (key, self.states[at]);
                    to += 1;
                }
            }
        }
    }

    /// Takes all lines out.
    pub fn clear(&mut self) {
        self.lines.fill(K::NONE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut c: Cache<char> = Cache::new(2, 2);
        assert_eq!(c.insert(Line(0), 'a'), None);
        assert_eq!(c.insert(Line(2), 'b'), None);
        assert_eq!(c.insert(Line(1), 'x'), None);
        assert_eq!(c.touch(Line(0)).copied(), Some('a'));
        assert_eq!(c.insert(Line(4), 'c'), Some((Line(2), 'b')));
        assert_eq!(c.peek(Line(2)), None);
        assert_eq!(c.remove(Line(0)), Some('a'));
        assert_eq!(c.insert(Line(6), 'd'), None);
        assert_eq!(c.peek(Line(4)).copied(), Some('c'));
    }

    proptest! {
        /// Against a list of what was used, newest first.
        #[test]
        fn it_holds_what_a_list_of_recent_lines_holds(uses in prop::collection::vec((0..24u64, 0..16u8), 1..400)) {
            const WAYS: usize = 3;
            let mut cache: Cache<()> = Cache::new(4, WAYS);
            let mut recent: [Vec<u64>; 4] = Default::default();
            for (n, kind) in uses {
                let list = &mut recent[n as usize % 4];
                let known = list.iter().position(|l| *l == n);
                if kind == 1 {
                    cache.retain(|l| l.0 != n);
                    known.map(|at| list.remove(at));
                    continue;
                }
                if kind == 0 {
                    prop_assert_eq!(cache.remove(Line(n)).is_some(), known.is_some());
                    known.map(|at| list.remove(at));
                    continue;
                }
                let hit = cache.touch(Line(n)).is_some();
                prop_assert_eq!(hit, known.is_some());
                if let Some(at) = known {
                    list.remove(at);
                } else {
                    let out = cache.insert(Line(n), ());
                    let expected = (list.len() == WAYS).then(|| list.pop()).flatten();
                    prop_assert_eq!(out.map(|(l, ())| l.0), expected);
                }
                list.insert(0, n);
            }
        }
    }
}
