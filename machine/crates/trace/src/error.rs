// SPDX-License-Identifier: Apache-2.0
//! Errors of files that are not a complete trace.

/// Error of a trace. Its message is one line; the caller adds the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host could not read or write.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file does not begin like a trace.
    #[error("not a Trapless memory trace")]
    NotATrace,
    /// The file has another version of the format.
    #[error("version {0} of the trace format; this program reads only version 1")]
    Version(u8),
    /// The file ends before its totals.
    #[error("cut short: it ends at byte {0}, before its totals")]
    CutShort(u64),
    /// The file has bytes that are not valid.
    #[error("damaged near byte {at}: {what}")]
    Damaged {
        /// Offset of the chunk.
        at: u64,
        /// The error.
        what: &'static str,
    },
}
