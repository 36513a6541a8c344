// SPDX-License-Identifier: Apache-2.0
//! The two baselines, which prefetch nothing.

use super::{Policy, Registration, Wait};
use crate::core::Core;
use crate::pages::{PageId, Pid};
use crate::settings::Time;

/// The policies of this file.
pub const POLICIES: &[Registration] = &[
    Registration {
        name: "sync",
        about: "synchronous: the processor waits (the paper's baseline)",
        make: |_| Box::new(Sync),
    },
    Registration { name: "async", about: "asynchronous: another process runs", make: |_| Box::new(Async) },
];

/// Synchronous handling: the processor waits (ASPF IV-A, "baseline").
#[derive(Debug)]
pub struct Sync;

impl Policy for Sync {
    fn fault(&mut self, _core: &mut Core, _pid: Pid, _page: PageId) {}
}

/// Asynchronous handling: another process runs (ASPF II-A).
#[derive(Debug)]
pub struct Async;

impl Policy for Async {
    fn fault(&mut self, _core: &mut Core, _pid: Pid, _page: PageId) {}

    fn wait(&mut self, _core: &mut Core, _page: PageId, _until: Time) -> Wait {
        Wait::Switch
    }
}
