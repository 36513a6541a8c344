// SPDX-License-Identifier: Apache-2.0
//! What keeps the SSD's contents.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The host failed the SSD.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The image cannot be opened.
    #[error("disk image {path}: {source}", path = path.display())]
    Open {
        /// The image.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// Another machine writes to the image, or uses it while this one wants to write.
    #[error("disk image {path}: in use by another machine", path = path.display())]
    Busy {
        /// The image.
        path: PathBuf,
    },
    /// The image's size is no disk's.
    #[error("disk image {path}: size of {size} bytes is not a positive multiple of 4096 (truncated?)", path = path.display())]
    Size {
        /// The image.
        path: PathBuf,
        /// Its size, bytes.
        size: u64,
    },
    /// Reading or writing failed while the machine ran; the guest was told of a media error.
    #[error("disk image {path}: cannot {what} at byte {offset}: {source}", path = path.display())]
    Io {
        /// The image.
        path: PathBuf,
        /// `read`, `write` or `zero`.
        what: &'static str,
        /// Byte of the image.
        offset: u64,
        /// What the host said.
        source: io::Error,
    },
}

/// The SSD's contents: bytes, all zero where nothing was written. Callers stay inside `size`.
pub trait Backend {
    /// Bytes, a positive multiple of 4096.
    fn size(&self) -> u64;

    /// Whether writes are refused.
    fn read_only(&self) -> bool;

    /// Fills `buf` from byte `offset`.
    ///
    /// # Errors
    /// The host failed.
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError>;

    /// Writes `data` at byte `offset`.
    ///
    /// # Errors
    /// The host failed.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError>;

    /// What was written so far; `None` when it went where it cannot be had back from.
    fn written(&self) -> Option<Written> {
        None
    }

    /// Takes what another one had written, before anything is read; false when that is not possible.
    fn set_written(&mut self, _written: Written) -> bool {
        false
    }

    /// Makes `[offset, offset + len)` read as zero, giving back space where that is cheap.
    ///
    /// # Errors
    /// The host failed.
    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError>;
}

/// What was written over an image.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Pages of 4 KiB by number.
    pub pages: BTreeMap<u64, Vec<u8>>,
    /// Ranges of pages that read as zero, first to one past the last.
    pub zeroed: BTreeMap<u64, u64>,
}
