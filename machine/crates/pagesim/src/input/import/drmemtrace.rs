// SPDX-License-Identifier: Apache-2.0
//! DynamoRIO's offline traces of memory accesses (drmemtrace) in their final form, as raw2trace writes them.
//!
//! A file consists of packed little-endian records of 12 bytes: type (2), size (2), address or value (8). It begins with a header
//! that has the version, and ends with a footer. Most traces have one file for each thread. A file may also have several threads;
//! records between the accesses then give the thread's number. Markers give the time in microseconds now and then.
//!
//! The import merges the threads by these times. The records of a file between two times come before those of other files that
//! begin at a later time. Files with the same time come in the order of their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trapless_trace::{Grain, Kind, Totals};

use super::sink::About;
use super::{Format, Input, Sink, Target};
use crate::Error;

/// Bytes of a record.
const RECORD: usize = 12;
/// Versions of the format that this reads. Version 7 is the newest in August 2026.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=7;
/// Largest number of instructions in a bundle: each byte has the length of one.
const BUNDLE: usize = 8;

/// Types of records.
mod record {
    pub const LOAD: u16 = 0;
    pub const STORE: u16 = 1;
    pub const BUNDLE: u16 = 17;
    pub const THREAD: u16 = 22;
    pub const PROCESS: u16 = 24;
    pub const HEADER: u16 = 25;
    pub const FOOTER: u16 = 26;
    pub const MARKER: u16 = 28;
    pub const MAYBE_FETCHED: u16 = 30;
    /// The first type that no version up to 7 has.
    pub const UNKNOWN: u16 = 50;

    /// Types of fetched instructions: plain ones, jumps, calls and returns; sysenter; jumps that are taken and not taken.
    #[inline]
    pub const fn is_instruction(kind: u16) -> bool {
        matches!(kind, 10..=16 | 31 | 48..=49)
    }
}

/// Kinds of markers. The kind is in the size field of a marker.
mod marker {
    pub const TIME: u16 = 2;
    pub const FILE_TYPE: u16 = 9;
    pub const VERSION: u16 = 12;
    /// The kernel's accesses begin or end, in a system call or in a switch to another thread.
    pub const KERNEL_BEGINS: [u16; 2] = [27, 34];
    pub const KERNEL_ENDS: [u16; 2] = [28, 35];
}

/// Bits of a file's type that make the file useless, and why. The error names the first one that is set.
const REFUSED: [(u64, &str); 6] = [
    (
        0x1 | 0x80 | 0x100 | 0x2000,
        "was filtered while it was recorded, so accesses are missing; record it without -L0_filter",
    ),
    (0x4, "has only instructions, no loads and stores; record it without -instr_only_trace"),
    (0x10, "is of a 32-bit ARM program; only 64-bit programs are read"),
    (0x20, "is of a 32-bit x86 program; only 64-bit programs are read"),
    (0x4000, "has samples of the kernel for use in other traces; it is not the trace of a program"),
    (0x4_0000, "is of a whole system, not of one program"),
];
/// The other known bits: 0x2 unoptimized, 0x8 AArch64, 0x40 x86-64, 0x200 encodings, 0x400 system calls, 0x800 blocking system
/// calls, 0x1000 and 0x8000 the kernel's part, 0x10000 ordered by core, 0x20000 only registers in encodings.
const ACCEPTED: u64 = 0x2 | 0x8 | 0x40 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x8000 | 0x1_0000 | 0x2_0000;

/// The format.
pub struct Drmemtrace;

impl Format for Drmemtrace {
    fn name(&self) -> &'static str {
        "drmemtrace"
    }

    fn about(&self) -> &'static str {
        "DynamoRIO's offline traces: a *.trace file or a drmemtrace.*.dir"
    }

    fn detects(&self, head: &[u8]) -> bool {
        head.first_chunk::<RECORD>().is_some_and(|first| {
            let (kind, size, version) = fields(first);
            kind == record::HEADER && size == 0 && version < 1 << 16
        })
    }

    fn folders(&self) -> bool {
        true
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let about = About { format: "drmemtrace", grain: Grain::Line, clock_hz: 1_000_000, note: "" };
        let mut sink = Sink::new(target, &about)?;
        let mut process = None;
        let mut threads: Vec<Stream> = inputs.into_iter().map(Stream::new).collect();
        let mut next: BinaryHeap<_> = (0..threads.len()).map(|at| Reverse((0, at))).collect();
        while let Some(Reverse((time, at))) = next.pop() {
            if let Some(later) = threads[at].play(time, &mut sink, &mut process)? {
                next.push(Reverse((later, at)));
            }
            if sink.full() {
                break;
            }
        }
        sink.finish()
    }
}

/// Type, size and value of a record.
#[inline]
fn fields(record: &[u8; RECORD]) -> (u16, u16, u64) {
    let [a, b, c, d, value @ ..] = *record;
    (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u64::from_le_bytes(value))
}

/// The state of reading a file.
struct Stream {
    input: Input,
    begun: bool,
    /// The last record was a footer.
    ended: bool,
    thread: Option<u64>,
    kernel: bool,
    /// The address of the last instruction, and the address after its end.
    instruction: Option<(u64, u64)>,
}

impl Stream {
    fn new(input: Input) -> Stream {
        Stream { input, begun: false, ended: false, thread: None, kernel: false, instruction: None }
    }

    fn bad(&self, what: impl Into<String>) -> Error {
        self.input.bad_record::<RECORD>(what)
    }

    /// Takes records up to the first time that is later than `time`. Returns that time, or `None` at the end of the file or when
    /// the trace is full.
    fn play(&mut self, time: u64, sink: &mut Sink, process: &mut Option<u64>) -> Result<Option<u64>, Error> {
        if time > 0 {
            sink.time(time);
        }
        sink.kernel(self.kernel);
        sink.thread(self.thread.unwrap_or(0));
        while !sink.full() {
            let Some(record) = self.input.record::<RECORD>()? else {
                return if self.ended { Ok(None) } else { Err(self.no_footer()) };
            };
            let (kind, size, value) = fields(&record);
            if !self.begun && kind != record::HEADER {
                return Err(self.bad("no header of DynamoRIO's traces; is this a raw file, before its raw2trace?"));
            }
            (self.begun, self.ended) = (true, kind == record::FOOTER);
            match kind {
                _ if record::is_instruction(kind) => self.fetch(sink, value, u64::from(size))?,
                record::LOAD | record::STORE => {
                    self.named()?;
                    let kind = if kind == record::LOAD { Kind::Load } else { Kind::Store };
                    sink.data(kind, value, u64::from(size))?;
                }
                record::MARKER if size == marker::TIME => {
                    if value > time {
                        return Ok(Some(value));
                    }
                }
                record::MARKER => self.marker(size, value, sink)?,
                record::MAYBE_FETCHED => {
                    if self.instruction.is_none_or(|(last, _)| last != value) {
                        self.fetch(sink, value, u64::from(size))?;
                    }
                }
                record::BUNDLE => self.bundle(sink, size, value)?,
                record::THREAD => {
                    self.thread = Some(value);
                    sink.thread(value);
                }
                record::PROCESS => {
                    let first = *process.get_or_insert(value);
                    if first != value {
                        let what = format!("accesses of two processes, {first} and {value}; import each by itself");
                        return Err(self.bad(what));
                    }
                }
                record::HEADER => self.version(value)?,
                // Ignored: prefetches, flushes, encodings, instructions that are not fetched again, and exits of threads.
                ..record::UNKNOWN => {}
                _ => return Err(self.bad(format!("a record of type {kind}, which no version up to 7 has"))),
            }
        }
        Ok(None)
    }

    fn no_footer(&self) -> Error {
        if self.begun {
            self.bad("cut short: the last record is not a footer; is the recording still running?")
        } else {
            self.input.bad("is empty")
        }
    }

    /// An access must come after the record that names its thread.
    #[inline]
    fn named(&self) -> Result<(), Error> {
        if self.thread.is_none() { Err(self.bad("an access before the record that names its thread")) } else { Ok(()) }
    }

    #[inline]
    fn fetch(&mut self, sink: &mut Sink, address: u64, size: u64) -> Result<(), Error> {
        self.named()?;
        self.instruction = Some((address, address.saturating_add(size)));
        // An instruction of size 0 only gives the address of the next access's instruction.
        if size == 0 { Ok(()) } else { sink.instruction(address, size) }
    }

    /// Takes instructions that follow the last one without gaps. Each byte of the value is the length of one.
    fn bundle(&mut self, sink: &mut Sink, count: u16, lengths: u64) -> Result<(), Error> {
        let lengths = lengths.to_le_bytes();
        let Some(lengths) = lengths.get(..usize::from(count)) else {
            return Err(self.bad(format!("a bundle of {count} instructions; {BUNDLE} is the most")));
        };
        for length in lengths {
            let Some((_, address)) = self.instruction else { return Err(self.bad("a bundle before any instruction")) };
            self.fetch(sink, address, u64::from(*length))?;
        }
        Ok(())
    }

    fn version(&self, version: u64) -> Result<(), Error> {
        if VERSIONS.contains(&version) {
            return Ok(());
        }
        let (first, last) = VERSIONS.into_inner();
        let what = format!("version {version} of DynamoRIO's traces; only versions {first} to {last} can be imported");
        Err(self.bad(what))
    }

    fn marker(&mut self, kind: u16, value: u64, sink: &mut Sink) -> Result<(), Error> {
        match kind {
            marker::VERSION => self.version(value),
            marker::FILE_TYPE => {
                let refused = REFUSED.iter().find(|(bits, _)| value & bits != 0);
                let unknown = value & !ACCEPTED;
                match refused {
                    Some((_, why)) => Err(self.bad(format!("this trace {why}"))),
                    None if unknown != 0 => Err(self.bad(format!("a file type that is not known: {unknown:#x}"))),
                    None => Ok(()),
                }
            }
            _ => {
                if marker::KERNEL_BEGINS.contains(&kind) || marker::KERNEL_ENDS.contains(&kind) {
                    self.kernel = marker::KERNEL_BEGINS.contains(&kind);
                    sink.kernel(self.kernel);
                }
                Ok(())
            }
        }
    }
}
