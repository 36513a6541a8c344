// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with the simulator's input.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A place in a file; it shows with a colon and a blank behind it, the whole file as nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// All of it.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// A record, from 1, and the byte where it begins, from 0 and decompressed.
    Record(u64, u64),
    /// A byte, from 0 and decompressed.
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

/// One line that names the file and the place in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host cannot read or write a file.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A stored trace that is not whole.
    #[error("{}: {error}", path.display())]
    Trace {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: trapless_trace::Error,
    },
    /// Lackey's text is not as lackey writes it.
    #[error("{}: line {line}: {what}: {text:?}", path.display())]
    Lackey {
        /// Which file.
        path: PathBuf,
        /// Which line of it, from 1.
        line: u64,
        /// What is wrong with the line.
        what: &'static str,
        /// How it begins.
        text: String,
    },
    /// The records of this project's valgrind tool end in the middle of one.
    #[error("{}: the records of its accesses are cut after {accesses} accesses", path.display())]
    Records {
        /// Of which program.
        path: PathBuf,
        /// How many accesses were whole.
        accesses: u64,
    },
    /// A trace of another program that cannot be imported.
    #[error("{}: {at}{what}", path.display())]
    Import {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        at: At,
        /// What is wrong there, and what to do about it.
        what: String,
    },
    /// A trace of several address spaces, of which one must be chosen; or the chosen one is not among them.
    #[error("{}: accesses of {} address spaces; choose one: {}", path.display(), spaces.len(), list(spaces))]
    Spaces {
        /// Which.
        path: PathBuf,
        /// Page number of each one's root page table, and its accesses.
        spaces: Vec<(u64, u64)>,
    },
    /// A trace without a single access.
    #[error("{}: has no memory access", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// A policy in another process has failed: its file and, if that is known, the line.
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
    /// The host's error about a file, as this crate's.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error {
        move |error| Error::Io { path: path.to_owned(), error }
    }
}
