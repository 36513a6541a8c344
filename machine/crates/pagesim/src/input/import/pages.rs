// SPDX-License-Identifier: Apache-2.0
//! Names of objects as page numbers.

use std::collections::HashMap;

/// Numbers below this are page numbers themselves: 41 bits. The others get numbers of 42 bits, of which the simulator can
/// tell lines apart even if several programs share a cache.
const OWN: u64 = 1 << 41;

/// Gives objects pages: the same one for each access to an object, and to no two objects the same.
///
/// A number below 2^41 is the page's number, so that neighbours stay neighbours. A larger number or a name is most likely a
/// hash, whose neighbours mean nothing: its page is 2^41 and more, in an order that scatters objects of about the same time.
#[derive(Default)]
pub struct Pages {
    numbers: HashMap<u64, u64>,
    names: HashMap<Box<[u8]>, u64>,
}

impl Pages {
    /// The page of an object with a number.
    #[inline]
    pub fn number(&mut self, number: u64) -> u64 {
        if number < OWN {
            return number;
        }
        let next = self.next();
        *self.numbers.entry(number).or_insert(next)
    }

    /// The page of an object with a name that is no number.
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

/// Another number of 41 bits for each number of 41 bits: products with odd numbers and shifted sums can be undone.
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
        // Small numbers stay as they are, the others have few neighbours.
        assert_eq!(pages.number(12_345), 12_345);
        let mut large: Vec<u64> = all.into_iter().filter(|page| *page >= OWN).collect();
        large.sort_unstable();
        assert!(large.windows(2).filter(|two| two[1] == two[0] + 1).count() < 30);
        // The same again.
        assert_eq!(pages.number(numbers[1]), OWN | scattered(0));
        assert_eq!(pages.name(&5u64.to_be_bytes()), OWN | scattered(10_000 + 5));
    }

    #[test]
    fn scattering_can_be_undone() {
        let found: HashSet<u64> = (0..1 << 18).flat_map(|n| [n, OWN - 1 - n]).map(scattered).collect();
        assert_eq!(found.len(), 1 << 19);
    }
}
