// SPDX-License-Identifier: Apache-2.0
//! Why a file is no whole trace.

/// One line; the caller names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host could not read or write.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It does not begin like a trace.
    #[error("not a Trapless memory trace")]
    NotATrace,
    /// Another version of the format.
    #[error("version {0} of the trace format; this program reads only version 1")]
    Version(u8),
    /// It ends too soon.
    #[error("cut short: it ends at byte {0}, before its totals")]
    CutShort(u64),
    /// Its bytes make no sense.
    #[error("damaged near byte {at}: {what}")]
    Damaged {
        /// Offset of the chunk.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
}
