// SPDX-License-Identifier: Apache-2.0
//! Bus errors when the SMU exchanges page table entries, for tests of the operating system (REQ: SMU-13, OS-5). Only programs
//! that are built for tests contain them.

use std::cell::Cell;

use trapless_memory::PhysAddr;

#[derive(Clone, Copy, Default)]
struct State {
    /// One of this many exchanges meets an error; 0: none does.
    every: u64,
    exchanges: u64,
    errors: u64,
    /// The address of an entry whose next read meets an error as well.
    unreadable: Option<PhysAddr>,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State { every: 0, exchanges: 0, errors: 0, unreadable: None }) };
}

/// Makes one of `every` exchanges by this thread's SMUs meet an error. Of such exchanges every other one takes effect all the
/// same, and after two of every four the next read of the entry fails as well.
pub fn seed(every: u64) {
    STATE.set(State { every, ..State::default() });
}

/// Called for each exchange of an entry. If it meets an error, returns whether it takes effect all the same.
pub(crate) fn on_exchange(at: PhysAddr) -> Option<bool> {
    let mut state = STATE.get();
    if state.every == 0 {
        return None;
    }
    state.exchanges += 1;
    let error = state.exchanges.is_multiple_of(state.every).then_some(state.errors);
    if let Some(number) = error {
        state.errors += 1;
        state.unreadable = (number & 2 != 0).then_some(at);
    }
    STATE.set(state);
    error.map(|number| number & 1 != 0)
}

/// Called for each read of an entry. Returns whether it meets an error.
pub(crate) fn on_read(at: PhysAddr) -> bool {
    let mut state = STATE.get();
    let found = state.unreadable == Some(at);
    if found {
        state.unreadable = None;
        STATE.set(state);
    }
    found
}
