// SPDX-License-Identifier: Apache-2.0
//! Where the SSD's contents are kept.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use serde::{Deserialize, Serialize};

use crate::overlay::Overlay;

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

/// Opens an image file.
///
/// # Errors
/// It cannot be opened in this mode, its size is no disk's, or another machine has it.
pub fn open_image(path: &Path, mode: ImageMode) -> Result<Box<dyn Backend>, BackendError> {
    let image = Image::open(path, mode)?;
    Ok(match mode {
        ImageMode::Snapshot => Box::new(Overlay::new(image)),
        ImageMode::ReadWrite | ImageMode::ReadOnly => Box::new(image),
    })
}

/// An image file. It may be sparse; its size is fixed.
pub struct Image {
    file: File,
    path: PathBuf,
    size: u64,
    read_only: bool,
    touched: bool,
}

/// What is written at a time where the host cannot punch holes.
const ZERO_CHUNK: usize = 1 << 20;

impl Image {
    /// Opens a file, writable only in mode [`ImageMode::ReadWrite`], and locks it: one writer or many readers.
    ///
    /// # Errors
    /// As [`open_image`].
    pub fn open(path: &Path, mode: ImageMode) -> Result<Image, BackendError> {
        let read_only = mode != ImageMode::ReadWrite;
        let failed = |source| BackendError::Open { path: path.into(), source };
        let mut file = OpenOptions::new().read(true).write(!read_only).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // By seeking rather than by metadata: right for block devices too.
        let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if size == 0 || size % 4096 != 0 {
            return Err(BackendError::Size { path: path.into(), size });
        }
        let lock = match read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        // A file system without locks is no reason to refuse.
        if flock(&file, lock) == Err(rustix::io::Errno::WOULDBLOCK) {
            return Err(BackendError::Busy { path: path.into() });
        }
        Ok(Image { file, path: path.into(), size, read_only, touched: false })
    }

    fn failed(&self, what: &'static str, offset: u64, source: io::Error) -> BackendError {
        BackendError::Io { path: self.path.clone(), what, offset, source }
    }
}

impl Backend for Image {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn written(&self) -> Option<Written> {
        (!self.touched).then(Written::default)
    }

    fn set_written(&mut self, written: Written) -> bool {
        written == Written::default()
    }

    fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), BackendError> {
        self.file.read_exact_at(buf, offset).map_err(|e| self.failed("read", offset, e))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackendError> {
        self.touched = true;
        self.file.write_all_at(data, offset).map_err(|e| self.failed("write", offset, e))
    }

    fn zero(&mut self, offset: u64, len: u64) -> Result<(), BackendError> {
        self.touched = true;
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.file, punch, offset, len).is_ok() {
            return Ok(());
        }
        let zeroes = vec![0; ZERO_CHUNK.min(len as usize)];
        let mut done = 0;
        while done < len {
            let chunk = (len - done).min(zeroes.len() as u64);
            self.write(offset + done, &zeroes[..chunk as usize])?;
            done += chunk;
        }
        Ok(())
    }
}
