// SPDX-License-Identifier: Apache-2.0
//! Predecoded instructions of a page of guest RAM: a slot for every two bytes.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

use trapless_memory::PAGE_SIZE;

use crate::op::Slot;

/// Number of slots of a page: one for every two bytes.
pub const PAGE_SLOTS: usize = (PAGE_SIZE / 2) as usize;

/// Address of the translated code for each slot of a page.
pub type Entries = [*const u8; PAGE_SLOTS];

/// Number of jumps into a page before it is translated.
const HEAT: u32 = 16;

/// A page of slots. The two slots at the end send a hart that runs off the page back to fetch by pc.
#[repr(C)]
pub struct CodePage {
    /// The slots, and two more at the end.
    pub slots: [Slot; PAGE_SLOTS + 2],
    /// Physical address of the page.
    pub pa: u64,
    /// Addresses of translated code; null if there is no translator.
    pub entries: *const Entries,
    /// Number of jumps into the page that are left until it is translated.
    pub heat: u32,
}

impl CodePage {
    /// Allocates a zeroed page on the heap: all slots are undecoded.
    pub fn alloc(pa: u64, entries: *const Entries) -> NonNull<CodePage> {
        let layout = Layout::new::<CodePage>();
        // SAFETY: the layout is not zero-sized.
        let raw = unsafe { alloc_zeroed(layout) }.cast::<CodePage>();
        let Some(page) = NonNull::new(raw) else { handle_alloc_error(layout) };
        // SAFETY: freshly allocated with the layout of CodePage; all-zero is a valid value, as Op::Undecoded is 0.
        unsafe {
            (*raw).slots[PAGE_SLOTS] = Slot::REFETCH;
            (*raw).slots[PAGE_SLOTS + 1] = Slot::REFETCH;
            (*raw).pa = pa;
            (*raw).entries = entries;
            // Without a translator a page is never translated.
            (*raw).heat = if entries.is_null() { u32::MAX } else { HEAT };
        }
        page
    }

    /// Creates a page in which every slot fetches by pc. Single instructions are put into it.
    pub fn scratch() -> Box<CodePage> {
        Box::new(CodePage {
            slots: [Slot::REFETCH; PAGE_SLOTS + 2],
            pa: u64::MAX,
            entries: std::ptr::null(),
            heat: u32::MAX,
        })
    }
}
