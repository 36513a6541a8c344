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

/// No line: the number of none, as lines are shorter than addresses.
const NONE: Line = Line(u64::MAX);

/// A set-associative cache. Each line carries a state `S`; the least recently used line of a set goes first.
#[derive(Clone, Debug)]
pub struct Cache<S> {
    ways: usize,
    mask: u64,
    /// Counts uses.
    clock: u64,
    /// The sets one after the other.
    lines: Vec<Line>,
    /// When each line was last used; 0 where there is none.
    used: Vec<u64>,
    /// The lines' states.
    states: Vec<S>,
}

impl<S: Copy + Default> Cache<S> {
    /// An empty cache of `sets` (a power of two) times `ways` lines.
    pub fn new(sets: usize, ways: usize) -> Cache<S> {
        debug_assert!(sets.is_power_of_two() && ways > 0);
        let size = sets * ways;
        let (lines, used, states) = (vec![NONE; size], vec![0; size], vec![S::default(); size]);
        Cache { ways, mask: sets as u64 - 1, clock: 0, lines, used, states }
    }

    /// Where the set of a line begins.
    #[inline]
    fn first(&self, line: Line) -> usize {
        (line.0 & self.mask) as usize * self.ways
    }

    /// Where a line is.
    #[inline]
    fn find(&self, line: Line) -> Option<usize> {
        let first = self.first(line);
        self.lines[first..first + self.ways].iter().position(|l| *l == line).map(|at| first + at)
    }

    #[inline]
    fn use_now(&mut self, at: usize) {
        self.clock += 1;
        self.used[at] = self.clock;
    }

    /// The state of a line, which becomes the most recently used one of its set.
    #[inline]
    pub fn touch(&mut self, line: Line) -> Option<&mut S> {
        let at = self.find(line)?;
        self.use_now(at);
        Some(&mut self.states[at])
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
        let mut at = first;
        for other in first + 1..first + self.ways {
            if self.used[other] < self.used[at] {
                at = other;
            }
        }
        self.use_now(at);
        let out = (std::mem::replace(&mut self.lines[at], line), std::mem::replace(&mut self.states[at], state));
        (out.0 != NONE).then_some(out)
    }

    /// Takes a line out.
    pub fn remove(&mut self, line: Line) -> Option<S> {
        let at = self.find(line)?;
        (self.lines[at], self.used[at]) = (NONE, 0);
        Some(self.states[at])
    }

    /// Takes out the lines that `stays` does not want.
    pub fn retain(&mut self, stays: impl Fn(Line) -> bool) {
        for (line, used) in self.lines.iter_mut().zip(&mut self.used) {
            if *line != NONE && !stays(*line) {
                (*line, *used) = (NONE, 0);
            }
        }
    }

    /// Takes all lines out.
    pub fn clear(&mut self) {
        self.lines.fill(NONE);
        self.used.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut c = Cache::new(2, 2);
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
        fn it_holds_what_a_list_of_recent_lines_holds(uses in prop::collection::vec((0..24u64, 0..8u8), 1..400)) {
            const WAYS: usize = 3;
            let mut cache = Cache::new(4, WAYS);
            let mut recent: [Vec<u64>; 4] = Default::default();
            for (n, kind) in uses {
                let list = &mut recent[n as usize % 4];
                let known = list.iter().position(|l| *l == n);
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
