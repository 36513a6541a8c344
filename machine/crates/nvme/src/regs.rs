// SPDX-License-Identifier: Apache-2.0
//! Controller registers (NVMe 1.4, section 3.1).

pub const CAP: u64 = 0x00;
pub const VS: u64 = 0x08;
pub const INTMS: u64 = 0x0c;
pub const INTMC: u64 = 0x10;
pub const CC: u64 = 0x14;
pub const CSTS: u64 = 0x1c;
pub const AQA: u64 = 0x24;
pub const ASQ: u64 = 0x28;
pub const ACQ: u64 = 0x30;
/// Doorbells: submission queue tail and completion queue head of each queue, 4 bytes apart.
pub const DOORBELLS: u64 = 0x1000;

/// NVMe 1.4.
pub const VERSION: u32 = 0x0001_0400;

pub const CC_EN: u32 = 1;
/// I/O command set, memory page size and arbitration: only the value 0 is supported in each.
pub const CC_CSS_MPS_AMS: u32 = 0x3ff0;
pub const CC_SHN: u32 = 0xc000;
/// I/O submission and completion queue entry sizes: 64 and 16 bytes.
pub const CC_IOES: u32 = 0x00ff_0000;
pub const CC_IOES_VALID: u32 = 0x0046_0000;
pub const CC_WRITABLE: u32 = 0x00ff_fff1;

pub const CSTS_RDY: u32 = 1;
pub const CSTS_CFS: u32 = 1 << 1;
pub const CSTS_SHST: u32 = 0b11 << 2;
pub const CSTS_SHST_COMPLETE: u32 = 0b10 << 2;

/// Returns CAP: maximum queue entries, contiguous queues required, NVM command set, 4 KiB pages, doorbell stride 0, ready
/// within 1 s.
pub fn capabilities(max_queue_entries: u32) -> u64 {
    u64::from(max_queue_entries - 1) | 1 << 16 | 2 << 24 | 1 << 37
}
