// SPDX-License-Identifier: Apache-2.0
//! Memory access traces: which page or line each hart accessed, in order, folded and compressed.
//!
//! A [`Writer`] receives every access and writes an entry whenever a stream (one kind of access of one hart) goes on in
//! another block; a [`Reader`] gives the entries back. docs/reference/trace-format.md describes every byte and is the authority.

mod bytes;
mod error;
mod reader;
mod writer;

pub use error::Error;
pub use reader::Reader;
pub use writer::Writer;

/// First bytes of a trace; the last one is the version of the format.
pub const MAGIC: [u8; 8] = *b"TLTRACE\x01";
/// Bytes of entries in a chunk, decompressed, at most.
pub const CHUNK: usize = 1 << 18;
/// Harts of a trace at most.
pub const HARTS: u16 = 1024;

/// Kind of an access; the number is that in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Fetch of an instruction.
    Fetch = 0,
    /// Load, or load-reserved.
    Load = 1,
    /// Store, store-conditional, or other atomic operation.
    Store = 2,
}

impl Kind {
    /// All kinds, by number.
    pub const ALL: [Kind; 3] = [Kind::Fetch, Kind::Load, Kind::Store];
}

/// Size of the blocks that a trace tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// 4 KiB.
    Page,
    /// 64 bytes.
    Line,
}

impl Grain {
    /// log2 of a block's size in bytes.
    pub const fn shift(self) -> u32 {
        match self {
            Grain::Page => 12,
            Grain::Line => 6,
        }
    }
}

/// What a trace says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of blocks.
    pub grain: Grain,
    /// Harts of the machine, at most [`HARTS`].
    pub harts: u16,
    /// Accesses of the kernel and of firmware are in there, not user programs' alone.
    pub kernel: bool,
    /// Cycles a second; 0 if there is no clock and all cycles are 0.
    pub clock_hz: u64,
    /// Name of the machine's profile.
    pub profile: String,
    /// Program and version that wrote it.
    pub writer: String,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Page number of the root page table; 0: addresses are physical, or those of the host's program that was recorded.
    pub space: u64,
    /// Executed by the kernel or firmware.
    pub kernel: bool,
    /// Virtual address divided by the size of a block.
    pub block: u64,
}

/// When: counted by the hart that makes the access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Instructions that the hart had retired before the one at hand.
    pub instructions: u64,
    /// The hart's local time in cycles.
    pub cycle: u64,
}

/// One entry of a trace. Those of one hart are in the order of time; between harts see [`Moment::cycle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The stream of `hart` and `kind` goes on in another place. The run that begins here lasts until the stream's next
    /// entry, which says how many accesses it had.
    Run {
        /// Whose.
        hart: u16,
        /// Kind of the access.
        kind: Kind,
        /// Where it goes on.
        place: Place,
        /// When its first access is made.
        at: Moment,
        /// Accesses of the stream's run that ends here; 0 if there is none.
        ended: u64,
    },
    /// All runs of `hart` end: recording stops, for a while or for good.
    Close {
        /// Whose.
        hart: u16,
        /// When.
        at: Moment,
        /// Accesses of the runs that end here, by kind.
        ended: [u64; 3],
    },
}

/// Sums over a trace, kept in its last bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries.
    pub entries: u64,
    /// Accesses by kind.
    pub accesses: [u64; 3],
}

impl Totals {
    #[inline]
    fn add(&mut self, entry: &Entry) {
        self.entries += 1;
        match entry {
            Entry::Run { kind, ended, .. } => self.count(*kind, *ended),
            Entry::Close { ended, .. } => Kind::ALL.iter().zip(ended).for_each(|(kind, n)| self.count(*kind, *n)),
        }
    }

    fn count(&mut self, kind: Kind, n: u64) {
        let sum = &mut self.accesses[kind as usize];
        *sum = sum.wrapping_add(n);
    }
}

/// What deltas in the file are relative to.
#[derive(Clone, Default)]
struct Last {
    space: u64,
    at: Moment,
    blocks: [u64; 3],
}

/// The first byte of an entry.
mod flag {
    /// Kind of a run, or [`CLOSE`].
    pub const KIND: u8 = 3;
    /// All runs of the hart end.
    pub const CLOSE: u8 = 3;
    /// Executed by the kernel.
    pub const KERNEL: u8 = 1 << 2;
    /// The hart's number follows: it is another than the last entry's.
    pub const HART: u8 = 1 << 3;
    /// The address space follows: it is another than in the hart's last run.
    pub const SPACE: u8 = 1 << 4;
}

/// The first byte of a chunk.
mod chunk {
    pub const HEADER: u8 = b'H';
    pub const ENTRIES: u8 = b'E';
    pub const TOTALS: u8 = b'T';
    /// Compressed bytes at most: what zstd makes of [`super::CHUNK`] bytes that it cannot compress.
    pub const COMPRESSED: usize = super::CHUNK + (super::CHUNK >> 8) + 64;
}

#[cfg(test)]
mod tests;
