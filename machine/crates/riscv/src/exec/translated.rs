// SPDX-License-Identifier: Apache-2.0
//! Runs translated code, and executes what it leaves to the interpreter.

use std::ptr::NonNull;

use trapless_memory::PAGE_SHIFT;

use super::{Flow, SLOTS_OF_LINE};
use crate::entry::PAGE_MASK;
use crate::jit;
use crate::left::{self, Left};
use crate::op::{Op, length};
use crate::page::{CodePage, PAGE_SLOTS};
use crate::{Bus, Env, Exit, Hart, Observer, Timing};

impl Hart {
    /// Runs translated code from `pc`, which is in the warm page `code_page`, until the limit or an exit. Returns `None` at code
    /// that should be interpreted.
    pub(super) fn run_translated<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
    ) -> Option<Exit> {
        let mut page = self.code_page;
        let mut target = self.entry(page);
        if env.code.translator().is_none() {
            // SAFETY: the page is live (see the hot loop).
            unsafe { (*page.cast_mut()).heat = u32::MAX };
            return None;
        }
        loop {
            let hart: *mut Hart = self;
            let translator = env.code.translator()?;
            let epoch = translator.epoch();
            let Left { kind, resume } = translator.enter(hart, target);
            match kind {
                left::LIMIT => return Some(Exit::QuantumEnd),
                left::COLD => {
                    page = self.code_page;
                    // SAFETY: the page is live (see the hot loop).
                    if unsafe { (*page).heat } > 0 {
                        return None;
                    }
                    target = self.translate_block(env, page)?;
                    continue;
                }
                left::SLOW => {}
                left::LINE => {
                    // SAFETY: the page is live (see the hot loop).
                    let pa = unsafe { (*self.code_page).pa } | self.pc & !PAGE_MASK;
                    self.enter_line(env, pa);
                    target = resume;
                    continue;
                }
                _ => return None,
            }
            // The page is not looked up in the translation cache, which an instruction may have emptied since.
            page = self.code_page;
            let index = (self.pc & !PAGE_MASK) as usize / 2;
            // SAFETY: the page is live; pc is inside it.
            let slot = unsafe { (*page).slots[index] };
            let forgotten = env.code.forgotten();
            match self.slow(env, page, slot) {
                Flow::Again => target = self.entry(page),
                Flow::Next(n) => {
                    let next = self.pc.wrapping_add(2 * n as u64);
                    let same =
                        env.code.forgotten() == forgotten && env.code.translator().is_some_and(|t| t.epoch() == epoch);
                    if (self.acc as u32) < self.limit && same && !resume.is_null() {
                        // pc does not change: it identifies the page, which the next instruction may have left.
                        target = resume;
                        continue;
                    }
                    self.pc = next;
                    if self.acc as u32 >= self.limit {
                        return Some(Exit::QuantumEnd);
                    }
                    if index + n >= PAGE_SLOTS {
                        return None;
                    }
                    target = self.entry(page);
                }
                Flow::Fetch => return None,
                Flow::Scratch => {
                    if let Some(exit) = self.interpret_for(env, Some(&raw const *self.scratch)) {
                        return Some(exit);
                    }
                    // Back in a warm page. Its fetch is paid for, and the limit was checked before the fetch.
                    page = self.code_page;
                    target = self.entry(page);
                }
                Flow::Exit(exit) => return Some(exit),
            }
        }
    }

    /// Returns the address of the code for `pc` in `page`.
    fn entry(&self, page: *const CodePage) -> *const u8 {
        // SAFETY: the page is live (see the hot loop), and so are its entries. Entries are null only in caches without a
        // translator; nobody follows those.
        unsafe {
            let entries = (*page).entries;
            if entries.is_null() { std::ptr::null() } else { (*entries)[(self.pc & !PAGE_MASK) as usize / 2] }
        }
    }

    /// Translates the block at `pc`.
    fn translate_block<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
    ) -> Option<*const u8> {
        let first = (self.pc & !PAGE_MASK) as usize / 2;
        // SAFETY: the page is live (see the hot loop).
        let pa = unsafe { (*page).pa };
        // Decode everything up to the next jump or the longest block: an instruction that is not decoded when its block is
        // translated would always be left to the interpreter.
        let mut index = first;
        while index < PAGE_SLOTS {
            // SAFETY: as above; index is in the page.
            let op = unsafe { (*page).slots[index].op };
            if op == Op::Undecoded {
                self.decode_run(env, page, index);
            }
            // SAFETY: as above.
            let slot = unsafe { (*page).slots[index] };
            match length(slot) {
                Some(n) if index - first < 2 * jit::LONGEST + SLOTS_OF_LINE => index += n,
                _ => break,
            }
        }
        let number = ((pa - self.ram_base) >> PAGE_SHIFT) as usize;
        env.code.translator()?.translate(number, NonNull::new(page.cast_mut())?, first)
    }
}
