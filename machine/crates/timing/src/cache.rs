// SPDX-License-Identifier: Apache-2.0
//! The model of one cache. It knows which lines the cache contains, but not their data, because it only decides times.

use trapless_memory::PhysAddr;

/// log2 of the size of a line.
pub const LINE_SHIFT: u32 = 6;

/// Number of a line in physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u64);

impl Line {
    /// Returns the line of an address.
    #[inline]
    pub fn of(at: PhysAddr) -> Line {
        Line(at.0 >> LINE_SHIFT)
    }
}

/// Type in which a cache stores the numbers of its lines. A smaller type saves memory.
pub trait Key: Copy + PartialEq {
    /// The value that means no line.
    const NONE: Self;
    /// Converts a line to this type.
    fn of(line: Line) -> Self;
    /// Converts this value back to a line.
    fn line(self) -> Line;
}

/// For lines of memory below 256 GiB.
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

/// For any line.
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

/// A set-associative cache. Each line has a state `S`. A full set evicts its least recently used line.
#[derive(Clone, Debug)]
pub struct Cache<S, K = u32> {
    ways: usize,
    mask: u64,
    /// All sets in a row. A set begins with its lines, most recently used first; its free places follow.
    lines: Vec<K>,
    /// The states, in the same places as the lines.
    states: Vec<S>,
}

impl<S: Copy + Default, K: Key> Cache<S, K> {
    /// Creates an empty cache of `sets` (a power of two) times `ways` lines.
    pub fn new(sets: usize, ways: usize) -> Cache<S, K> {
        debug_assert!(sets.is_power_of_two() && ways > 0);
        let size = sets * ways;
        Cache { ways, mask: sets as u64 - 1, lines: vec![K::NONE; size], states: vec![S::default(); size] }
    }

    /// Returns the index of the first place in the line's set.
    #[inline]
    fn first(&self, line: Line) -> usize {
        (line.0 & self.mask) as usize * self.ways
    }

    /// Returns the index of a line.
    #[inline]
    fn find(&self, line: Line) -> Option<usize> {
        let (first, key) = (self.first(line), K::of(line));
        self.lines[first..first + self.ways].iter().position(|l| *l == key).map(|at| first + at)
    }

    /// Puts a line into the first place of the set. Moves the lines before `at` one place further.
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

    /// Returns the state of a line, and makes the line the most recently used one of its set.
    #[inline]
    pub fn touch(&mut self, line: Line) -> Option<&mut S> {
        let at = self.find(line)?;
        Some(self.put_first(self.first(line), at, K::of(line), self.states[at]))
    }

    /// Returns the state of a line without changing the order of use.
    #[inline]
    pub fn peek(&mut self, line: Line) -> Option<&mut S> {
        let at = self.find(line)?;
        Some(&mut self.states[at])
    }

    /// Inserts a line that the cache does not contain. Returns the evicted line, if any.
    #[inline]
    pub fn insert(&mut self, line: Line, state: S) -> Option<(Line, S)> {
        let first = self.first(line);
        let last = first + self.ways - 1;
        let out = (self.lines[last], self.states[last]);
        self.put_first(first, last, K::of(line), state);
        (out.0 != K::NONE).then(|| (out.0.line(), out.1))
    }

    /// Removes a line.
    pub fn remove(&mut self, line: Line) -> Option<S> {
        let at = self.find(line)?;
        let (state, last) = (self.states[at], self.first(line) + self.ways - 1);
        self.lines.copy_within(at + 1..=last, at);
        self.states.copy_within(at + 1..=last, at);
        self.lines[last] = K::NONE;
        Some(state)
    }

    /// Removes the lines for which `stays` is false.
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

    /// Removes all lines.
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
        /// The cache contains the same lines as a list in the order of use.
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
