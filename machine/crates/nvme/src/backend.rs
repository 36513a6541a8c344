// SPDX-License-Identifier: Apache-2.0
//! The interface to the storage that holds an SSD's contents, and its errors.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Failure of the host file behind a namespace.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The image cannot be opened.
    #[error("disk image {path}: {source}", path = path.display())]
    Open {
        /// The image.
        path: PathBuf,
        /// Error of the host.
        source: io::Error,
    },
    /// Another machine writes to the image, or uses the image while this machine wants to write to it.
    #[error("disk image {path}: in use by another machine; end it, or use snapshot in both", path = path.display())]
    Busy {
        /// The image.
        path: PathBuf,
    },
    /// The size of the image is not a valid size of a disk.
    #[error("disk image {path}: size of {size} bytes is not a positive multiple of 4096 (truncated?)", path = path.display())]
    Size {
        /// The image.
        path: PathBuf,
        /// Its size, bytes.
        size: u64,
    },
    /// The host could not read or write the image while the machine ran. The guest has seen a media error.
    #[error("disk image {path}: cannot {what} at byte {offset}: {source}", path = path.display())]
    Io {
        /// The image.
        path: PathBuf,
        /// `read`, `write` or `zero`.
        what: &'static str,
        /// Offset in the image, bytes.
        offset: u64,
        /// Error of the host.
        source: io::Error,
    },
}

/// Contents of one namespace: bytes, zero where nothing was written. Callers must stay inside `size`.
pub trait Backend {
    /// Returns the size in bytes, a positive multiple of 4096.
    fn size(&self) -> u64;

    /// Tells whether the contents are write protected.
    fn read_only(&self) -> bool;

    /// Fills `buf` from byte `offset`.
    ///
    /// # Errors
    /// The host cannot access the image.
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError>;

    /// Writes `data` at byte `offset`.
    ///
    /// # Errors
    /// The host cannot access the image.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError>;

    /// Returns all data written so far, or `None` if it is not kept apart from the original contents.
    fn written(&self) -> Option<Written> {
        None
    }

    /// Takes over the written data of another backend, before the first read. Returns false if that is not possible.
    fn set_written(&mut self, _written: Written) -> bool {
        false
    }

    /// Makes `[offset, offset + len)` read as zero, and frees the space where that is cheap.
    ///
    /// # Errors
    /// The host cannot access the image.
    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError>;
}

/// Data that was written over an image.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Written pages of 4 KiB, by page number.
    pub pages: BTreeMap<u64, Vec<u8>>,
    /// Ranges of pages that read as zero: from the first page number to the one after the last.
    pub zeroed: BTreeMap<u64, u64>,
}
