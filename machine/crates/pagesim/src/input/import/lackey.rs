// SPDX-License-Identifier: Apache-2.0
//! Converts the text of valgrind's tool lackey (`--trace-mem=yes`) into stored traces.
//!
//! Lackey prints one line for each access. The line of an instruction begins with `I  ADDRESS,SIZE`; the lines of its data
//! accesses follow and begin with ` L` (load), ` S` (store) or ` M` (load and store of one place). The address is hexadecimal,
//! the size decimal. Valgrind's own lines begin with `==`, `--` or `**`.

use std::fs::File;
use std::path::{Path, PathBuf};

use trapless_trace::{Grain, Header, Kind, Moment, Place, Totals, Writer};

use super::sink::beginning;
use super::{Format, Input, Part, Target, only};
use crate::Error;
use crate::input::LINE_SHIFT;

/// No line of lackey is longer.
const LONGEST_LINE: usize = 1 << 16;

/// The format.
pub(super) struct Lackey;

impl Format for Lackey {
    fn name(&self) -> &'static str {
        "lackey"
    }

    fn about(&self) -> &'static str {
        "the text of valgrind --tool=lackey --trace-mem=yes"
    }

    fn detects(&self, head: &[u8]) -> bool {
        [b"==", b"--", b"**"].iter().any(|mark| head.starts_with(*mark)) || parse(head).is_some()
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let Target { from, to, file, part, .. } = target;
        let name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy();
        let mut recorder = Recorder::new(&from, &to, file, &name, part)?;
        while !recorder.full() {
            let text = input.bytes()?;
            if text.is_empty() {
                break;
            }
            recorder.feed(text)?;
        }
        recorder.finish()
    }
}

/// Converts lackey's text piece by piece into a stored trace of lines.
pub struct Recorder {
    /// Source of the text and destination of the trace, for error messages.
    from: PathBuf,
    to: PathBuf,
    writer: Writer,
    part: Part,
    /// Accesses so far, stored or skipped.
    accesses: u64,
    /// Instructions stored so far.
    instructions: u64,
    /// The beginning of a line whose end has not arrived yet.
    partial: Vec<u8>,
    /// Lines so far.
    lines: u64,
    /// Whether one of valgrind's own lines came before.
    banner: bool,
}

impl Recorder {
    /// Begins a trace in `file`, which is empty and will get the name `to`. The text comes from `from`. The header of the trace
    /// gives `command` as its origin.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(from: &Path, to: &Path, file: File, command: &str, part: Part) -> Result<Recorder, Error> {
        Recorder::with_tool("lackey", from, to, file, command, part)
    }

    /// Begins a trace of another valgrind tool.
    pub(in crate::input) fn with_tool(
        tool: &str,
        from: &Path,
        to: &Path,
        file: File,
        command: &str,
        part: Part,
    ) -> Result<Recorder, Error> {
        let mut writer = format!("trapless-pagesim {}, valgrind {tool}: ", env!("CARGO_PKG_VERSION"));
        writer.push_str(beginning(command));
        let header =
            Header { grain: Grain::Line, harts: 1, kernel: false, clock_hz: 0, profile: tool.to_owned(), writer };
        Ok(Recorder {
            from: from.to_owned(),
            to: to.to_owned(),
            writer: Writer::new(file, header).map_err(Error::io(to))?,
            part,
            accesses: 0,
            instructions: 0,
            partial: Vec::new(),
            lines: 0,
            banner: false,
        })
    }

    /// Accesses stored so far.
    pub fn stored(&self) -> u64 {
        self.accesses.saturating_sub(self.part.skip)
    }

    /// Accesses skipped so far.
    pub fn skipped(&self) -> u64 {
        self.accesses.min(self.part.skip)
    }

    /// Whether the limit of stored accesses is reached.
    pub fn full(&self) -> bool {
        self.stored() >= self.part.limit
    }

    /// Takes the next bytes of the text, which may end anywhere. Ignores them once the trace is [full](Recorder::full).
    ///
    /// # Errors
    /// A line is not lackey's, or the trace cannot be written.
    pub fn feed(&mut self, mut text: &[u8]) -> Result<(), Error> {
        if !self.partial.is_empty() {
            let Some(end) = text.iter().position(|b| *b == b'\n') else { return self.keep(text) };
            let mut line = std::mem::take(&mut self.partial);
            line.extend(&text[..=end]);
            self.lines(&line)?;
            text = &text[end + 1..];
        }
        let end = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        self.lines(&text[..end])?;
        self.keep(&text[end..])
    }

    fn keep(&mut self, text: &[u8]) -> Result<(), Error> {
        self.partial.extend(text);
        if self.partial.len() > LONGEST_LINE {
            Err(self.bad("too long for a line of lackey's", 1, &self.partial))
        } else {
            Ok(())
        }
    }

    /// Completes the trace. Returns the totals of its content.
    ///
    /// # Errors
    /// The text ended in the middle of a line or has no access, or the trace cannot be written.
    pub fn finish(mut self) -> Result<Totals, Error> {
        if !self.partial.is_empty() && !self.full() {
            return Err(self.bad("cut in the middle of the line", 1, &self.partial));
        }
        if self.stored() == 0 {
            return Err(Error::Empty { path: self.from });
        }
        let end = Moment { instructions: self.instructions, cycle: 0 };
        self.writer.close(0, end).and_then(|()| self.writer.finish()).map_err(Error::io(&self.to))
    }

    /// Takes whole lines.
    fn lines(&mut self, mut text: &[u8]) -> Result<(), Error> {
        while !text.is_empty() && !self.full() {
            let Some((what, address, size, rest)) = parse(text) else {
                text = self.other(text)?;
                continue;
            };
            self.lines += 1;
            text = rest;
            match what {
                b'I' => self.access(Kind::Fetch, address, size)?,
                b'L' => self.access(Kind::Load, address, size)?,
                b'S' => self.access(Kind::Store, address, size)?,
                _ => {
                    self.access(Kind::Load, address, size)?;
                    self.access(Kind::Store, address, size)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the error for input that ended too early.
    pub(in crate::input) fn cut(&self) -> Error {
        Error::Records { path: self.from.clone(), accesses: self.accesses }
    }

    /// Takes one access. The instruction that makes the access is counted already, unless the access is its fetch.
    #[inline]
    pub(in crate::input) fn access(&mut self, kind: Kind, address: u64, size: u64) -> Result<(), Error> {
        let counted = u64::from(kind != Kind::Fetch);
        for block in address >> LINE_SHIFT..=address.saturating_add(size - 1) >> LINE_SHIFT {
            self.accesses += 1;
            if self.accesses <= self.part.skip {
                continue;
            }
            let place = Place { space: 0, kernel: false, block };
            if !self.writer.stays(0, kind, place) {
                let at = Moment { instructions: self.instructions.saturating_sub(counted), cycle: 0 };
                self.writer.moves(0, kind, place, at).map_err(Error::io(&self.to))?;
            }
        }
        self.instructions += u64::from(kind == Kind::Fetch && self.accesses > self.part.skip);
        Ok(())
    }

    /// Takes a line that is not an access. Returns the text after it.
    fn other<'a>(&mut self, text: &'a [u8]) -> Result<&'a [u8], Error> {
        self.lines += 1;
        let end = text.iter().position(|b| *b == b'\n').unwrap_or(text.len());
        let line = &text[..end];
        let own = [b"==", b"--", b"**"].iter().any(|mark| line.starts_with(*mark));
        self.banner |= own;
        // Valgrind repeats the command in its first lines, and keeps line breaks in it.
        if own || self.banner && self.accesses == 0 {
            return Ok(&text[(end + 1).min(text.len())..]);
        }
        Err(self.bad("neither an access as lackey writes it nor a line of valgrind's", 0, line))
    }

    /// Makes an error about the line whose number is `ahead` greater than the lines counted.
    fn bad(&self, what: &'static str, ahead: u64, line: &[u8]) -> Error {
        let text = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        Error::Lackey { path: self.from.clone(), line: self.lines + ahead, what, text }
    }
}

/// Reads kind, address and size (at least 1) of the access in the first line. Also returns the text after this line.
#[inline]
fn parse(text: &[u8]) -> Option<(u8, u64, u64, &[u8])> {
    let (head, rest) = text.split_first_chunk::<3>()?;
    let what = match head {
        b"I  " => b'I',
        b" L " | b" S " | b" M " => head[1],
        _ => return None,
    };
    let (address, rest) = number::<16>(rest, b',')?;
    let (size, rest) = number::<10>(rest, b'\n')?;
    (size > 0 && address.checked_add(size).is_some() && size < 1 << 16).then_some((what, address, size, rest))
}

/// Reads the number before the byte `end`; it must have at least one digit. Also returns the text after that byte.
#[inline]
fn number<const BASE: u64>(text: &[u8], end: u8) -> Option<(u64, &[u8])> {
    let mut v = 0u64;
    for (at, &b) in text.iter().enumerate() {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' if BASE == 16 => b - b'a' + 10,
            _ if b == end && at > 0 => return Some((v, &text[at + 1..])),
            _ => return None,
        };
        // A number has at most sixteen hexadecimal digits.
        if at == 16 {
            return None;
        }
        v = v.wrapping_mul(BASE).wrapping_add(digit.into());
    }
    None
}
