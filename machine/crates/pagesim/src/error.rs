// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with the simulator's input.

use std::io;
use std::path::PathBuf;

/// One line that names the file and the place in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host cannot read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A stored trace that is not whole.
    #[error("{}: {source}", path.display())]
    Trace {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: trapless_trace::Error,
    },
}
