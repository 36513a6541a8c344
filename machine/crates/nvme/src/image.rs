// SPDX-License-Identifier: Apache-2.0
//! Disk images: contents of a namespace in a file of the host.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

use crate::backend::{Backend, BackendError, Written};
use crate::overlay::Overlay;

/// Mode in which an image is attached.
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

/// Opens an image file.
///
/// # Errors
/// The file cannot be opened in this mode, its size is not a positive multiple of 4096, or another machine uses it.
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

/// Largest number of zero bytes to write at once, on hosts that cannot punch holes into the file.
const ZERO_CHUNK: usize = 1 << 20;

impl Image {
    /// Opens a file and locks it: for one writer in mode [`ImageMode::ReadWrite`], for many readers in the other modes.
    ///
    /// # Errors
    /// Fails like [`open_image`].
    pub fn open(path: &Path, mode: ImageMode) -> Result<Image, BackendError> {
        let read_only = mode != ImageMode::ReadWrite;
        let failed = |source| BackendError::Open { path: path.into(), source };
        let mut file = OpenOptions::new().read(true).write(!read_only).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // We seek to the end because the size in the metadata is wrong for block devices.
        let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
        if size == 0 || size % 4096 != 0 {
            return Err(BackendError::Size { path: path.into(), size });
        }
        let lock = match read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        // On a file system without locks we go on without a lock.
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
