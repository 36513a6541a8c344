// SPDX-License-Identifier: Apache-2.0
//! Differential test: runs the same bare-metal programs on the machine and on QEMU, and compares all registers and memory.

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
pub mod qemu;
pub mod random;
pub mod run;
pub mod runtime;
mod special;
pub mod suite;
pub mod tables;

/// Prints a line. Ignores errors: the test should continue even if nobody reads its output any more.
pub fn say(line: impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
