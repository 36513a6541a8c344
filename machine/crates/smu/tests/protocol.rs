// SPDX-License-Identifier: Apache-2.0
//! Exhaustive check of the protocol between the SMU's install and the operating system's threads: two pages under one PMD and one
//! PUD, a miss on each, a thread that syncs metadata (kpted), a thread that withdraws page 0 and arms it again with the same
//! block. Every interleaving of single memory accesses is visited; memory is sequentially consistent, as the fences of OS-6 make it
//! here. Each variant leaves one promise out and must be seen to fail.

use std::collections::{BTreeSet, VecDeque};

/// A promise that a variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// SMU-3: the SMU marks PUD and PMD before the PTE.
    MarksFirst,
    /// OS-6: kpted looks below before it clears the PMD's mark.
    LookThenClear,
    /// OS-6: kpted clears the PUD's mark last.
    ClearUpwards,
    /// OS-4: page 0 is armed again without a fence.
    NoFence,
    /// OS-7: kpted writes the PTE back with a plain store.
    PlainStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pte {
    Empty,
    /// The number tells apart what hardware cannot: how often the page was armed.
    Armed(u8),
    Unsynced,
    Synced,
}

/// The SMU's progress with a page: next step, and which arming its request saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    Idle,
    Step(u8, u8),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    pte: [Pte; 2],
    pmd: bool,
    pud: bool,
    miss: [Miss; 2],
    /// kpted's next step, and the PTE it has read for a plain store.
    kpted: u8,
    read: Option<Pte>,
    /// The withdrawing thread's next step.
    withdraw: u8,
    /// An exchange met an entry that was armed later than its request.
    stale: bool,
}

const START: State = State {
    pte: [Pte::Armed(0); 2],
    pmd: false,
    pud: false,
    miss: [Miss::Idle; 2],
    kpted: 0,
    read: None,
    withdraw: 0,
    stale: false,
};

/// The SMU's next access for a page.
fn smu(s: State, page: usize, broken: Broken) -> Option<State> {
    let mut n = s;
    let order: [u8; 3] = if broken == Broken::MarksFirst { *b"ump" } else { *b"pmu" };
    match s.miss[page] {
        Miss::Idle => match s.pte[page] {
            Pte::Armed(generation) => n.miss[page] = Miss::Step(0, generation),
            _ => return None,
        },
        Miss::Step(3, _) => n.miss[page] = Miss::Over,
        Miss::Step(step, generation) => {
            n.miss[page] = Miss::Step(step + 1, generation);
            match (order[step as usize], s.pte[page]) {
                (b'm', _) => n.pmd = true,
                (b'u', _) => n.pud = true,
                (_, Pte::Armed(now)) => {
                    n.stale |= now != generation;
                    n.pte[page] = Pte::Unsynced;
                }
                _ => n.miss[page] = Miss::Over,
            }
        }
        // Another access to the page, should it be armed again.
        Miss::Over => match s.pte[page] {
            Pte::Armed(_) => n.miss[page] = Miss::Idle,
            _ => return None,
        },
    }
    Some(n)
}

/// kpted's next access: step 0 looks at the PUD and clears it; then the PMD likewise; then the two PTEs.
fn kpted(s: State, broken: Broken) -> Option<State> {
    let mut n = s;
    n.kpted = s.kpted + 1;
    let order: &[u8] = match broken {
        Broken::LookThenClear => b"uc01m",
        Broken::ClearUpwards => b"m01u",
        Broken::PlainStore => b"umrw1",
        _ => b"um01",
    };
    match order[s.kpted as usize] {
        b'u' => {
            if s.kpted == 0 && !s.pud {
                return None;
            }
            n.pud = false;
        }
        b'm' => {
            if s.kpted == 0 && !(s.pud && s.pmd) {
                return None;
            }
            if s.kpted == 1 && !s.pmd {
                n.kpted = 0; // nothing below: the subtree is skipped
                return Some(n);
            }
            n.pmd = false;
        }
        b'c' => {
            if !s.pmd {
                n.kpted = 0;
                return Some(n);
            }
        }
        b'r' => n.read = Some(s.pte[0]),
        b'w' => {
            if s.read == Some(Pte::Unsynced) {
                n.pte[0] = Pte::Synced;
            }
            n.read = None;
        }
        digit => {
            let page = usize::from(digit - b'0');
            if s.pte[page] == Pte::Unsynced {
                n.pte[page] = Pte::Synced;
            }
        }
    }
    n.kpted %= order.len() as u8;
    Some(n)
}

/// Takes page 0 away once, fences, arms it again with the same block.
fn withdraw(s: State, broken: Broken) -> Option<State> {
    let mut n = s;
    n.withdraw = s.withdraw + 1;
    match s.withdraw {
        0 => n.pte[0] = Pte::Empty,
        1 => {
            let over = !matches!(s.miss[0], Miss::Step(..));
            if !over && broken != Broken::NoFence {
                return None;
            }
        }
        2 => n.pte[0] = Pte::Armed(1),
        _ => return None,
    }
    Some(n)
}

fn next(s: State, broken: Broken) -> Vec<State> {
    [smu(s, 0, broken), smu(s, 1, broken), kpted(s, broken), withdraw(s, broken)].into_iter().flatten().collect()
}

/// What is wrong with a state: a stale install at once; a page out of kpted's sight once nothing can happen any more.
fn wrong(s: State, at_rest: bool) -> Option<String> {
    if s.stale {
        return Some("an old miss was installed over a new entry".into());
    }
    let lost = s.pte.contains(&Pte::Unsynced) && !(s.pmd && s.pud);
    if at_rest && lost {
        return Some("a page was lost to kpted".into());
    }
    // After the withdrawal page 0 can become valid only through a miss on its second arming.
    let resurrected = matches!(s.withdraw, 1 | 2) && s.pte[0] != Pte::Empty;
    resurrected.then(|| "a withdrawn page came back".into())
}

/// Visits every reachable state. The number of states, or the first thing wrong.
fn explore(broken: Broken) -> Result<usize, String> {
    let mut seen = BTreeSet::from([START]);
    let mut todo = VecDeque::from([START]);
    while let Some(s) = todo.pop_front() {
        let successors = next(s, broken);
        if let Some(what) = wrong(s, successors.is_empty()) {
            return Err(format!("{what}: {s:?}"));
        }
        todo.extend(successors.into_iter().filter(|n| seen.insert(*n)));
    }
    Ok(seen.len())
}

/// REQ: SMU-3, OS-4, OS-6, OS-7
#[test]
fn no_interleaving_loses_or_mixes_up_a_page() {
    let states = explore(Broken::Nothing).unwrap();
    assert!(states > 500, "only {states} states: the model is not what it was");
}

#[test]
fn every_promise_is_needed() {
    for (broken, what) in [
        (Broken::MarksFirst, "lost to kpted"),
        (Broken::LookThenClear, "lost to kpted"),
        (Broken::ClearUpwards, "lost to kpted"),
        (Broken::NoFence, "old miss"),
        (Broken::PlainStore, "came back"),
    ] {
        let found = explore(broken).expect_err(&format!("{broken:?} goes unnoticed"));
        assert!(found.contains(what), "{broken:?}: {found}");
    }
}
