// SPDX-License-Identifier: Apache-2.0
//! The caches of all cores, the cache that they share, and memory: what an access costs beyond a hit in the first level.
//!
//! Every core has caches for code and data and may have a second level; the last level is shared, holds whatever the
//! others hold, and knows who holds it. A line that may be written is in one core's caches alone.

use trapless_memory::{Cycle, PhysAddr};

use crate::cache::{Cache, Line};
use crate::dram::{Dram, DramTiming};

/// One level.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Sets, a power of two.
    pub sets: usize,
    /// Lines of a set.
    pub ways: usize,
    /// Cycles that an access takes longer when this level answers it, compared with a hit in the first one.
    pub cycles: u64,
}

/// What the hierarchy is made of.
#[derive(Clone, Copy, Debug)]
pub struct HierarchyConfig {
    /// Cores, 1 to 64.
    pub cores: usize,
    /// Code.
    pub l1i: Level,
    /// Data.
    pub l1d: Level,
    /// Second level of each core.
    pub l2: Option<Level>,
    /// Shared last level.
    pub last: Level,
    /// Whether it has the lines' data, or is only the list of who has them.
    pub last_has_data: bool,
    /// Added when a line of code comes from memory.
    pub fetch_cycles: u64,
    /// Added when another core has to give up a line or its right to write it.
    pub snoop_cycles: u64,
    /// Memory, behind the last level's own cycles.
    pub dram: DramTiming,
}

/// What wants a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To execute it.
    Fetch,
    /// To read it.
    Load,
    /// To write it.
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

/// Answer to an access of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Part of the memory system that had the line.
    pub from: Answer,
    /// Cycles beyond a hit in the first level.
    pub cycles: u64,
    /// The core may write the line from now on.
    pub writable: bool,
}

/// A core's first level lost something that the core may have noted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The core that lost it.
    pub core: usize,
    /// The line.
    pub line: Line,
    /// What it lost.
    pub what: Loss,
}

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The line is out of the cache for code.
    Code,
    /// The line is out of the cache for data.
    Data,
    /// The line may not be written any more.
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
    /// No other core has it.
    alone: bool,
}

/// State of a line in the last level.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Cores that may have it.
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
    /// Everything empty.
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

    /// A core's access to the line at `at`.
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
            // The right to write is all that is missing.
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
            // Whoever could write the line would have it alone.
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

    /// An access of the SMU or a device, which have no cache of their own, to one line: cycles from the last level on.
    pub fn access_by_device(&mut self, write: bool, at: PhysAddr, now: Cycle) -> u64 {
        let line = Line::of(at);
        let snoop = if write { self.take_from_all(line) } else { self.take_right(line) };
        let memory = self.behind_last(line, now);
        self.config.last.cycles + snoop + memory.unwrap_or(0)
    }

    /// A device has overwritten the line in memory; no cache has it any more.
    pub fn overwritten(&mut self, at: PhysAddr) {
        let line = Line::of(at);
        self.take_from_all(line);
        self.last.remove(line);
    }

    /// Takes one thing that a core has lost.
    #[inline]
    pub fn take_lost(&mut self) -> Option<Lost> {
        self.lost.pop()
    }

    /// The line from the last level or from beyond, with the right to write it if that comes for free or is wanted.
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

    /// Notes that a core has a line that comes from the last level, and puts it into its second level.
    fn enter(&mut self, core: usize, line: Line) {
        let mut alone = false;
        if let Some(shared) = self.last.peek(line) {
            shared.holders |= 1 << core;
            alone = shared.holders == 1 << core;
        }
        if let Some(l2) = &mut self.cores[core].l2
            && let Some((out, _)) = l2.insert(line, Second { alone })
        {
            // What the second level gives up, the first cannot keep.
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

    /// A core without second level holds only what is in its first.
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

    /// What memory costs for a line, if it is asked.
    fn behind_last(&mut self, line: Line, now: Cycle) -> Option<u64> {
        if self.last.touch(line).is_none() {
            return Some(self.fill_last(line, now));
        }
        (!self.config.last_has_data).then(|| self.dram.access(line, now))
    }

    /// Brings a line into the last level; cycles until memory has it.
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

    /// No core but `core` has the line; what that costs.
    fn take_from_others(&mut self, core: usize, line: Line) -> u64 {
        let Some(shared) = self.last.peek(line) else { return 0 };
        let others = shared.holders & !(1 << core);
        shared.holders &= 1 << core;
        for other in bits(others) {
            self.drop_all(other, line);
        }
        // The core's own code, too, is out of date.
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

    /// No core may write the line; what that costs.
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

/// Numbers of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let n = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (n < 64).then_some(n as usize)
    })
}

#[cfg(test)]
mod tests;
