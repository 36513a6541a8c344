// SPDX-License-Identifier: Apache-2.0
//! Settings of A-SPF: what the paper leaves open, and both readings of each sentence that has two (studies/aspf/choices.md).

use serde::{Deserialize, Serialize};

/// A-SPF.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aspf {
    /// Pages of a set at most.
    pub set_capacity: u32,
    /// What happens to a page that would join a full set.
    pub full_set: FullSet,
    /// Whether a fault of an earlier turn of its process can be the previous one.
    pub sets_span_turns: bool,
    /// A set whose share of useful prefetches is lower is outdated.
    pub min_accuracy: f64,
    /// For whom pages are read before its turn.
    pub rebuilt: Rebuilt,
    /// When a page counts as accessed as it leaves DRAM.
    pub accessed: Accessed,
    /// Most pages read before one turn of a memory-intensive process.
    pub max_reconstruct: u32,
    /// Reads of theirs that are underway at a time.
    pub reconstruct_depth: u32,
    /// How the predictor counts a process's faults.
    pub fault_rate: FaultRate,
    /// Window of the predictor, ms.
    pub window_ms: f64,
    /// Whether postponed processes count as ready when slices are measured out.
    pub postponed_are_ready: bool,
}

impl Default for Aspf {
    fn default() -> Aspf {
        Aspf {
            set_capacity: 256,
            full_set: FullSet::Replace,
            sets_span_turns: false,
            min_accuracy: 0.5,
            rebuilt: Rebuilt::AnyIntense,
            accessed: Accessed::SinceRead,
            max_reconstruct: 4096,
            reconstruct_depth: 4,
            fault_rate: FaultRate::Window,
            window_ms: 24.0,
            postponed_are_ready: false,
        }
    }
}

/// A page would join a full set (III-B1, algorithm 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FullSet {
    /// The prose: the page at the set's tail makes room.
    Replace,
    /// The pseudocode, which has no `else`: the page stays without a set, and the next fault opens a new one.
    Leave,
}

/// Whose pages are read while a process runs that is not memory-intensive (III-B3, IV-C1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebuilt {
    /// Those of the first memory-intensive process in the order of virtual run times, then of the postpone queue.
    AnyIntense,
    /// Those of the process that runs next, if it is memory-intensive.
    NextOnly,
}

/// A page was accessed (algorithm 3: its bit is unset if it was "not accessed for a relative long time").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accessed {
    /// Since it was read.
    SinceRead,
    /// In the last turn of its process, at whose beginning the bits are cleared.
    LastTurn,
}

/// Which faults the predictor compares (III-C, algorithm 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultRate {
    /// Those in a window of time.
    Window,
    /// Those of the last turn, divided by its length.
    Turn,
}
