// SPDX-License-Identifier: Apache-2.0
//! Stores the accesses of any format in a trace.

use std::collections::HashMap;
use std::path::PathBuf;

use trapless_trace::{Grain, HARTS, Header, Kind, Moment, Place, Totals, Writer};

use super::{Part, Target, whole};
use crate::Error;

/// Bytes of a name that the header of a trace keeps.
const NAME: usize = 900;

/// Content of a trace's header.
pub struct About {
    /// Name of the format.
    pub format: &'static str,
    /// Size of the blocks.
    pub grain: Grain,
    /// Ticks of [`Sink::time`] per second; 0 if the time is not stored.
    pub clock_hz: u64,
    /// What readers of the trace should know; may be empty.
    pub note: &'static str,
}

/// Stores accesses. Each thread becomes a hart.
pub struct Sink {
    from: PathBuf,
    to: PathBuf,
    writer: Writer,
    part: Part,
    shift: u32,
    /// Instructions to count for each access, if the format has no instructions.
    each: u64,
    /// Accesses so far, stored or skipped.
    accesses: u64,
    /// Whether accesses of the user, and of the kernel, were stored.
    stored: [bool; 2],
    /// The thread of the next accesses, and the hart and thread of the last access.
    thread: u64,
    last: Option<(u64, u16)>,
    harts: HashMap<u64, u16>,
    /// Stored instructions of each hart.
    instructions: Vec<u64>,
    kernel: bool,
    first: Option<u64>,
    now: u64,
}

/// The beginning of a name, cut at the end of a character.
pub fn beginning(name: &str) -> &str {
    let mut end = name.len().min(NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

impl Sink {
    /// Begins a trace.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn new(target: Target, about: &About) -> Result<Sink, Error> {
        let Target { from, to, file, part, options } = target;
        let name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy();
        let (format, version) = (about.format, env!("CARGO_PKG_VERSION"));
        let header = Header {
            grain: about.grain,
            harts: HARTS,
            kernel: false,
            clock_hz: about.clock_hz,
            profile: format.to_owned(),
            writer: format!("trapless-pagesim {version}, {format}{}: {}", about.note, beginning(&name)),
        };
        let writer = Writer::new(file, header).map_err(Error::io(&to))?;
        Ok(Sink {
            from,
            to,
            writer,
            part,
            shift: about.grain.shift(),
            each: options.instructions.unwrap_or(1),
            accesses: 0,
            stored: [false; 2],
            thread: 0,
            last: None,
            harts: HashMap::new(),
            instructions: Vec::new(),
            kernel: false,
            first: None,
            now: 0,
        })
    }

    /// Whether the limit of stored accesses is reached.
    #[inline]
    pub fn full(&self) -> bool {
        self.accesses.saturating_sub(self.part.skip) >= self.part.limit
    }

    /// Skips this many accesses if all of them come before the stored part. Returns whether it did.
    pub fn leaves_out(&mut self, accesses: u64) -> bool {
        let all = self.accesses.saturating_add(accesses);
        let passed = all <= self.part.skip;
        if passed {
            self.accesses = all;
        }
        passed
    }

    /// Sets the thread of the next accesses. The thread is 0 until this is called.
    #[inline]
    pub fn thread(&mut self, thread: u64) {
        self.thread = thread;
    }

    /// Sets whether the next accesses are the kernel's.
    pub fn kernel(&mut self, kernel: bool) {
        self.kernel = kernel;
    }

    /// Sets the time of the next accesses, in ticks since an arbitrary moment. Time never goes back.
    pub fn time(&mut self, ticks: u64) {
        let first = *self.first.get_or_insert(ticks);
        self.now = self.now.max(ticks.saturating_sub(first));
    }

    /// Stores the fetch of an instruction, which also retires.
    ///
    /// # Errors
    /// The trace cannot be written, or there are too many threads.
    #[inline]
    pub fn instruction(&mut self, address: u64, size: u64) -> Result<(), Error> {
        let hart = self.hart()?;
        self.bytes(hart, Kind::Fetch, address, size, 0)?;
        self.instructions[usize::from(hart)] += u64::from(self.accesses > self.part.skip);
        Ok(())
    }

    /// Stores a load or store of the instruction that was fetched last. An access that touches several blocks counts in each.
    ///
    /// # Errors
    /// The trace cannot be written, or there are too many threads.
    #[inline]
    pub fn data(&mut self, kind: Kind, address: u64, size: u64) -> Result<(), Error> {
        let hart = self.hart()?;
        self.bytes(hart, kind, address, size, 1)
    }

    #[inline]
    fn bytes(&mut self, hart: u16, kind: Kind, address: u64, size: u64, counted: u64) -> Result<(), Error> {
        let last = address.saturating_add(size.max(1) - 1);
        for block in address >> self.shift..=last >> self.shift {
            self.block(hart, kind, block, counted)?;
        }
        Ok(())
    }

    /// Stores an access in a format without instructions. `block` is the number of its block.
    ///
    /// # Errors
    /// The trace cannot be written, or there are too many threads.
    #[inline]
    pub fn alone(&mut self, kind: Kind, block: u64) -> Result<(), Error> {
        let hart = self.hart()?;
        self.block(hart, kind, block, 0)?;
        let instructions = &mut self.instructions[usize::from(hart)];
        *instructions = instructions.wrapping_add(if self.accesses > self.part.skip { self.each } else { 0 });
        Ok(())
    }

    /// Stores an access that belongs to the next one, in a format without instructions.
    ///
    /// # Errors
    /// The trace cannot be written, or there are too many threads.
    pub fn beside(&mut self, kind: Kind, block: u64) -> Result<(), Error> {
        let hart = self.hart()?;
        self.block(hart, kind, block, 0)
    }

    #[inline]
    fn block(&mut self, hart: u16, kind: Kind, block: u64, counted: u64) -> Result<(), Error> {
        self.accesses += 1;
        if self.accesses <= self.part.skip {
            return Ok(());
        }
        self.stored[usize::from(self.kernel)] = true;
        let place = Place { space: 0, kernel: self.kernel, block };
        if !self.writer.stays(hart, kind, place) {
            let instructions = self.instructions[usize::from(hart)].saturating_sub(counted);
            let at = Moment { instructions, cycle: self.now };
            self.writer.moves(hart, kind, place, at).map_err(Error::io(&self.to))?;
        }
        Ok(())
    }

    /// The hart of the current thread.
    #[inline]
    fn hart(&mut self) -> Result<u16, Error> {
        match self.last {
            Some((thread, hart)) if thread == self.thread => Ok(hart),
            _ => self.other_hart(),
        }
    }

    fn other_hart(&mut self) -> Result<u16, Error> {
        let next = self.instructions.len();
        let hart = match self.harts.get(&self.thread) {
            Some(hart) => *hart,
            None if next == usize::from(HARTS) => {
                let what =
                    format!("accesses of more than {HARTS} threads, the most that a stored trace can have; divide it");
                return Err(whole(&self.from, what));
            }
            None => {
                self.instructions.push(0);
                self.harts.insert(self.thread, next as u16);
                next as u16
            }
        };
        self.last = Some((self.thread, hart));
        Ok(hart)
    }

    /// Completes the trace. Returns the totals of its content.
    ///
    /// # Errors
    /// The trace has no access, or none of the user's, or cannot be written.
    pub fn finish(mut self) -> Result<Totals, Error> {
        let [user, kernel] = self.stored;
        if !user {
            let what = "all its accesses are the kernel's; a trace for the simulator needs some of the program's own";
            return Err(if kernel { whole(&self.from, what.to_owned()) } else { Error::Empty { path: self.from } });
        }
        for (hart, instructions) in (0..).zip(&self.instructions) {
            let end = Moment { instructions: *instructions, cycle: self.now };
            self.writer.close(hart, end).map_err(Error::io(&self.to))?;
        }
        self.writer.finish_as(self.instructions.len() as u16, kernel).map_err(Error::io(&self.to))
    }
}
