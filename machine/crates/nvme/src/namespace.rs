// SPDX-License-Identifier: Apache-2.0
//! Namespaces: parts of the medium with a size, a format and contents of their own.

use crate::Backend;
use crate::command::Status;

/// Namespaces of a controller at most.
pub const MAX_NAMESPACES: usize = 64;

/// A namespace.
pub(crate) struct Namespace {
    /// Bytes in a logical block, a power of two.
    pub block_bytes: u32,
    /// Where it begins on the medium that all namespaces share, bytes.
    pub begin: u64,
    pub backend: Box<dyn Backend>,
}

impl Namespace {
    /// The one with this identifier, of all: the first has 1.
    pub fn find(all: &[Namespace], nsid: u32) -> Option<&Namespace> {
        all.get((nsid as usize).checked_sub(1)?)
    }

    /// Logical blocks.
    pub fn blocks(&self) -> u64 {
        self.backend.size() / u64::from(self.block_bytes)
    }

    /// Byte offset and length of a range of its blocks.
    pub fn extent(&self, slba: u64, blocks: u32) -> Result<(u64, u64), Status> {
        let end = slba.checked_add(u64::from(blocks)).ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > self.blocks() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let block = u64::from(self.block_bytes);
        Ok((slba * block, u64::from(blocks) * block))
    }
}
