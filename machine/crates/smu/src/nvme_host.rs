// SPDX-License-Identifier: Apache-2.0
//! NVMe host controller: queue descriptors and commands (REQ: SMU-9).

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, Cycle, PhysAddr};
use trapless_smu_regs as regs;

use crate::SmuBus;
use crate::pmshr::Frame;

/// Largest number of entries of an NVMe queue.
const MAX_DEPTH: u32 = 65536;
/// Limit of queue bases, so that the address of an entry never wraps.
const MAX_BASE: u64 = 1 << 56;

/// One NVMe queue pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    pub valid: bool,
    pub sq_base: u64,
    pub cq_base: u64,
    pub sq_doorbell: u64,
    pub cq_doorbell: u64,
    pub depth: u32,
    pub nsid: u32,
    /// log2 of the number of namespace blocks in a page.
    pub blocks: u32,
    pub sq_tail: u32,
    pub cq_head: u32,
    pub phase: bool,
    pub submitted: u64,
    pub completed: u64,
    /// The completion queue or a doorbell met a bus error. The SMU submits and polls nothing until RELEASE.
    pub broken: bool,
    /// Time of the next poll of the completion queue.
    pub poll_at: Option<Cycle>,
    /// Polls are at this time plus a multiple of the poll interval.
    pub looks_from: Cycle,
}

impl Descriptor {
    pub fn new() -> Descriptor {
        Descriptor {
            valid: false,
            sq_base: 0,
            cq_base: 0,
            sq_doorbell: 0,
            cq_doorbell: 0,
            depth: 0,
            nsid: 0,
            blocks: 0,
            sq_tail: 0,
            cq_head: 0,
            phase: true,
            submitted: 0,
            completed: 0,
            broken: false,
            poll_at: None,
            looks_from: Cycle(0),
        }
    }

    /// Tells whether the fields describe a valid queue pair for `pmshr` commands in flight.
    pub fn is_sound(&self, pmshr: usize) -> bool {
        let base_ok = |base: u64| base.is_multiple_of(4096) && base < MAX_BASE;
        base_ok(self.sq_base)
            && base_ok(self.cq_base)
            && self.sq_doorbell.is_multiple_of(4)
            && self.cq_doorbell.is_multiple_of(4)
            && self.depth as usize > pmshr
            && self.depth <= MAX_DEPTH
            && self.blocks <= 3
            && !self.broken
    }

    /// Tells whether the SMU may submit commands to the queue pair.
    pub fn serves(&self) -> bool {
        self.valid && !self.broken
    }

    /// Tells whether the SMU has not yet seen the completion of every command.
    pub fn outstanding(&self) -> bool {
        self.submitted != self.completed
    }

    /// Returns the first poll time at or after `at`.
    pub fn look_after(&self, at: Cycle, interval: Cycle) -> Cycle {
        let (Cycle(from), interval) = (self.looks_from, interval.0.max(1));
        Cycle(
            at.0.saturating_sub(from)
                .checked_next_multiple_of(interval)
                .map_or(u64::MAX, |since| since.saturating_add(from)),
        )
    }

    /// Resets the indices of both queues.
    pub fn reset_indices(&mut self) {
        (self.sq_tail, self.cq_head, self.phase) = (0, 0, true);
    }

    /// Writes a 4 KiB read command into the submission queue and returns the new tail. Submits nothing after a bus error.
    pub fn write_command(&mut self, cid: u16, lba: u64, frame: Frame, bus: &mut dyn SmuBus) -> Result<u32, BusError> {
        let at = self.sq_base + u64::from(self.sq_tail) * regs::NVME_SQE_SIZE;
        bus.write_bytes(PhysAddr(at), &self.command(cid, lba, frame))?;
        self.sq_tail = (self.sq_tail + 1) % self.depth;
        self.submitted += 1;
        Ok(self.sq_tail)
    }

    fn command(&self, cid: u16, lba: u64, frame: Frame) -> [u8; regs::NVME_SQE_SIZE as usize] {
        let mut sqe = [0; regs::NVME_SQE_SIZE as usize];
        let mut put = |offset: u64, bytes: &[u8]| sqe[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        put(regs::NVME_SQE_CDW0, &(regs::NVME_OPC_READ as u32 | u32::from(cid) << 16).to_le_bytes());
        put(regs::NVME_SQE_NSID, &self.nsid.to_le_bytes());
        put(regs::NVME_SQE_PRP1, &frame.dma.to_le_bytes());
        put(regs::NVME_SQE_SLBA, &lba.to_le_bytes());
        put(regs::NVME_SQE_CDW12, &((1_u32 << self.blocks) - 1).to_le_bytes());
        sqe
    }

    /// Takes the completion queue entry at the head if its phase shows that it is new. Returns its upper half.
    pub fn take_completion(&mut self, bus: &mut dyn SmuBus) -> Result<Option<u64>, BusError> {
        let at = self.cq_base + u64::from(self.cq_head) * regs::NVME_CQE_SIZE + regs::NVME_CQE_DW2;
        let entry = bus.read_u64(PhysAddr(at))?;
        if regs::CQE_PHASE.is_set(entry) != self.phase {
            return Ok(None);
        }
        self.cq_head += 1;
        if self.cq_head >= self.depth {
            self.cq_head = 0;
            self.phase = !self.phase;
        }
        Ok(Some(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: SMU-9. Checks every byte of the command against the NVMe specification.
    #[test]
    fn the_command_is_a_4_kib_read() {
        let d = Descriptor { nsid: 0x0102_0304, blocks: 3, ..Descriptor::new() };
        let sqe = d.command(31, 0x1ff_ffff_fff0, Frame { pfn: 5, dma: 0x1234_5678_9000 });
        let dword = |n: usize| u32::from_le_bytes(sqe[4 * n..4 * n + 4].try_into().unwrap());
        let mut want = [0; 16];
        want[0] = 31 << 16 | 2;
        want[1] = 0x0102_0304;
        want[6] = 0x5678_9000;
        want[7] = 0x1234;
        want[10] = 0xffff_fff0;
        want[11] = 0x1ff;
        want[12] = 7;
        assert_eq!((0..16).map(dword).collect::<Vec<_>>(), want);
        let one_block = Descriptor { blocks: 0, ..d };
        assert_eq!(one_block.command(0, 0, Frame { pfn: 0, dma: 0 })[48..52], [0; 4]);
    }

    #[test]
    fn bad_fields_make_no_sound_descriptor() {
        let good = Descriptor { depth: 33, ..Descriptor::new() };
        assert!(good.is_sound(32));
        let bad: [fn(&mut Descriptor); 8] = [
            |d| d.depth = 32,
            |d| d.depth = 65537,
            |d| d.sq_base = 0x800,
            |d| d.cq_base = !4095,
            |d| d.sq_doorbell = 2,
            |d| d.cq_doorbell = 1,
            |d| d.blocks = 4,
            |d| d.broken = true,
        ];
        for (i, spoil) in bad.into_iter().enumerate() {
            let mut d = good.clone();
            spoil(&mut d);
            assert!(!d.is_sound(32), "case {i}");
        }
    }
}
