// SPDX-License-Identifier: Apache-2.0
//! Namespaces: parts of the medium, each with its size, format and contents.

use crate::Backend;
use crate::command::Status;

/// Largest number of namespaces of a controller.
pub const MAX_NAMESPACES: usize = 64;

/// A namespace.
pub(crate) struct Namespace {
    /// Size of a logical block in bytes, a power of two.
    pub block_bytes: u32,
    /// Offset of the namespace on the medium, which all namespaces share, bytes.
    pub begin: u64,
    pub backend: Box<dyn Backend>,
}

impl Namespace {
    /// Finds the namespace with this identifier. Identifiers begin with 1.
    pub fn find(all: &[Namespace], nsid: u32) -> Option<&Namespace> {
        all.get((nsid as usize).checked_sub(1)?)
    }

    /// Returns the number of logical blocks.
    pub fn blocks(&self) -> u64 {
        self.backend.size() / u64::from(self.block_bytes)
    }

    /// Returns byte offset and length of a range of blocks.
    pub fn extent(&self, slba: u64, blocks: u32) -> Result<(u64, u64), Status> {
        let end = slba.checked_add(u64::from(blocks)).ok_or(Status::LBA_OUT_OF_RANGE)?;
        if end > self.blocks() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let block = u64::from(self.block_bytes);
        Ok((slba * block, u64::from(blocks) * block))
    }
}
