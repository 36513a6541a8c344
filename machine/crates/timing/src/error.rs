// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a profile or a drive.

/// A profile, or the file of a drive, could not be had. `file` is the kind and the name: `profile server`, `ssd tlc`.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The name is neither that of a built-in file nor that of a file.
    #[error("{file}: no such built-in {kind} ({known}) and no such file", kind = file.kind.noun())]
    Unknown {
        /// What was looked for.
        file: FileName,
        /// The names of those that are built in.
        known: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot read it: {reason}")]
    Read {
        /// Which file.
        file: FileName,
        /// What the host said.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{file}: line {line}: {reason}")]
    Syntax {
        /// Which file.
        file: FileName,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
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
    /// There is no such key.
    #[error("{file}: no such key: {key} ({hint})")]
    NoKey {
        /// Which file.
        file: FileName,
        /// The key, dotted.
        key: String,
        /// The key that may be meant, or the keys there are.
        hint: String,
    },
    /// A value is of the wrong type or out of range.
    #[error("{file}: {key} must be {must}, not {value}")]
    Value {
        /// Which file.
        file: FileName,
        /// The key, dotted.
        key: String,
        /// What it may be.
        must: String,
        /// The value found, as TOML.
        value: String,
    },
    /// An override that is not `section.key=value`.
    #[error("--set {0}: must be section.key=value")]
    Override(String),
}

/// Whether a file says what a machine is, or what a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A machine's profile.
    Profile,
    /// A drive.
    Drive,
}

impl FileKind {
    /// The word with which messages begin.
    fn label(self) -> &'static str {
        match self {
            FileKind::Profile => "profile",
            FileKind::Drive => "ssd",
        }
    }

    /// The noun for sentences.
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
    /// Which of both.
    pub kind: FileKind,
    /// Name or path.
    pub name: String,
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.label(), self.name)
    }
}
