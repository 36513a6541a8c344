// SPDX-License-Identifier: Apache-2.0
//! Settings of A-SPF: what the paper leaves open, and both readings of each sentence that can be read in two ways
//! (studies/aspf/choices.md).

use serde::{Deserialize, Serialize};

/// A-SPF.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aspf {
    /// Largest number of pages in a set.
    pub set_capacity: u32,
    /// What happens to a page that would join a full set.
    pub full_set: FullSet,
    /// Whether a set may join two faults of a process in different turns.
    pub sets_span_turns: bool,
    /// A set is outdated when its share of useful prefetches falls below this.
    pub min_accuracy: f64,
    /// The process whose pages are read before its turn.
    pub rebuilt: Rebuilt,
    /// When a page that leaves DRAM counts as accessed.
    pub accessed: Accessed,
    /// Largest number of pages to read before a turn of a memory-intensive process.
    pub max_reconstruct: u32,
    /// Number of these reads that are under way at a time.
    pub reconstruct_depth: u32,
    /// How the predictor counts a process's faults.
    pub fault_rate: FaultRate,
    /// Window of the predictor, ms.
    pub window_ms: f64,
    /// Whether postponed processes count as ready when the length of a slice is computed.
    pub postponed_are_ready: bool,
}

/// The readings with which A-SPF* saves the most time on a realistic drive (studies/aspf/results-readings.md).
impl Default for Aspf {
    fn default() -> Aspf {
        Aspf {
            set_capacity: 16,
            full_set: FullSet::Leave,
            sets_span_turns: true,
            min_accuracy: 0.5,
            rebuilt: Rebuilt::NextOnly,
            accessed: Accessed::LastTurn,
            max_reconstruct: 4096,
            reconstruct_depth: 4,
            fault_rate: FaultRate::Window,
            window_ms: 24.0,
            postponed_are_ready: false,
        }
    }
}

/// What happens to a page that would join a full set (III-B1, algorithm 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FullSet {
    /// As the paper's text says: the page at the set's tail makes room.
    Replace,
    /// As the pseudocode says, which has no `else`: the page stays without a set, and the next fault opens a new one.
    Leave,
}

/// Whose pages are read while a process runs that is not memory-intensive (III-B3, IV-C1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebuilt {
    /// Pages of the first memory-intensive process, in the order of virtual run times and then of the postpone queue.
    AnyIntense,
    /// Pages of the process that runs next, if it is memory-intensive.
    NextOnly,
}

/// When a page counts as accessed (algorithm 3: its bit is unset if it was "not accessed for a relative long time").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accessed {
    /// If it was accessed since it was read.
    SinceRead,
    /// If it was accessed in the last turn of its process. The bits are cleared at the beginning of a turn.
    LastTurn,
}

/// The faults that the predictor compares (III-C, algorithm 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultRate {
    /// Faults in a window of time.
    Window,
    /// Faults of the last turn, divided by its length.
    Turn,
}
