// SPDX-License-Identifier: Apache-2.0
//! The caches of all cores, the shared last level, and memory. They decide the cycles of an access in addition to a hit in the
//! first level.
//!
//! Every core has a cache for code and a cache for data, and may have a second level. The last level is shared and inclusive: it
//! contains all lines of the other caches and knows which cores have them. Only one core may have a line that it can write.

use trapless_memory::{Cycle, PhysAddr};

use crate::cache::{Cache, Line};
use crate::dram::{Dram, DramTiming};

/// One level of caches.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Number of sets, a power of two.
    pub sets: usize,
    /// Number of lines in a set.
    pub ways: usize,
    /// Additional cycles of an access that this level answers, compared with a hit in the first level.
    pub cycles: u64,
}

/// Configuration of the hierarchy.
#[derive(Clone, Copy, Debug)]
pub struct HierarchyConfig {
    /// Number of cores, 1 to 64.
    pub cores: usize,
    /// First level for code.
    pub l1i: Level,
    /// First level for data.
    pub l1d: Level,
    /// Second level of each core, if there is one.
    pub l2: Option<Level>,
    /// Shared last level.
    pub last: Level,
    /// Whether the last level stores data. If not, it is only a directory of the cores that have each line.
    pub last_has_data: bool,
    /// Added when a line of code comes from memory.
    pub fetch_cycles: u64,
    /// Added when another core must give up a line or the right to write it.
    pub snoop_cycles: u64,
    /// Memory. Its times come after the cycles of the last level.
    pub dram: DramTiming,
}

/// Purpose of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To execute the line.
    Fetch,
    /// To read the line.
    Load,
    /// To write the line.
    Store,
}

/// Part of the memory system that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The first level.
    First,
    /// The core's second level.
    Second,
    /// The last level, or another core.
    Last,
    /// Memory.
    Memory,
}

/// Result of a core's access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Part of the memory system that had the line.
    pub from: Answer,
    /// Cycles in addition to a hit in the first level.
    pub cycles: u64,
    /// Whether the core may write the line from now on.
    pub writable: bool,
}

/// Report that a core's first level lost a line or the right to write it. The core may have a note of it that is now wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The core.
    pub core: usize,
    /// The line.
    pub line: Line,
    /// Kind of the loss.
    pub what: Loss,
}

/// Kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The cache for code has lost the line.
    Code,
    /// The cache for data has lost the line.
    Data,
    /// The core may not write the line any more.
    Right,
}

/// State of a line in a core's caches.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    writable: bool,
}

/// State of a line in a core's second level.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    /// No other core has the line.
    alone: bool,
}

/// State of a line in the last level.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Bit mask of the cores that may have the line.
    holders: u64,
}

#[derive(Clone, Debug)]
struct Core {
    l1i: Cache<()>,
    l1d: Cache<Own>,
    l2: Option<Cache<Second>>,
}

/// Caches and memory.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    config: HierarchyConfig,
    cores: Vec<Core>,
    last: Cache<Shared>,
    dram: Dram,
    lost: Vec<Lost>,
}

impl Hierarchy {
    /// Creates empty caches.
    pub fn new(config: HierarchyConfig) -> Hierarchy {
        let core = Core {
            l1i: Cache::new(config.l1i.sets, config.l1i.ways),
            l1d: Cache::new(config.l1d.sets, config.l1d.ways),
            l2: config.l2.map(|l| Cache::new(l.sets, l.ways)),
        };
        Hierarchy {
            cores: vec![core; config.cores],
            last: Cache::new(config.last.sets, config.last.ways),
            dram: Dram::new(config.dram),
            lost: Vec::new(),
            config,
        }
    }

    /// Makes a core's access to the line at `at`.
    pub fn access(&mut self, core: usize, want: Want, at: PhysAddr, now: Cycle) -> Granted {
        let line = Line::of(at);
        let own = match want {
            Want::Fetch => self.cores[core].l1i.touch(line).map(|()| false),
            Want::Load | Want::Store => self.cores[core].l1d.touch(line).map(|own| own.writable),
        };
        if let Some(writable) = own
            && (writable || want != Want::Store)
        {
            return Granted { from: Answer::First, cycles: 0, writable };
        }
        if own.is_some() {
            // The core has the line; only the right to write is missing.
            let cycles = self.config.last.cycles + self.take_from_others(core, line);
            if let Some(own) = self.cores[core].l1d.peek(line) {
                own.writable = true;
            }
            self.set_alone(core, line, true);
            return Granted { from: Answer::Last, cycles, writable: true };
        }
        if let (Some(l2), Some(level)) = (&mut self.cores[core].l2, self.config.l2)
            && let Some(Second { alone }) = l2.touch(line).copied()
        {
            // No other core can write the line, because that core would have the line alone.
            let mut cycles = level.cycles;
            if want == Want::Store && !alone {
                cycles += self.config.last.cycles + self.take_from_others(core, line);
                self.set_alone(core, line, true);
            }
            let writable = want != Want::Fetch && (alone || want == Want::Store);
            self.enter_first(core, want, line, writable);
            return Granted { from: Answer::Second, cycles, writable };
        }
        let granted = self.beyond(core, want, line, now);
        self.enter(core, line);
        self.enter_first(core, want, line, granted.writable);
        granted
    }

    /// Makes an access of the SMU or a device, which have no caches, to one line. Returns its cycles, from the last level on.
    pub fn access_by_device(&mut self, write: bool, at: PhysAddr, now: Cycle) -> u64 {
        let line = Line::of(at);
        let snoop = if write { self.take_from_all(line) } else { self.take_right(line) };
        let memory = self.behind_last(line, now);
        self.config.last.cycles + snoop + memory.unwrap_or(0)
    }

    /// Removes a line from all caches, because a device has overwritten it in memory.
    pub fn overwritten(&mut self, at: PhysAddr) {
        let line = Line::of(at);
        self.take_from_all(line);
        self.last.remove(line);
    }

    /// Returns one loss that was not reported yet.
    #[inline]
    pub fn take_lost(&mut self) -> Option<Lost> {
        self.lost.pop()
    }

    /// Gets a line from the last level or from memory. Includes the right to write if the core needs it or no other core has the
    /// line.
    fn beyond(&mut self, core: usize, want: Want, line: Line, now: Cycle) -> Granted {
        let (mut from, mut cycles) = (Answer::Last, self.config.last.cycles);
        if let Some(memory) = self.behind_last(line, now + Cycle(cycles)) {
            from = Answer::Memory;
            cycles += memory + if want == Want::Fetch { self.config.fetch_cycles } else { 0 };
        }
        let others = self.last.peek(line).map_or(0, |s| s.holders & !(1 << core));
        let writable = match want {
            Want::Store => {
                cycles += self.take_from_others(core, line);
                true
            }
            Want::Load => {
                cycles += self.take_right_of(others, line);
                others == 0
            }
            Want::Fetch => {
                cycles += self.take_right_of(others, line);
                false
            }
        };
        Granted { from, cycles, writable }
    }

    /// Records that a core has a line from the last level, and puts the line into the core's second level.
    fn enter(&mut self, core: usize, line: Line) {
        let mut alone = false;
        if let Some(shared) = self.last.peek(line) {
            shared.holders |= 1 << core;
            alone = shared.holders == 1 << core;
        }
        if let Some(l2) = &mut self.cores[core].l2
            && let Some((out, _)) = l2.insert(line, Second { alone })
        {
            // The second level is inclusive: the first level must drop the evicted line, too.
            self.drop_first(core, out);
            if let Some(shared) = self.last.peek(out) {
                shared.holders &= !(1 << core);
            }
        }
    }

    fn set_alone(&mut self, core: usize, line: Line, alone: bool) {
        if let Some(second) = self.cores[core].l2.as_mut().and_then(|l2| l2.peek(line)) {
            second.alone = alone;
        }
    }

    /// Puts a line into a core's first level.
    fn enter_first(&mut self, core: usize, want: Want, line: Line, writable: bool) {
        let caches = &mut self.cores[core];
        let out = match want {
            Want::Fetch => caches.l1i.insert(line, ()).map(|(out, ())| (out, Loss::Code)),
            _ => caches.l1d.insert(line, Own { writable }).map(|(out, _)| (out, Loss::Data)),
        };
        if let Some((out, what)) = out {
            self.lost.push(Lost { core, line: out, what });
            self.forget_holder(core, out);
        }
    }

    /// Records that a core without a second level has no more copy of a line, if the line is in neither of its caches.
    fn forget_holder(&mut self, core: usize, line: Line) {
        let caches = &mut self.cores[core];
        if caches.l2.is_none()
            && caches.l1i.peek(line).is_none()
            && caches.l1d.peek(line).is_none()
            && let Some(shared) = self.last.peek(line)
        {
            shared.holders &= !(1 << core);
        }
    }

    /// Returns the cycles of memory for a line, or `None` if the last level has its data.
    fn behind_last(&mut self, line: Line, now: Cycle) -> Option<u64> {
        if self.last.touch(line).is_none() {
            return Some(self.fill_last(line, now));
        }
        (!self.config.last_has_data).then(|| self.dram.access(line, now))
    }

    /// Brings a line from memory into the last level. Returns the cycles of memory.
    fn fill_last(&mut self, line: Line, now: Cycle) -> u64 {
        if let Some((out, shared)) = self.last.insert(line, Shared::default()) {
            for core in bits(shared.holders) {
                self.drop_all(core, out);
            }
        }
        self.dram.access(line, now)
    }

    fn drop_first(&mut self, core: usize, line: Line) {
        let caches = &mut self.cores[core];
        if caches.l1i.remove(line).is_some() {
            self.lost.push(Lost { core, line, what: Loss::Code });
        }
        if caches.l1d.remove(line).is_some() {
            self.lost.push(Lost { core, line, what: Loss::Data });
        }
    }

    fn drop_all(&mut self, core: usize, line: Line) {
        self.drop_first(core, line);
        if let Some(l2) = &mut self.cores[core].l2 {
            l2.remove(line);
        }
    }

    /// Removes a line from all cores except `core`. Returns the cycles for that.
    fn take_from_others(&mut self, core: usize, line: Line) -> u64 {
        let Some(shared) = self.last.peek(line) else { return 0 };
        let others = shared.holders & !(1 << core);
        shared.holders &= 1 << core;
        for other in bits(others) {
            self.drop_all(other, line);
        }
        // The copy in this core's cache for code is stale, too.
        if self.cores[core].l1i.remove(line).is_some() {
            self.lost.push(Lost { core, line, what: Loss::Code });
        }
        if others == 0 { 0 } else { self.config.snoop_cycles }
    }

    fn take_from_all(&mut self, line: Line) -> u64 {
        let Some(shared) = self.last.peek(line) else { return 0 };
        let holders = std::mem::take(&mut shared.holders);
        for core in bits(holders) {
            self.drop_all(core, line);
        }
        if holders == 0 { 0 } else { self.config.snoop_cycles }
    }

    /// Takes the right to write a line from all cores. Returns the cycles for that.
    fn take_right(&mut self, line: Line) -> u64 {
        let holders = self.last.peek(line).map_or(0, |s| s.holders);
        self.take_right_of(holders, line)
    }

    fn take_right_of(&mut self, cores: u64, line: Line) -> u64 {
        let mut cycles = 0;
        for core in bits(cores) {
            self.set_alone(core, line, false);
            if let Some(own) = self.cores[core].l1d.peek(line)
                && std::mem::take(&mut own.writable)
            {
                self.lost.push(Lost { core, line, what: Loss::Right });
                cycles = self.config.snoop_cycles;
            }
        }
        cycles
    }
}

/// Returns the numbers of the set bits.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let n = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (n < 64).then_some(n as usize)
    })
}

#[cfg(test)]
mod tests;
