// SPDX-License-Identifier: Apache-2.0
//! Finds the predecoded slots for a pc.

use trapless_memory::{PAGE_SHIFT, PAGE_SIZE, PhysAddr};

use super::flow::Flow;
use crate::decode::{decode, is_wide};
use crate::entry::PAGE_MASK;
use crate::op::{Op, Slot};
use crate::page::{CodePage, PAGE_SLOTS};
use crate::pmp::Verdict;
use crate::trap::Stop;
use crate::{Access, Bus, Env, Hart, Observer, Timing};

/// Maximum number of slots that are decoded ahead.
const RUN_AHEAD: usize = 32;

impl Hart {
    /// Finds the slots for `pc`: those of its page, or the scratch page with this one instruction.
    pub(super) fn fetch_miss<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
    ) -> Result<*const CodePage, Flow> {
        self.fetch_page(env).map_err(|stop| self.stopped(env, stop, 0))
    }

    fn fetch_page<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
    ) -> Result<*const CodePage, Stop> {
        if self.stepping {
            self.fetch_single(env)?;
            return Ok(&raw const *self.scratch);
        }
        let pc = self.pc;
        match self.fetch_location(env, pc)? {
            (_, Some(page)) => Ok(page),
            (_, None) => {
                self.fetch_single(env)?;
                Ok(&raw const *self.scratch)
            }
        }
    }

    /// Returns the physical address of code, and the slots of its page if PMP treats the whole page alike.
    fn fetch_location<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
    ) -> Result<(u64, Option<*const CodePage>), Stop> {
        let p = self.privilege;
        let entry = self.tlb.fetch_entry(p, va);
        if entry.tag == va & PAGE_MASK {
            // SAFETY: pages in the translation cache are live: `begin` drops them when the code cache does.
            let pa = unsafe { (*entry.page).pa };
            return Ok((pa | va & !PAGE_MASK, Some(entry.page)));
        }
        let charged = self.must_walk(env, va, Access::Fetch, p);
        let leaf = self.translate(env, va, Access::Fetch, p, charged)?;
        let page_pa = leaf.pa & PAGE_MASK;
        let verdict = self.csr.pmp.check(leaf.pa, 2, Access::Fetch, p);
        if verdict == Verdict::Deny || env.bus.ram().offset(PhysAddr(page_pa), PAGE_SIZE).is_none() {
            return Err(Stop::access_fault(Access::Fetch, va));
        }
        if verdict == Verdict::Partial {
            return Ok((leaf.pa, None));
        }
        let page = env.code.page(((page_pa - self.ram_base) >> PAGE_SHIFT) as usize, page_pa).as_ptr();
        self.tlb.fill_fetch(p, va, page, leaf.size);
        Ok((leaf.pa, Some(page)))
    }

    /// Reads 16 bits of code.
    fn fetch_half<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>, va: u64) -> Result<u16, Stop> {
        let (pa, _) = self.fetch_location(env, va)?;
        let bytes = env.bus.ram().load::<2>(PhysAddr(pa));
        bytes.map(u16::from_le_bytes).ok_or(Stop::access_fault(Access::Fetch, va))
    }

    /// Puts the single instruction at `pc` into the scratch page.
    pub(super) fn fetch_single<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
    ) -> Result<(), Stop> {
        let pc = self.pc;
        let low = self.fetch_half(env, pc)?;
        let high = if is_wide(low) { self.fetch_half(env, pc.wrapping_add(2))? } else { 0 };
        let raw = u32::from(high) << 16 | u32::from(low);
        let index = (pc & !PAGE_MASK) as usize / 2;
        self.scratch.slots[self.scratch_index] = Slot::REFETCH;
        self.scratch.slots[index] = decode(raw, index);
        self.scratch_index = index;
        self.scratch_raw = raw;
        Ok(())
    }

    /// Decodes slot `first` of `page` and the slots that will most likely follow it.
    pub(super) fn decode_run<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
        first: usize,
    ) {
        // SAFETY: the page is live (see the hot loop).
        let pa = unsafe { (*page).pa };
        let ram = env.bus.ram();
        if !ram.is_code(PhysAddr(pa)) {
            ram.mark_code(PhysAddr(pa));
            env.code.note_new_code();
            self.code_epoch = env.code.epoch();
            self.tlb.protect(Some(pa));
        }
        let mut index = first;
        while index < PAGE_SLOTS && index < first + RUN_AHEAD {
            let half = |i: usize| ram.load::<2>(PhysAddr(pa + 2 * i as u64)).map_or(0, u16::from_le_bytes);
            let low = half(index);
            let wide = is_wide(low);
            let slot = if wide && index == PAGE_SLOTS - 1 {
                Slot { op: Op::Cross, ..Slot::REFETCH }
            } else {
                let high = if wide { half(index + 1) } else { 0 };
                decode(u32::from(high) << 16 | u32::from(low), index)
            };
            // SAFETY: index is below PAGE_SLOTS; slots are only reached through raw pointers, by this thread, and no
            // reference to one is alive outside the hot loop.
            let at = unsafe { &raw mut (*page.cast_mut()).slots[index] };
            // SAFETY: as above.
            unsafe {
                if index != first && (*at).op != Op::Undecoded {
                    break;
                }
                at.write(slot);
            }
            if matches!(slot.op, Op::JalIn | Op::JalOut | Op::Jalr | Op::Illegal | Op::Mret | Op::Sret | Op::Cross) {
                break;
            }
            index += if wide { 2 } else { 1 };
        }
    }

    /// Returns the bits, for `xtval`, of the instruction at `pc`, which was just fetched.
    pub(super) fn raw_instruction<B: Bus, O: Observer, T: Timing>(
        &self,
        env: &mut Env<'_, B, O, T>,
        page: *const CodePage,
    ) -> u64 {
        if std::ptr::eq(page, &raw const *self.scratch) {
            return u64::from(self.scratch_raw);
        }
        // SAFETY: the page is live (see the hot loop).
        let at = unsafe { (*page).pa } + (self.pc & !PAGE_MASK);
        let low = env.bus.ram().load::<2>(PhysAddr(at)).map_or(0, u16::from_le_bytes);
        if !is_wide(low) {
            return u64::from(low);
        }
        env.bus.ram().load::<4>(PhysAddr(at)).map_or(0, |b| u64::from(u32::from_le_bytes(b)))
    }
}
