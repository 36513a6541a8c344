// SPDX-License-Identifier: Apache-2.0
//! Modes of virtual memory (RISC-V privileged specification, "Supervisor Address Translation and Protection Register").

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::PAGE_SHIFT;

/// A mode of translation, named after the bits of its virtual addresses. Deeper modes compare as greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paging {
    /// 39 bits, three levels.
    #[default]
    Sv39,
    /// 48 bits, four levels.
    Sv48,
    /// 57 bits, five levels.
    Sv57,
}

impl Paging {
    /// All modes, the deepest last.
    pub const ALL: [Paging; 3] = [Paging::Sv39, Paging::Sv48, Paging::Sv57];
    /// Levels of the deepest mode.
    pub const MAX_LEVELS: usize = Paging::Sv57.levels() as usize;

    /// The mode that a value of `satp` selects; `None` for bare or reserved modes.
    #[inline]
    pub const fn of(satp: u64) -> Option<Paging> {
        match satp >> 60 {
            8 => Some(Paging::Sv39),
            9 => Some(Paging::Sv48),
            10 => Some(Paging::Sv57),
            _ => None,
        }
    }

    /// Value of `satp` with this mode and zero in all other fields.
    pub const fn satp(self) -> u64 {
        (self as u64 + 8) << 60
    }

    /// Number of levels of page tables.
    #[inline]
    pub const fn levels(self) -> u32 {
        self as u32 + 3
    }

    /// log2 of the bytes that an entry of `level` maps. Level 0 has the leaves of 4 KiB.
    #[inline]
    pub const fn shift(level: u32) -> u32 {
        PAGE_SHIFT + 9 * level
    }

    /// Whether all upper bits of `va` are copies of its highest translated bit.
    #[inline]
    pub const fn canonical(self, va: u64) -> bool {
        let unused = u64::BITS - Paging::shift(self.levels());
        ((va << unused) as i64 >> unused) as u64 == va
    }
}

impl fmt::Display for Paging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Paging::Sv39 => "sv39",
            Paging::Sv48 => "sv48",
            Paging::Sv57 => "sv57",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_differ_in_levels_and_bits() {
        for (mode, bits) in [(Paging::Sv39, 39), (Paging::Sv48, 48), (Paging::Sv57, 57)] {
            assert_eq!(Paging::of(mode.satp()), Some(mode));
            assert_eq!(Paging::shift(mode.levels()), bits);
            let top = 1 << (bits - 1);
            for (va, good) in [(top - 1, true), (top, false), (!top, false), (!(top - 1), true), (1 << 63, false)] {
                assert_eq!(mode.canonical(va), good, "{mode} {va:#x}");
            }
        }
        assert_eq!((Paging::of(0), Paging::of(11 << 60)), (None, None));
    }
}
