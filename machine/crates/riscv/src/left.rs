// SPDX-License-Identifier: Apache-2.0
//! Why translated code ended. The interpreter uses this with and without a translator.

/// Why translated code ended; `pc` is set.
#[repr(C)]
pub struct Left {
    /// One of the kinds below.
    pub kind: u64,
    /// Where to continue after the interpreter has executed the instruction of [`SLOW`]; null: at the entry of the next slot.
    pub resume: *const u8,
}

/// The limit is reached.
pub const LIMIT: u64 = 0;
/// The interpreter must execute the instruction at `pc`; its price is in `acc`.
pub const SLOW: u64 = 1;
/// `pc` is not translated yet.
pub const COLD: u64 = 2;
/// `pc` is in a page that the translation cache does not know.
#[cfg_attr(not(all(feature = "translator", target_arch = "x86_64", target_os = "linux")), allow(dead_code))]
pub const FETCH: u64 = 3;
/// The instruction at `pc` begins in a line of code that is not known to be cached; continue at `resume`.
pub const LINE: u64 = 4;
