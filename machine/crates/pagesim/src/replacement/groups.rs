// SPDX-License-Identifier: Apache-2.0
//! Groups of processes. Each group has its own order of replacement and a limit of frames, like `memory.max` of Linux's control
//! groups.

use super::{Registration, Replace, Room, entry};
use crate::pages::{PageId, Pid};
use crate::settings::{Settings, Time};

/// An order of replacement for each group. Group 0 contains the processes that name no group.
///
/// When memory as a whole runs short, the groups give up pages in turn, each in proportion to its number of pages.
pub struct Groups {
    orders: Vec<Box<dyn Replace>>,
    /// The group of each process.
    of: Vec<usize>,
    /// The group of each page that is in memory.
    pages: Vec<u32>,
    /// How far each group is behind the others in giving up pages.
    behind: Vec<i64>,
}

impl Groups {
    /// Makes one order for each group of the configuration.
    pub fn new(order: Registration, settings: &Settings) -> Groups {
        let processes = settings.processes.len();
        let limits = std::iter::once(settings.memory.frames).chain(settings.groups.iter().map(|group| group.frames));
        let orders: Vec<_> = limits.map(|frames| (order.make)(Room { frames: frames as usize, processes })).collect();
        let of = (0..processes).map(|pid| settings.group_of(pid)).collect();
        Groups { behind: vec![0; orders.len()], orders, of, pages: vec![] }
    }

    fn order(&mut self, page: PageId) -> &mut dyn Replace {
        &mut *self.orders[self.pages[page.index()] as usize]
    }
}

impl Replace for Groups {
    fn miss(&mut self, page: PageId) {
        // No order knows a page that was never in memory.
        if let Some(group) = self.pages.get(page.index()) {
            self.orders[*group as usize].miss(page);
        }
    }

    fn insert(&mut self, page: PageId, owner: Pid) {
        let group = self.of[owner];
        *entry(&mut self.pages, page) = group as u32;
        self.orders[group].insert(page, owner);
    }

    #[inline]
    fn touch(&mut self, page: PageId, now: Time) {
        self.order(page).touch(page, now);
    }

    fn first(&mut self, page: PageId, now: Time) {
        self.order(page).first(page, now);
    }

    fn demote(&mut self, page: PageId) {
        self.order(page).demote(page);
    }

    fn remove(&mut self, page: PageId) {
        self.order(page).remove(page);
    }

    fn victim(&mut self, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        let sizes: Vec<_> = self.orders.iter().map(|order| order.len() as i64).collect();
        let mut turns: Vec<_> = (0..self.orders.len()).collect();
        turns.sort_by_key(|group| (-(self.behind[*group] + sizes[*group]), *group));
        let (group, page) = turns.into_iter().find_map(|group| Some((group, self.orders[group].victim(may)?)))?;
        self.behind.iter_mut().zip(&sizes).for_each(|(behind, size)| *behind += size);
        self.behind[group] -= sizes.iter().sum::<i64>();
        Some(page)
    }

    fn victim_of(&mut self, group: usize, may: &dyn Fn(PageId) -> bool) -> Option<PageId> {
        self.orders[group].victim(may)
    }

    fn enter(&mut self, pid: Pid, now: Time) {
        self.orders.iter_mut().for_each(|order| order.enter(pid, now));
    }

    fn leave(&mut self, pid: Pid, now: Time) {
        self.orders.iter_mut().for_each(|order| order.leave(pid, now));
    }

    fn expect(&mut self, waits: &[Time]) {
        self.orders.iter_mut().for_each(|order| order.expect(waits));
    }

    fn len(&self) -> usize {
        self.orders.iter().map(|order| order.len()).sum()
    }
}
