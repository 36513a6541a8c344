// SPDX-License-Identifier: Apache-2.0
//! libCacheSim's oracleGeneral: packed little-endian records of 24 bytes, one for each request.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | time in seconds |
//! | 8 | object |
//! | 4 | its size in bytes |
//! | 8 | number (from 1) of the record of the object's next request; -1 or 2^63 - 1 if there is none, -2 if it is unknown |
//!
//! Without a unit, a request is a load of one page, whatever its size. With a unit, object numbers are positions on a device, and
//! a request accesses each page that contains some of its bytes.

use trapless_trace::{Grain, Kind, Totals};

use super::pages::Pages;
use super::sink::About;
use super::{Format, Input, Options, Sink, Target, only};
use crate::Error;

/// Bytes of a record.
const RECORD: usize = 24;
/// Values other than a record's number: the object is not requested again (-1 and the largest number), or nothing is known about
/// its next request (-2).
const NO_RECORD: [i64; 3] = [-1, i64::MAX, -2];

/// The format.
pub struct OracleGeneral;

struct Request {
    time: u32,
    object: u64,
    size: u32,
    next: i64,
}

#[inline]
fn request(record: &[u8; RECORD]) -> Request {
    let [a, b, c, d, rest @ ..] = *record;
    let [o0, o1, o2, o3, o4, o5, o6, o7, s0, s1, s2, s3, next @ ..] = rest;
    Request {
        time: u32::from_le_bytes([a, b, c, d]),
        object: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        size: u32::from_le_bytes([s0, s1, s2, s3]),
        next: i64::from_le_bytes(next),
    }
}

impl Format for OracleGeneral {
    fn name(&self) -> &'static str {
        "oracle-general"
    }

    fn about(&self) -> &'static str {
        "libCacheSim's oracleGeneral: records of 24 bytes"
    }

    fn takes(&self) -> &'static [&'static str] {
        &["unit", "instructions"]
    }

    /// Files have no mark of this format, but records refer to later records of the same object. All these references must be
    /// right, and there must be some.
    fn detects(&self, head: &[u8]) -> bool {
        let (records, _) = head.as_chunks::<RECORD>();
        let requests: Vec<Request> = records.iter().map(request).collect();
        let mut links = 0;
        let right = requests.iter().enumerate().all(|(at, r)| {
            let Ok(next) = usize::try_from(r.next) else { return r.next == -1 };
            // Records are numbered from 1.
            match requests.get(next.wrapping_sub(1)) {
                Some(later) => {
                    links += 1;
                    next > at + 1 && later.object == r.object
                }
                None => next > at + 1,
            }
        });
        right && links > 0
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let mut objects = Objects::new(&target.options)?;
        let about = About { format: self.name(), grain: Grain::Page, clock_hz: 1, note: "" };
        let mut sink = Sink::new(target, &about)?;
        while !sink.full()
            && let Some(record) = input.record::<RECORD>()?
        {
            let Request { time, object, size, next } = request(&record);
            if next < 0 && !NO_RECORD.contains(&next) {
                let what =
                    format!("the object's next request is {next}, not the number of a record; is this oracleGeneral?");
                return Err(input.bad_record::<RECORD>(what));
            }
            sink.time(u64::from(time));
            objects
                .access(&mut sink, Kind::Load, object, u64::from(size))?
                .map_err(|what| input.bad_record::<RECORD>(what))?;
        }
        sink.finish()
    }
}

/// Converts objects to pages.
pub struct Objects {
    pub pages: Pages,
    unit: Option<u64>,
}

/// Largest size of a device in bytes: 2^42 pages.
const DEVICE: u64 = 1 << 54;

impl Objects {
    /// Makes the conversion that the options ask for: objects with sizes, or without.
    pub fn new(options: &Options) -> Result<Objects, Error> {
        if options.unit == Some(0) {
            return Err(Error::Settings("--unit must be 1 or more bytes, not 0".to_owned()));
        }
        Ok(Objects { pages: Pages::default(), unit: options.unit })
    }

    /// Stores an access to an object that has a number. The inner error says why that is impossible; the outer error is the
    /// sink's.
    pub fn access(&mut self, sink: &mut Sink, kind: Kind, object: u64, size: u64) -> Result<Result<(), String>, Error> {
        let Some(unit) = self.unit else { return sink.alone(kind, self.pages.number(object)).map(Ok) };
        let first = object.checked_mul(unit);
        let last = first.and_then(|first| first.checked_add(size.max(1) - 1)).filter(|last| *last < DEVICE);
        let (Some(first), Some(last)) = (first, last) else {
            let what =
                format!("object {object} times {unit} and {size} bytes is beyond 2^54; import it without --unit");
            return Ok(Err(what));
        };
        for page in first >> Grain::Page.shift()..=last >> Grain::Page.shift() {
            if sink.full() {
                break;
            }
            sink.alone(kind, page)?;
        }
        Ok(Ok(()))
    }
}
