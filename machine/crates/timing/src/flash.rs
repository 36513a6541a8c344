// SPDX-License-Identifier: Apache-2.0
//! Flash: dies that serve their reads and programs one after the other, and the write buffer.
//!
//! The address of a page selects its die. A write is done when the buffer has its data. The drive programs the data of the buffer
//! on one die after the other. A read waits for a program that has begun, and for its erase. It does not wait for a program
//! that has not begun.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle, Picos};

use crate::FlashParams;
use crate::shape::scatter;

/// Times and sizes of flash.
#[derive(Clone, Debug)]
pub(crate) struct FlashTimes {
    page_bytes: u64,
    program: Cycle,
    program_bytes: u64,
    erase: Cycle,
    erase_every: u64,
    buffer_bytes: u64,
}

impl FlashTimes {
    pub fn new(p: &FlashParams, clock: ClockHz) -> FlashTimes {
        let kib = |kib: u32| u64::from(kib) << 10;
        FlashTimes {
            page_bytes: kib(p.page_kib),
            program: clock.cycles(Picos::from_micros(p.program_us)),
            program_bytes: kib(p.program_kib),
            erase: clock.cycles(Picos::from_micros(p.erase_us)),
            erase_every: p.erase_every.into(),
            buffer_bytes: kib(p.buffer_kib),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Die {
    /// Time at which the die is free again.
    free: Cycle,
    /// End of the latest program that has begun.
    programmed: Cycle,
    /// Number of programs that have begun.
    programs: u64,
    /// Programs that have not begun: the time of each request.
    waiting: VecDeque<Cycle>,
}

impl Die {
    /// Begins all programs whose start is before `now`.
    fn advance(&mut self, t: &FlashTimes, now: Cycle) {
        while let Some(begin) = self.next_program().filter(|begin| *begin < now) {
            self.waiting.pop_front();
            self.programs += 1;
            let erase = t.erase_every > 0 && self.programs.is_multiple_of(t.erase_every);
            self.free = begin + t.program + if erase { t.erase } else { Cycle(0) };
            self.programmed = self.free;
        }
    }

    /// Returns the time at which the next program can begin.
    fn next_program(&self) -> Option<Cycle> {
        self.waiting.front().map(|asked| self.free.max(*asked))
    }
}

/// The work of the dies, and the content of the buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Dies {
    dies: Vec<Die>,
    /// The die of the next program.
    next: usize,
    /// Bytes in the buffer for which no program was requested yet.
    filled: u64,
}

impl Dies {
    /// Creates idle dies and an empty buffer.
    pub fn new(count: usize) -> Dies {
        Dies { dies: vec![Die::default(); count], next: 0, filled: 0 }
    }

    pub fn count(&self) -> usize {
        self.dies.len()
    }

    /// Reads `bytes` at `at`. Free dies read their pages at the same time; `media` returns the time of each page. Returns the
    /// cycle at which the last page has been read.
    pub fn read(&mut self, t: &FlashTimes, now: Cycle, at: u64, bytes: u64, mut media: impl FnMut() -> Cycle) -> Cycle {
        let mut done = now;
        for page in at / t.page_bytes..=(at + bytes.max(1) - 1) / t.page_bytes {
            let index = scatter(page) % self.dies.len() as u64;
            let die = &mut self.dies[index as usize];
            die.advance(t, now);
            die.free = die.free.max(now) + media();
            done = done.max(die.free);
        }
        done
    }

    /// Takes a write into the buffer. Returns the cycle at which the buffer has room for it, if no other command comes first.
    pub fn write(&mut self, t: &FlashTimes, now: Cycle, bytes: u64) -> Cycle {
        self.dies.iter_mut().for_each(|die| die.advance(t, now));
        let room = if self.held(t, now) + bytes <= t.buffer_bytes { now } else { self.clone().room(t, now, bytes) };
        self.filled += bytes;
        while self.filled >= t.program_bytes {
            self.filled -= t.program_bytes;
            self.program(room);
        }
        room
    }

    /// Lets programs begin and end until the buffer has room for `bytes`, and returns the time when it has. Call it on a copy: in
    /// the drive itself a waiting program must not begin early, because reads may come first.
    fn room(mut self, t: &FlashTimes, mut now: Cycle, bytes: u64) -> Cycle {
        while self.held(t, now) + bytes > t.buffer_bytes {
            let change = |die: &Die| {
                let begins = die.next_program().map(|begin| begin + Cycle(1));
                if die.programmed > now { Some(die.programmed) } else { begins }
            };
            let Some(next) = self.dies.iter().filter_map(change).min() else { break };
            now = next;
            self.dies.iter_mut().for_each(|die| die.advance(t, now));
        }
        now
    }

    /// Starts to program everything in the buffer. Returns the cycle at which this is done, if no read comes first.
    pub fn flush(&mut self, t: &FlashTimes, now: Cycle) -> Cycle {
        if std::mem::take(&mut self.filled) > 0 {
            self.program(now);
        }
        let end = |mut die: Die| {
            die.advance(t, Cycle::NEVER);
            die.programmed
        };
        self.dies.iter().cloned().map(end).max().unwrap_or(now).max(now)
    }

    fn program(&mut self, now: Cycle) {
        self.dies[self.next].waiting.push_back(now);
        self.next = (self.next + 1) % self.dies.len();
    }

    /// Returns the number of bytes in the buffer.
    fn held(&self, t: &FlashTimes, now: Cycle) -> u64 {
        let programs = |die: &Die| die.waiting.len() as u64 + u64::from(die.programmed > now);
        self.filled + t.program_bytes * self.dies.iter().map(programs).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SsdParams;

    #[test]
    fn writes_are_taken_in_order() {
        let params = SsdParams::load("tlc").unwrap().flash.unwrap();
        let t = FlashTimes::new(&params, ClockHz(100_000_000));
        let mut dies = Dies::new(2);
        let sizes = (0..1000).map(|i| if i % 2 == 0 { 100 << 10 } else { 512 });
        let taken: Vec<Cycle> = sizes.map(|bytes| dies.write(&t, Cycle(0), bytes)).collect();
        assert!(taken.is_sorted());
        assert!(taken[0] == Cycle(0) && taken[999] > Cycle(0));
    }

    /// Programs, and writes that wait for room in the buffer, delay no read before they have begun.
    #[test]
    fn waiting_writes_and_flushes_let_reads_pass() {
        let params = SsdParams::load("tlc").unwrap().flash.unwrap();
        let t = FlashTimes::new(&params, ClockHz(100_000_000));
        let media = || Cycle(6000);
        for flush in [false, true] {
            let mut dies = Dies::new(2);
            let room = (0..100).map(|_| dies.write(&t, Cycle(0), 128 << 10)).max().unwrap();
            assert!(room > Cycle(0), "the buffer is full");
            if flush {
                assert!(dies.flush(&t, Cycle(1)) > room);
            }
            // One program per die has begun.
            assert!(dies.read(&t, Cycle(2), 0, 4096, media) <= Cycle(1) + t.program + Cycle(6000));
        }
    }
}
