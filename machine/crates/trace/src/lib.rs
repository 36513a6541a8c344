// SPDX-License-Identifier: Apache-2.0
//! Memory access traces: the pages or lines that each hart accessed, in order. Runs of accesses to one place are folded into one
//! entry, and the entries are compressed.
//!
//! A [`Writer`] receives every access. It writes an entry whenever a stream (one kind of access of one hart) moves to another
//! block. A [`Reader`] returns the entries. docs/reference/trace-format.md defines every byte of the format.

mod bytes;
mod error;
mod reader;
mod writer;

pub use error::Error;
pub use reader::Reader;
pub use writer::Writer;

/// First bytes of a trace. The last of them is the version of the format.
pub const MAGIC: [u8; 8] = *b"TLTRACE\x01";
/// Largest size of the entries in a chunk, decompressed, in bytes.
pub const CHUNK: usize = 1 << 18;
/// Largest number of harts in a trace.
pub const HARTS: u16 = 1024;

/// Kind of an access, with its number in the file.
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

/// Size of the blocks of a trace.
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

/// Header of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of blocks.
    pub grain: Grain,
    /// Number of harts of the machine, at most [`HARTS`].
    pub harts: u16,
    /// Whether the trace also has the accesses of the kernel and of firmware, not only those of user programs.
    pub kernel: bool,
    /// Cycles per second; 0 if the machine has no clock and all cycles are 0.
    pub clock_hz: u64,
    /// Name of the machine's profile.
    pub profile: String,
    /// Name and version of the program that wrote the trace.
    pub writer: String,
}

/// Place of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Page number of the root page table. 0 means that addresses are physical, or are those of a recorded program on the host.
    pub space: u64,
    /// Whether the kernel or firmware made the access.
    pub kernel: bool,
    /// Virtual address divided by the size of a block.
    pub block: u64,
}

/// Time of an access, as counted by the hart that makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Number of instructions that the hart had retired before the current one.
    pub instructions: u64,
    /// The hart's local time in cycles.
    pub cycle: u64,
}

/// One entry of a trace. The entries of one hart are in the order of time. To order entries of several harts, use
/// [`Moment::cycle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The stream of `hart` and `kind` moves to another place. The run that begins here ends at the stream's next entry,
    /// which has the number of its accesses.
    Run {
        /// The hart.
        hart: u16,
        /// Kind of the access.
        kind: Kind,
        /// The new place of the stream.
        place: Place,
        /// Time of the first access of the new run.
        at: Moment,
        /// Number of accesses of the stream's run that ends here; 0 if no run ends.
        ended: u64,
    },
    /// All runs of `hart` end, because recording pauses or stops.
    Close {
        /// The hart.
        hart: u16,
        /// Time at which the runs end.
        at: Moment,
        /// Number of accesses of the runs that end here, by kind.
        ended: [u64; 3],
    },
}

/// Sums over a trace, which its last bytes contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of entries.
    pub entries: u64,
    /// Number of accesses, by kind.
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

/// The latest values of a hart. The deltas in the file are relative to them.
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
    /// The entry ends all runs of the hart.
    pub const CLOSE: u8 = 3;
    /// The kernel made the access.
    pub const KERNEL: u8 = 1 << 2;
    /// The hart's number follows, because it differs from that of the entry before.
    pub const HART: u8 = 1 << 3;
    /// The address space follows, because it differs from that of the hart's last run.
    pub const SPACE: u8 = 1 << 4;
}

/// The first byte of a chunk.
mod chunk {
    pub const HEADER: u8 = b'H';
    pub const ENTRIES: u8 = b'E';
    pub const TOTALS: u8 = b'T';
    /// Largest size of a compressed chunk: zstd needs this many bytes for [`super::CHUNK`] bytes that it cannot compress.
    pub const COMPRESSED: usize = super::CHUNK + (super::CHUNK >> 8) + 64;
}

#[cfg(test)]
mod tests;
