// SPDX-License-Identifier: Apache-2.0
//! What a controller is made to be.

/// What distinguishes one controller from another. The sizes are taken as a drive's parameters
/// ([`trapless_timing::SsdParams`]) have them, where they were checked.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Serial number, at most 20 ASCII characters; the namespaces' identifiers are made from it, so it must be unique.
    pub serial: String,
    /// Largest transfer in 4 KiB pages, a power of two up to 1024.
    pub max_transfer_pages: u32,
    /// I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}
