// SPDX-License-Identifier: Apache-2.0
//! The platform-level interrupt controller (RISC-V PLIC specification 1.0.0), with level-triggered sources.

use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;
use trapless_memory::{Cycle, MmioEffect};

use crate::table::Device;

/// Number of interrupt sources. Source 0 does not exist.
pub const SOURCES: usize = 64;

const PENDING: u64 = 0x1000;
const ENABLE: u64 = 0x2000;
const ENABLE_STRIDE: u64 = 0x80;
const CONTEXT: u64 = 0x20_0000;
const CONTEXT_STRIDE: u64 = 0x1000;
const MAX_PRIORITY: u32 = 7;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Context {
    enable: u64,
    threshold: u32,
}

/// The PLIC. A source is pending while its line is high and its gateway is open; a claim closes the gateway and the
/// completion opens it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plic {
    #[serde(with = "BigArray")]
    priority: [u32; SOURCES],
    /// Levels of the lines, one bit per source.
    level: u64,
    /// Requests that gateways have forwarded and nobody has claimed.
    pending: u64,
    /// Sources that are claimed and not completed.
    claimed: u64,
    contexts: Vec<Context>,
}

impl Plic {
    /// Bytes of register space.
    pub const SIZE: u64 = 0x400_0000;

    /// Creates a PLIC with `contexts` contexts (two per hart: M, then S); everything is off.
    pub fn new(contexts: usize) -> Plic {
        Plic { priority: [0; SOURCES], level: 0, pending: 0, claimed: 0, contexts: vec![Context::default(); contexts] }
    }

    /// Sets the line of a source.
    pub fn set_level(&mut self, source: u32, high: bool) {
        if source == 0 || source as usize >= SOURCES {
            return;
        }
        let bit = 1 << source;
        self.level = if high { self.level | bit } else { self.level & !bit };
        self.forward();
    }

    /// Whether the interrupt line of a context is high.
    pub fn pending(&self, context: usize) -> bool {
        self.contexts.get(context).is_some_and(|c| {
            // The threshold masks the notification; a claim ignores it.
            self.best(c).is_some_and(|source| self.priority[source] > c.threshold)
        })
    }

    /// Reads a register. A read of a context's claim register claims an interrupt.
    pub fn mmio_read(&mut self, offset: u64, _size: u32) -> u64 {
        match offset {
            0..PENDING => self.priority.get((offset / 4) as usize).copied().unwrap_or(0).into(),
            PENDING..ENABLE => half(self.pending, (offset - PENDING) / 4).into(),
            ENABLE..CONTEXT => {
                let (context, word) = split(offset - ENABLE, ENABLE_STRIDE);
                self.contexts.get(context).map_or(0, |c| half(c.enable, word / 4)).into()
            }
            CONTEXT..Self::SIZE => {
                let (context, register) = split(offset - CONTEXT, CONTEXT_STRIDE);
                match register {
                    0 => self.contexts.get(context).map_or(0, |c| c.threshold).into(),
                    4 => self.claim(context).into(),
                    _ => 0,
                }
            }
            _ => 0,
        }
    }

    /// Writes a register. A write to a context's claim register completes an interrupt.
    pub fn mmio_write(&mut self, offset: u64, _size: u32, value: u64) -> MmioEffect {
        let value = value as u32;
        match offset {
            0..PENDING => {
                // Source 0 does not exist: its priority stays 0.
                if let Some(p) = self.priority.get_mut((offset / 4) as usize).filter(|_| offset >= 4) {
                    *p = value & MAX_PRIORITY;
                }
            }
            ENABLE..CONTEXT => {
                let (context, word) = split(offset - ENABLE, ENABLE_STRIDE);
                if let Some(c) = self.contexts.get_mut(context) {
                    match word / 4 {
                        0 => c.enable = (c.enable & !0xffff_ffff) | u64::from(value & !1),
                        1 => c.enable = (c.enable & 0xffff_ffff) | (u64::from(value) << 32),
                        _ => {}
                    }
                }
            }
            CONTEXT..Self::SIZE => {
                let (context, register) = split(offset - CONTEXT, CONTEXT_STRIDE);
                match register {
                    0 => {
                        if let Some(c) = self.contexts.get_mut(context) {
                            c.threshold = value & MAX_PRIORITY;
                        }
                    }
                    4 => self.complete(context, value),
                    _ => {}
                }
            }
            _ => return MmioEffect::None,
        }
        MmioEffect::Resync
    }

    /// Lets open gateways forward the lines that are high. A request that is not yet claimed disappears with its line.
    fn forward(&mut self) {
        self.pending = self.level & !self.claimed;
    }

    /// The enabled pending source of highest priority; of several, the one with the lowest number. Priority 0 never interrupts.
    fn best(&self, context: &Context) -> Option<usize> {
        let mut candidates = self.pending & context.enable;
        let mut best = None;
        let mut priority = 0;
        while candidates != 0 {
            let source = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if self.priority[source] > priority {
                priority = self.priority[source];
                best = Some(source);
            }
        }
        best
    }

    fn claim(&mut self, context: usize) -> u32 {
        let Some(source) = self.contexts.get(context).and_then(|c| self.best(c)) else { return 0 };
        self.claimed |= 1 << source;
        self.forward();
        source as u32
    }

    /// Completes an interrupt; does nothing if the source is not enabled for the context (specification, "Interrupt Completion").
    fn complete(&mut self, context: usize, source: u32) {
        let enabled = self.contexts.get(context).map_or(0, |c| c.enable);
        if (source as usize) < SOURCES && enabled >> source & 1 == 1 {
            self.claimed &= !(1 << source);
            self.forward();
        }
    }
}

impl Device for Plic {
    fn read(&mut self, offset: u64, size: u32, _now: Cycle) -> (u64, MmioEffect) {
        (self.mmio_read(offset, size), MmioEffect::Resync)
    }

    fn write(&mut self, offset: u64, size: u32, value: u64, _now: Cycle) -> MmioEffect {
        self.mmio_write(offset, size, value)
    }
}

fn split(offset: u64, stride: u64) -> (usize, u64) {
    ((offset / stride) as usize, offset % stride)
}

fn half(bits: u64, word: u64) -> u32 {
    match word {
        0 => bits as u32,
        1 => (bits >> 32) as u32,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: u64 = CONTEXT + 4;

    /// Two contexts; sources 3 and 40 enabled for context 0.
    fn plic() -> Plic {
        let mut p = Plic::new(2);
        p.mmio_write(4 * 3, 4, 1);
        p.mmio_write(4 * 40, 4, 2);
        p.mmio_write(ENABLE, 4, 1 << 3);
        p.mmio_write(ENABLE + 4, 4, 1 << (40 - 32));
        p
    }

    #[test]
    fn the_highest_priority_is_claimed_first_and_a_level_returns_after_completion() {
        let mut p = plic();
        assert!(!p.pending(0));
        p.set_level(3, true);
        p.set_level(40, true);
        assert!(p.pending(0) && !p.pending(1));
        assert_eq!(p.mmio_read(CLAIM, 4), 40);
        assert_eq!(p.mmio_read(CLAIM, 4), 3);
        assert!(!p.pending(0), "both gateways are closed");
        assert_eq!(p.mmio_read(CLAIM, 4), 0);
        p.set_level(3, false);
        p.mmio_write(CLAIM, 4, 3);
        assert!(!p.pending(0), "its line is low");
        p.mmio_write(CLAIM, 4, 40);
        assert!(p.pending(0), "its line is still high");
    }

    #[test]
    fn equals_are_claimed_by_number() {
        let mut p = plic();
        p.mmio_write(4 * 40, 4, 1);
        p.set_level(40, true);
        p.set_level(3, true);
        assert_eq!(p.mmio_read(CLAIM, 4), 3);
    }

    #[test]
    fn the_threshold_holds_the_line_down_but_does_not_hide_the_source() {
        let mut p = plic();
        p.set_level(3, true);
        p.mmio_write(CONTEXT, 4, 1);
        assert!(!p.pending(0));
        assert_eq!(p.mmio_read(CLAIM, 4), 3);
    }

    #[test]
    fn priority_zero_never_interrupts() {
        let mut p = plic();
        p.mmio_write(4 * 3, 4, 0);
        p.set_level(3, true);
        assert!(!p.pending(0));
        assert_eq!(p.mmio_read(CLAIM, 4), 0);
        assert_eq!(p.mmio_read(PENDING, 4), 1 << 3);
    }

    #[test]
    fn a_completion_from_a_context_without_the_source_is_ignored() {
        let mut p = plic();
        p.set_level(3, true);
        assert_eq!(p.mmio_read(CLAIM, 4), 3);
        p.mmio_write(CLAIM + CONTEXT_STRIDE, 4, 3);
        p.mmio_write(CLAIM, 4, 63);
        p.mmio_write(CLAIM, 4, 0xffff_ffff);
        assert!(!p.pending(0));
        p.mmio_write(CLAIM, 4, 3);
        assert!(p.pending(0));
    }

    #[test]
    fn source_zero_does_not_exist() {
        let mut p = plic();
        p.mmio_write(0, 4, 7);
        p.mmio_write(ENABLE, 4, 0xffff_ffff);
        p.set_level(0, true);
        p.set_level(64, true);
        assert!(!p.pending(0));
        assert_eq!(p.mmio_read(0, 4), 0);
        assert_eq!(p.mmio_read(ENABLE, 4), 0xffff_fffe);
    }
}
