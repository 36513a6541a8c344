// SPDX-License-Identifier: Apache-2.0
//! A tier of evicted pages that DRAM holds compressed, as Linux's zswap and zram do.

use serde::{Serialize, Serializer};

use crate::links::{End, Links, List};
use crate::pages::{Page, PageId};
use crate::settings::{self, Clean, TierKind, Time, us};

const PAGE_BYTES: u64 = 4096;

/// Counts of the tier. Serialized times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TierStats {
    /// Evicted pages that it stored.
    pub stored: u64,
    /// Evicted pages that it did not store, because they do not compress or there was no room.
    pub rejected: u64,
    /// Pages that left it for DRAM: hits and prefetches.
    pub loaded: u64,
    /// Faults that it served.
    pub hits: u64,
    /// Total time of these faults: waiting for a frame, and decompression.
    #[serde(rename = "hit_ns", serialize_with = "in_ns")]
    pub hit_time: Time,
    /// Pages that it sent to the drive because it was full.
    pub written_back: u64,
    /// Pages that it dropped because it was full and the drive had them.
    pub dropped: u64,
    /// Largest number of frames that it had.
    pub most_frames: u64,
    /// Processor time for compression and decompression.
    #[serde(rename = "work_ns", serialize_with = "in_ns")]
    pub work: Time,
    /// The part of this time in which no process ran.
    #[serde(rename = "work_between_turns_ns", serialize_with = "in_ns")]
    pub between_turns: Time,
}

fn in_ns<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time / 1000)
}

/// A page in the tier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// Compressed size; 0 if the page is not in the tier.
    pub bytes: u32,
    /// Whether the page differs from the drive's copy.
    pub dirty: bool,
}

/// The tier. The rest of the simulator treats a page in the tier as a page on the drive.
#[derive(Debug)]
pub(crate) struct Tier {
    settings: settings::Tier,
    /// Processor time to compress a page.
    pub compress: Time,
    /// Processor time to decompress a page.
    pub decompress: Time,
    /// The slot of each page.
    slots: Vec<Slot>,
    links: Links,
    /// The page that was stored last is at the head.
    list: List,
    bytes: u64,
    /// The frames that the tier uses.
    pub frames: Vec<u32>,
}

impl Tier {
    /// Makes an empty tier.
    pub(crate) fn new(settings: &settings::Tier) -> Tier {
        Tier {
            compress: us(settings.compress_us),
            decompress: us(settings.decompress_us),
            settings: settings.clone(),
            slots: vec![],
            links: Links::default(),
            list: List::default(),
            bytes: 0,
            frames: vec![],
        }
    }

    /// Whether the tier stores evicted pages of this kind.
    pub(crate) fn takes(&self, page: &Page) -> bool {
        page.dirty || self.settings.clean == Clean::Store
    }

    /// The compressed size of a page. `None` if compression gains nothing and the tier does not store such pages.
    pub(crate) fn size(&self, page: &Page) -> Option<u32> {
        let bytes = self.settings.ratio.bytes(page.owner, page.vpn);
        (self.settings.kind == TierKind::Zram || u64::from(bytes) < PAGE_BYTES).then_some(bytes)
    }

    /// The pages to remove to make room for this many bytes, the oldest first. Only pages that `may` leave are removed. `None` if
    /// they are not enough.
    pub(crate) fn too_much(&self, bytes: u32, may: impl Fn(PageId) -> bool) -> Option<Vec<(PageId, Slot)>> {
        let room = u64::from(self.settings.frames) * PAGE_BYTES;
        let (mut held, mut pages) = (self.bytes + u64::from(bytes), vec![]);
        let mut at = self.list.at(End::Tail).filter(|_| self.settings.kind == TierKind::Zswap);
        while held > room {
            let page = PageId(at?);
            at = self.links.before(page.0);
            if may(page) {
                let slot = self.slots[page.index()];
                held -= u64::from(slot.bytes);
                pages.push((page, slot));
            }
        }
        Some(pages)
    }

    /// The number of frames that it needs with `more` bytes added and `less` bytes removed.
    pub(crate) fn needs(&self, more: u64, less: u64) -> usize {
        (self.bytes + more - less).div_ceil(PAGE_BYTES) as usize
    }

    /// Stores a page.
    pub(crate) fn put(&mut self, page: PageId, slot: Slot) {
        if self.slots.len() <= page.index() {
            self.slots.resize(page.index() + 1, Slot::default());
        }
        self.slots[page.index()] = slot;
        self.links.insert(&mut self.list, End::Head, page.0);
        self.bytes += u64::from(slot.bytes);
    }

    /// Takes a page out. Returns `None` if it is not in the tier.
    pub(crate) fn take(&mut self, page: PageId) -> Option<Slot> {
        let slot = std::mem::take(self.slots.get_mut(page.index()).filter(|slot| slot.bytes > 0)?);
        self.links.remove(&mut self.list, page.0);
        self.bytes -= u64::from(slot.bytes);
        Some(slot)
    }

    /// Whether a page is in the tier.
    pub(crate) fn holds(&self, page: PageId) -> bool {
        self.slots.get(page.index()).is_some_and(|slot| slot.bytes > 0)
    }

    /// The pages in the tier.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.links.iter(&self.list).map(PageId)
    }

    /// Checks that bytes and frames add up.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bytes: u64 = self.pages().map(|page| u64::from(self.slots[page.index()].bytes)).sum();
        if bytes != self.bytes
            || self.frames.len() != self.needs(0, 0)
            || self.frames.len() > self.settings.frames as usize
        {
            return Err(format!("tier: {bytes} bytes in {} frames; {} bytes expected", self.frames.len(), self.bytes));
        }
        Ok(())
    }
}
