// SPDX-License-Identifier: Apache-2.0
//! The test finisher of SiFive's platforms: one register that ends the run.

use trapless_memory::{Cycle, MmioEffect};

use crate::table::Device;

/// What the guest asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Power off.
    PowerOff,
    /// Reset.
    Reset,
    /// Stop and report failure with this code.
    Fail(u16),
}

/// The finisher. It remembers the last command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finisher {
    asked: Option<Finish>,
}

impl Finisher {
    /// Bytes of register space.
    pub const SIZE: u64 = 0x1000;

    /// How the guest wants to end the run.
    pub fn asked(&self) -> Option<Finish> {
        self.asked
    }

    /// Reads as zero.
    pub fn mmio_read(&self, _offset: u64, _size: u32) -> u64 {
        0
    }

    /// Handles a write of at least 16 bits to offset 0: the low half is the command, the high half the code of a failure.
    pub fn mmio_write(&mut self, offset: u64, size: u32, value: u64) -> Option<Finish> {
        if offset != 0 || size < 2 {
            return None;
        }
        let finish = match value & 0xffff {
            0x5555 => Finish::PowerOff,
            0x7777 => Finish::Reset,
            0x3333 => Finish::Fail(if size >= 4 { (value >> 16) as u16 } else { 0 }),
            _ => return None,
        };
        self.asked = Some(finish);
        self.asked
    }
}

impl Device for Finisher {
    fn read(&mut self, offset: u64, size: u32, _now: Cycle) -> (u64, MmioEffect) {
        (self.mmio_read(offset, size), MmioEffect::None)
    }

    fn write(&mut self, offset: u64, size: u32, value: u64, _now: Cycle) -> MmioEffect {
        self.mmio_write(offset, size, value);
        MmioEffect::Resync
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_the_run_and_nothing_else_does() {
        let mut f = Finisher::default();
        assert_eq!(f.mmio_write(0, 4, 0x5555), Some(Finish::PowerOff));
        assert_eq!(f.mmio_write(0, 4, 0x7777), Some(Finish::Reset));
        assert_eq!(f.mmio_write(0, 4, 0x0007_3333), Some(Finish::Fail(7)));
        assert_eq!(f.mmio_write(0, 4, 0x1234), None);
        assert_eq!(f.mmio_write(4, 4, 0x5555), None);
        assert_eq!(f.mmio_write(0, 1, 0x55), None);
        assert_eq!(f.asked(), Some(Finish::Fail(7)));
        assert_eq!(f.mmio_read(0, 4), 0);
    }
}
