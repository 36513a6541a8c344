// SPDX-License-Identifier: Apache-2.0
//! NVM commands (NVMe 1.4, section 6).

use trapless_memory::{Dma, PAGE_SIZE};

use crate::command::{ALL_NAMESPACES, Command, Status, nvm};
use crate::controller::Controller;
use crate::in_flight::Io;
use crate::{Backend, BackendError, prp};

/// Size of one range of Dataset Management in bytes.
const RANGE_BYTES: usize = 16;

impl Controller {
    /// Decodes an I/O command. Does all checks that do not read guest memory.
    pub(crate) fn plan(&self, c: &Command) -> Result<Io, Status> {
        let all_namespaces = match c.opcode {
            nvm::FLUSH => true,
            nvm::READ | nvm::WRITE | nvm::WRITE_ZEROES | nvm::DATASET_MANAGEMENT => false,
            _ => return Err(Status::INVALID_OPCODE),
        };
        c.check_flags()?;
        if all_namespaces && c.nsid == ALL_NAMESPACES {
            return Ok(Io::Flush);
        }
        let ns = self.namespace(c.nsid).ok_or(Status::INVALID_NAMESPACE)?;
        if c.opcode == nvm::FLUSH {
            return Ok(Io::Flush);
        }
        if c.opcode == nvm::DATASET_MANAGEMENT {
            let deallocate = c.dw(11) & 1 << 2 != 0;
            return match (deallocate, ns.backend.read_only()) {
                (false, _) => Ok(Io::Nothing),
                (true, true) => Err(Status::WRITE_PROTECTED),
                (true, false) => Ok(Io::Deallocate((c.dw(10) & 0xff) + 1)),
            };
        }
        let (offset, bytes) = ns.extent(c.slba(), c.blocks())?;
        if c.opcode != nvm::WRITE_ZEROES && bytes > u64::from(self.config.max_transfer_pages) * PAGE_SIZE {
            return Err(Status::INVALID_FIELD);
        }
        if c.opcode != nvm::READ && ns.backend.read_only() {
            return Err(Status::WRITE_PROTECTED);
        }
        Ok(match c.opcode {
            nvm::READ => Io::Read(offset, bytes, ns.begin + offset),
            nvm::WRITE => Io::Write(offset, bytes),
            _ => Io::WriteZeroes(offset, bytes),
        })
    }

    /// Executes a decoded command and moves its data.
    pub(crate) fn execute_io(&mut self, c: &Command, io: Io, dma: &mut dyn Dma) -> Result<(), Status> {
        match io {
            Io::Read(offset, bytes, _) => {
                let to = prp::segments(dma, c.prp1, c.prp2, bytes)?;
                let mut data = self.take_buffer(bytes);
                let outcome = match self.contents(c)?.read(offset, &mut data) {
                    Ok(()) => prp::scatter(dma, &to, &data),
                    Err(e) => Err(self.media_error(e, Status::UNRECOVERED_READ_ERROR)),
                };
                self.buffer = data;
                outcome?;
                self.logs.count_read(bytes);
            }
            Io::Write(offset, bytes) => {
                let from = prp::segments(dma, c.prp1, c.prp2, bytes)?;
                let mut data = self.take_buffer(bytes);
                let outcome = prp::gather(dma, &from, &mut data).and_then(|()| {
                    self.contents(c)?.write(offset, &data).map_err(|e| self.media_error(e, Status::WRITE_FAULT))
                });
                self.buffer = data;
                outcome?;
                self.logs.count_write(bytes);
            }
            Io::WriteZeroes(offset, bytes) => self.zero(c, offset, bytes)?,
            Io::Deallocate(ranges) => {
                let mut list = vec![0; ranges as usize * RANGE_BYTES];
                let from = prp::segments(dma, c.prp1, c.prp2, list.len() as u64)?;
                prp::gather(dma, &from, &mut list)?;
                let ns = self.namespace(c.nsid).ok_or(Status::INVALID_NAMESPACE)?;
                let mut extents = Vec::new();
                for range in list.chunks_exact(RANGE_BYTES) {
                    let (mut blocks, mut slba) = ([0; 4], [0; 8]);
                    blocks.copy_from_slice(&range[4..8]);
                    slba.copy_from_slice(&range[8..16]);
                    extents.push(ns.extent(u64::from_le_bytes(slba), u32::from_le_bytes(blocks))?);
                }
                for (offset, bytes) in extents {
                    self.zero(c, offset, bytes)?;
                }
            }
            Io::Flush | Io::Nothing => {}
        }
        Ok(())
    }

    /// Returns the contents of the command's namespace.
    fn contents(&mut self, c: &Command) -> Result<&mut dyn Backend, Status> {
        let index = (c.nsid as usize).checked_sub(1);
        let ns = index.and_then(|index| self.namespaces.get_mut(index)).ok_or(Status::INVALID_NAMESPACE)?;
        Ok(&mut *ns.backend)
    }

    fn zero(&mut self, c: &Command, offset: u64, bytes: u64) -> Result<(), Status> {
        if bytes == 0 {
            return Ok(());
        }
        self.contents(c)?.zero(offset, bytes).map_err(|e| self.media_error(e, Status::WRITE_FAULT))
    }

    /// Takes the buffer for data in transfer. The caller puts it back into `self.buffer` so that the next command reuses it.
    fn take_buffer(&mut self, bytes: u64) -> Vec<u8> {
        let mut data = std::mem::take(&mut self.buffer);
        data.resize(bytes as usize, 0);
        data
    }

    /// Counts an error of the host and returns `status` for the guest. The first error is kept for the end of the run.
    fn media_error(&mut self, error: BackendError, status: Status) -> Status {
        self.logs.count_media_error();
        self.host_error.get_or_insert(error);
        status
    }
}
