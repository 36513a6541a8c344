// SPDX-License-Identifier: Apache-2.0
//! Reads the memory traces of programs.

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

/// The first access of a run. A run is a sequence of accesses of one stream (fetches, loads or stores) to one line. Accesses of
/// the other streams may come in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Virtual address divided by 64.
    pub line: u64,
    /// The stream.
    pub kind: Kind,
    /// Instructions retired since the last step.
    pub instructions: u64,
    /// Number of accesses of the stream's previous run, without its first one. That run ended with this step.
    pub repeats: u64,
}

impl Step {
    /// The page of the line: virtual address divided by 4096.
    #[inline]
    pub fn page(&self) -> u64 {
        self.line >> (PAGE_SHIFT - LINE_SHIFT)
    }
}

/// What follows the last step of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Number of accesses of each stream's last run, without its first one, by [`Kind`].
    pub repeats: [u64; 3],
    /// Instructions retired since the last step.
    pub instructions: u64,
}

/// The trace of one program, read from its beginning.
pub trait Source {
    /// Returns the next step, or `None` at the end of a complete trace.
    ///
    /// # Errors
    /// The trace cannot be read, or is incomplete.
    fn next(&mut self) -> Result<Option<Step>, Error>;

    /// What follows the last step. Valid when [`Source::next`] has returned `None`.
    fn tail(&self) -> Tail;

    /// Number of accesses in the whole trace, if it is known beforehand. A progress bar uses it.
    fn accesses(&self) -> Option<u64>;

    /// Whether the trace has lines, so that a CPU cache can be simulated. Otherwise, a step names the first line of its page.
    fn has_lines(&self) -> bool {
        true
    }

    /// Short name of the program.
    fn name(&self) -> &str;
}

#[cfg(test)]
mod tests;
