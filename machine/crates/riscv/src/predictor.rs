// SPDX-License-Identifier: Apache-2.0
//! The branch predictor of detailed timing: two-bit counters selected by address and global history, the last targets of
//! indirect jumps, and a return stack. Addresses are physical, because translated code knows its own physical address.

/// Sizes of a predictor, and the price of a misprediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictorConfig {
    /// Number of branches in the history, and log2 of the number of counters; 1 to 16.
    pub history_bits: u32,
    /// Number of targets of indirect jumps; a power of two.
    pub targets: u32,
    /// Number of return addresses; a power of two.
    pub returns: u32,
    /// Price of a misprediction in cycles.
    pub mispredict_cycles: u32,
}

impl PredictorConfig {
    /// Rounds the sizes to powers of two that fit.
    pub(crate) fn cut(self) -> PredictorConfig {
        PredictorConfig {
            history_bits: self.history_bits.clamp(1, MOST.0.ilog2()),
            targets: self.targets.clamp(1, MOST.1 as u32).next_power_of_two(),
            returns: self.returns.clamp(1, MOST.2 as u32).next_power_of_two(),
            ..self
        }
    }
}

/// Value of a new counter: weakly not taken.
const FRESH: u8 = 1;
/// Maximum numbers of counters, targets and return addresses.
const MOST: (usize, usize, usize) = (1 << 16, 1 << 12, 1 << 6);

/// The predictor of one hart. Translated code uses it as well, by the same rules.
#[repr(C)]
pub struct Predictor {
    pub history: u32,
    /// Index of the return address that was pushed last.
    pub top: u32,
    /// Mispredictions since the last [`crate::Hart::settle`].
    pub missed: u64,
    pub config: PredictorConfig,
    pub returns: [u64; MOST.2],
    pub targets: [u64; MOST.1],
    pub counters: [u8; MOST.0],
}

impl Predictor {
    /// Creates a predictor that has not seen any branch.
    pub fn new(config: PredictorConfig) -> Predictor {
        let config = config.cut();
        let (counters, targets, returns) = ([FRESH; MOST.0], [0; MOST.1], [0; MOST.2]);
        Predictor { history: 0, top: 0, missed: 0, config, returns, targets, counters }
    }

    /// What the address `pa` of an instruction contributes to an index.
    pub fn hash(pa: u64) -> u32 {
        (pa >> 1) as u32
    }

    fn judge(&mut self, right: bool) -> u64 {
        self.missed += u64::from(!right);
        if right { 0 } else { self.config.mispredict_cycles.into() }
    }

    /// Notes a conditional branch at `pa`, `taken` or not. Returns the cycles lost.
    pub fn conditional(&mut self, pa: u64, taken: bool) -> u64 {
        let mask = (1 << self.config.history_bits) - 1;
        let counter = &mut self.counters[((self.history ^ Predictor::hash(pa)) & mask) as usize];
        let right = (*counter >= 2) == taken;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = self.history << 1 | u32::from(taken);
        self.judge(right)
    }

    /// Notes an indirect jump at `pa` to `target`. Returns the cycles lost.
    pub fn indirect(&mut self, pa: u64, target: u64) -> u64 {
        let slot = (Predictor::hash(pa) & (self.config.targets - 1)) as usize;
        let right = std::mem::replace(&mut self.targets[slot], target) == target;
        self.judge(right)
    }

    /// Notes a call that returns to `to`.
    pub fn call(&mut self, to: u64) {
        self.top = (self.top + 1) & (self.config.returns - 1);
        self.returns[self.top as usize] = to;
    }

    /// Notes a return to `target`. Returns the cycles lost.
    pub fn ret(&mut self, target: u64) -> u64 {
        let right = self.returns[self.top as usize] == target;
        self.top = self.top.wrapping_sub(1) & (self.config.returns - 1);
        self.judge(right)
    }
}

/// Whether a register is one in which calls leave their return address (unprivileged specification, jalr hints).
pub fn is_link(register: u8) -> bool {
    matches!(register, 1 | 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictor() -> Predictor {
        Predictor::new(PredictorConfig { history_bits: 8, targets: 16, returns: 4, mispredict_cycles: 10 })
    }

    #[test]
    fn loops_and_patterns_are_learnt() {
        let mut p = predictor();
        let mut lost = |taken| p.conditional(0x8000_0010, taken);
        let first: u64 = (0..64).map(|n| lost(n % 4 != 3)).sum();
        let later: u64 = (0..64).map(|n| lost(n % 4 != 3)).sum();
        assert!(first > 0);
        assert_eq!(later, 0, "a pattern of four fits into a history of eight");
        assert_eq!(p.missed * 10, first);
    }

    #[test]
    fn returns_nest_as_deep_as_the_stack() {
        let mut p = predictor();
        (0..4).for_each(|n| p.call(0x100 * n));
        assert_eq!((0..4).rev().map(|n| p.ret(0x100 * n)).sum::<u64>(), 0);
        (0..5).for_each(|n| p.call(0x100 * n));
        let lost: Vec<u64> = (0..5).rev().map(|n| p.ret(0x100 * n)).collect();
        assert_eq!(lost, [0, 0, 0, 0, 10]);
    }

    #[test]
    fn an_indirect_jump_is_expected_where_it_went() {
        let mut p = predictor();
        let lost: Vec<u64> = [8, 8, 12, 12].into_iter().map(|to| p.indirect(0x40, to)).collect();
        assert_eq!(lost, [10, 0, 10, 0]);
    }
}
