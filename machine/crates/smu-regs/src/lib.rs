// SPDX-License-Identifier: Apache-2.0
//! Registers and formats of the Storage Management Unit. `spec/generate` writes `generated.rs`; this file is written by hand.

mod generated;

pub use generated::*;

/// A field of contiguous bits in a 64-bit word.
///
/// ```
/// use trapless_smu_regs::{PTE_L, PTE_LBA, PTE_R, PTE_U, pte_is_armed};
///
/// // A page table entry that user code may read and that names block 77 of the drive.
/// let entry = PTE_L.mask() | PTE_U.mask() | PTE_R.mask() | PTE_LBA.of(77);
/// assert!(pte_is_armed(entry));
/// assert_eq!(PTE_LBA.get(entry), 77);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Lowest bit.
    pub shift: u32,
    /// Number of bits, 1 to 64.
    pub width: u32,
}

impl Field {
    /// Creates a field of `width` bits whose lowest bit is `shift`.
    pub const fn new(shift: u32, width: u32) -> Field {
        assert!(width >= 1 && shift + width <= 64, "a field lies inside a 64-bit word");
        Field { shift, width }
    }

    /// Returns a word with all bits of the field set.
    pub const fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.shift
    }

    /// Returns the field's value in `word`.
    pub const fn get(self, word: u64) -> u64 {
        (word & self.mask()) >> self.shift
    }

    /// Tells whether any bit of the field is set in `word`.
    pub const fn is_set(self, word: u64) -> bool {
        word & self.mask() != 0
    }

    /// Returns a word that has `value` in this field and zero elsewhere. Drops the bits of `value` that do not fit.
    pub const fn of(self, value: u64) -> u64 {
        (value << self.shift) & self.mask()
    }

    /// Returns `word` with `value` in this field. Drops the bits of `value` that do not fit.
    pub const fn set(self, word: u64, value: u64) -> u64 {
        (word & !self.mask()) | self.of(value)
    }
}

/// Kind of access that software has to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Software can read the register. Writes are ignored.
    ReadOnly,
    /// Software can read and write the register.
    ReadWrite,
    /// Software can write the register. Reads return zero.
    WriteOnly,
}

/// A row of the register map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name of the register.
    pub name: &'static str,
    /// Offset from the start of the register block, in bytes.
    pub offset: u64,
    /// Kind of access that software has.
    pub access: Access,
}

/// Tells whether `pte` is a leaf entry that hardware may serve (REQ: ISA-1). Does not check the enable bit.
pub const fn pte_is_armed(pte: u64) -> bool {
    pte_names_block(pte) && !PTE_SOFT.is_set(pte)
}

/// Tells whether the SMU serves `pte`: an armed entry for walkers, or one that only software may ask for (REQ: SMU-11).
pub const fn pte_names_block(pte: u64) -> bool {
    let must_be_set = PTE_L.mask() | PTE_U.mask();
    let must_be_clear = PTE_V.mask() | PTE_G.mask() | PTE_D.mask() | PTE_HIGH.mask();
    let leaf = PTE_R.is_set(pte) || PTE_X.is_set(pte);
    let reserved = PTE_W.is_set(pte) && !PTE_R.is_set(pte);
    pte & must_be_set == must_be_set && pte & must_be_clear == 0 && leaf && !reserved
}

/// Returns the entry that the SMU installs for `armed` (REQ: SMU-3): valid and unsynced, with frame `pfn` and the protection of
/// the armed entry.
pub const fn pte_installed(armed: u64, pfn: u64) -> u64 {
    let carried = PTE_R.mask() | PTE_W.mask() | PTE_X.mask() | PTE_U.mask() | PTE_A.mask();
    (armed & carried) | PTE_V.mask() | PTE_L.mask() | PTE_PFN.of(pfn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_ascend_without_overlap_and_counters_sit_where_the_table_says() {
        for map in [&REGISTERS[..], &DESC_REGISTERS[..], &PORT_REGISTERS[..], &WINDOW_REGISTERS[..]] {
            for pair in map.windows(2) {
                assert!(pair[0].offset + 8 <= pair[1].offset, "{} and {}", pair[0].name, pair[1].name);
            }
        }
        for (i, name) in Counter::NAMES.iter().enumerate() {
            let register = format!("CNT_{}", name.to_uppercase());
            let found = REGISTERS.iter().find(|r| r.name == register).map(|r| r.offset);
            assert_eq!(found, Some(Counter::BASE + 8 * i as u64), "{name}");
        }
    }

    #[test]
    fn fields_get_what_was_set() {
        let word = PTE_LBA.set(u64::MAX, 0x1_2345);
        assert_eq!(PTE_LBA.get(word), 0x1_2345);
        assert_eq!(word | PTE_LBA.mask(), u64::MAX);
        assert_eq!(Field::new(0, 64).mask(), u64::MAX);
        assert_eq!(PTE_DEVICE.of(9), 1 << 51);
    }

    /// REQ: ISA-1. One forbidden bit that is set, or one required bit that is clear, makes the entry an ordinary one.
    #[test]
    fn only_the_armed_form_is_armed() {
        let armed = PTE_L.mask() | PTE_U.mask() | PTE_R.mask() | PTE_A.mask() | PTE_LBA.of(77);
        assert!(pte_is_armed(armed));
        assert!(pte_is_armed(armed & !PTE_R.mask() | PTE_X.mask()));
        for bit in [PTE_V, PTE_G, PTE_D].map(|f| f.shift).into_iter().chain(57..64) {
            assert!(!pte_is_armed(armed | 1 << bit), "bit {bit}");
        }
        for field in [PTE_L, PTE_U, PTE_R] {
            assert!(!pte_is_armed(armed & !field.mask()));
        }
        assert!(pte_is_armed(armed | PTE_W.mask()));
        assert!(!pte_is_armed(armed & !PTE_R.mask() | PTE_X.mask() | PTE_W.mask()));
        let outside = (58..64).find(|bit| pte_names_block(armed | 1 << bit));
        assert_eq!((pte_names_block(armed | PTE_SOFT.mask()), outside), (true, None));
        // Linux's PROT_NONE entry with bit 9 set: R is kept, V and U are clear, G is set.
        assert!(!pte_is_armed(PTE_L.mask() | PTE_R.mask() | PTE_G.mask()));
    }

    /// REQ: ISA-6
    #[test]
    fn the_installed_entry_carries_the_protection_and_nothing_of_the_block_address() {
        let armed = PTE_L.mask()
            | PTE_U.mask()
            | PTE_R.mask()
            | PTE_X.mask()
            | PTE_LBA.mask()
            | PTE_SOCKET.of(5)
            | PTE_SOFT.mask();
        let installed = pte_installed(armed, 0x8_1234);
        assert_eq!(installed, (0x8_1234 << 10) | 0b10_0001_1011);
    }
}
