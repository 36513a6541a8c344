// SPDX-License-Identifier: Apache-2.0
//! ACLINT in the layout of SiFive's CLINT: MSWI (software interrupts) at 0, MTIMER at 0x4000 (RISC-V ACLINT
//! specification, chapter "Backward compatibility").

use trapless_memory::{ClockHz, Cycle, MmioEffect};

const MTIMECMP: u64 = 0x4000;
const MTIME: u64 = 0xbff8;

/// The ACLINT. `mtime` is a function of the cycle, so it has no state of its own except the offset that a write to it
/// leaves.
#[derive(Clone, Debug)]
pub struct Aclint {
    clock: ClockHz,
    timebase_hz: u64,
    /// Added to the ticks since cycle 0: what writes to mtime have done.
    mtime_offset: u64,
    mtimecmp: Vec<u64>,
    msip: Vec<bool>,
}

impl Aclint {
    /// Bytes of register space.
    pub const SIZE: u64 = 0x1_0000;

    /// For `harts` harts; `mtime` counts at `timebase_hz` from cycle 0, every `mtimecmp` is at its maximum.
    pub fn new(harts: usize, clock: ClockHz, timebase_hz: u64) -> Aclint {
        Aclint { clock, timebase_hz, mtime_offset: 0, mtimecmp: vec![u64::MAX; harts], msip: vec![false; harts] }
    }

    /// The value of `mtime` at cycle `now`: what the `time` CSR reads.
    pub fn mtime(&self, now: Cycle) -> u64 {
        self.clock.ticks(now, self.timebase_hz).wrapping_add(self.mtime_offset)
    }

    /// The software interrupt of a hart.
    pub fn msip(&self, hart: usize) -> bool {
        self.msip.get(hart).copied().unwrap_or(false)
    }

    /// Sets the software interrupt of a hart.
    pub fn set_msip(&mut self, hart: usize, pending: bool) {
        if let Some(m) = self.msip.get_mut(hart) {
            *m = pending;
        }
    }

    /// The timer interrupt of a hart at cycle `now`.
    pub fn mtip(&self, hart: usize, now: Cycle) -> bool {
        self.mtimecmp.get(hart).is_some_and(|&cmp| self.mtime(now) >= cmp)
    }

    /// A hart's `mtimecmp`.
    pub fn mtimecmp(&self, hart: usize) -> u64 {
        self.mtimecmp.get(hart).copied().unwrap_or(u64::MAX)
    }

    /// Sets a hart's `mtimecmp`.
    pub fn set_mtimecmp(&mut self, hart: usize, ticks: u64) {
        if let Some(cmp) = self.mtimecmp.get_mut(hart) {
            *cmp = ticks;
        }
    }

    /// The first cycle at which `mtime` is at least `ticks`; for timers kept elsewhere (stimecmp, SBI).
    pub fn cycle_of(&self, ticks: u64) -> Cycle {
        // A tick before the offset was already reached at cycle 0.
        self.clock.cycle_of_tick(ticks.saturating_sub(self.mtime_offset), self.timebase_hz)
    }

    /// The next cycle after `now` at which a timer interrupt begins.
    pub fn next_event(&self, now: Cycle) -> Cycle {
        let later = self.mtimecmp.iter().filter(|&&cmp| cmp != u64::MAX).map(|&cmp| self.cycle_of(cmp));
        later.filter(|&at| at > now).min().unwrap_or(Cycle::NEVER)
    }

    /// Reads a register; 32-bit halves of the 64-bit ones too.
    pub fn mmio_read(&self, offset: u64, size: u32, now: Cycle) -> u64 {
        match offset {
            0..MTIMECMP => u64::from(offset % 4 == 0 && self.msip((offset / 4) as usize)),
            MTIMECMP..MTIME => {
                let word = self.mtimecmp.get(((offset - MTIMECMP) / 8) as usize).copied().unwrap_or(0);
                part(word, offset, size)
            }
            MTIME..Self::SIZE => part(self.mtime(now), offset, size),
            _ => 0,
        }
    }

    /// Writes a register; 32-bit halves of the 64-bit ones too.
    pub fn mmio_write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect {
        match offset {
            0..MTIMECMP if offset % 4 == 0 => self.set_msip((offset / 4) as usize, value & 1 == 1),
            MTIMECMP..MTIME => {
                if let Some(cmp) = self.mtimecmp.get_mut(((offset - MTIMECMP) / 8) as usize) {
                    *cmp = with_part(*cmp, offset, size, value);
                }
            }
            MTIME..Self::SIZE => {
                let wanted = with_part(self.mtime(now), offset, size, value);
                self.mtime_offset = wanted.wrapping_sub(self.clock.ticks(now, self.timebase_hz));
            }
            _ => return MmioEffect::None,
        }
        MmioEffect::Resync
    }
}

/// The bytes of a 64-bit register that an access of `size` bytes at `offset` reads.
fn part(word: u64, offset: u64, size: u32) -> u64 {
    let word = word >> (8 * (offset % 8));
    if size >= 8 { word } else { word & ((1 << (8 * size)) - 1) }
}

/// `word` with the bytes that an access of `size` bytes at `offset` writes.
fn with_part(word: u64, offset: u64, size: u32, value: u64) -> u64 {
    let shift = 8 * (offset % 8);
    let mask = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
    (word & !(mask << shift)) | ((value & mask) << shift)
}
