// SPDX-License-Identifier: Apache-2.0
//! The translator: turns pages of guest code that are executed often into host code (docs/decisions/040-translator.md).
//!
//! Translated code takes the same cycles as the interpreter and leaves everything rare to it.

mod asm;
#[allow(clippy::useless_conversion, reason = "dynasm! converts numbers of registers, which are u8 already, to u8")]
mod block;
mod buffer;
mod calls;
mod layout;
mod prices;
mod stubs;

use std::ptr::NonNull;

pub use block::LONGEST;

use crate::bugs::{self, Bug};
use crate::left::Left;
use crate::page::{CodePage, Entries, PAGE_SLOTS};
use crate::{Hart, PredictorConfig};
use buffer::CodeBuffer;
use prices::Prices;
use stubs::{Enter, Stubs};

/// Translated code of all harts.
pub struct Translator {
    buffer: CodeBuffer,
    stubs: Stubs,
    /// Size of the common code in bytes.
    common: usize,
    enter: Enter,
    /// Entries of every page without translated code.
    cold: Box<Entries>,
    /// Entries of pages with translated code, by page of RAM.
    tables: Vec<Option<Box<Entries>>>,
    prices: Prices,
    epoch: u64,
}

impl Translator {
    /// Creates a translator for harts with these prices; `None` where the host forbids executable memory.
    pub fn new(costs: [u64; 256], taken: u64) -> Option<Translator> {
        let mut buffer = CodeBuffer::new()?;
        let (code, stubs) = stubs::make(buffer.next());
        let at = buffer.push(&code)?;
        debug_assert_eq!(at, stubs.enter);
        // SAFETY: the code at `enter` follows the calling convention and is never changed or unmapped while self lives.
        let enter = unsafe { std::mem::transmute::<*const u8, Enter>(stubs.enter) };
        let common = buffer.used();
        let cold = Box::new([stubs.cold; PAGE_SLOTS]);
        let prices = Prices { costs, taken, predictor: None };
        Some(Translator { buffer, stubs, common, enter, cold, tables: Vec::new(), prices, epoch: 0 })
    }

    /// Entries for a page without translated code.
    pub fn cold_entries(&self) -> *const Entries {
        &raw const *self.cold
    }

    /// Changes whenever translated code becomes invalid.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Runs the hart from `at`, the translated code for its `pc`.
    pub fn enter(&self, hart: *mut Hart, at: *const u8) -> Left {
        (self.enter)(hart, at)
    }

    /// Translates the block at slot `first` of RAM page number `index` and returns the address of the code.
    pub fn translate(&mut self, index: usize, page: NonNull<CodePage>, first: usize) -> Option<*const u8> {
        if index >= self.tables.len() {
            self.tables.resize_with(index + 1, || None);
        }
        let cold = self.stubs.cold;
        let table = self.tables[index].get_or_insert_with(|| Box::new([cold; PAGE_SLOTS]));
        let entries: *mut Entries = &raw mut **table;
        // SAFETY: the page is live and only reached through raw pointers.
        unsafe { (*page.as_ptr()).entries = entries };
        for _ in 0..2 {
            // SAFETY: the page is live.
            let code =
                unsafe { block::Block::translate(page.as_ptr(), first, self.buffer.next(), &self.stubs, &self.prices) };
            if let Some(at) = self.buffer.push(&code) {
                // SAFETY: the table lives in self.tables; first is below PAGE_SLOTS.
                unsafe { (*entries)[first] = at };
                return Some(at);
            }
            self.flush();
        }
        None
    }

    /// Begins (with this predictor) or ends detailed timing.
    pub fn set_detail(&mut self, predictor: Option<PredictorConfig>) {
        self.prices.predictor = predictor;
        self.flush();
    }

    /// Forgets the translated code of RAM page number `index`.
    pub fn forget(&mut self, index: usize) {
        if let Some(Some(table)) = self.tables.get_mut(index)
            && !bugs::has(Bug::CodeStays)
        {
            table.fill(self.stubs.cold);
            self.epoch += 1;
        }
    }

    /// Forgets all translated code, but keeps the tables of entries.
    pub fn flush(&mut self) {
        for table in self.tables.iter_mut().flatten() {
            table.fill(self.stubs.cold);
        }
        self.buffer.truncate(self.common);
        self.epoch += 1;
    }

    /// Forgets all translated code and all tables of entries.
    pub fn clear(&mut self) {
        self.flush();
        self.tables.clear();
    }
}
