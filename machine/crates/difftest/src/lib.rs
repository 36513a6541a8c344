// SPDX-License-Identifier: Apache-2.0
//! Differential test: the same bare-metal programs on the machine and on QEMU, compared register by register.

pub mod asm;
pub mod bisect;
pub mod campaign;
pub mod cells;
pub mod compare;
pub mod coverage;
pub mod csrs;
pub mod elf;
pub mod insn;
pub mod layout;
pub mod listing;
pub mod nonsense;
pub mod operands;
pub mod paging;
pub mod privileged;
pub mod program;
pub mod random;
pub mod run;
pub mod runtime;
mod special;
pub mod suite;
pub mod tables;

/// Prints a line; somebody who has stopped listening is no reason to stop.
pub fn say(line: impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
