// SPDX-License-Identifier: Apache-2.0
//! Exhaustive check of the protocol between the SMU's install and two threads of the operating system. Two pages under one PMD
//! and one PUD have a miss each. One thread syncs metadata (kpted). The other thread withdraws page 0 and arms it again with the
//! same block. The check visits every interleaving of single memory accesses. Memory is sequentially consistent, which the fences
//! of OS-6 ensure here. Each variant breaks one rule, and the check must find a failure.

use std::collections::{BTreeSet, VecDeque};

/// The rule that a variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// SMU-3: the SMU marks PUD and PMD before the PTE.
    MarksFirst,
    /// OS-6: kpted reads the PTEs before it clears the PMD's mark.
    LookThenClear,
    /// OS-6: kpted clears the PUD's mark after it has read the entries below.
    ClearUpwards,
    /// OS-4: page 0 is armed again without a fence.
    NoFence,
    /// OS-7: kpted writes the PTE back with a plain store.
    PlainStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pte {
    Empty,
    /// The number counts how often the page was armed. Hardware cannot see this number.
    Armed(u8),
    Unsynced,
    Synced,
}

/// The SMU's progress with a page: the next step, and the number of the armed entry that the request saw.
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
    /// The next step of the thread that withdraws page 0.
    withdraw: u8,
    /// An exchange replaced an entry that was armed after the request.
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

/// Makes the SMU's next access for a page.
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
        // If the page is armed again, a hart may access it again.
        Miss::Over => match s.pte[page] {
            Pte::Armed(_) => n.miss[page] = Miss::Idle,
            _ => return None,
        },
    }
    Some(n)
}

/// Makes kpted's next access: step 0 tests and clears the PUD's mark, step 1 the PMD's mark, then kpted reads the two PTEs.
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
                n.kpted = 0; // without the PMD's mark, kpted skips the entries below
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

/// Makes the next step of the withdrawal: remove page 0, wait for the fence, arm the page again with the same block.
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

/// Returns the error in a state. A stale install is always an error. An unsynced page without both marks is an error only
/// when no further step is possible.
fn wrong(s: State, at_rest: bool) -> Option<String> {
    if s.stale {
        return Some("an old miss was installed over a new entry".into());
    }
    let lost = s.pte.contains(&Pte::Unsynced) && !(s.pmd && s.pud);
    if at_rest && lost {
        return Some("a page was lost to kpted".into());
    }
    // After the withdrawal, page 0 can become valid only through a miss on the entry that was armed second.
    let resurrected = matches!(s.withdraw, 1 | 2) && s.pte[0] != Pte::Empty;
    resurrected.then(|| "a withdrawn page came back".into())
}

/// Visits every reachable state. Returns the number of states, or the first error.
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
    assert!(states > 500, "only {states} states, not more than 500: the model has changed");
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
        let found = explore(broken).expect_err(&format!("the check finds no failure with {broken:?}"));
        assert!(found.contains(what), "{broken:?}: {found}");
    }
}
