// SPDX-License-Identifier: Apache-2.0
//! Memory traces of programs, as the simulator takes them in.

pub(crate) mod distances;
pub mod import;
mod recorded;
pub mod records;
mod scattered;
mod summary;

use crate::Error;

pub use recorded::{Recorded, Which};
pub use scattered::Scattered;
pub use summary::{Extent, Readings, SHARE, Summary, summarise};
pub use trapless_trace::Kind;

/// log2 of the bytes of a line.
pub const LINE_SHIFT: u32 = trapless_trace::Grain::Line.shift();
/// log2 of the bytes of a page.
pub const PAGE_SHIFT: u32 = trapless_trace::Grain::Page.shift();

/// The first access of a run: a row of accesses of one stream (fetches, loads or stores) to one line. Accesses of the
/// other streams may come in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Virtual address divided by 64.
    pub line: u64,
    /// The stream.
    pub kind: Kind,
    /// Instructions retired since the step before.
    pub instructions: u64,
    /// Accesses beyond the first that the stream's run before this one had; they ended with this step.
    pub repeats: u64,
}

impl Step {
    /// The page of its line: virtual address divided by 4096.
    #[inline]
    pub fn page(&self) -> u64 {
        self.line >> (PAGE_SHIFT - LINE_SHIFT)
    }
}

/// What follows the last step of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Accesses beyond the first of each stream's last run, by [`Kind`].
    pub repeats: [u64; 3],
    /// Instructions retired since the last step.
    pub instructions: u64,
}

/// A trace of one program, from its beginning.
pub trait Source {
    /// The next step; `None` at the end of a trace that is whole.
    ///
    /// # Errors
    /// The trace cannot be read, or is not whole.
    fn next(&mut self) -> Result<Option<Step>, Error>;

    /// What followed the last step, once [`Source::next`] has said that there is no more.
    fn tail(&self) -> Tail;

    /// Accesses of the whole trace, if that is known beforehand: for a bar of progress.
    fn accesses(&self) -> Option<u64>;

    /// Whether lines are told apart, so that a CPU cache can be simulated; else each page is known by its first line.
    fn has_lines(&self) -> bool {
        true
    }

    /// Short name of the program.
    fn name(&self) -> &str;
}

#[cfg(test)]
mod tests;
