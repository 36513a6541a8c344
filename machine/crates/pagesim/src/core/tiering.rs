// SPDX-License-Identifier: Apache-2.0
//! Moves pages between DRAM, the compressed tier and the drive.

use super::Core;
use crate::pages::{PageId, Place};
use crate::settings::Time;
use crate::tier::Slot;

impl Core {
    /// Whether the tier has a page.
    pub(super) fn is_stored(&self, page: PageId) -> bool {
        self.tier.as_ref().is_some_and(|tier| tier.holds(page))
    }

    /// Stores an evicted page in the tier, which may send other pages to the drive to make room. Returns whether it stored the
    /// page. If it did, the page's frame is free, or the tier uses it.
    pub(super) fn store_evicted(&mut self, page: PageId) -> bool {
        let (pages, Some(tier)) = (&self.pages, &self.tier) else { return false };
        let entry = &pages[page];
        if !tier.takes(entry) {
            return false;
        }
        let compress = tier.compress;
        let Some(bytes) = tier.size(entry) else {
            self.stats.tier.rejected += 1;
            self.work(compress);
            return false;
        };
        let (frame, slot) = (entry.frame, Slot { bytes, dirty: entry.dirty });
        let gone = tier.too_much(bytes, |page| !pages[page].awaited).filter(|gone| {
            let less = gone.iter().map(|(_, slot)| u64::from(slot.bytes)).sum();
            // A page that must be written needs a frame until the write is over.
            let written = gone.iter().filter(|(_, slot)| slot.dirty).count();
            tier.needs(bytes.into(), less) + written <= tier.frames.len() + self.free.len() + 1
        });
        let Some(gone) = gone else {
            self.stats.tier.rejected += 1;
            return false;
        };
        self.stats.tier.stored += 1;
        self.work(compress);
        self.pages[page].place = Place::Device;
        self.free.push(frame);
        if let Some(tier) = &mut self.tier {
            for (old, _) in &gone {
                tier.take(*old);
            }
            tier.put(page, slot);
        }
        self.fit_tier();
        for (old, slot) in gone {
            self.send_on(old, slot);
        }
        true
    }

    /// Handles a page that the full tier has evicted: writes it to the drive if the drive does not have it.
    fn send_on(&mut self, page: PageId, slot: Slot) {
        if !slot.dirty {
            self.stats.tier.dropped += 1;
        } else if let Some(frame) = self.free.pop() {
            self.pages[page].frame = frame;
            let group = self.group(page);
            self.groups[group].held += 1;
            self.stats.tier.written_back += 1;
            self.work(self.tier.as_ref().map_or(0, |tier| tier.decompress));
            self.write(page);
        }
    }

    /// Takes a page out of the tier. Returns whether it differs from the page on the drive, or `None` if the tier does not hold
    /// it.
    pub(super) fn unpack(&mut self, page: PageId) -> Option<bool> {
        let tier = self.tier.as_mut()?;
        let (slot, decompress) = (tier.take(page)?, tier.decompress);
        self.fit_tier();
        self.stats.tier.loaded += 1;
        self.work(decompress);
        Some(slot.dirty)
    }

    /// Gives the tier the frames that it needs, and takes back those that it no longer needs.
    fn fit_tier(&mut self) {
        let Some(tier) = &mut self.tier else { return };
        let needs = tier.needs(0, 0);
        while tier.frames.len() > needs
            && let Some(frame) = tier.frames.pop()
        {
            self.free.push(frame);
        }
        while tier.frames.len() < needs
            && let Some(frame) = self.free.pop()
        {
            tier.frames.push(frame);
        }
        self.stats.tier.most_frames = self.stats.tier.most_frames.max(needs as u64);
    }

    /// Adds time in which the processor compresses or decompresses. It counts for the running process, if there is one.
    fn work(&mut self, time: Time) {
        self.now += time;
        self.stats.tier.work += time;
        if self.running.is_none() {
            self.stats.tier.between_turns += time;
            self.cpu_stats().between_turns += time;
        }
    }
}
