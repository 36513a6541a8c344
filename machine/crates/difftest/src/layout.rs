// SPDX-License-Identifier: Apache-2.0
//! Where a test program keeps its things in physical memory.

/// Runtime: entry, trap handlers. Never accessible to U-mode. One 2 MiB page.
pub const RUNTIME: u64 = 0x8000_0000;
/// The handlers' save areas and variables, then block descriptors and initial registers.
pub const CONTROL: u64 = 0x8020_0000;
/// First descriptor.
pub const DESCRIPTORS: u64 = CONTROL + 0x1000;
/// Bytes of a descriptor.
pub const DESCRIPTOR_SIZE: u64 = 128;
/// Initial registers of the blocks.
pub const INITIAL: u64 = 0x8040_0000;
/// x0..x31, f0..f31, fcsr.
pub const INITIAL_SIZE: u64 = 65 * 8;
/// Page tables.
pub const TABLES: u64 = 0x80c0_0000;
/// Pages that the Sv39 tests map in all ways.
pub const PLAYGROUND: u64 = 0x80e0_0000;
/// Code of the blocks.
pub const CODE: u64 = 0x8100_0000;
/// Bytes for it.
pub const CODE_SIZE: u64 = 0x80_0000;
/// Data of the blocks: windows.
pub const DATA: u64 = 0x8180_0000;
/// Bytes of a window. Windows are laid so that some straddle pages.
pub const WINDOW: u64 = 1536;
/// Bytes for all windows.
pub const DATA_SIZE: u64 = 0x40_0000;
/// What happened, record by record. Compared, together with the data before it.
pub const LOG: u64 = DATA + DATA_SIZE;
/// Bytes for it.
pub const LOG_SIZE: u64 = 0x140_0000;
/// First byte after it.
pub const LOG_END: u64 = LOG + LOG_SIZE;
/// Memory the program needs.
pub const MEMORY: u64 = 128 << 20;

/// Other virtual addresses of the data pages, in a different order, for blocks that run with Sv39.
pub const ALIAS: u64 = 0x10_0000_0000;
/// A second mapping of the blocks' code, as user pages in both address spaces: U-mode parts of S-mode blocks run here.
pub const USER_CODE: u64 = 0x18_0000_0000;
/// Physical addresses where nothing is, on either machine.
pub const NOWHERE: u64 = 0x0800_0000;

/// ACLINT: software interrupt of hart 0.
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

/// Offsets in the save areas (the one of the M handler at [`CONTROL`], the one of the S handler after it).
pub mod save {
    /// f0..f31 follow x0..x31.
    pub const F: i64 = 256;
    /// Where the next record goes; M area only.
    pub const LOG_POINTER: i64 = 512;
    /// Current descriptor; M area only.
    pub const CURRENT: i64 = 520;
    /// Runs of the current block to go; M area only.
    pub const REPEAT: i64 = 528;
    /// Address of the block's last `ebreak`; M area only.
    pub const END_PC: i64 = 536;
    /// [`super::flag`] bits; M area only.
    pub const FLAGS: i64 = 544;
    /// Header of the current block's records; M area only.
    pub const HEADER: i64 = 552;
    /// Vector that was taken, 0 for none; in both.
    pub const VECTOR: i64 = 560;
    /// Hash of the traps that were not logged; M area only.
    pub const TRAP_HASH: i64 = 568;
    /// The S handler's save area, relative to the M handler's.
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

/// Multiplier of all hashes: odd, so that a difference never gets lost in the multiplication (Knuth's constant for MMIX).
pub const HASH_FACTOR: u64 = 6_364_136_223_846_793_005;
/// Fields of `mstatus` and `sstatus` that both machines have. QEMU 7.2 also lets VS, MPV and GVA be written without the
/// extensions that define them.
pub const STATUS: u64 = 0x8000_000f_007f_79aa;

/// Flags of a block.
pub mod flag {
    /// `ecall` comes back in M-mode.
    pub const ECALL_TO_M: u64 = 1;
    /// Traps are not logged but go into the hash that the end record has.
    pub const HASH_TRAPS: u64 = 2;
}

/// Log records: 64-bit words, first the kind in the top byte, then the vector, then the block's number.
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
