// SPDX-License-Identifier: Apache-2.0
//! Log pages (NVMe 1.4, section 5.14.1): errors, SMART, firmware slots.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::command::Status;
use crate::identify::{ERROR_LOG_LIMIT, FIRMWARE};
use crate::record::CommandRecord;

const ERROR: u32 = 0x01;
const SMART: u32 = 0x02;
const FIRMWARE_SLOT: u32 = 0x03;

/// Identifier of the error page, where [`Logs::invalid_doorbell`] adds an entry.
pub const ERROR_PAGE: u8 = ERROR as u8;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ErrorEntry {
    count: u64,
    sqid: u16,
    cid: u16,
    status: u16,
    lba: u64,
    nsid: u32,
}

/// Data from which the log pages are built.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Logs {
    errors: VecDeque<ErrorEntry>,
    error_count: u64,
    bytes_read: u128,
    bytes_written: u128,
    reads: u64,
    writes: u64,
    media_errors: u64,
}

impl Logs {
    /// Counts a read that succeeded.
    pub fn count_read(&mut self, bytes: u64) {
        self.bytes_read += u128::from(bytes);
        self.reads += 1;
    }

    /// Counts a write that succeeded.
    pub fn count_write(&mut self, bytes: u64) {
        self.bytes_written += u128::from(bytes);
        self.writes += 1;
    }

    /// Counts an error of the medium.
    pub fn count_media_error(&mut self) {
        self.media_errors += 1;
    }

    /// Logs a command that failed.
    pub fn command_failed(&mut self, record: &CommandRecord, nsid: u32) {
        self.push(ErrorEntry {
            count: 0,
            sqid: record.sqid,
            cid: record.cid,
            status: record.status << 1,
            lba: record.slba,
            nsid,
        });
    }

    /// Logs an invalid doorbell write. The entry belongs to no command.
    pub fn invalid_doorbell(&mut self) {
        let status = Status::INVALID_FIELD.0 << 1;
        self.push(ErrorEntry { count: 0, sqid: 0xffff, cid: 0xffff, status, lba: 0, nsid: 0 });
    }

    fn push(&mut self, entry: ErrorEntry) {
        self.error_count += 1;
        self.errors.push_front(ErrorEntry { count: self.error_count, ..entry });
        self.errors.truncate(usize::from(ERROR_LOG_LIMIT) + 1);
    }

    /// Builds the whole page with this identifier.
    pub fn page(&self, id: u32) -> Result<Vec<u8>, Status> {
        match id {
            ERROR => Ok(self.error_page()),
            SMART => Ok(self.smart_page()),
            FIRMWARE_SLOT => {
                let mut page = vec![0; 512];
                page[0] = 1; // slot 1 is active
                page[8..16].copy_from_slice(FIRMWARE);
                Ok(page)
            }
            _ => Err(Status::INVALID_LOG_PAGE),
        }
    }

    fn error_page(&self) -> Vec<u8> {
        let mut page = vec![0; 64 * (usize::from(ERROR_LOG_LIMIT) + 1)];
        for (to, e) in page.chunks_exact_mut(64).zip(&self.errors) {
            to[0..8].copy_from_slice(&e.count.to_le_bytes());
            to[8..10].copy_from_slice(&e.sqid.to_le_bytes());
            to[10..12].copy_from_slice(&e.cid.to_le_bytes());
            to[12..14].copy_from_slice(&e.status.to_le_bytes());
            to[14..16].copy_from_slice(&0xffffu16.to_le_bytes()); // parameter error location: none
            to[16..24].copy_from_slice(&e.lba.to_le_bytes());
            to[24..28].copy_from_slice(&e.nsid.to_le_bytes());
        }
        page
    }

    fn smart_page(&self) -> Vec<u8> {
        // NVMe counts data in units of 1000 x 512 bytes, rounded up.
        let units = |bytes: u128| bytes.div_ceil(512_000);
        let mut page = vec![0; 512];
        page[1..3].copy_from_slice(&300u16.to_le_bytes()); // temperature, kelvin
        page[3] = 100; // available spare, percent
        page[4] = 10; // available spare threshold, percent
        let counters = [
            (32, units(self.bytes_read)),
            (48, units(self.bytes_written)),
            (64, self.reads.into()),
            (80, self.writes.into()),
            (112, 1), // power cycles
            (160, self.media_errors.into()),
            (176, self.error_count.into()),
        ];
        for (at, value) in counters {
            page[at..at + 16].copy_from_slice(&u128::to_le_bytes(value));
        }
        page
    }
}
