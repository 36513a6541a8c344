// SPDX-License-Identifier: Apache-2.0
//! Pages of predecoded instructions, which all harts share, and their translation.

use std::alloc::{Layout, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use trapless_memory::{PAGE_SHIFT, Ram};

use crate::config::{HartConfig, op_costs};
use crate::jit::Translator;
use crate::op::{Op, Slot};
use crate::page::{CodePage, PAGE_SLOTS};
use crate::predictor::PredictorConfig;

/// Predecoded instructions of guest RAM, shared by all harts.
///
/// A page is emptied in place when its bytes change, so its address stays valid until [`CodeCache::generation`]
/// changes. Harts keep such addresses between runs.
pub struct CodeCache {
    pages: Vec<Option<NonNull<CodePage>>>,
    live: usize,
    epoch: u64,
    generation: u64,
    forgotten: u64,
    translator: Option<Translator>,
}

/// Next generation number, for all caches of the process: the same number always means the same pages.
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);

impl Default for CodeCache {
    fn default() -> CodeCache {
        CodeCache {
            pages: Vec::new(),
            live: 0,
            epoch: 0,
            generation: NEXT_GENERATION.fetch_add(1, Ordering::Relaxed),
            forgotten: 0,
            translator: None,
        }
    }
}

/// Maximum number of pages of slots. Each takes 16 KiB, and as much again for its entries if it is translated: 160 MiB in all.
const MAX_PAGES: usize = 5 * 1024;

impl CodeCache {
    /// A cache for harts with the costs of `config`. It also translates, where the host allows that.
    pub fn translating(config: &HartConfig) -> CodeCache {
        let mut cache = CodeCache::default();
        cache.translator = Translator::new(op_costs(&config.costs), u64::from(config.costs.branch_taken));
        cache
    }

    /// Begins (with this predictor) or ends detailed timing of translated code. Call it between runs, and for each hart as well.
    pub fn set_detail(&mut self, predictor: Option<PredictorConfig>) {
        if let Some(translator) = &mut self.translator {
            translator.set_detail(predictor.map(PredictorConfig::cut));
        }
    }

    /// The translator, if there is one.
    pub(crate) fn translator(&mut self) -> Option<&mut Translator> {
        self.translator.as_mut()
    }

    /// Changes whenever a page of RAM begins to hold code: cached write translations may then be wrong.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Changes whenever instructions are forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Changes whenever addresses of pages that were given out become invalid.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The slots of the RAM page at `pa` (page number `index` from RAM's base).
    pub(crate) fn page(&mut self, index: usize, pa: u64) -> NonNull<CodePage> {
        if index >= self.pages.len() {
            self.pages.resize(index + 1, None);
        }
        let live = &mut self.live;
        let entries = self.translator.as_ref().map_or(std::ptr::null(), Translator::cold_entries);
        *self.pages[index].get_or_insert_with(|| {
            *live += 1;
            CodePage::alloc(pa, entries)
        })
    }

    /// Notes that one more page of RAM holds code.
    pub(crate) fn note_new_code(&mut self) {
        self.epoch += 1;
    }

    /// Forgets the pages whose bytes were not written by a hart's own store.
    pub(crate) fn drop_overwritten(&mut self, ram: &mut Ram) {
        if !ram.code_overwritten() {
            return;
        }
        let base = ram.base().0;
        self.forgotten += 1;
        for pa in ram.take_overwritten_code() {
            let index = ((pa - base) >> PAGE_SHIFT) as usize;
            if let Some(Some(page)) = self.pages.get(index) {
                if let Some(translator) = &mut self.translator {
                    translator.forget(index);
                }
                // SAFETY: pages in the table are live and only reached through raw pointers; zero is a valid Slot.
                unsafe { page.cast::<Slot>().write_bytes(0, PAGE_SLOTS) };
            }
        }
    }

    /// Forgets the instructions that overlap bytes `[offset, offset + len)` of page `index`.
    pub(crate) fn forget(&mut self, index: usize, offset: u64, len: u64) {
        let Some(Some(page)) = self.pages.get(index) else { return };
        self.forgotten += 1;
        // A 32-bit instruction may begin in the slot before.
        let first = (offset as usize / 2).saturating_sub(1);
        let last = ((offset + len - 1) as usize / 2).min(PAGE_SLOTS - 1);
        let mut known = false;
        for i in first..=last {
            // SAFETY: i < PAGE_SLOTS; the page is live and only reached through raw pointers.
            let op = unsafe { &raw mut (*page.as_ptr()).slots[i].op };
            // SAFETY: as above.
            unsafe {
                known |= *op != Op::Undecoded;
                op.write(Op::Undecoded);
            }
        }
        // Only if code was hit: most writes to such a page are to data beside the code.
        if known && let Some(translator) = &mut self.translator {
            translator.forget(index);
        }
    }

    /// Makes room if there are too many pages. Call it between runs.
    pub(crate) fn trim(&mut self) {
        if self.live > MAX_PAGES {
            self.clear();
        }
    }

    /// Forgets all code. Call it between runs.
    pub fn clear(&mut self) {
        for page in std::mem::take(&mut self.pages).into_iter().flatten() {
            // SAFETY: allocated in CodePage::alloc with this layout, and removed from the table. Harts compare the
            // generation before they use an address that they have kept.
            unsafe { dealloc(page.as_ptr().cast(), Layout::new::<CodePage>()) };
        }
        if let Some(translator) = &mut self.translator {
            translator.clear();
        }
        self.live = 0;
        self.generation = NEXT_GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for CodeCache {
    fn drop(&mut self) {
        self.clear();
    }
}
