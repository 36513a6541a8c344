// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with the simulator's input.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A place in a file. Its text ends in a colon and a blank; that of the whole file is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The whole file.
    Whole,
    /// A line. The first one is 1.
    Line(u64),
    /// A record and the byte where it begins. The first record is 1; bytes count from 0 in the decompressed file.
    Record(u64, u64),
    /// A byte, counted from 0 in the decompressed file.
    Byte(u64),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Whole => Ok(()),
            At::Line(line) => write!(f, "line {line}: "),
            At::Record(record, byte) => write!(f, "record {record} at byte {byte}: "),
            At::Byte(byte) => write!(f, "byte {byte}: "),
        }
    }
}

/// What is wrong, in one line that names the file and the place in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host cannot read or write a file.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The host's error.
        error: io::Error,
    },
    /// A stored trace that is damaged or incomplete.
    #[error("{}: {error}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: trapless_trace::Error,
    },
    /// A line that lackey would not write.
    #[error("{}: line {line}: {what}: {text:?}", path.display())]
    Lackey {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with the line.
        what: &'static str,
        /// The beginning of the line.
        text: String,
    },
    /// The records of this project's valgrind tool end in the middle of a record.
    #[error("{}: the records of its accesses end in the middle of a record, after {accesses} accesses", path.display())]
    Records {
        /// The recorded program.
        path: PathBuf,
        /// Number of accesses before the cut.
        accesses: u64,
    },
    /// A file in another program's format that cannot be imported.
    #[error("{}: {at}{what}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The place in the file.
        at: At,
        /// What is wrong there, and what to do about it.
        what: String,
    },
    /// A trace of several address spaces. Either none was chosen, or the chosen one is not in the trace.
    #[error("{}: accesses of {} address spaces; choose one: {}", path.display(), spaces.len(), list(spaces))]
    Spaces {
        /// The file.
        path: PathBuf,
        /// For each address space: the page number of its root page table, and the number of its accesses.
        spaces: Vec<(u64, u64)>,
    },
    /// A trace without any access.
    #[error("{}: has no memory access", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A policy in another process has failed. The text has its file and, if known, the line.
    #[error("{0}")]
    Policy(String),
    /// A configuration that cannot be simulated.
    #[error("{0}")]
    Settings(String),
}

fn list(spaces: &[(u64, u64)]) -> String {
    spaces.iter().map(|(space, n)| format!("{space:#x} ({n} accesses)")).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// Makes this crate's error from the host's error about a file.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error {
        move |error| Error::Io { path: path.to_owned(), error }
    }
}
