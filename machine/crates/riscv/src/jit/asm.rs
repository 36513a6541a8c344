// SPDX-License-Identifier: Apache-2.0
//! The assembler of translated code.

use dynasmrt::VecAssembler;
use dynasmrt::x64::X64Relocation;

/// Host code under construction.
pub type Asm = VecAssembler<X64Relocation>;
