// SPDX-License-Identifier: Apache-2.0
//! Addresses of fields for translated code. rbx points into the hart's register file, so that x0 to x31 have short offsets.

use std::mem::offset_of;

use crate::Hart;
use crate::entry::DataEntry;
use crate::lines::LINES;
use crate::page::CodePage;
use crate::predictor::Predictor;
use crate::tlb::{ENTRIES as ENTRIES_OF_SET, FetchEntry};

/// rbx minus the hart's address.
pub const BIAS: i32 = offset_of!(Hart, regs) as i32 + 128;
/// The hart's address minus rbx.
pub const HART: i32 = -BIAS;

pub const ACC: i32 = offset_of!(Hart, acc) as i32 - BIAS;
pub const LIMIT: i32 = offset_of!(Hart, limit) as i32 - BIAS;
pub const PC: i32 = offset_of!(Hart, pc) as i32 - BIAS;
pub const DTLB: i32 = offset_of!(Hart, dtlb) as i32 - BIAS;
pub const FTLB: i32 = offset_of!(Hart, ftlb) as i32 - BIAS;
pub const CODE_PAGE: i32 = offset_of!(Hart, code_page) as i32 - BIAS;
pub const FP_DIRTY: i32 = offset_of!(Hart, fp_dirty) as i32 - BIAS;

pub const CODE_LINES: i32 = offset_of!(Hart, code_lines) as i32 - BIAS;

const PREDICTOR: i32 = offset_of!(Hart, predictor) as i32 - BIAS;
pub const HISTORY: i32 = PREDICTOR + offset_of!(Predictor, history) as i32;
pub const TOP: i32 = PREDICTOR + offset_of!(Predictor, top) as i32;
pub const MISSED: i32 = PREDICTOR + offset_of!(Predictor, missed) as i32;
pub const COUNTERS: i32 = PREDICTOR + offset_of!(Predictor, counters) as i32;
pub const TARGETS: i32 = PREDICTOR + offset_of!(Predictor, targets) as i32;
pub const RETURNS: i32 = PREDICTOR + offset_of!(Predictor, returns) as i32;

pub const READ: i32 = offset_of!(DataEntry, read) as i32;
pub const WRITE: i32 = offset_of!(DataEntry, write) as i32;
pub const ADDEND: i32 = offset_of!(DataEntry, addend) as i32;
pub const TAG: i32 = offset_of!(FetchEntry, tag) as i32;
pub const PAGE: i32 = offset_of!(FetchEntry, page) as i32;
pub const ENTRIES: i32 = offset_of!(CodePage, entries) as i32;

pub const PAGE_BYTES: i32 = trapless_memory::PAGE_SIZE as i32;

/// log2 of the size of a data entry.
pub const DATA_ENTRY_SHIFT: u32 = size_of::<DataEntry>().trailing_zeros();
/// log2 of the size of a fetch entry.
pub const FETCH_ENTRY_SHIFT: u32 = size_of::<FetchEntry>().trailing_zeros();
/// Mask of an entry's offset in a set of data entries.
pub const DATA_INDEX: i32 = ((ENTRIES_OF_SET - 1) << DATA_ENTRY_SHIFT) as i32;
/// Mask of the offset of a line's entry in its set.
pub const LINE_INDEX: i32 = ((LINES - 1) << DATA_ENTRY_SHIFT) as i32;
/// Mask of an entry's offset in a set of fetch entries.
pub const FETCH_INDEX: i32 = ((ENTRIES_OF_SET - 1) << FETCH_ENTRY_SHIFT) as i32;

/// Offset of register `g` from rbx.
pub fn reg(g: u8) -> i32 {
    8 * i32::from(g) - 128
}
