// SPDX-License-Identifier: Apache-2.0
//! Decides when memory accesses are traced, and what the trace contains of them.

use std::fs::File;
use std::io;
use std::str::FromStr;

use trapless_riscv::{Access, Hart, Privilege};
use trapless_timing::Profile;
use trapless_trace::{Grain, Header, Kind, Moment as At, Place, Totals, Writer};

use crate::config::Moment;
use crate::error::Error;

/// What to trace, and where to write it.
pub struct TraceConfig {
    /// An empty file. It holds a trace only after [`crate::Machine::finish_trace`].
    pub file: File,
    /// Size of blocks.
    pub grain: Grain,
    /// Whether to trace accesses of the kernel and of firmware as well.
    pub kernel: bool,
    /// Which part of the run to trace.
    pub from: TraceFrom,
    /// Program and version, for the trace's header.
    pub writer: String,
}

/// What part of a run is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceFrom {
    /// Regions of interest; if there are none, the whole run.
    #[default]
    RoisOrAll,
    /// Regions of interest.
    Rois,
    /// From the first instruction on.
    Start,
    /// From this moment on.
    Moment(Moment),
}

impl FromStr for TraceFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceFrom, String> {
        match text {
            "start" => Ok(TraceFrom::Start),
            "roi" => Ok(TraceFrom::Rois),
            _ => text
                .parse()
                .map(TraceFrom::Moment)
                .map_err(|_| "should be start, roi, milestone:N or instructions:N".to_owned()),
        }
    }
}

/// Writes the trace of a run.
pub struct Tracer {
    writer: Writer,
    shift: u32,
    kernel: bool,
    from: TraceFrom,
    on: bool,
    failed: Option<io::Error>,
}

/// Length of the longest name in the header, in characters.
const LONGEST_NAME: usize = 200;

impl Tracer {
    /// Begins a trace.
    pub fn new(config: TraceConfig, profile: &Profile) -> io::Result<Tracer> {
        let TraceConfig { file, grain, kernel, from, writer } = config;
        let clip = |text: &str| text.chars().take(LONGEST_NAME).collect();
        let header = Header {
            grain,
            harts: profile.machine.harts as u16,
            kernel,
            clock_hz: profile.machine.clock_hz,
            profile: clip(&profile.name),
            writer: clip(&writer),
        };
        let on = matches!(from, TraceFrom::Start | TraceFrom::RoisOrAll);
        Ok(Tracer { writer: Writer::new(file, header)?, shift: grain.shift(), kernel, from, on, failed: None })
    }

    /// Whether accesses are recorded now.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// An instruction of hart number `id` has accessed `len` bytes at `va`.
    #[inline]
    pub fn access(&mut self, id: usize, hart: &Hart, access: Access, va: u64, len: u64) {
        let kernel = hart.privilege() != Privilege::User;
        if !self.on || kernel && !self.kernel {
            return;
        }
        let kind = match access {
            Access::Fetch => Kind::Fetch,
            Access::Load => Kind::Load,
            Access::Store => Kind::Store,
        };
        let space = hart.address_space().unwrap_or(0);
        let (first, last) = (va >> self.shift, va.wrapping_add(len - 1) >> self.shift);
        self.touch(id as u16, hart, kind, Place { space, kernel, block: first });
        if last != first {
            self.touch(id as u16, hart, kind, Place { space, kernel, block: last });
        }
    }

    #[inline]
    fn touch(&mut self, id: u16, hart: &Hart, kind: Kind, place: Place) {
        if !self.writer.stays(id, kind, place) {
            self.moves(id, hart, kind, place);
        }
    }

    #[inline(never)]
    fn moves(&mut self, id: u16, hart: &Hart, kind: Kind, place: Place) {
        // A data access is reported after its instruction was counted.
        let instructions = hart.instructions() - u64::from(kind != Kind::Fetch);
        let done = self.writer.moves(id, kind, place, At { instructions, cycle: hart.local_now().0 });
        self.note(done);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(e) = done {
            self.on = false;
            self.failed.get_or_insert(e);
        }
    }

    fn pause(&mut self, harts: &[Hart]) {
        if std::mem::take(&mut self.on) {
            for (id, hart) in harts.iter().enumerate() {
                let at = At { instructions: hart.instructions(), cycle: hart.now().0 };
                let done = self.writer.close(id as u16, at);
                self.note(done);
            }
        }
    }

    /// Notes that a region of interest begins.
    pub fn roi_begins(&mut self) {
        if self.from == TraceFrom::RoisOrAll {
            self.from = TraceFrom::Rois;
            let done = self.writer.restart();
            self.note(done);
        }
        self.on |= self.from == TraceFrom::Rois && self.failed.is_none();
    }

    /// Notes that the region of interest ends.
    pub fn roi_ends(&mut self, harts: &[Hart]) {
        if self.from == TraceFrom::Rois {
            self.pause(harts);
        }
    }

    /// Notes that the guest passes a milestone.
    pub fn milestone(&mut self, number: u64) {
        self.on |= self.from == TraceFrom::Moment(Moment::Milestone(number));
    }

    /// Begins the trace if it should begin after this number of retired instructions.
    pub fn retired(&mut self, instructions: u64) {
        if let TraceFrom::Moment(Moment::Instructions(n)) = self.from
            && instructions >= n
        {
            (self.on, self.from) = (true, TraceFrom::Start);
        }
    }

    /// Completes the trace and returns its totals.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, harts: &[Hart]) -> Result<Totals, Error> {
        self.pause(harts);
        match self.failure() {
            Some(e) => Err(e),
            None => self.writer.finish().map_err(Error::Trace),
        }
    }

    /// The error of the host, if the trace could not be written.
    pub fn failure(&mut self) -> Option<Error> {
        self.failed.take().map(Error::Trace)
    }
}
