// SPDX-License-Identifier: Apache-2.0
//! Errors in profiles and drives.

/// Error in a profile or a drive. `file` prints its kind and its name: `profile server`, `ssd tlc`.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no built-in profile or drive with this name, and no file.
    #[error("{file}: no such built-in {kind} ({known}), and no such file", kind = file.kind.noun())]
    Unknown {
        /// Kind and name that were requested.
        file: FileName,
        /// The built-in names.
        known: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot read it: {reason}")]
    Read {
        /// Which file.
        file: FileName,
        /// The host's error message.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{file}: line {line}: {reason}")]
    Syntax {
        /// Which file.
        file: FileName,
        /// Number of the line, counted from 1.
        line: usize,
        /// The error that the parser found.
        reason: String,
    },
    /// A value is missing.
    #[error("{file}: {key} is missing")]
    Missing {
        /// Which file.
        file: FileName,
        /// The key, dotted.
        key: String,
    },
    /// The key does not exist.
    #[error("{file}: no such key: {key} ({hint})")]
    NoKey {
        /// Which file.
        file: FileName,
        /// The key, dotted.
        key: String,
        /// A similar key, or the keys that exist.
        hint: String,
    },
    /// A value is of the wrong type or out of range.
    #[error("{file}: {key} must be {must}, not {value}")]
    Value {
        /// Which file.
        file: FileName,
        /// The key, dotted.
        key: String,
        /// The allowed values.
        must: String,
        /// The value in the file, in TOML.
        value: String,
    },
    /// An override does not have the form `section.key=value`.
    #[error("--set {0}: must be section.key=value")]
    Override(String),
}

/// Kind of a file: a profile or a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A profile of a machine.
    Profile,
    /// A drive.
    Drive,
}

impl FileKind {
    /// Returns the word with which messages begin.
    fn label(self) -> &'static str {
        match self {
            FileKind::Profile => "profile",
            FileKind::Drive => "ssd",
        }
    }

    /// Returns the noun for use in sentences.
    fn noun(self) -> &'static str {
        match self {
            FileKind::Profile => "profile",
            FileKind::Drive => "drive",
        }
    }
}

/// A profile or a drive, by its built-in name or its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Profile or drive.
    pub kind: FileKind,
    /// Built-in name or path.
    pub name: String,
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.label(), self.name)
    }
}
