// SPDX-License-Identifier: Apache-2.0
//! Identify data structures (NVMe 1.4, section 5.15.2).

use crate::config::ControllerConfig;
use crate::namespace::Namespace;

/// Size of every identify structure in bytes.
pub const IDENTIFY_BYTES: usize = 4096;

/// PCI vendor: Red Hat, as in other emulated NVMe controllers.
pub const VENDOR: u16 = 0x1b36;
/// Firmware revision.
pub const FIRMWARE: &[u8; 8] = b"1       ";
/// Number of Abort commands that may be outstanding, zero-based.
const ABORT_LIMIT: u8 = 3;
/// Number of Asynchronous Event Requests that may be outstanding, zero-based.
pub const ASYNC_EVENT_LIMIT: u8 = 3;
/// Number of error log entries, zero-based.
pub const ERROR_LOG_LIMIT: u8 = 15;

/// An identify structure that is being filled in.
struct Page(Box<[u8; IDENTIFY_BYTES]>);

impl Page {
    fn new() -> Page {
        Page(Box::new([0; IDENTIFY_BYTES]))
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes an ASCII field: pads it with spaces, or cuts it to its length.
    fn text(&mut self, at: usize, len: usize, text: &str) {
        self.0[at..at + len].fill(b' ');
        for (to, c) in self.0[at..at + len].iter_mut().zip(text.bytes()) {
            *to = if c.is_ascii_graphic() { c } else { b' ' };
        }
    }
}

/// The supported formats: log2 of the size of a logical block in bytes.
const FORMATS: [u8; 2] = [9, 12];

/// Builds CNS 01h: Identify Controller.
pub fn controller(config: &ControllerConfig, namespaces: u32) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut p = Page::new();
    p.put(0, &VENDOR.to_le_bytes());
    p.put(2, &VENDOR.to_le_bytes());
    p.text(4, 20, &config.serial);
    p.text(24, 40, "Trapless SSD");
    p.put(64, FIRMWARE);
    p.put(77, &[config.max_transfer_pages.ilog2() as u8]); // MDTS
    p.put(80, &crate::regs::VERSION.to_le_bytes());
    p.put(111, &[1]); // CNTRLTYPE: I/O controller
    p.put(258, &[ABORT_LIMIT, ASYNC_EVENT_LIMIT]);
    p.put(260, &[0x03]); // FRMW: one slot, read only
    p.put(261, &[0x04]); // LPA: extended data for Get Log Page
    p.put(262, &[ERROR_LOG_LIMIT]);
    p.put(266, &343u16.to_le_bytes()); // WCTEMP, kelvin
    p.put(268, &353u16.to_le_bytes()); // CCTEMP, kelvin
    p.put(512, &[0x66, 0x44]); // SQES, CQES: 64 and 16 bytes
    p.put(516, &namespaces.to_le_bytes()); // NN
    p.put(520, &0x000cu16.to_le_bytes()); // ONCS: dataset management, write zeroes
    p.put(525, &[0x07]); // VWC: present, flush of all namespaces
    let uuid = hex(&identifier(config, 1));
    let nqn = format!(
        "nqn.2014-08.org.nvmexpress:uuid:{}-{}-{}-{}-{}",
        &uuid[0..8],
        &uuid[8..12],
        &uuid[12..16],
        &uuid[16..20],
        &uuid[20..32]
    );
    p.put(768, nqn.as_bytes());
    p.put(2048, &2500u16.to_le_bytes()); // power state 0: 25 W
    p.0
}

/// Builds CNS 00h: Identify Namespace.
pub fn namespace(config: &ControllerConfig, nsid: u32, ns: &Namespace) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut p = Page::new();
    for at in [0, 8, 16] {
        p.put(at, &ns.blocks().to_le_bytes()); // NSZE, NCAP, NUSE
    }
    let format = FORMATS.iter().position(|log2| 1 << log2 == ns.block_bytes).unwrap_or(0);
    p.put(25, &[FORMATS.len() as u8 - 1, format as u8]); // NLBAF, zero-based; FLBAS
    p.put(33, &[0x09]); // DLFEAT: deallocated blocks read as zero, Write Zeroes may deallocate
    p.put(99, &[u8::from(ns.backend.read_only())]); // NSATTR
    p.put(104, &identifier(config, nsid)); // NGUID
    for (i, log2) in FORMATS.iter().enumerate() {
        p.put(128 + 4 * i + 2, &[*log2]); // LBAF: LBADS
    }
    p.0
}

/// Builds CNS 02h: the active namespace identifiers greater than `above`.
pub fn active_namespaces(above: u32, namespaces: u32) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut p = Page::new();
    for (i, nsid) in (1..=namespaces).filter(|nsid| *nsid > above).enumerate() {
        p.put(4 * i, &nsid.to_le_bytes());
    }
    p.0
}

/// Builds CNS 03h: the descriptors that identify the namespace.
pub fn namespace_descriptors(config: &ControllerConfig, nsid: u32) -> Box<[u8; IDENTIFY_BYTES]> {
    let mut p = Page::new();
    p.put(0, &[2, 16]); // NGUID
    p.put(4, &identifier(config, nsid));
    p.0
}

/// Returns the FNV-1a hash (128 bits) of serial number and namespace.
fn identifier(config: &ControllerConfig, nsid: u32) -> [u8; 16] {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    // Namespace n adds n - 1 zero bytes to the serial number.
    for b in config.serial.bytes().chain((1..nsid).map(|_| 0)) {
        hash = (hash ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash.to_be_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
