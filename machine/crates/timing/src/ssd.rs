// SPDX-License-Identifier: Apache-2.0
//! When an SSD is done with a command: a function of the commands before it and nothing else.

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, Picos};

use crate::SsdParams;

/// What the drive is asked to do, as far as its time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsdOp {
    /// Read of this many bytes.
    Read(u64),
    /// Write of this many bytes.
    Write(u64),
    /// Flush, or a command that moves no data.
    Flush,
    /// An admin command.
    Admin,
    /// A command refused before it reaches the medium.
    Refused,
}

/// The drive's timing model: `channels` units that each serve one command at a time, then one link that carries the
/// data at a fixed rate. A 4 KiB command on an idle drive takes exactly the latency of the profile, doorbell to
/// completion queue entry.
#[derive(Clone, Debug)]
pub struct SsdTiming {
    fetch: Cycle,
    read_media: Cycle,
    write_media: Cycle,
    flush: Cycle,
    admin: Cycle,
    clock: ClockHz,
    bytes_per_second: u64,
    /// When each channel is free again.
    channels: Vec<Cycle>,
    /// When the link is free again.
    link: Cycle,
}

/// What an SSD is busy with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SsdState {
    channels: Vec<Cycle>,
    link: Cycle,
}

/// The size that the latencies of a profile are stated for, bytes.
const REFERENCE_BYTES: u64 = 4096;

impl SsdTiming {
    /// A drive at rest. `params` is taken as checked by [`crate::Profile`].
    pub fn new(params: &SsdParams, clock: ClockHz) -> SsdTiming {
        let cycles = |us: f64| clock.cycles(Picos::from_micros(us));
        let fetch = cycles(params.fetch_us);
        let bytes_per_second = ((params.mb_per_s * 1e6) as u64).max(1);
        let mut t = SsdTiming {
            fetch,
            read_media: Cycle(0),
            write_media: Cycle(0),
            flush: cycles(params.flush_us) - fetch,
            admin: cycles(params.admin_us) - fetch,
            clock,
            bytes_per_second,
            channels: vec![Cycle(0); params.channels.max(1) as usize],
            link: Cycle(0),
        };
        let reference = fetch + t.transfer(REFERENCE_BYTES);
        t.read_media = cycles(params.read_us) - reference;
        t.write_media = cycles(params.write_us) - reference;
        t
    }

    /// From a doorbell write to the controller reading the command.
    pub fn fetch_delay(&self) -> Cycle {
        self.fetch
    }

    /// Starts a command that the controller holds from cycle `fetched` on; returns the cycle of its completion.
    pub fn start(&mut self, fetched: Cycle, op: SsdOp) -> Cycle {
        match op {
            SsdOp::Read(bytes) => self.serve(fetched, self.read_media, bytes),
            SsdOp::Write(bytes) => self.serve(fetched, self.write_media, bytes),
            SsdOp::Flush => fetched + self.flush,
            SsdOp::Admin => fetched + self.admin,
            SsdOp::Refused => fetched + Cycle(1),
        }
    }

    /// What it is busy with.
    pub fn save(&self) -> SsdState {
        SsdState { channels: self.channels.clone(), link: self.link }
    }

    /// Goes on from a state; an SSD with another number of channels begins idle.
    pub fn restore(&mut self, state: &SsdState) {
        if state.channels.len() == self.channels.len() {
            self.channels.clone_from(&state.channels);
            self.link = state.link;
        }
    }

    /// Forgets all work: the controller was reset.
    pub fn reset(&mut self) {
        self.channels.fill(Cycle(0));
        self.link = Cycle(0);
    }

    fn serve(&mut self, fetched: Cycle, media: Cycle, bytes: u64) -> Cycle {
        let transfer = self.transfer(bytes);
        let Some(channel) = self.channels.iter_mut().min() else { return fetched + media + transfer };
        let read = fetched.max(*channel) + media;
        *channel = read;
        self.link = self.link.max(read) + transfer;
        self.link
    }

    fn transfer(&self, bytes: u64) -> Cycle {
        let cycles = (u128::from(bytes) * u128::from(self.clock.0)).div_ceil(u128::from(self.bytes_per_second));
        Cycle(u64::try_from(cycles).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    const CLOCK: ClockHz = ClockHz(100_000_000);

    fn drive() -> (SsdTiming, SsdParams) {
        let params = Profile::load("vc707", &[]).unwrap().ssd;
        (SsdTiming::new(&params, CLOCK), params)
    }

    #[test]
    fn an_idle_drive_takes_the_latency_of_the_profile() {
        let (mut t, _) = drive();
        let doorbell = Cycle(1000);
        assert_eq!(t.start(doorbell + t.fetch_delay(), SsdOp::Read(4096)), doorbell + Cycle(2816));
        let (mut t, _) = drive();
        assert_eq!(t.start(doorbell + t.fetch_delay(), SsdOp::Write(4096)), doorbell + Cycle(3000));
    }

    #[test]
    fn reads_overlap_up_to_the_number_of_channels() {
        let (mut t, params) = drive();
        let done: Vec<_> = (0..=params.channels).map(|_| t.start(Cycle(0), SsdOp::Read(512))).collect();
        let (parallel, queued) = done.split_at(params.channels as usize);
        assert!(parallel[parallel.len() - 1].since(parallel[0]) < Cycle(params.channels as u64 * 50));
        assert!(queued[0].0 > 2 * parallel[0].0 - 100, "one more waits for a channel: {done:?}");
    }

    #[test]
    fn the_link_carries_data_at_its_rate_and_no_faster() {
        let (mut t, params) = drive();
        let (bytes, n) = (128 << 10, 70);
        let last = (0..n).map(|_| t.start(Cycle(0), SsdOp::Read(bytes))).max().unwrap();
        let rate = (bytes * n) as f64 / CLOCK.micros(last);
        assert!(rate <= params.mb_per_s && rate > params.mb_per_s * 0.9, "{rate} MB/s");
    }

    #[test]
    fn the_time_of_a_command_depends_on_earlier_ones_only() {
        let run = || {
            let (mut t, _) = drive();
            (0..100).map(|i| t.start(Cycle(i * 37), SsdOp::Read(512 * (1 + i % 16)))).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_reset_forgets_work() {
        let (mut t, params) = drive();
        let alone = t.clone().start(Cycle(0), SsdOp::Read(4096));
        for _ in 0..params.channels * 2 {
            t.start(Cycle(0), SsdOp::Read(4096));
        }
        t.reset();
        assert_eq!(t.start(Cycle(0), SsdOp::Read(4096)), alone);
    }
}
