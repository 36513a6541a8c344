// SPDX-License-Identifier: Apache-2.0
//! Loads and stores that miss in the translation cache: first touches, misaligned accesses, devices, and stores to code pages.

use trapless_memory::{MmioEffect, PAGE_SHIFT, PAGE_SIZE, PhysAddr};

use super::flow::Flow;
use super::slow::illegal;
use crate::entry::{DataEntry, PAGE_MASK};
use crate::lines::LINE_MASK;
use crate::op::{Op, Slot};
use crate::pmp::Verdict;
use crate::tlb::DataPage;
use crate::trap::Stop;
use crate::{Access, Bus, Env, Hart, Observer, Timing};

impl Hart {
    pub(super) fn load_op<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        s: Slot,
    ) -> Result<Flow, Stop> {
        if matches!(s.op, Op::Flw | Op::Fld) && !self.csr.fs_on() {
            return Err(illegal());
        }
        let va = self.regs[s.rs1 as usize].wrapping_add(s.imm as u64);
        let size = match s.op {
            Op::Lb | Op::Lbu => 1,
            Op::Lh | Op::Lhu => 2,
            Op::Lw | Op::Lwu | Op::Flw => 4,
            _ => 8,
        };
        let v = self.load(env, va, size)?;
        self.accessed(env, Access::Load, va, size);
        self.regs[s.rd as usize] = match s.op {
            Op::Lb => v as i8 as u64,
            Op::Lh => v as i16 as u64,
            Op::Lw => v as i32 as u64,
            Op::Flw => 0xffff_ffff << 32 | v,
            _ => v,
        };
        if matches!(s.op, Op::Flw | Op::Fld) {
            self.set_fp_dirty();
        }
        Ok(Flow::Next(s.rs2 as usize))
    }

    pub(super) fn store_op<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        s: Slot,
    ) -> Result<Flow, Stop> {
        if matches!(s.op, Op::Fsw | Op::Fsd) && !self.csr.fs_on() {
            return Err(illegal());
        }
        let va = self.regs[s.rs1 as usize].wrapping_add(s.imm as u64);
        let size = match s.op {
            Op::Sb => 1,
            Op::Sh => 2,
            Op::Sw | Op::Fsw => 4,
            _ => 8,
        };
        self.store(env, va, size, self.regs[s.rs2 as usize])?;
        self.accessed(env, Access::Store, va, size);
        Ok(Flow::Next(s.rd as usize))
    }

    /// Returns the physical address of an access inside one page. Enters the page into the translation cache where that is safe.
    pub(super) fn locate<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        len: u64,
        access: Access,
    ) -> Result<PhysAddr, Stop> {
        let known = |entry: &DataEntry, mask: u64| {
            let tag = if access == Access::Store { entry.write } else { entry.read };
            (tag == va & mask).then_some(PhysAddr(entry.pa_size & PAGE_MASK | va & !PAGE_MASK))
        };
        if self.detailed
            && let Some(pa) = known(self.tlb.lines.entry(self.data_set, va), LINE_MASK)
        {
            return Ok(pa);
        }
        let p = self.data_privilege;
        let charged = self.must_walk(env, va, access, p);
        let page = self.tlb.data_entry(self.data_set, va);
        let pa = match known(page, PAGE_MASK) {
            Some(pa) if !self.detailed || !charged => pa,
            _ => self.locate_by_walk(env, va, len, access, charged)?,
        };
        if self.detailed && env.bus.ram().offset(pa, 1).is_some() {
            let (cycles, writable) = env.timing.data(access, self.atomic, pa, self.local_now(), p);
            self.acc += cycles;
            self.take_losses(env.timing);
            self.tlb.fill_line(self.data_set, va, writable);
        }
        Ok(pa)
    }

    /// Does the same by a page walk: the translation cache does not have the page, or detailed timing wants the walk.
    fn locate_by_walk<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        len: u64,
        access: Access,
        charged: bool,
    ) -> Result<PhysAddr, Stop> {
        let p = self.data_privilege;
        let leaf = self.translate(env, va, access, p, charged)?;
        let verdict = self.csr.pmp.check(leaf.pa, len, access, p);
        if verdict == Verdict::Deny {
            return Err(Stop::access_fault(access, va));
        }
        let pa = PhysAddr(leaf.pa);
        if let Some(offset) = env.bus.ram().offset(pa, len) {
            let whole = |pmp: &crate::pmp::Pmp, a| pmp.check(leaf.pa, len, a, p) == Verdict::Page;
            let read = leaf.read && whole(&self.csr.pmp, Access::Load);
            let write = leaf.write && whole(&self.csr.pmp, Access::Store) && !env.bus.ram().is_code(pa);
            let to = DataPage { pa: leaf.pa, host: self.ram_host + offset, size: leaf.size, read, write };
            self.tlb.fill_data(self.data_set, va, &to);
        }
        Ok(pa)
    }

    /// Returns the physical address of an access inside one page that may reach into a second line.
    fn locate_all<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        len: u64,
        access: Access,
    ) -> Result<PhysAddr, Stop> {
        let pa = self.locate(env, va, len, access)?;
        let last = va.wrapping_add(len - 1);
        if self.detailed && (va ^ last) & LINE_MASK != 0 {
            self.locate(env, last, 1, access)?;
        }
        Ok(pa)
    }

    /// Loads `size` bytes, zero-extended.
    fn load<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        size: u64,
    ) -> Result<u64, Stop> {
        let head = PAGE_SIZE - (va & !PAGE_MASK);
        if va & (size - 1) != 0 {
            self.acc += u64::from(self.config.costs.misaligned);
            if size > head {
                // Translate both pages first: the load happens completely or not at all.
                let first = self.locate_all(env, va, head, Access::Load)?;
                let second = self.locate_all(env, va.wrapping_add(head), size - head, Access::Load)?;
                let low = self.read_bytes(env, first, va, head)?;
                let high = self.read_bytes(env, second, va.wrapping_add(head), size - head)?;
                return Ok(high << (8 * head) | low);
            }
        }
        let pa = self.locate_all(env, va, size, Access::Load)?;
        if env.bus.ram().offset(pa, size).is_some() || va & (size - 1) != 0 {
            return self.read_bytes(env, pa, va, size);
        }
        let answer = env.bus.mmio_read(pa, size as u8, self.local_now());
        self.wait_for_device();
        match answer {
            Ok((value, effect)) => {
                self.after_device(env, effect);
                Ok(if size == 8 { value } else { value & ((1 << (8 * size)) - 1) })
            }
            Err(_) => Err(Stop::access_fault(Access::Load, va)),
        }
    }

    /// Reads RAM byte by byte.
    fn read_bytes<B: Bus, O: Observer, T: Timing>(
        &self,
        env: &mut Env<'_, B, O, T>,
        pa: PhysAddr,
        va: u64,
        len: u64,
    ) -> Result<u64, Stop> {
        let ram = env.bus.ram();
        match len {
            4 => ram.load::<4>(pa).map(|b| u64::from(u32::from_le_bytes(b))),
            8 => ram.load::<8>(pa).map(u64::from_le_bytes),
            _ => (0..len).rev().try_fold(0u64, |v, i| {
                let [byte] = ram.load::<1>(PhysAddr(pa.0 + i))?;
                Some(v << 8 | u64::from(byte))
            }),
        }
        .ok_or(Stop::access_fault(Access::Load, va))
    }

    /// Stores the low `size` bytes of `value`.
    fn store<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        va: u64,
        size: u64,
        value: u64,
    ) -> Result<(), Stop> {
        let head = PAGE_SIZE - (va & !PAGE_MASK);
        let bytes = value.to_le_bytes();
        if va & (size - 1) != 0 {
            self.acc += u64::from(self.config.costs.misaligned);
            if size > head {
                let next = va.wrapping_add(head);
                let first = self.locate_all(env, va, head, Access::Store)?;
                let second = self.locate_all(env, next, size - head, Access::Store)?;
                let ram = env.bus.ram();
                if ram.offset(first, head).is_none() {
                    return Err(Stop::access_fault(Access::Store, va));
                }
                if ram.offset(second, size - head).is_none() {
                    return Err(Stop::access_fault(Access::Store, next));
                }
                self.write_ram(env, first, &bytes[..head as usize]);
                self.write_ram(env, second, &bytes[head as usize..size as usize]);
                return Ok(());
            }
        }
        let pa = self.locate_all(env, va, size, Access::Store)?;
        if self.write_ram(env, pa, &bytes[..size as usize]) {
            return Ok(());
        }
        if va & (size - 1) != 0 {
            return Err(Stop::access_fault(Access::Store, va));
        }
        let value = if size == 8 { value } else { value & ((1 << (8 * size)) - 1) };
        let answer = env.bus.mmio_write(pa, size as u8, value, self.local_now());
        self.wait_for_device();
        match answer {
            Ok(effect) => {
                self.reservation = None;
                self.after_device(env, effect);
                Ok(())
            }
            Err(_) => Err(Stop::access_fault(Access::Store, va)),
        }
    }

    /// Writes RAM for the hart itself. Forgets only the predecoded instructions that are overwritten;
    /// [`trapless_memory::Ram::store`] would drop the whole page. Returns false outside RAM.
    pub(super) fn write_ram<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        pa: PhysAddr,
        bytes: &[u8],
    ) -> bool {
        let len = bytes.len() as u64;
        let Some(offset) = env.bus.ram().offset(pa, len) else { return false };
        if env.bus.ram().is_code(pa) {
            env.code.forget((offset >> PAGE_SHIFT) as usize, offset & !PAGE_MASK, len);
        }
        let host = env.bus.ram().host_base().wrapping_add(offset as usize);
        // SAFETY: offset() has checked that the bytes are inside RAM; no reference into RAM exists.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host, bytes.len()) };
        true
    }

    /// Charges for an access to a device, whether or not one answers. The device sees the access at the cycle at which it was
    /// made, so that no event comes in between; the hart continues later.
    fn wait_for_device(&mut self) {
        self.acc += u64::from(self.config.costs.mmio);
    }

    /// Notes that a device was accessed: it may have written memory, and may ask for the end of the run.
    fn after_device<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>, effect: MmioEffect) {
        env.code.drop_overwritten(env.bus.ram());
        if effect == MmioEffect::Resync {
            self.resync = true;
            self.limit = 0;
        }
    }
}
