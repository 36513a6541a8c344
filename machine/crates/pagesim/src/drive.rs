// SPDX-License-Identifier: Apache-2.0
//! The drives, which serve faults, prefetches and writes together.

use serde::Serialize;
use trapless_memory::{ClockHz, Cycle};
use trapless_timing::{SsdOp, SsdParams, SsdTiming};

use crate::Error;
use crate::pages::PageId;
use crate::settings::{Ahead, Device, TICKS, Time};

const PAGE_BYTES: u64 = 4096;

/// Counts of one drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveStats {
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub writes: u64,
}

/// All drives. Pages are striped over them.
#[derive(Debug)]
pub(crate) struct Drives {
    drives: Vec<(Drive, DriveStats)>,
    stripe: u64,
}

impl Drives {
    /// The drives of a configuration, at rest.
    ///
    /// # Errors
    /// No drive has this name, or a value is out of range.
    pub(crate) fn new(device: &Device) -> Result<Drives, Error> {
        let params = device.params()?;
        let drive = |number| (Drive::new(&params, device.ahead, number), DriveStats::default());
        Ok(Drives { drives: (0..u64::from(device.drives)).map(drive).collect(), stripe: device.stripe_pages.into() })
    }

    /// The parameters that all drives have.
    pub(crate) fn params(&self) -> &SsdParams {
        self.drives[0].0.params()
    }

    /// Begins to read a page. Returns the time at which the read is over. `awaited`: a process waits for the page.
    pub(crate) fn read(&mut self, now: Time, page: PageId, awaited: bool) -> Time {
        let ((drive, stats), at) = self.place(page);
        stats.reads += 1;
        drive.start(now, SsdOp::Read { at, bytes: PAGE_BYTES }, awaited)
    }

    /// Begins to write a page. Returns the time at which the write is over.
    pub(crate) fn write(&mut self, now: Time, page: PageId) -> Time {
        let ((drive, stats), _) = self.place(page);
        stats.writes += 1;
        drive.start(now, SsdOp::Write(PAGE_BYTES), false)
    }

    /// Counts of each drive.
    pub(crate) fn stats(&self) -> Vec<DriveStats> {
        self.drives.iter().map(|drive| drive.1).collect()
    }

    /// The drive that holds a page, and the page's first byte on it.
    fn place(&mut self, page: PageId) -> (&mut (Drive, DriveStats), u64) {
        let (page, count) = (u64::from(page.0), self.drives.len() as u64);
        let stripe = page / self.stripe;
        let at = stripe / count * self.stripe + page % self.stripe;
        (&mut self.drives[(stripe % count) as usize], at * PAGE_BYTES)
    }
}

/// The state of one drive.
#[derive(Debug)]
struct Drive {
    ahead: Ahead,
    /// All commands.
    all: SsdTiming,
    /// The commands that a process waits for, timed as if there were no others.
    demand: SsdTiming,
    /// A drive at rest.
    idle: SsdTiming,
}

impl Drive {
    fn new(params: &SsdParams, ahead: Ahead, number: u64) -> Drive {
        let idle = SsdTiming::new(params, ClockHz(TICKS), number);
        Drive { ahead, all: idle.clone(), demand: idle.clone(), idle }
    }

    fn params(&self) -> &SsdParams {
        self.all.params()
    }

    /// Begins a command. Returns the time at which it is over. `awaited`: a process waits for it.
    fn start(&mut self, now: Time, op: SsdOp, awaited: bool) -> Time {
        let fetched = Cycle(now) + self.all.fetch_delay();
        match (self.ahead, awaited) {
            (Ahead::Queued, _) | (Ahead::Free, true) | (Ahead::BehindDemand, false) => self.all.start(fetched, op).0,
            (Ahead::Free, false) => self.idle.clone().start(fetched, op).0,
            (Ahead::BehindDemand, true) => {
                self.all.start(fetched, op);
                self.demand.start(fetched, op).0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time (us) at which an awaited read ends, if a hundred reads that nobody waits for were started before it.
    fn behind_a_hundred(ahead: Ahead) -> f64 {
        let params = Device { channels: Some(1), ..Device::default() }.params().unwrap();
        let mut drive = Drive::new(&params, ahead, 0);
        for at in 0..100 {
            drive.start(0, SsdOp::Read { at: at * 4096, bytes: 4096 }, false);
        }
        drive.start(0, SsdOp::Read { at: 0, bytes: 4096 }, true) as f64 / 1e6
    }

    #[test]
    fn what_is_read_ahead_is_in_the_way_or_not() {
        let alone = behind_a_hundred(Ahead::Free);
        assert!((behind_a_hundred(Ahead::BehindDemand) - alone).abs() < 1e-9);
        assert!(behind_a_hundred(Ahead::Queued) > 50.0 * alone);
    }

    #[test]
    fn awaited_reads_wait_for_each_other_and_hold_up_the_rest() {
        let params = Device { channels: Some(1), ..Device::default() }.params().unwrap();
        for ahead in [Ahead::Queued, Ahead::BehindDemand, Ahead::Free] {
            let mut drive = Drive::new(&params, ahead, 0);
            let read = SsdOp::Read { at: 0, bytes: 4096 };
            let first = drive.start(0, read, true);
            assert!(drive.start(0, read, true) > first);
            assert_eq!(drive.start(0, read, false) > first, ahead != Ahead::Free);
        }
    }

    /// Three drives with stripes of two pages: pages 0 and 1 are on the first drive, 2 and 3 on the second, 4 and 5 on the third,
    /// and 6 and 7 on the first again, after 0 and 1.
    #[test]
    fn pages_are_on_the_drives_in_turn() {
        let device = Device { drives: 3, stripe_pages: 2, channels: Some(1), ..Device::default() };
        let mut drives = Drives::new(&device).unwrap();
        assert_eq!(drives.place(PageId(7)).1, 3 * 4096);
        let mut read = |page| drives.read(0, PageId(page), true);
        let alone = read(0);
        assert_eq!([read(2), read(5)], [alone, alone]);
        assert!(read(6) > alone);
        drives.write(0, PageId(3));
        let found: Vec<_> = drives.stats().iter().map(|stats| (stats.reads, stats.writes)).collect();
        assert_eq!(found, [(2, 0), (1, 1), (1, 0)]);
    }
}
