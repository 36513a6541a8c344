// SPDX-License-Identifier: Apache-2.0
//! What translated code is assembled with.

use dynasmrt::VecAssembler;
use dynasmrt::x64::X64Relocation;

/// Code of the host under construction.
pub type Asm = VecAssembler<X64Relocation>;
