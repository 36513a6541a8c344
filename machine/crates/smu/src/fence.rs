// SPDX-License-Identifier: Apache-2.0
//! Fence and drain tickets (REQ: SMU-8).

use serde::{Deserialize, Serialize};

/// Tickets of one kind. One fence is under way at a time; those asked for meanwhile are served together by the next, which
/// starts when it ends: a bounded amount of hardware for any number of tickets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tickets {
    pub issued: u64,
    pub done: u64,
    /// The ticket under way, and the first sequence number that it does not cover.
    active: Option<(u64, u64)>,
}

impl Tickets {
    /// Takes a ticket.
    pub fn issue(&mut self) {
        self.issued += 1;
    }

    /// Ends what is over. `next_seq` is the number that the next accepted request gets, `oldest` the smallest one that is not
    /// over yet.
    pub fn settle(&mut self, next_seq: u64, oldest: Option<u64>) {
        while self.done < self.issued {
            let (ticket, limit) = *self.active.get_or_insert((self.issued, next_seq));
            if oldest.is_some_and(|seq| seq < limit) {
                return;
            }
            self.done = ticket;
            self.active = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: SMU-8
    #[test]
    fn a_fence_waits_for_what_came_before_and_for_nothing_else() {
        let mut t = Tickets::default();
        t.issue();
        t.settle(5, Some(3));
        assert_eq!(t.done, 0);
        t.issue();
        t.settle(9, Some(4)); // still older than the first ticket
        assert_eq!(t.done, 0);
        t.settle(9, Some(5)); // the first is over; the second starts now and covers up to 8
        assert_eq!(t.done, 1);
        t.settle(12, Some(8));
        assert_eq!(t.done, 1);
        t.settle(12, Some(9));
        assert_eq!(t.done, 2);
        t.issue();
        t.settle(12, None);
        assert_eq!(t.done, 3);
    }
}
