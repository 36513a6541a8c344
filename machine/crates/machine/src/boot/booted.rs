// SPDX-License-Identifier: Apache-2.0
//! What the machine runs first.

use std::fmt::Write;

use trapless_memory::{PhysAddr, Ram};

use super::load::LoadedElf;

/// What the machine runs first, once it is loaded.
pub struct Booted {
    builtin_sbi: bool,
    elf: Option<LoadedElf>,
}

impl Booted {
    /// `builtin_sbi`: the machine itself serves SBI calls. `elf`: a program without an operating system.
    pub fn new(builtin_sbi: bool, elf: Option<LoadedElf>) -> Booted {
        Booted { builtin_sbi, elf }
    }

    /// Whether the machine itself serves SBI calls.
    pub fn builtin_sbi(&self) -> bool {
        self.builtin_sbi
    }

    /// The program without an operating system, if that is what runs.
    pub fn elf(&self) -> Option<&LoadedElf> {
        self.elf.as_ref()
    }

    /// The exit status that a program has reported through `tohost`.
    pub fn to_host(&self, ram: &Ram) -> Option<u8> {
        let tohost = self.elf.as_ref()?.tohost?;
        match u64::from_le_bytes(ram.load::<8>(PhysAddr(tohost))?) {
            0 => None,
            1 => Some(0),
            value => Some((value >> 1).clamp(1, 255) as u8),
        }
    }

    /// Memory between a program's `begin_signature` and `end_signature`, one 32-bit word per line in hex.
    pub fn signature(&self, ram: &Ram) -> Option<String> {
        let (begin, end) = self.elf.as_ref()?.signature?;
        let mut text = String::new();
        for at in (begin..end).step_by(4) {
            let word = ram.load::<4>(PhysAddr(at)).map_or(0, u32::from_le_bytes);
            writeln!(text, "{word:08x}").ok()?;
        }
        Some(text)
    }
}
