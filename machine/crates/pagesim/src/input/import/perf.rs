// SPDX-License-Identifier: Apache-2.0
//! Samples of Linux's perf with data addresses: the text of `perf script -F comm,pid,tid,time,event,ip,addr` for a recording of
//! `perf mem record`.
//!
//! A line is `comm pid/tid time: event: addr ip`. The pid and the ip may be absent; numbers of CPUs and periods may be present.
//! The event's name says whether the sample is a load or a store. A sample becomes a data access. If it has an ip, a fetch from
//! there comes before the access.

use trapless_trace::{Grain, Kind, Totals};

use super::sink::About;
use super::text::{decimal, hexadecimal, is_remark, shown, words};
use super::{Format, Input, Sink, Target, only};
use crate::Error;

/// Addresses from this one on belong to the kernel.
const KERNEL: u64 = 1 << 63;
const NANOSECONDS: u64 = 1_000_000_000;

/// The format.
pub struct Perf;

/// The fields of a line.
#[derive(Debug, PartialEq, Eq)]
struct Sample<'a> {
    process: Option<u64>,
    thread: u64,
    /// In nanoseconds.
    time: u64,
    event: &'a [u8],
    address: u64,
    ip: Option<u64>,
}

/// Reads seconds with a fraction, followed by a colon. Returns nanoseconds.
fn time(word: &[u8]) -> Option<u64> {
    let word = word.strip_suffix(b":")?;
    let dot = word.iter().position(|b| *b == b'.')?;
    let (seconds, fraction) = (&word[..dot], &word[dot + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    decimal(seconds)?.checked_mul(NANOSECONDS)?.checked_add(decimal(fraction)? * scale)
}

fn sample(line: &[u8]) -> Option<Sample<'_>> {
    let mut before = words(line).take_while(|word| time(word).is_none()).collect::<Vec<_>>();
    let mut behind = words(line).skip(before.len());
    let time = time(behind.next()?)?;
    // The program's name may contain blanks, so the thread is found from the end.
    if before.last()?.starts_with(b"[") {
        before.pop();
    }
    let ids = before.pop()?;
    let (process, thread) = match ids.iter().position(|b| *b == b'/') {
        Some(slash) => (Some(decimal(&ids[..slash])?), decimal(&ids[slash + 1..])?),
        None => (None, decimal(ids)?),
    };
    let mut event = behind.next()?;
    if decimal(event).is_some() {
        // This word was the period of the sample.
        event = behind.next()?;
    }
    let event = event.strip_suffix(b":")?;
    Some(Sample {
        process,
        thread,
        time,
        event,
        address: hexadecimal(behind.next()?)?,
        ip: behind.next().and_then(hexadecimal),
    })
}

fn kind(event: &[u8]) -> Option<Kind> {
    let has = |word: &[u8]| event.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    if has(b"store") { Some(Kind::Store) } else { has(b"load").then_some(Kind::Load) }
}

impl Format for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn about(&self) -> &'static str {
        "perf script -F comm,pid,tid,time,event,ip,addr after perf mem record (a sample of the accesses)"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["instructions"]
    }

    fn detects(&self, head: &[u8]) -> bool {
        head.split(|b| *b == b'\n').find(|line| !is_remark(line)).is_some_and(|line| sample(line).is_some())
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let note = " (a sample, not all accesses)";
        let about = About { format: self.name(), grain: Grain::Line, clock_hz: NANOSECONDS, note };
        let mut sink = Sink::new(target, &about)?;
        let mut process = None;
        while !sink.full()
            && let Some(line) = input.line()?
        {
            if !is_remark(line)
                && let Err(what) = take(line, &mut sink, &mut process)?
            {
                return Err(input.bad_line(what));
            }
        }
        sink.finish()
    }
}

/// Takes a line. The inner error says what is wrong with the line.
fn take(line: &[u8], sink: &mut Sink, process: &mut Option<u64>) -> Result<Result<(), String>, Error> {
    let Some(sample) = sample(line) else {
        let what = "not a line of perf script -F comm,pid,tid,time,event,ip,addr";
        return Ok(Err(format!("{what}: {}", shown(line))));
    };
    let Some(kind) = kind(sample.event) else {
        let what = "neither a load nor a store by its name; record with perf mem record";
        return Ok(Err(format!("event {} is {what}", shown(sample.event))));
    };
    if let Some(number) = sample.process {
        let first = *process.get_or_insert(number);
        if first != number {
            let what =
                format!("samples of two processes, {first} and {number}; choose one: perf script --pid {first} ...");
            return Ok(Err(what));
        }
    }
    // Not every sample has an address.
    if sample.address == 0 {
        return Ok(Ok(()));
    }
    sink.thread(sample.thread);
    sink.time(sample.time);
    sink.kernel(sample.ip.unwrap_or(sample.address) >= KERNEL);
    if let Some(ip) = sample.ip {
        sink.beside(Kind::Fetch, ip >> Grain::Line.shift())?;
    }
    sink.alone(kind, sample.address >> Grain::Line.shift()).map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_perf_prints_them() {
        let line = b"       my prog  27/28 [003] 62327.972018:      4321 \
            cpu/mem-loads,ldlat=30/P:     7fd96bf96110 55ff5554f1e0 main+0x1 (/x)";
        let expected = Sample {
            process: Some(27),
            thread: 28,
            time: 62_327_972_018_000,
            event: b"cpu/mem-loads,ldlat=30/P",
            address: 0x7fd9_6bf9_6110,
            ip: Some(0x55ff_5554_f1e0),
        };
        assert_eq!(sample(line), Some(expected));
        let short = sample(b"true 27459 62327.972018123: mem-stores:     55ff5554f1e0").unwrap();
        assert_eq!((short.process, short.thread, short.time, short.ip), (None, 27_459, 62_327_972_018_123, None));
        for wrong in
            ["", "true", "true 1 2", "true x 1.5: a-load: 10", "true 1 1.5: a-load 10", "true 1 1.5: a-load: 0x10"]
        {
            assert_eq!(sample(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(
            (kind(b"cpu/mem-stores/P"), kind(b"mem_inst_retired.all_loads:u")),
            (Some(Kind::Store), Some(Kind::Load))
        );
        assert_eq!(kind(b"page-faults"), None);
    }
}
