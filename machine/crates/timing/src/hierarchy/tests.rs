// SPDX-License-Identifier: Apache-2.0
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const CORES: usize = 3;

fn config(second: bool) -> HierarchyConfig {
    HierarchyConfig {
        cores: CORES,
        l1i: Level { sets: 1, ways: 2, cycles: 0 },
        l1d: Level { sets: 2, ways: 2, cycles: 0 },
        l2: second.then_some(Level { sets: 2, ways: 3, cycles: 10 }),
        last: Level { sets: 4, ways: 4, cycles: 30 },
        last_has_data: true,
        fetch_cycles: 0,
        snoop_cycles: 40,
        dram: DramTiming { column: 100, activate: 50, precharge: 50, burst: 4, banks: 2, row_lines: 4 },
    }
}

fn at(line: u64) -> PhysAddr {
    PhysAddr(line << crate::cache::LINE_SHIFT)
}

#[test]
fn each_level_costs_its_own() {
    let mut h = Hierarchy::new(config(true));
    let mut load = |line, now| h.access(0, Want::Load, at(line), Cycle(now)).cycles;
    assert_eq!(load(0, 0), 30 + 150);
    assert_eq!(load(0, 1000), 0);
    // Two more lines of the set evict the line from the first level, but not from the second.
    assert_eq!(load(2, 2000), 30 + 100);
    assert_eq!(load(4, 3000), 30 + 150);
    assert_eq!(load(0, 4000), 10);
}

#[test]
fn a_last_level_without_data_asks_memory_for_what_the_first_gave_up() {
    let mut h = Hierarchy::new(HierarchyConfig { last_has_data: false, ..config(false) });
    let mut load = |line, now| h.access(0, Want::Load, at(line), Cycle(now));
    for (line, now) in [(0, 0), (2, 1000), (4, 2000)] {
        assert_eq!(load(line, now).from, Answer::Memory);
    }
    assert_eq!(load(4, 3000).from, Answer::First);
    assert_eq!(load(0, 4000), Granted { from: Answer::Memory, cycles: 30 + 100, writable: true });
    let mut h = Hierarchy::new(HierarchyConfig { fetch_cycles: 7, ..config(false) });
    assert_eq!(h.access(0, Want::Fetch, at(0), Cycle(0)).cycles, 30 + 150 + 7);
    assert_eq!(h.access(0, Want::Fetch, at(0), Cycle(1000)).cycles, 0);
}

#[test]
fn a_writer_is_alone() {
    let mut h = Hierarchy::new(config(true));
    assert!(h.access(0, Want::Load, at(5), Cycle(0)).writable);
    assert_eq!(
        h.access(1, Want::Load, at(5), Cycle(1000)),
        Granted { from: Answer::Last, cycles: 30 + 40, writable: false }
    );
    assert_eq!(
        std::iter::from_fn(|| h.take_lost()).collect::<Vec<_>>(),
        [Lost { core: 0, line: Line(5), what: Loss::Right }]
    );
    assert_eq!(
        h.access(0, Want::Store, at(5), Cycle(2000)),
        Granted { from: Answer::Last, cycles: 30 + 40, writable: true }
    );
    assert_eq!(
        std::iter::from_fn(|| h.take_lost()).collect::<Vec<_>>(),
        [Lost { core: 1, line: Line(5), what: Loss::Data }]
    );
    assert_eq!(h.access(0, Want::Store, at(5), Cycle(3000)).cycles, 0);
    h.overwritten(at(5));
    assert_eq!(
        std::iter::from_fn(|| h.take_lost()).collect::<Vec<_>>(),
        [Lost { core: 0, line: Line(5), what: Loss::Data }]
    );
    assert!(h.access(0, Want::Load, at(5), Cycle(4000)).cycles > 100);
}

fn check(h: &mut Hierarchy, noted: &BTreeMap<(usize, u64, bool), bool>) -> Result<(), TestCaseError> {
    for n in 0..32 {
        let line = Line(n);
        let mut have = BTreeSet::new();
        let mut writers = BTreeSet::new();
        for core in 0..CORES {
            let caches = &mut h.cores[core];
            let code = caches.l1i.peek(line).is_some();
            let data = caches.l1d.peek(line).copied();
            let second = caches.l2.as_mut().map(|l2| l2.peek(line).copied());
            let alone = second.flatten().is_some_and(|s| s.alone);
            let second = second.map(|s| s.is_some());
            if code || data.is_some() {
                prop_assert!(second != Some(false), "line {n} of core {core} is not in its second level");
            }
            if code || data.is_some() || second == Some(true) {
                have.insert(core);
            }
            if alone || data.is_some_and(|own| own.writable) {
                writers.insert(core);
            }
            // The core's notes agree with its first level.
            prop_assert_eq!(noted.contains_key(&(core, n, true)), code);
            prop_assert_eq!(noted.get(&(core, n, false)).copied(), data.map(|own| own.writable));
        }
        let holders = h.last.peek(line).map(|s| s.holders);
        for core in &have {
            prop_assert!(
                holders.is_some_and(|h| h >> core & 1 != 0),
                "the last level does not know holder {core} of {n}"
            );
        }
        if let Some(writer) = writers.first() {
            prop_assert_eq!(writers.len(), 1);
            prop_assert!(have.iter().all(|c| c == writer), "{n} is written by {writer} and held by {have:?}");
        }
    }
    Ok(())
}

proptest! {
    /// The caches stay inclusive, a line has at most one writer, and every loss is reported.
    #[test]
    fn caches_agree(second: bool, steps in prop::collection::vec((0..CORES, 0..6u8, 0..32u64), 1..300)) {
        let mut h = Hierarchy::new(config(second));
        // Key: core, line, whether code. Value: whether the core may write the line.
        let mut noted = BTreeMap::new();
        for (n, (core, what, line)) in steps.into_iter().enumerate() {
            let now = Cycle(1000 * n as u64);
            let want = match what {
                0 => Some(Want::Fetch),
                1 | 2 => Some(Want::Load),
                3 => Some(Want::Store),
                4 => {
                    h.access_by_device(line % 2 == 0, at(line), now);
                    None
                }
                _ => {
                    h.overwritten(at(line));
                    None
                }
            };
            let granted = want.map(|want| h.access(core, want, at(line), now));
            while let Some(lost) = h.take_lost() {
                match lost.what {
                    Loss::Code => { noted.remove(&(lost.core, lost.line.0, true)); }
                    Loss::Data => { noted.remove(&(lost.core, lost.line.0, false)); }
                    Loss::Right => { noted.insert((lost.core, lost.line.0, false), false); }
                }
            }
            if let (Some(want), Some(granted)) = (want, granted) {
                noted.insert((core, line, want == Want::Fetch), want != Want::Fetch && granted.writable);
            }
            check(&mut h, &noted)?;
        }
    }
}
