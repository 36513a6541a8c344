// SPDX-License-Identifier: Apache-2.0
//! Where the SSD's contents are kept.

use std::path::{Path, PathBuf};

/// The host failed the SSD.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The image cannot be opened.
    #[error("disk image {path}: {source}", path = path.display())]
    Open {
        /// The image.
        path: PathBuf,
        /// What the host said.
        source: std::io::Error,
    },
    /// The image's size is no disk's.
    #[error("disk image {path}: size of {size} bytes is not a positive multiple of 4096", path = path.display())]
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
        /// `read`, `write`, `flush` or `deallocate`.
        what: &'static str,
        /// Byte of the image.
        offset: u64,
        /// What the host said.
        source: std::io::Error,
    },
}

/// How an image is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ImageMode {
    /// Writes go to the file.
    #[default]
    ReadWrite,
    /// The namespace is write protected.
    ReadOnly,
    /// Writes stay in memory and are dropped at the end.
    Snapshot,
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

    /// Makes `[offset, offset + len)` read as zero, giving back space where that is cheap.
    ///
    /// # Errors
    /// The host failed.
    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError>;

    /// What was written outlives a crash of the program.
    ///
    /// # Errors
    /// The host failed.
    fn flush(&mut self) -> Result<(), BackendError>;
}

/// Opens an image file.
///
/// # Errors
/// It cannot be opened in this mode, or its size is no disk's.
pub fn open_image(path: &Path, mode: ImageMode) -> Result<Box<dyn Backend>, BackendError> {
    let _ = (path, mode);
    Err(BackendError::Open { path: path.into(), source: std::io::ErrorKind::Unsupported.into() })
}
