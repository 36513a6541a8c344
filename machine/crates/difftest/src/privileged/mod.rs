// SPDX-License-Identifier: Apache-2.0
//! Traps, returns, delegation, interrupts, PMP, and instructions that depend on `mstatus`.

mod exceptions;
mod interrupts;
mod machine_only;
mod memory;
mod modes;
mod status;

pub use machine_only::machine_only;
pub use status::enter;

use crate::program::Program;

/// All tests of this folder.
pub fn all(program: &mut Program) {
    modes::returns(program);
    modes::guarded_instructions(program);
    modes::floating_point_off(program);
    exceptions::exceptions(program);
    exceptions::delegation(program);
    interrupts::interrupts(program);
    interrupts::external_interrupt(program);
    memory::physical_memory_protection(program);
    memory::self_modifying(program);
}
