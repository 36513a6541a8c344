// SPDX-License-Identifier: Apache-2.0
//! Doubly linked lists in an array, like the kernel's `list_head`. An element is in at most one list of its array.

use crate::pages::PageId;

const NONE: u32 = u32::MAX;

/// The links of elements 0, 1, 2, ...
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Neighbours toward the head and toward the tail. An element that is in no list points to itself.
    links: Vec<[u32; 2]>,
}

/// One list. The links of its elements are in a [`Links`].
#[derive(Clone, Copy, Debug)]
pub struct List {
    ends: [u32; 2],
    len: usize,
}

impl Default for List {
    fn default() -> List {
        List { ends: [NONE; 2], len: 0 }
    }
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end with the first element.
    Head,
    /// The end with the last element.
    Tail,
}

impl List {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The element at an end.
    pub fn at(&self, end: End) -> Option<u32> {
        let id = self.ends[end as usize];
        (id != NONE).then_some(id)
    }
}

impl Links {
    fn grow(&mut self, id: u32) {
        let len = self.links.len() as u32;
        self.links.extend((len..=id).map(|new| [new; 2]));
    }

    /// Whether the element is in a list.
    pub fn is_linked(&self, id: u32) -> bool {
        self.links.get(id as usize).is_some_and(|links| *links != [id; 2])
    }

    /// Puts an element, which must be in no list, at an end of a list.
    pub fn insert(&mut self, list: &mut List, end: End, id: u32) {
        self.grow(id);
        debug_assert!(!self.is_linked(id), "element {id} is in a list");
        let (near, far) = (end as usize, 1 - end as usize);
        let old = list.ends[near];
        // The element has no neighbour on the side of this end. Its other neighbour is the old end.
        self.links[id as usize][near] = NONE;
        self.links[id as usize][far] = old;
        match old {
            NONE => list.ends[far] = id,
            old => self.links[old as usize][near] = id,
        }
        list.ends[near] = id;
        list.len += 1;
    }

    /// Takes an element out of its list.
    pub fn remove(&mut self, list: &mut List, id: u32) {
        debug_assert!(self.is_linked(id), "element {id} is in no list");
        let links = self.links[id as usize];
        for side in 0..2 {
            match links[side] {
                NONE => list.ends[side] = links[1 - side],
                neighbour => self.links[neighbour as usize][1 - side] = links[1 - side],
            }
        }
        self.links[id as usize] = [id; 2];
        list.len -= 1;
    }

    /// Moves an element to an end of its list.
    #[inline]
    pub fn move_to(&mut self, list: &mut List, end: End, id: u32) {
        if list.ends[end as usize] != id {
            self.remove(list, id);
            self.insert(list, end, id);
        }
    }

    /// The next element toward the tail.
    pub fn after(&self, id: u32) -> Option<u32> {
        let next = self.links[id as usize][End::Tail as usize];
        (next != NONE).then_some(next)
    }

    /// The next element toward the head.
    pub fn before(&self, id: u32) -> Option<u32> {
        let next = self.links[id as usize][End::Head as usize];
        (next != NONE).then_some(next)
    }

    /// The page nearest to the tail for which `may` holds.
    pub fn last(&self, list: &List, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        std::iter::successors(list.at(End::Tail), |id| self.before(*id)).map(PageId).find(|page| may(*page))
    }

    /// The elements from head to tail.
    pub fn iter<'a>(&'a self, list: &List) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(list.at(End::Head), |id| self.after(*id))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any sequence of insertions, removals and moves leaves the same elements as in two queues.
        #[test]
        fn lists_are_queues(actions in prop::collection::vec((0..5u8, 0..12u32), 0..200)) {
            let (mut links, mut lists, mut naive) = (Links::default(), [List::default(); 2], [const { VecDeque::new() }; 2]);
            for (action, id) in actions {
                let at = naive.iter().position(|queue: &VecDeque<u32>| queue.contains(&id));
                let end = if action % 2 == 0 { End::Head } else { End::Tail };
                if let Some(n) = at {
                    naive[n].retain(|other| *other != id);
                    match action {
                        0..2 => links.move_to(&mut lists[n], end, id),
                        _ => {
                            links.remove(&mut lists[n], id);
                            continue;
                        }
                    }
                    if end == End::Head { naive[n].push_front(id) } else { naive[n].push_back(id) }
                } else {
                    let n = usize::from(action > 2);
                    links.insert(&mut lists[n], end, id);
                    if end == End::Head { naive[n].push_front(id) } else { naive[n].push_back(id) }
                }
            }
            for (list, queue) in lists.iter().zip(&naive) {
                prop_assert!(links.iter(list).eq(queue.iter().copied()));
                prop_assert_eq!(list.len(), queue.len());
                prop_assert_eq!(list.at(End::Tail), queue.back().copied());
                let backward = std::iter::successors(list.at(End::Tail), |id| links.before(*id));
                prop_assert!(backward.eq(queue.iter().rev().copied()));
            }
        }
    }
}
