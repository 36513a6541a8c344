// SPDX-License-Identifier: Apache-2.0
//! The configuration of a controller.

/// Configuration of a controller. The three limits are not checked here: they come from a drive's parameters
/// ([`trapless_timing::SsdParams`]), which check them.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Serial number, at most 20 ASCII characters. It must be unique, because the namespaces' identifiers are made from it.
    pub serial: String,
    /// Largest transfer in 4 KiB pages, a power of two up to 1024.
    pub max_transfer_pages: u32,
    /// Number of I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Number of entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}
