// SPDX-License-Identifier: Apache-2.0
//! The page that was used after each page (a Markov table with one successor: Joseph and Grunwald, "Prefetching using Markov
//! Predictors", ISCA 1997).

use crate::pages::PageId;

/// Least confidence for prefetching a follower.
const ENOUGH: u8 = 1;
/// Maximum confidence.
const MOST: u8 = 3;

/// The follower of each page.
#[derive(Debug, Default)]
pub struct Followers {
    followers: Vec<Option<(PageId, u8)>>,
    changes: u64,
}

impl Followers {
    /// Notes that `page` was wanted after `before`.
    pub fn follow(&mut self, before: PageId, page: PageId) {
        self.changes += 1;
        if self.followers.len() <= before.index() {
            self.followers.resize(before.index() + 1, None);
        }
        let entry = &mut self.followers[before.index()];
        match entry {
            Some((known, confidence)) if *known == page => *confidence = (*confidence + 1).min(MOST),
            Some((_, confidence)) if *confidence > 0 => *confidence -= 1,
            _ => *entry = Some((page, 0)),
        }
    }

    /// Returns at most `most` pages that are likely to be wanted after `page`, in this order.
    pub fn of(&self, page: PageId, most: u32) -> Vec<PageId> {
        let next = |page: &PageId| {
            let follower = self.followers.get(page.index()).copied().flatten();
            follower.filter(|(_, confidence)| *confidence >= ENOUGH).map(|(page, _)| page)
        };
        std::iter::successors(next(&page), next).take(most as usize).collect()
    }

    /// Size of the table: one place for each page up to the last one with a follower.
    pub fn len(&self) -> usize {
        self.followers.len()
    }

    /// Changes so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_follows_twice_is_believed() {
        let mut followers = Followers::default();
        let row = |followers: &mut Followers, pages: &[u32]| {
            pages.windows(2).for_each(|pair| followers.follow(PageId(pair[0]), PageId(pair[1])));
        };
        let of = |followers: &Followers, most| followers.of(PageId(1), most).iter().map(|p| p.0).collect::<Vec<_>>();
        row(&mut followers, &[1, 2, 3, 4]);
        assert!(of(&followers, 4).is_empty());
        row(&mut followers, &[1, 2, 3, 4]);
        assert_eq!(of(&followers, 4), [2, 3, 4]);
        assert_eq!(of(&followers, 2), [2, 3]);
        // After one other follower, the old one is not prefetched, but also not forgotten.
        row(&mut followers, &[2, 9]);
        assert_eq!(of(&followers, 4), [2]);
        row(&mut followers, &[2, 3]);
        assert_eq!(of(&followers, 4), [2, 3, 4]);
    }
}
