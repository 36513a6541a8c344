// SPDX-License-Identifier: Apache-2.0
//! Where the interpreter continues.

use crate::exit::Exit;

/// Where to continue after an instruction outside the hot loop.
pub enum Flow {
    /// Run the same slot again: it is now decoded.
    Again,
    /// Continue with the slot that is this many slots further.
    Next(usize),
    /// `pc` is set: fetch there.
    Fetch,
    /// The scratch page holds the instruction at `pc`.
    Scratch,
    /// End the run; `pc` is set.
    Exit(Exit),
}
