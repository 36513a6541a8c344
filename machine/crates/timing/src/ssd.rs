// SPDX-License-Identifier: Apache-2.0
//! The timing model of an SSD. The completion time of a command depends only on the commands before it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, Picos};

use crate::flash::{Dies, FlashTimes};
use crate::shape::{Shape, scatter};
use crate::{Latency, SsdParams};

/// A command of the drive, as the timing model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsdOp {
    /// Read of `bytes` bytes at byte `at` of the medium.
    Read {
        /// Offset on the medium, bytes.
        at: u64,
        /// Length, bytes.
        bytes: u64,
    },
    /// Write of this number of bytes.
    Write(u64),
    /// Flush.
    Flush,
    /// A command that moves no data.
    NoData,
    /// An admin command.
    Admin,
    /// A command that the controller refuses before it reaches the medium.
    Refused,
}

/// The timing model of a drive: a medium that serves several commands at the same time, then one link that carries the data
/// at a fixed rate. On an idle drive, a 4 KiB command takes exactly the latency of the profile, or the latency drawn at
/// random, from the doorbell write to the completion queue entry.
#[derive(Clone, Debug)]
pub struct SsdTiming {
    params: SsdParams,
    fetch: Cycle,
    read: Shape,
    write: Shape,
    flush: Cycle,
    admin: Cycle,
    clock: ClockHz,
    bytes_per_second: u64,
    flash: Option<FlashTimes>,
    state: SsdState,
}

/// The work of an SSD, and the state of its random number generator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SsdState {
    medium: Medium,
    link: Link,
    /// Seed of the generator; `random` is its state.
    seed: u64,
    random: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Medium {
    /// Units that serve one command each, at any address. The value is the time at which each unit is free again.
    Pool(Vec<Cycle>),
    Flash(Dies),
}

/// The link to the host. It carries the data of one command at a time. The list has its reserved times in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Link(VecDeque<(Cycle, Cycle)>);

impl Link {
    /// Reserves the link for `time` in the first gap of that length from `ready` on, and returns the end. Data that is ready
    /// later does not delay data that is ready earlier. Later calls must not have an earlier `now`.
    fn carry(&mut self, now: Cycle, ready: Cycle, time: Cycle) -> Cycle {
        while self.0.front().is_some_and(|(_, end)| *end <= now) {
            self.0.pop_front();
        }
        let (mut begin, mut place) = (ready, 0);
        for (taken, free) in &self.0 {
            if begin + time <= *taken {
                break;
            }
            begin = begin.max(*free);
            place += 1;
        }
        self.0.insert(place, (begin, begin + time));
        begin + time
    }
}

impl Medium {
    fn count(&self) -> usize {
        match self {
            Medium::Pool(units) => units.len(),
            Medium::Flash(dies) => dies.count(),
        }
    }
}

/// Size of the transfer for which a profile states latencies, bytes.
const REFERENCE_BYTES: u64 = 4096;

impl SsdTiming {
    /// Creates an idle drive. [`crate::Profile`] must have checked `params`. Drives with different numbers draw different
    /// latencies.
    pub fn new(params: &SsdParams, clock: ClockHz, number: u64) -> SsdTiming {
        let cycles = |us: f64| clock.cycles(Picos::from_micros(us));
        let fetch = cycles(params.fetch_us);
        let bytes_per_second = (params.mb_per_s * 1e6) as u64;
        let reference = fetch + transfer(REFERENCE_BYTES, clock, bytes_per_second);
        let shape = |us: f64, table: &[(f64, f64)]| {
            let table = if params.latency == Latency::Shape { table } else { &[] };
            Shape::new(us, table, reference, clock)
        };
        let flash = params.flash.as_ref().map(|flash| FlashTimes::new(flash, clock));
        SsdTiming {
            params: params.clone(),
            fetch,
            read: shape(params.read_us, &params.read_shape),
            write: shape(params.write_us, &params.write_shape),
            flush: cycles(params.flush_us) - fetch,
            admin: cycles(params.admin_us) - fetch,
            clock,
            bytes_per_second,
            state: SsdState {
                medium: at_rest(flash.is_some(), params.channels as usize),
                link: Link::default(),
                seed: params.seed,
                random: scatter(params.seed ^ scatter(number.wrapping_add(1))),
            },
            flash,
        }
    }

    /// Returns the parameters of the drive.
    pub fn params(&self) -> &SsdParams {
        &self.params
    }

    /// Returns the time from a doorbell write until the controller reads the command.
    pub fn fetch_delay(&self) -> Cycle {
        self.fetch
    }

    /// Starts a command that the controller has read at cycle `fetched`. Returns the cycle of its completion. Calls must be in
    /// the order of `fetched`.
    pub fn start(&mut self, fetched: Cycle, op: SsdOp) -> Cycle {
        match op {
            SsdOp::Read { at, bytes } => {
                let SsdState { medium, random, .. } = &mut self.state;
                let media = || self.read.sample(random);
                let read = match (medium, &self.flash) {
                    (Medium::Flash(dies), Some(t)) => dies.read(t, fetched, at, bytes, media),
                    (Medium::Pool(units), _) => serve(units, fetched, media),
                    (Medium::Flash(_), None) => fetched,
                };
                self.carry(fetched, read, bytes)
            }
            SsdOp::Write(bytes) => {
                let SsdState { medium, random, .. } = &mut self.state;
                let mut media = || self.write.sample(random);
                let written = match (medium, &self.flash) {
                    (Medium::Flash(dies), Some(t)) => dies.write(t, fetched, bytes) + media(),
                    (Medium::Pool(units), _) => serve(units, fetched, media),
                    (Medium::Flash(_), None) => fetched,
                };
                self.carry(fetched, written, bytes)
            }
            SsdOp::Flush => match (&mut self.state.medium, &self.flash) {
                (Medium::Flash(dies), Some(t)) => dies.flush(t, fetched) + self.flush,
                _ => fetched + self.flush,
            },
            SsdOp::NoData => fetched + self.flush,
            SsdOp::Admin => fetched + self.admin,
            SsdOp::Refused => fetched + Cycle(1),
        }
    }

    /// Returns the state.
    pub fn save(&self) -> SsdState {
        self.state.clone()
    }

    /// Restores a state. If the medium differs, the SSD starts idle. If the seed differs, its generator starts anew.
    pub fn restore(&mut self, state: &SsdState) {
        let same_kind = std::mem::discriminant(&state.medium) == std::mem::discriminant(&self.state.medium);
        if same_kind && state.medium.count() == self.state.medium.count() {
            let (seed, random) = (self.state.seed, self.state.random);
            self.state.clone_from(state);
            if state.seed != seed {
                (self.state.seed, self.state.random) = (seed, random);
            }
        }
    }

    /// Drops all work after a reset of the controller. The generator keeps its state.
    pub fn reset(&mut self) {
        self.state.medium = at_rest(self.flash.is_some(), self.state.medium.count());
        self.state.link = Link::default();
    }

    /// Carries the data of a command over the link from `ready` on. Returns the time at which the data has arrived.
    fn carry(&mut self, fetched: Cycle, ready: Cycle, bytes: u64) -> Cycle {
        self.state.link.carry(fetched, ready, transfer(bytes, self.clock, self.bytes_per_second))
    }
}

fn at_rest(flash: bool, channels: usize) -> Medium {
    if flash { Medium::Flash(Dies::new(channels)) } else { Medium::Pool(vec![Cycle(0); channels]) }
}

/// Serves a command with the unit that is free first.
fn serve(units: &mut [Cycle], fetched: Cycle, mut media: impl FnMut() -> Cycle) -> Cycle {
    let Some(unit) = units.iter_mut().min() else { return fetched };
    *unit = fetched.max(*unit) + media();
    *unit
}

fn transfer(bytes: u64, clock: ClockHz, bytes_per_second: u64) -> Cycle {
    let cycles = (u128::from(bytes) * u128::from(clock.0)).div_ceil(u128::from(bytes_per_second));
    Cycle(u64::try_from(cycles).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::draw;

    const CLOCK: ClockHz = ClockHz(100_000_000);

    fn drive(name: &str) -> (SsdTiming, SsdParams) {
        let params = SsdParams::load(name).unwrap();
        (SsdTiming::new(&params, CLOCK, 0), params)
    }

    /// Creates a built-in drive with changed parameters.
    fn changed(name: &str, change: impl Fn(&mut SsdParams)) -> SsdTiming {
        let mut params = SsdParams::load(name).unwrap();
        change(&mut params);
        SsdTiming::new(&params, CLOCK, 0)
    }

    fn read(page: u64) -> SsdOp {
        SsdOp::Read { at: page * 4096, bytes: 4096 }
    }

    /// Returns the commands per second with `depth` random reads of `bytes` bytes outstanding at any time.
    fn rate(t: &mut SsdTiming, depth: usize, bytes: u64) -> f64 {
        const COMMANDS: u64 = 20_000;
        let mut outstanding = std::collections::BinaryHeap::new();
        let (mut now, mut random) = (Cycle(0), 99);
        for _ in 0..COMMANDS {
            if outstanding.len() == depth {
                let std::cmp::Reverse(done) = outstanding.pop().unwrap();
                now = now.max(done);
            }
            let at = (draw(&mut random) * 1e6) as u64 * 4096;
            outstanding.push(std::cmp::Reverse(t.start(now + t.fetch_delay(), SsdOp::Read { at, bytes })));
        }
        (COMMANDS - depth as u64) as f64 / (CLOCK.micros(now) / 1e6)
    }

    #[test]
    fn an_idle_drive_takes_the_latency_of_the_profile() {
        for name in SsdParams::BUILT_IN.map(|d| d.0) {
            let mut params = SsdParams::load(name).unwrap();
            params.latency = Latency::Constant;
            let doorbell = Cycle(1000);
            let cycles = |us: f64| doorbell + Cycle((us * 100.0).round() as u64);
            let mut t = SsdTiming::new(&params, CLOCK, 0);
            assert_eq!(t.start(doorbell + t.fetch_delay(), read(3)), cycles(params.read_us), "{name}");
            let mut t = SsdTiming::new(&params, CLOCK, 0);
            assert_eq!(t.start(doorbell + t.fetch_delay(), SsdOp::Write(4096)), cycles(params.write_us), "{name}");
        }
    }

    #[test]
    fn a_state_goes_on_with_its_draws_or_with_another_seed() {
        let shaped = |seed| changed("tlc", |p| p.seed = seed);
        let draws = |t: &mut SsdTiming| {
            (1..9).map(|n| t.start(Cycle(n * 100_000), read(n)).0 - n * 100_000).collect::<Vec<_>>()
        };
        let mut first = shaped(1);
        first.start(Cycle(0), read(0));
        let state = first.save();
        let [mut same, mut other] = [1, 2].map(shaped);
        same.restore(&state);
        other.restore(&state);
        let (here, there) = (draws(&mut first), draws(&mut other));
        assert_eq!(draws(&mut same), here);
        assert_ne!(there, here);
    }

    #[test]
    fn the_link_takes_first_what_is_ready_first() {
        let mut link = Link::default();
        let mut carry = |now, ready| link.carry(Cycle(now), Cycle(ready), Cycle(10)).0;
        assert_eq!(carry(0, 1000), 1010);
        // Data that is ready earlier; then data that does not fit into the gap; then data that is ready at the same time.
        assert_eq!(carry(1, 50), 60);
        assert_eq!(carry(2, 995), 1020);
        assert_eq!(carry(3, 50), 70);
        assert_eq!(carry(4, 45), 80);
        assert_eq!(carry(900, 990), 1000);
    }

    /// A read that waits for a program does not delay reads of other dies.
    #[test]
    fn reads_of_idle_dies_do_not_wait_for_a_program() {
        let two_dies = || changed("tlc", |p| (p.channels, p.latency) = (2, Latency::Constant));
        let alone = two_dies().start(Cycle(0), read(0)).0;
        let took = |before: Option<u64>, page| {
            let mut t = two_dies();
            t.start(Cycle(0), SsdOp::Write(16 << 10));
            before.map(|other| t.start(Cycle(1000), read(other)));
            t.start(Cycle(1000), read(page)).0 - 1000
        };
        for page in (0..256).step_by(4) {
            // The other read may use the same die.
            assert!(took(Some(page + 4), page) <= took(None, page) + alone, "page {page}");
        }
    }

    #[test]
    fn reads_overlap_up_to_the_number_of_channels() {
        let (mut t, params) = drive("optane-m2");
        let done: Vec<_> = (0..=u64::from(params.channels)).map(|_| t.start(Cycle(0), read(0))).collect();
        let (parallel, queued) = done.split_at(params.channels as usize);
        assert!(parallel[parallel.len() - 1].since(parallel[0]) < Cycle(params.channels as u64 * 400));
        assert!(queued[0].0 > 2 * parallel[0].0 - 500, "the next read waits for a channel: {done:?}");
    }

    /// More outstanding commands give a higher rate, until the channels or the link are the limit.
    #[test]
    fn depth_pays_until_the_channels_or_the_link_are_full() {
        for name in ["optane-m2", "z-ssd", "optane-ssd", "optane-pmm"] {
            let (_, params) = drive(name);
            let alone = rate(&mut drive(name).0, 1, 4096);
            assert!((alone * params.read_us / 1e6 - 1.0).abs() < 0.01, "{name}: {alone}");
            let two = rate(&mut drive(name).0, 2, 4096);
            assert!((two / alone - 2.0).abs() < 0.05, "{name}: {two}");
            let link = params.mb_per_s * 1e6 / 4096.0;
            let media = params.read_us - params.fetch_us - 4096.0 / params.mb_per_s;
            let most = (f64::from(params.channels) / media * 1e6).min(link);
            for depth in [64, 256] {
                let many = rate(&mut drive(name).0, depth, 4096);
                assert!(many <= most * 1.01 && many > most * 0.95, "{name}: {many} of {most}");
            }
            let bytes = rate(&mut drive(name).0, 64, 128 << 10) * f64::from(128 << 10);
            assert!(bytes <= params.mb_per_s * 1.01e6 && bytes > params.mb_per_s * 0.95e6, "{name}: {bytes}");
        }
        // Addresses select dies at random, so some dies are idle while others have a queue. With few commands more dies are idle.
        let tlc = |depth| rate(&mut changed("tlc", |p| p.latency = Latency::Constant), depth, 4096);
        let (few, many) = (tlc(32), tlc(512));
        assert!(few > 150_000.0 && few < 330_000.0, "{few}");
        assert!(many > few * 1.2 && many < 25.0 / 64.4e-6, "{many}");
    }

    #[test]
    fn the_time_of_a_command_depends_on_earlier_ones_only() {
        for name in SsdParams::BUILT_IN.map(|d| d.0) {
            let run = |number| {
                let mut t = SsdTiming::new(&SsdParams::load(name).unwrap(), CLOCK, number);
                let op = |i: u64| match i % 7 {
                    0..4 => SsdOp::Read { at: 4096 * (i * i), bytes: 512 * (1 + i % 16) },
                    4 | 5 => SsdOp::Write(4096 * (1 + i % 16)),
                    _ => SsdOp::Flush,
                };
                (0..500).map(|i| t.start(Cycle(i * 37), op(i))).collect::<Vec<_>>()
            };
            assert_eq!(run(0), run(0));
            assert_eq!(run(0) != run(1), name == "tlc", "only random latencies differ between drives: {name}");
        }
    }

    #[test]
    fn a_shape_is_turned_on_by_one_word() {
        let times = |latency| {
            let mut t = changed("optane-ssd", |p| p.latency = latency);
            (0..10_000u64).map(|i| t.start(Cycle(i * 100_000), read(i)).since(Cycle(i * 100_000)).0).collect::<Vec<_>>()
        };
        let constant = times(Latency::Constant);
        assert!(constant.iter().all(|&c| c == constant[0]));
        let mut drawn = times(Latency::Shape);
        drawn.sort_unstable();
        let fetch = 60;
        assert!((drawn[5000] + fetch).abs_diff(899) < 5, "{}", drawn[5000]);
        assert!((drawn[9900] + fetch).abs_diff(997) < 20, "{}", drawn[9900]);
    }

    /// A read waits for a program that has begun, and not for programs that have not.
    #[test]
    fn programs_make_reads_wait() {
        let one_die = |p: &mut SsdParams| {
            p.channels = 1;
            p.latency = Latency::Constant;
        };
        let mut t = changed("tlc", one_die);
        let start = Cycle(1_000_000);
        let alone = t.clone().start(start, read(0)).since(start);
        for _ in 0..8 {
            t.start(start, SsdOp::Write(16 << 10));
        }
        assert_eq!(t.clone().start(start, read(0)).since(start), alone, "no program has begun");
        let first = t.start(start + Cycle(1), read(0)).since(start);
        assert_eq!(first, Cycle(70_000) + alone, "the read waits for one program");
        let second = t.start(start + Cycle(1), read(0)).since(start);
        assert!(second > first && second < first + alone + Cycle(200), "it precedes the other seven programs");
        let flushed = t.start(start + Cycle(2), SsdOp::Flush).since(start);
        assert!(flushed > Cycle(8 * 70_000) && flushed < Cycle(8 * 70_000 + 30_000), "{flushed:?}");
        assert_eq!(t.start(start + Cycle(10_000_000), SsdOp::Flush), start + Cycle(10_001_900), "the buffer is empty");
    }

    #[test]
    fn every_so_many_programs_a_die_erases() {
        let mut t = changed("tlc", |p| {
            p.channels = 1;
            if let Some(flash) = &mut p.flash {
                flash.erase_every = 2;
            }
        });
        for _ in 0..4 {
            t.start(Cycle(0), SsdOp::Write(16 << 10));
        }
        let flushed = t.start(Cycle(1), SsdOp::Flush);
        assert_eq!(flushed, Cycle(4 * 70_000 + 2 * 380_000 + 1_900));
    }

    /// Writes are fast until the buffer is full. Then they are as fast as programs make room.
    #[test]
    fn a_full_buffer_makes_writes_wait() {
        let mut t = changed("tlc", |p| {
            if let Some(flash) = &mut p.flash {
                flash.erase_every = 0;
            }
        });
        let bytes = 64 << 10;
        // The first 500 writes come at once; each of the others comes when the write before it is done.
        let (mut now, mut done) = (Cycle(0), Vec::new());
        for i in 0..2000 {
            now = t.start(if i < 500 { Cycle(0) } else { now }, SsdOp::Write(bytes));
            done.push(now);
        }
        let rate =
            |from: usize, to: usize| bytes as f64 * (to - from) as f64 / CLOCK.micros(done[to].since(done[from]));
        assert!(rate(0, 50) > 1500.0, "{} MB/s at first", rate(0, 50));
        for (from, to) in [(100, 499), (1000, 1999)] {
            let sustained = rate(from, to);
            assert!((sustained / (25.0 * 16384.0 / 700.0) - 1.0).abs() < 0.02, "{sustained} MB/s");
        }
    }

    #[test]
    fn a_reset_forgets_work() {
        for name in ["optane-m2", "tlc"] {
            let mut t = changed(name, |p| p.latency = Latency::Constant);
            let alone = t.clone().start(Cycle(0), read(0));
            for _ in 0..100 {
                t.start(Cycle(0), read(0));
                t.start(Cycle(0), SsdOp::Write(16 << 10));
            }
            t.reset();
            assert_eq!(t.start(Cycle(0), read(0)), alone);
        }
    }

    #[test]
    fn a_saved_state_goes_on_alike() {
        for name in SsdParams::BUILT_IN.map(|d| d.0) {
            let (mut t, params) = drive(name);
            for i in 0..200 {
                t.start(Cycle(i * 100), if i % 3 == 0 { SsdOp::Write(8192) } else { read(i * 5) });
            }
            let mut other = SsdTiming::new(&params, CLOCK, 0);
            other.restore(&t.save());
            for i in 200..400 {
                let op = if i % 3 == 0 { SsdOp::Write(8192) } else { read(i * 5) };
                assert_eq!(t.start(Cycle(i * 100), op), other.start(Cycle(i * 100), op));
            }
        }
    }
}
