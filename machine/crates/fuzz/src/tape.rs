// SPDX-License-Identifier: Apache-2.0
//! The input of a target: a sequence of numbers, which decide what the target does.

use fastrand::Rng;

/// Maximum number of numbers on a tape.
const LONGEST: usize = 1500;

/// A sequence of numbers. After the last one, all further numbers are zero.
#[derive(Clone, Debug)]
pub struct Tape {
    words: Vec<u64>,
    at: usize,
}

impl Tape {
    /// A tape with these numbers.
    pub fn new(words: Vec<u64>) -> Tape {
        Tape { words, at: 0 }
    }

    /// Whether any number is left.
    pub fn more(&self) -> bool {
        self.at < self.words.len()
    }

    /// The next number.
    pub fn u64(&mut self) -> u64 {
        self.at += 1;
        self.words.get(self.at - 1).copied().unwrap_or(0)
    }

    /// The next number, reduced below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.u64() % limit
    }

    /// One of the values in `of`.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A number that is likely to matter as a size, an address or a bit.
    pub fn number(&mut self, base: u64, size: u64) -> u64 {
        let n = self.u64();
        match n >> 8 & 7 {
            0 => n >> 11,
            1 => n >> 11 & 63,
            2 => (1u64 << (n >> 11 & 63)).wrapping_sub(n >> 20 & 1),
            3 => base.wrapping_add((n >> 11) % size.max(1)),
            4 => base.wrapping_add(((n >> 11) % size.max(1)) & !4095),
            5 => base.wrapping_add(size).wrapping_sub(n >> 11 & 4095),
            6 => u64::MAX - (n >> 11 & 15),
            _ => 0,
        }
    }

    /// Size of an access to a register.
    pub fn size(&mut self) -> u32 {
        self.one(&[4, 4, 8, 1, 2])
    }
}

/// The tape of a seed.
pub fn random(seed: u64) -> Vec<u64> {
    let mut rng = Rng::with_seed(seed);
    let length = rng.usize(..rng.clone().usize(2..LONGEST));
    (0..length).map(|_| rng.u64(..)).collect()
}

/// The shortest and simplest tape found for which `fails` holds. It must hold for `words`; it is called at most `tries` times.
pub fn minimal(mut words: Vec<u64>, mut tries: usize, mut fails: impl FnMut(&[u64]) -> bool) -> Vec<u64> {
    let mut size = words.len().div_ceil(2);
    while size > 0 && tries > 0 {
        let mut from = 0;
        while from < words.len() && tries > 0 {
            let mut shorter = words.clone();
            shorter.drain(from..(from + size).min(words.len()));
            tries -= 1;
            if fails(&shorter) {
                words = shorter;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    for at in 0..words.len() {
        if words[at] != 0 && tries > 0 {
            let mut plainer = words.clone();
            plainer[at] = 0;
            tries -= 1;
            if fails(&plainer) {
                words = plainer;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_tape_becomes_as_short_as_it_can() {
        let words: Vec<u64> = (0..1000).collect();
        let found = minimal(words, 10_000, |t| t.contains(&371) && t.iter().any(|w| *w > 900));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], 371);
    }

    #[test]
    fn a_seed_is_a_tape() {
        assert_eq!(random(7), random(7));
        assert_ne!(random(7), random(8));
    }
}
