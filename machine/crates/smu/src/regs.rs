// SPDX-License-Identifier: Apache-2.0
//! The register file (spec/smu.rdl).

use trapless_memory::PhysAddr;
use trapless_smu_regs::{self as regs, Counter};

use crate::free_ring::{ring_base_ok, ring_size_ok};
use crate::windows::{WINDOWS, window_at};
use crate::{Smu, SmuBus};

impl Smu {
    pub(crate) fn register(&self, offset: u64) -> u64 {
        if let Some((index, field)) = descriptor_at(offset) {
            return self.descriptor_register(index, field);
        }
        if let Some((port, field)) = self.port_at(offset) {
            return self.ports[port].register(field);
        }
        if let Some((index, field)) = window_at(offset) {
            return self.windows.register(index, field);
        }
        match offset {
            regs::ID => regs::ID_RESET,
            regs::CAP => {
                regs::CAP_PMSHR.of(self.config.pmshr_entries.into())
                    | regs::CAP_DESCRIPTORS.of(regs::DESC_COUNT as u64)
                    | regs::CAP_PREFETCH.of(self.config.prefetch_depth.into())
                    | regs::CAP_HARTS.of(self.config.harts.into())
                    | regs::CAP_SOCKET.of(self.config.socket.into())
                    | regs::CAP_PORTS.of(self.ports.len() as u64)
                    | regs::CAP_WINDOWS.of(WINDOWS as u64)
            }
            regs::CTRL => regs::CTRL_ENABLE.of(self.enabled.into()),
            regs::STATUS => self.status(),
            regs::INT_ENABLE => self.interrupts.enabled,
            regs::INT_CAUSE => self.causes(),
            regs::FREE_LOW => self.interrupts.free_low.into(),
            regs::TIMEOUT => self.timeout,
            regs::LAST_ERROR => {
                regs::LAST_ERROR_STATUS.of(self.last_status.into())
                    | regs::LAST_ERROR_REASON.of(self.last_reason.into())
            }
            regs::WINDOW_LOCK => regs::WINDOW_LOCK_LOCKED.of(self.windows.locked.into()),
            regs::FREE_BASE => self.free.base,
            regs::FREE_SIZE => self.free.size.into(),
            regs::FREE_HEAD => self.free.head.into(),
            regs::FREE_TAIL => self.free.tail.into(),
            regs::FREE_USED => self.free.used.into(),
            regs::RET_BASE => self.returns.base,
            regs::RET_SIZE => self.returns.size.into(),
            regs::RET_HEAD => self.returns.head.into(),
            regs::RET_TAIL => self.returns.tail.into(),
            _ => {
                let counter = offset.wrapping_sub(Counter::BASE) / 8;
                usize::try_from(counter).ok().and_then(|i| self.counters.get(i)).copied().unwrap_or(0)
            }
        }
    }

    fn status(&self) -> u64 {
        regs::STATUS_ENABLED.of(self.enabled.into())
            | regs::STATUS_IDLE.of(self.is_idle().into())
            | regs::STATUS_NO_DMA.of(self.pmshr.entries().all(|e| e.command.is_none()).into())
            | regs::STATUS_ERROR.of(self.error.into())
            | regs::STATUS_NO_FRAMES.of(self.keeps_no_frame().into())
            | regs::STATUS_LIVE.of(self.pmshr.live())
            | regs::STATUS_QUARANTINED.of(self.pmshr.quarantined())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pmshr.live() == 0 && self.late.is_empty()
    }

    fn keeps_no_frame(&self) -> bool {
        self.free.buffer.is_empty()
            && !self.free.fetching
            && self.returns.waiting.is_empty()
            && self.pmshr.entries().all(|e| e.frame.is_none())
    }

    pub(crate) fn set_register(&mut self, offset: u64, value: u64, bus: &mut dyn SmuBus) {
        if let Some((index, field)) = descriptor_at(offset) {
            return self.set_descriptor_register(index, field, value);
        }
        if let Some((index, field)) = window_at(offset) {
            return self.set_window(index, field, value);
        }
        match offset {
            regs::WINDOW_LOCK => self.lock_windows(value),
            regs::CTRL => self.set_enabled(regs::CTRL_ENABLE.is_set(value), bus),
            regs::TIMEOUT => self.timeout = value,
            regs::INT_ENABLE => self.set_interrupt_enable(value),
            regs::INT_CAUSE => self.interrupts.timed_out &= !regs::INT_CAUSE_TIMEOUT.is_set(value),
            regs::FREE_LOW => self.interrupts.free_low = regs::FREE_LOW_ENTRIES.get(value) as u32,
            regs::FREE_BASE | regs::FREE_SIZE | regs::RET_BASE | regs::RET_SIZE => self.set_ring(offset, value),
            regs::FREE_TAIL => {
                self.error |= !self.free.set_tail(regs::FREE_TAIL_INDEX.get(value) as u32);
                self.pump_fetch();
            }
            regs::RET_HEAD => {
                self.error |= !self.returns.set_head(regs::RET_HEAD_INDEX.get(value) as u32);
                self.pump_returns();
            }
            _ => {}
        }
    }

    fn set_enabled(&mut self, wanted: bool, bus: &mut dyn SmuBus) {
        if !wanted && self.is_idle() {
            self.error = false;
        }
        let enabled = wanted && (self.enabled || self.may_be_enabled(bus));
        self.error |= wanted && !enabled;
        self.enabled = enabled;
        self.feed();
        self.admit();
    }

    /// REQ: SMU-16. Tells whether the unit may be enabled: it has a return ring, both rings are in windows, and the fabric
    /// supports an exclusive pair.
    fn may_be_enabled(&self, bus: &mut dyn SmuBus) -> bool {
        if self.returns.size == 0 || self.returns.outside || self.free.outside {
            return false;
        }
        let at = PhysAddr(self.returns.base);
        let tried = bus.read_u64(at).and_then(|word| bus.compare_exchange_u64(at, word, word));
        bus.took();
        matches!(tried, Ok(Ok(_)))
    }

    fn set_ring(&mut self, offset: u64, value: u64) {
        let is_base = matches!(offset, regs::FREE_BASE | regs::RET_BASE);
        let fits = if is_base { ring_base_ok(value) } else { ring_size_ok(value) };
        if self.enabled || !self.is_idle() || !fits {
            self.error = true;
            return;
        }
        match offset {
            regs::FREE_BASE => self.free.base = value,
            regs::FREE_SIZE => self.free.size = value as u32,
            regs::RET_BASE => self.returns.base = value,
            _ => self.returns.size = value as u32,
        }
        match offset {
            regs::FREE_BASE | regs::FREE_SIZE => self.free.reset(),
            _ => self.returns.reset(),
        }
        self.look_at_rings();
        self.pump_returns();
    }

    fn descriptor_register(&self, index: usize, field: u64) -> u64 {
        let d = &self.descriptors[index];
        match field {
            regs::DESC_CTRL => d.valid.into(),
            regs::DESC_SQ_BASE => d.sq_base,
            regs::DESC_CQ_BASE => d.cq_base,
            regs::DESC_SQ_DB => d.sq_doorbell,
            regs::DESC_CQ_DB => d.cq_doorbell,
            regs::DESC_DEPTH => d.depth.into(),
            regs::DESC_NSID => d.nsid.into(),
            regs::DESC_BLOCKS => d.blocks.into(),
            regs::DESC_SQ_TAIL => d.sq_tail.into(),
            regs::DESC_CQ_HEAD => {
                regs::DESC_CQ_HEAD_INDEX.of(d.cq_head.into()) | regs::DESC_CQ_HEAD_PHASE.of(d.phase.into())
            }
            regs::DESC_N_SUBMITTED => d.submitted,
            regs::DESC_N_COMPLETED => d.completed,
            regs::DESC_FENCE => self.fence_status(index),
            regs::DESC_QUARANTINED => {
                self.pmshr.entries().filter(|e| e.is_quarantined() && e.command == Some(index)).count() as u64
            }
            _ => 0,
        }
    }

    fn set_descriptor_register(&mut self, index: usize, field: u64, value: u64) {
        let pmshr = self.pmshr.slots.len();
        match field {
            regs::DESC_FENCE => return self.begin_fences(index, value),
            regs::DESC_EXPIRE => return self.expire(index),
            _ => {}
        }
        let inside = self.may_use_queues(index);
        let d = &mut self.descriptors[index];
        let mut done = true;
        match field {
            regs::DESC_CTRL => {
                let wanted = regs::DESC_CTRL_VALID.is_set(value);
                done = !wanted || d.valid || d.is_sound(pmshr) && inside;
                d.valid = wanted && done;
            }
            regs::DESC_RELEASE if !d.valid => self.release_descriptor(index),
            regs::DESC_RELEASE => done = false,
            regs::DESC_SQ_BASE..=regs::DESC_BLOCKS if d.valid || d.outstanding() => done = false,
            regs::DESC_SQ_BASE => d.sq_base = value,
            regs::DESC_CQ_BASE => d.cq_base = value,
            regs::DESC_SQ_DB => d.sq_doorbell = value,
            regs::DESC_CQ_DB => d.cq_doorbell = value,
            regs::DESC_DEPTH => d.depth = regs::DESC_DEPTH_ENTRIES.get(value) as u32,
            regs::DESC_NSID => d.nsid = regs::DESC_NSID_ID.get(value) as u32,
            regs::DESC_BLOCKS => d.blocks = regs::DESC_BLOCKS_LOG2.get(value) as u32,
            _ => {}
        }
        if done && matches!(field, regs::DESC_SQ_BASE | regs::DESC_CQ_BASE | regs::DESC_DEPTH) {
            self.descriptors[index].reset_indices();
        }
        self.error |= !done;
    }
}

/// Returns the descriptor at a register offset, and the offset in the descriptor.
pub(crate) fn descriptor_at(offset: u64) -> Option<(usize, u64)> {
    block_at(offset, regs::DESC_BASE, regs::DESC_STRIDE, regs::DESC_COUNT)
}

/// Returns the register block at `offset`, and the offset in the block. The `count` blocks begin at `base`.
pub(crate) fn block_at(offset: u64, base: u64, stride: u64, count: usize) -> Option<(usize, u64)> {
    let inside = offset.checked_sub(base)?;
    let index = usize::try_from(inside / stride).ok()?;
    (index < count).then_some((index, inside % stride))
}
