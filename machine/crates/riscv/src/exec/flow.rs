// SPDX-License-Identifier: Apache-2.0
//! How the interpreter goes on.

use crate::exit::Exit;

/// How to go on after an instruction outside the hot loop.
pub enum Flow {
    /// Run the same slot again: it is decoded now.
    Again,
    /// On to the slot this many further.
    Next(usize),
    /// `pc` is set: fetch.
    Fetch,
    /// The scratch page holds the instruction at `pc`.
    Scratch,
    /// Leave; `pc` is set.
    Exit(Exit),
}
