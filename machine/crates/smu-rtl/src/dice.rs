// SPDX-License-Identifier: Apache-2.0
//! Random numbers from a seed.

/// Random number generator xorshift64*.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a random 64-bit number.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.roll() >> 11) % n.max(1)
    }

    /// Returns true with probability 1/`n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
