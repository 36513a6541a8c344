// SPDX-License-Identifier: Apache-2.0
//! Text with one access on each line. Commas, semicolons or tabs separate the fields.
//!
//! The first line or an option names the columns. Numbers are decimal, or hexadecimal with the prefix 0x.

use trapless_trace::{Grain, Kind, Totals};

use super::oracle::Objects;
use super::sink::About;
use super::text::{number, shown};
use super::{Format, Input, Options, Sink, Target, only};
use crate::Error;

/// Largest number of columns.
const COLUMNS: usize = 256;
/// Largest size of a memory access in bytes.
const LARGEST: u64 = 1 << 16;
/// Number of pages whose addresses fit into 64 bits.
const PAGES: u64 = 1 << 52;

/// The meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Address,
    Page,
    Object,
    Kind,
    Size,
    Thread,
    /// The import ignores the column.
    Other,
}

/// Names of columns, in lower case.
const NAMES: [(&str, Column); 37] = [
    ("time", Column::Time),
    ("timestamp", Column::Time),
    ("ts", Column::Time),
    ("clock_time", Column::Time),
    ("real_time", Column::Time),
    ("address", Column::Address),
    ("addr", Column::Address),
    ("vaddr", Column::Address),
    ("va", Column::Address),
    ("page", Column::Page),
    ("page_number", Column::Page),
    ("vpn", Column::Page),
    ("pfn", Column::Page),
    ("object", Column::Object),
    ("object_id", Column::Object),
    ("obj", Column::Object),
    ("obj_id", Column::Object),
    ("id", Column::Object),
    ("key", Column::Object),
    ("block", Column::Object),
    ("lbn", Column::Object),
    ("lba", Column::Object),
    ("kind", Column::Kind),
    ("op", Column::Kind),
    ("operation", Column::Kind),
    ("type", Column::Kind),
    ("access", Column::Kind),
    ("rw", Column::Kind),
    ("size", Column::Size),
    ("obj_size", Column::Size),
    ("length", Column::Size),
    ("len", Column::Size),
    ("bytes", Column::Size),
    ("thread", Column::Thread),
    ("thread_id", Column::Thread),
    ("tid", Column::Thread),
    ("-", Column::Other),
];

/// Words for the kinds of accesses, in lower case. Numbers are SCSI commands.
const KINDS: [(&[&str], Kind); 3] = [
    (&["r", "read", "l", "ld", "load", "get", "gets", "08", "28", "88", "a8"], Kind::Load),
    (
        &[
            "w", "write", "s", "st", "store", "m", "modify", "set", "put", "add", "replace", "cas", "append",
            "prepend", "incr", "decr", "delete", "0a", "2a", "8a", "aa",
        ],
        Kind::Store,
    ),
    (&["i", "x", "f", "fetch", "ifetch", "exec", "instr", "instruction"], Kind::Fetch),
];

/// The format.
pub struct Csv;

/// Finds the character that separates a line's fields.
fn separator(line: &[u8]) -> u8 {
    [b',', b';', b'\t'].into_iter().find(|b| line.contains(b)).unwrap_or(b',')
}

/// Removes blanks and quotes around a field.
#[inline]
fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner,
        _ => field,
    }
}

/// The columns that a line names. A column with an unknown name is ignored.
fn columns(line: &[u8]) -> Vec<Column> {
    let column = |name: &[u8]| {
        let found = NAMES.iter().find(|(known, _)| bare(name).eq_ignore_ascii_case(known.as_bytes()));
        found.map_or(Column::Other, |(_, column)| *column)
    };
    let separator = separator(line);
    line.split(|b| *b == separator).map(column).collect()
}

/// The column that says where an access goes. `None` unless there is exactly one.
fn place(columns: &[Column]) -> Option<Column> {
    let mut places = columns.iter().filter(|c| matches!(c, Column::Address | Column::Page | Column::Object));
    places.next().filter(|_| places.next().is_none()).copied()
}

/// Removes the byte order mark that spreadsheets write at the beginning of a file.
fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "lines of fields, with names of columns in the first line or in --columns"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["columns", "unit", "instructions"]
    }

    fn detects(&self, head: &[u8]) -> bool {
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        place(&columns(unmarked(first).trim_ascii_end())).is_some()
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let (columns, first) = named(&mut input, &target.options)?;
        let place = place(&columns).ok_or_else(|| {
            input.bad(format!(
                "exactly one column must be address, page or object, as named in the first line or by --columns; \
                 the columns here are {}",
                shown(&first)
            ))
        })?;
        if target.options.unit.is_some() && place != Column::Object {
            return Err(Error::Settings("--unit needs a column of objects".to_owned()));
        }
        let grain = if place == Column::Address { Grain::Line } else { Grain::Page };
        let mut reading = Reading { columns, place, objects: Objects::new(&target.options)?, time: f64::NEG_INFINITY };
        let mut sink = Sink::new(target, &About { format: self.name(), grain, clock_hz: 0, note: "" })?;
        while !sink.full()
            && let Some(line) = input.line()?
        {
            if !line.is_empty()
                && let Err(what) = reading.line(line, &mut sink)?
            {
                return Err(input.bad_line(what));
            }
        }
        sink.finish()
    }
}

/// Returns the columns, and the line or option that names them. Without `--columns`, takes the first line. With `--columns`,
/// takes it only if it names columns as well: it has a known name, and no field is a number.
fn named(input: &mut Input, options: &Options) -> Result<(Vec<Column>, Vec<u8>), Error> {
    let given = options.columns.as_deref().map(str::as_bytes);
    if let Some(given) = given {
        for name in given.split(|b| *b == b',') {
            if !NAMES.iter().any(|(known, _)| known.as_bytes() == name) {
                let what = format!(
                    "--columns: {} is not the name of a column; known are time, address, page, object, kind, size, \
                     thread, and - for any other",
                    shown(name)
                );
                return Err(Error::Settings(what));
            }
        }
    }
    let head = input.head()?;
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let separator = separator(first);
    let has_numbers = first.split(|b| *b == separator).any(|field| number(bare(field)).is_some());
    let names_columns = columns(unmarked(first).trim_ascii_end()).iter().any(|column| *column != Column::Other);
    let first = match given {
        Some(_) if has_numbers || !names_columns => None,
        _ => input.line()?.map(|line| unmarked(line).to_vec()),
    };
    let names = given.map_or_else(|| first.unwrap_or_default(), <[u8]>::to_vec);
    let columns = columns(&names);
    if columns.len() > COLUMNS {
        return Err(input.bad(format!("{} columns; {COLUMNS} is the most", columns.len())));
    }
    Ok((columns, names))
}

/// State between lines.
struct Reading {
    columns: Vec<Column>,
    place: Column,
    objects: Objects,
    time: f64,
}

/// The kind that a word means.
fn kind(word: &[u8]) -> Option<Kind> {
    let named = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    KINDS.iter().find(|(words, _)| named(words)).map(|(_, kind)| *kind)
}

impl Reading {
    /// Stores the access of a line. The inner error says what is wrong with the line.
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<Result<(), String>, Error> {
        let separator = separator(line);
        let (mut what, mut size, mut place, mut fields) = (Kind::Load, 1, None, line.split(|b| *b == separator));
        for (at, column) in self.columns.iter().enumerate() {
            let Some(field) = fields.next().map(bare) else {
                let (had, wanted) = (at, self.columns.len());
                return Ok(Err(format!("{had} fields, not {wanted}: {}", shown(line))));
            };
            let wrong = |what: &str| Ok(Err(format!("{} is {what}", shown(field))));
            match column {
                Column::Other => {}
                Column::Time => {
                    let time = std::str::from_utf8(field).ok().and_then(|text| text.parse().ok());
                    let Some(time) = time.filter(|t: &f64| t.is_finite()) else { return wrong("not a time") };
                    if time < self.time {
                        return wrong("an earlier time than the line before has; sort the lines by time");
                    }
                    self.time = time;
                }
                Column::Kind => match kind(field) {
                    Some(kind) => what = kind,
                    None => return wrong("not a known kind of access; to ignore this column, name it - in --columns"),
                },
                Column::Size => match number(field) {
                    Some(n) => size = n,
                    None => return wrong("not a size in bytes"),
                },
                Column::Thread => match number(field) {
                    Some(thread) => sink.thread(thread),
                    None => return wrong("not the number of a thread"),
                },
                Column::Address | Column::Page | Column::Object => place = Some(field),
            }
        }
        if fields.next().is_some() {
            return Ok(Err(format!("more than {} fields: {}", self.columns.len(), shown(line))));
        }
        let place = place.unwrap_or_default();
        match (self.place, number(place)) {
            (Column::Address, Some(address)) if size > 0 && size <= LARGEST => {
                let last = address.saturating_add(size - 1);
                for block in address >> Grain::Line.shift()..=last >> Grain::Line.shift() {
                    sink.alone(what, block)?;
                }
                Ok(Ok(()))
            }
            (Column::Address, Some(_)) => Ok(Err(format!("a size of {size} bytes; it must be 1 to {LARGEST}"))),
            (Column::Page, Some(page)) if page < PAGES => sink.alone(what, page).map(Ok),
            (Column::Object, Some(object)) => self.objects.access(sink, what, object, size),
            (Column::Object, None) if !place.is_empty() => sink.alone(what, self.objects.pages.name(place)).map(Ok),
            (Column::Page, Some(page)) => {
                Ok(Err(format!("page {page} is beyond 2^52; is this an address or an object?")))
            }
            _ => Ok(Err(format!("{} is not a number such as 4096 or 0x1000", shown(place)))),
        }
    }
}
