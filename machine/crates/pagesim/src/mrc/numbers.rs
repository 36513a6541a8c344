// SPDX-License-Identifier: Apache-2.0
//! Numbers pages 0, 1, 2, ... in the order of their first requests.

use std::collections::HashMap;

use crate::Error;

/// This many recent pages are found without hashing.
const RECENT: usize = 1 << 14;

/// The numbers of pages.
pub struct Numbers {
    numbers: HashMap<u64, u32>,
    recent: Vec<(u64, u32)>,
}

impl Default for Numbers {
    fn default() -> Numbers {
        // No page gets the largest number, so it marks an empty entry.
        Numbers { numbers: HashMap::new(), recent: vec![(0, u32::MAX); RECENT] }
    }
}

impl Numbers {
    /// The number of a page.
    ///
    /// # Errors
    /// There are too many pages.
    #[inline]
    pub fn of(&mut self, page: u64) -> Result<u32, Error> {
        let recent = &self.recent[page as usize % RECENT];
        if recent.0 == page && recent.1 != u32::MAX { Ok(recent.1) } else { self.find(page) }
    }

    fn find(&mut self, page: u64) -> Result<u32, Error> {
        let new = self.numbers.len() as u32;
        let number = *self.numbers.entry(page).or_insert(new);
        // The links of lists of pages need one number as a mark of the end.
        if number >= u32::MAX - 1 {
            return Err(Error::Settings(format!("there are more than {} different pages; sample them", u32::MAX - 1)));
        }
        self.recent[page as usize % RECENT] = (page, number);
        Ok(number)
    }

    /// Different pages so far.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}
