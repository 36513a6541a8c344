// SPDX-License-Identifier: Apache-2.0
//! ACLINT in the layout of SiFive's CLINT: MSWI (software interrupts) at 0, MTIMER at 0x4000 (RISC-V ACLINT
//! specification, chapter "Backward compatibility").

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, MmioEffect};

use crate::table::Device;

const MTIMECMP: u64 = 0x4000;
const MTIME: u64 = 0xbff8;

/// The ACLINT. `mtime` is a function of the cycle, so its only state is the offset that a write to
/// it leaves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Aclint {
    clock: ClockHz,
    timebase_hz: u64,
    /// What writes to mtime have added to the ticks since cycle 0.
    mtime_offset: u64,
    mtimecmp: Vec<u64>,
    msip: Vec<bool>,
}

impl Aclint {
    /// Bytes of register space.
    pub const SIZE: u64 = 0x1_0000;

    /// Creates an ACLINT for `harts` harts. `mtime` counts at `timebase_hz` from cycle 0; every `mtimecmp` is at its maximum.
    pub fn new(harts: usize, clock: ClockHz, timebase_hz: u64) -> Aclint {
        Aclint { clock, timebase_hz, mtime_offset: 0, mtimecmp: vec![u64::MAX; harts], msip: vec![false; harts] }
    }

    /// The value of `mtime` at cycle `now`; the `time` CSR reads the same value.
    pub fn mtime(&self, now: Cycle) -> u64 {
        self.clock.ticks(now, self.timebase_hz).wrapping_add(self.mtime_offset)
    }

    /// Whether the software interrupt of a hart is pending.
    pub fn msip(&self, hart: usize) -> bool {
        self.msip.get(hart).copied().unwrap_or(false)
    }

    /// Sets the software interrupt of a hart.
    pub fn set_msip(&mut self, hart: usize, pending: bool) {
        if let Some(m) = self.msip.get_mut(hart) {
            *m = pending;
        }
    }

    /// Whether the timer interrupt of a hart is pending at cycle `now`.
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

    /// The first cycle at which `mtime` is at least `ticks`, for timers of others (stimecmp, SBI).
    pub fn cycle_of(&self, ticks: u64) -> Cycle {
        // The offset is signed: writes may have set mtime back or forward.
        let since_start = i128::from(ticks) - i128::from(self.mtime_offset as i64);
        // Ticks before the offset were already reached at cycle 0.
        self.clock.cycle_of_tick(u64::try_from(since_start.max(0)).unwrap_or(u64::MAX), self.timebase_hz)
    }

    /// The next cycle after `now` at which a timer interrupt becomes pending.
    pub fn next_event(&self, now: Cycle) -> Cycle {
        let time = self.mtime(now);
        // The number of ticks to go, not the tick itself: a guest may have set mtime to any value.
        let wait = self.mtimecmp.iter().filter(|&&cmp| cmp != u64::MAX && cmp > time).map(|&cmp| cmp - time).min();
        let ticks = self.clock.ticks(now, self.timebase_hz);
        wait.map_or(Cycle::NEVER, |wait| self.clock.cycle_of_tick(ticks.saturating_add(wait), self.timebase_hz))
    }

    /// Reads a register, or a 32-bit half of a 64-bit register.
    pub fn mmio_read(&self, offset: u64, size: u32, now: Cycle) -> u64 {
        match offset {
            0..MTIMECMP => u64::from(offset.is_multiple_of(4) && self.msip((offset / 4) as usize)),
            MTIMECMP..MTIME => {
                let word = self.mtimecmp.get(((offset - MTIMECMP) / 8) as usize).copied().unwrap_or(0);
                part(word, offset, size)
            }
            MTIME..Self::SIZE => part(self.mtime(now), offset, size),
            _ => 0,
        }
    }

    /// Writes a register, or a 32-bit half of a 64-bit register.
    pub fn mmio_write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect {
        match offset {
            0..MTIMECMP if offset.is_multiple_of(4) => self.set_msip((offset / 4) as usize, value & 1 == 1),
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

impl Device for Aclint {
    fn read(&mut self, offset: u64, size: u32, now: Cycle) -> (u64, MmioEffect) {
        (self.mmio_read(offset, size, now), MmioEffect::None)
    }

    fn write(&mut self, offset: u64, size: u32, value: u64, now: Cycle) -> MmioEffect {
        self.mmio_write(offset, size, value, now)
    }
}

/// The bytes that an access of `size` bytes at `offset` reads from a 64-bit register.
fn part(word: u64, offset: u64, size: u32) -> u64 {
    let word = word >> (8 * (offset % 8));
    if size >= 8 { word } else { word & ((1 << (8 * size)) - 1) }
}

/// `word` after a write of `size` bytes at `offset`.
fn with_part(word: u64, offset: u64, size: u32, value: u64) -> u64 {
    let shift = 8 * (offset % 8);
    let mask = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
    (word & !(mask << shift)) | ((value & mask) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ClockHz = ClockHz(100_000_000);

    fn aclint() -> Aclint {
        Aclint::new(4, CLOCK, 10_000_000)
    }

    #[test]
    fn a_timer_comes_wherever_mtime_was_set_to() {
        let mut a = Aclint::new(1, ClockHz(100_000_000), 10_000_000);
        a.mmio_write(MTIME, 8, 1 << 63, Cycle(1000));
        a.set_mtimecmp(0, (1 << 63) + 7);
        let next = a.next_event(Cycle(1000));
        assert_eq!(next, Cycle(1070));
        assert!(a.mtip(0, next) && !a.mtip(0, Cycle(next.0 - 1)));
    }

    #[test]
    fn mtime_counts_cycles_in_ticks() {
        let a = aclint();
        assert_eq!(a.mtime(Cycle(0)), 0);
        assert_eq!(a.mtime(Cycle(99)), 9);
        assert_eq!(a.mmio_read(MTIME, 8, Cycle(1000)), 100);
        assert_eq!(a.mmio_read(MTIME + 4, 4, Cycle(10 << 33)), 2);
    }

    #[test]
    fn the_timer_interrupt_begins_at_its_event_and_not_a_cycle_earlier() {
        let mut a = aclint();
        a.mmio_write(MTIMECMP + 8, 8, 7, Cycle(3));
        let at = a.next_event(Cycle(3));
        assert_eq!(at, Cycle(70));
        assert!(!a.mtip(1, Cycle(69)));
        assert!(a.mtip(1, at));
        assert!(!a.mtip(0, at));
        assert_eq!(a.next_event(at), Cycle::NEVER);
    }

    #[test]
    fn halves_of_mtimecmp_are_written_apart() {
        let mut a = aclint();
        a.mmio_write(MTIMECMP, 4, 0x1111_2222, Cycle(0));
        a.mmio_write(MTIMECMP + 4, 4, 0x3333_4444, Cycle(0));
        assert_eq!(a.mtimecmp(0), 0x3333_4444_1111_2222);
        assert_eq!(a.mmio_read(MTIMECMP + 4, 4, Cycle(0)), 0x3333_4444);
    }

    #[test]
    fn mtime_may_be_set_forward_and_back() {
        let mut a = aclint();
        a.mmio_write(MTIME, 8, 5_000, Cycle(100));
        assert_eq!(a.mtime(Cycle(110)), 5_001);
        assert_eq!(a.cycle_of(5_001), Cycle(110));
        a.mmio_write(MTIME, 8, 0, Cycle(1000));
        assert_eq!(a.mtime(Cycle(1010)), 1);
        assert_eq!(a.cycle_of(1), Cycle(1010));
    }

    #[test]
    fn msip_is_one_bit_a_hart() {
        let mut a = aclint();
        a.mmio_write(8, 4, 0xffff_ffff, Cycle(0));
        assert_eq!([0, 1, 2, 3].map(|h| a.msip(h)), [false, false, true, false]);
        assert_eq!(a.mmio_read(8, 4, Cycle(0)), 1);
        a.mmio_write(8, 4, 0xfffe, Cycle(0));
        assert!(!a.msip(2));
        a.mmio_write(4 * 4, 4, 1, Cycle(0)); // no such hart
        assert_eq!(a.mmio_read(4 * 4, 4, Cycle(0)), 0);
    }
}
