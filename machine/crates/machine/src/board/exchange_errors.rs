// SPDX-License-Identifier: Apache-2.0
//! Bus errors that the SMU meets when it exchanges page table entries, for tests of the operating system (REQ: SMU-13, OS-5). In no
//! program but one for tests.

use std::cell::Cell;

use trapless_memory::PhysAddr;

#[derive(Clone, Copy, Default)]
struct State {
    /// One exchange in `every` meets an error; 0: none does.
    every: u64,
    exchanges: u64,
    errors: u64,
    /// An entry whose next read meets one, too.
    unreadable: Option<PhysAddr>,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State { every: 0, exchanges: 0, errors: 0, unreadable: None }) };
}

/// Lets one of `every` exchanges that this thread's SMUs make meet an error. By turns it takes effect or not, and the read that
/// follows succeeds twice and fails twice.
pub fn seed(every: u64) {
    STATE.set(State { every, ..State::default() });
}

/// The exchange of this entry meets an error: whether it takes effect.
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

/// Whether this read meets an error.
pub(crate) fn on_read(at: PhysAddr) -> bool {
    let mut state = STATE.get();
    let found = state.unreadable == Some(at);
    if found {
        state.unreadable = None;
        STATE.set(state);
    }
    found
}
