// SPDX-License-Identifier: Apache-2.0
//! Layout of a test program in physical memory.

/// The runtime: entry and trap handlers. One 2 MiB page, never accessible to U-mode.
pub const RUNTIME: u64 = 0x8000_0000;
/// Save areas and variables of the handlers, then block descriptors and initial registers.
pub const CONTROL: u64 = 0x8020_0000;
/// Address of the first descriptor.
pub const DESCRIPTORS: u64 = CONTROL + 0x1000;
/// Bytes of a descriptor.
pub const DESCRIPTOR_SIZE: u64 = 128;
/// Initial registers of the blocks.
pub const INITIAL: u64 = 0x8040_0000;
/// Bytes of the initial registers of a block: x0..x31, f0..f31, fcsr.
pub const INITIAL_SIZE: u64 = 65 * 8;
/// Page tables.
pub const TABLES: u64 = 0x80c0_0000;
/// Pages that the paging tests map in all ways.
pub const PLAYGROUND: u64 = 0x80e0_0000;
/// Code of the blocks.
pub const CODE: u64 = 0x8100_0000;
/// Bytes for the blocks' code.
pub const CODE_SIZE: u64 = 0x80_0000;
/// Data of the blocks, as windows.
pub const DATA: u64 = 0x8180_0000;
/// Bytes of a window. Windows are placed so that some of them cross page borders.
pub const WINDOW: u64 = 1536;
/// Bytes for all windows.
pub const DATA_SIZE: u64 = 0x40_0000;
/// The log of what happened, as records. It is compared, together with the data before it.
pub const LOG: u64 = DATA + DATA_SIZE;
/// Bytes for the log.
pub const LOG_SIZE: u64 = 0x140_0000;
/// First byte after the log.
pub const LOG_END: u64 = LOG + LOG_SIZE;
/// Memory that the program needs.
pub const MEMORY: u64 = 128 << 20;

/// A second mapping of the data pages, in a different order, for blocks that run with Sv39.
pub const ALIAS: u64 = 0x10_0000_0000;
/// A second mapping of the blocks' code, as user pages in both address spaces: U-mode parts of S-mode blocks run here.
pub const USER_CODE: u64 = 0x18_0000_0000;
/// A physical address without memory or device on either machine.
pub const NOWHERE: u64 = 0x0800_0000;

/// ACLINT: register of the software interrupt of hart 0.
pub const MSIP: u64 = 0x0200_0000;
/// ACLINT: timer compare register of hart 0.
pub const MTIMECMP: u64 = 0x0200_4000;
/// Test finisher.
pub const FINISHER: u64 = 0x0010_0000;
/// The finisher's word for power off.
pub const POWER_OFF: u64 = 0x5555;
/// PLIC.
pub const PLIC: u64 = 0x0c00_0000;
/// UART.
pub const UART: u64 = 0x1000_0000;
/// PLIC source of the UART.
pub const UART_SOURCE: u64 = 10;

/// Offsets in the save areas. That of the M handler is at [`CONTROL`], that of the S handler after it.
pub mod save {
    /// f0..f31 follow x0..x31.
    pub const F: i64 = 256;
    /// Address of the next record; M area only.
    pub const LOG_POINTER: i64 = 512;
    /// Current descriptor; M area only.
    pub const CURRENT: i64 = 520;
    /// How many more times the current block runs; M area only.
    pub const REPEAT: i64 = 528;
    /// Address of the block's last `ebreak`; M area only.
    pub const END_PC: i64 = 536;
    /// [`super::flag`] bits; M area only.
    pub const FLAGS: i64 = 544;
    /// Header of the current block's records; M area only.
    pub const HEADER: i64 = 552;
    /// Vector that was taken, 0 for none; in both areas.
    pub const VECTOR: i64 = 560;
    /// Hash of the traps that were not logged; M area only.
    pub const TRAP_HASH: i64 = 568;
    /// Offset of the S handler's save area from the M handler's.
    pub const S_AREA: i64 = 1024;
}

/// Offsets in a descriptor.
pub mod descriptor {
    #![allow(missing_docs)]
    pub const ENTRY: i64 = 0;
    pub const END_PC: i64 = 8;
    pub const MSTATUS: i64 = 16;
    pub const SATP: i64 = 24;
    pub const MEDELEG: i64 = 32;
    pub const MIDELEG: i64 = 40;
    pub const INITIAL: i64 = 48;
    pub const REPEAT: i64 = 56;
    pub const FLAGS: i64 = 64;
    pub const HEADER: i64 = 72;
}

/// Multiplier of all hashes. It is odd, so that a multiplication never loses a difference (Knuth's constant for MMIX).
pub const HASH_FACTOR: u64 = 6_364_136_223_846_793_005;
/// Fields of `mstatus` and `sstatus` that both machines have, without XS, which is zero. QEMU 7.2 also accepts writes to VS, MPV
/// and GVA without the extensions that define them.
pub const STATUS: u64 = 0x8000_000f_007e_79aa;

/// Flags of a block.
pub mod flag {
    /// `ecall` continues in M-mode.
    pub const ECALL_TO_M: u64 = 1;
    /// Traps are not logged; they go into the hash in the end record.
    pub const HASH_TRAPS: u64 = 2;
}

/// Log records: 64-bit words. The first one has the kind in its top byte, then the vector, then the block's number.
pub mod record {
    /// A trap that the M handler took: cause, pc, value, status.
    pub const TRAP_M: u64 = 1;
    /// A trap that the S handler took.
    pub const TRAP_S: u64 = 2;
    /// A block's end: x1..x31, f0..f31, fcsr, mstatus, sepc, scause, stval, hash of traps.
    pub const END: u64 = 3;
    /// Words of a trap record.
    pub const TRAP_WORDS: usize = 5;
    /// Words of an end record.
    pub const END_WORDS: usize = 1 + 31 + 32 + 1 + 5;
}
