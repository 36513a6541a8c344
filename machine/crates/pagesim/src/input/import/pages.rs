// SPDX-License-Identifier: Apache-2.0
//! Gives objects page numbers.

use std::collections::HashMap;

/// Object numbers below this (41 bits) are used as page numbers. Other objects get page numbers of 42 bits. These are small
/// enough that the simulator can still tell the lines of several programs apart when they share a cache.
const OWN: u64 = 1 << 41;

/// Gives each object a page: always the same one for an object, and different ones for different objects.
///
/// A number below 2^41 is used as the page's number, so that neighbours stay neighbours. A larger number or a name is most likely
/// a hash, whose neighbours mean nothing. It gets a page number of 2^41 or more, in an order that scatters objects that first
/// appear at about the same time.
#[derive(Default)]
pub struct Pages {
    numbers: HashMap<u64, u64>,
    names: HashMap<Box<[u8]>, u64>,
}

impl Pages {
    /// The page of an object that has a number.
    #[inline]
    pub fn number(&mut self, number: u64) -> u64 {
        if number < OWN {
            return number;
        }
        let next = self.next();
        *self.numbers.entry(number).or_insert(next)
    }

    /// The page of an object whose name is not a number.
    pub fn name(&mut self, name: &[u8]) -> u64 {
        if let Some(page) = self.names.get(name) {
            return *page;
        }
        let next = self.next();
        self.names.insert(name.into(), next);
        next
    }

    fn next(&self) -> u64 {
        OWN | scattered((self.numbers.len() + self.names.len()) as u64)
    }
}

/// Maps each number of 41 bits to another one, one to one: products with odd numbers and shifted sums can be inverted.
fn scattered(mut n: u64) -> u64 {
    for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9] {
        n = n.wrapping_mul(factor) & (OWN - 1);
        n ^= n >> 20;
    }
    n
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_objects_share_a_page() {
        let mut pages = Pages::default();
        let numbers = (0..20_000u64).map(|n| n * 7 + ((n % 2) << 62)).collect::<Vec<_>>();
        let mut all: HashSet<u64> = numbers.iter().map(|n| pages.number(*n)).collect();
        all.extend((0..20_000u64).map(|n| pages.name(&n.to_be_bytes())));
        assert_eq!(all.len(), 40_000);
        assert!(all.iter().all(|page| *page < 1 << 42));
        // Small numbers stay as they are. The others have few neighbours.
        assert_eq!(pages.number(12_345), 12_345);
        let mut large: Vec<u64> = all.into_iter().filter(|page| *page >= OWN).collect();
        large.sort_unstable();
        assert!(large.windows(2).filter(|two| two[1] == two[0] + 1).count() < 30);
        // Asking again gives the same pages.
        assert_eq!(pages.number(numbers[1]), OWN | scattered(0));
        assert_eq!(pages.name(&5u64.to_be_bytes()), OWN | scattered(10_000 + 5));
    }

    #[test]
    fn scattering_can_be_undone() {
        let found: HashSet<u64> = (0..1 << 18).flat_map(|n| [n, OWN - 1 - n]).map(scattered).collect();
        assert_eq!(found.len(), 1 << 19);
    }
}
