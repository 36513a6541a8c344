// SPDX-License-Identifier: Apache-2.0
//! The part of a profile for detailed timing: caches, memory, translation look-aside buffers, branch predictor.

use serde::{Deserialize, Serialize};
use toml::Table;
use trapless_memory::{ClockHz, Picos};

use crate::cache::LINE_SHIFT;
use crate::dram::DramTiming;
use crate::hierarchy::{HierarchyConfig, Level};
use crate::rules::Rule;
use crate::tlb::TlbConfig;

/// Parameters of detailed timing. A profile without them has only functional timing, where every access hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// Caches. Their lines have 64 bytes.
    pub caches: CacheParams,
    /// Memory behind the caches.
    pub dram: DramParams,
    /// Translation look-aside buffers.
    pub tlb: TlbParams,
    /// Branch predictor.
    pub predictor: PredictorParams,
}

fn smu_timed() -> bool {
    true
}

/// Caches of each core, and the last level, which all cores share. Cycles are in addition to a hit in the first level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheParams {
    /// Load-to-use latency of the page table walker's reads. Load instructions cost `core.load` instead.
    pub l1_cycles: u32,
    /// Size of the first level for code.
    pub l1i_kib: u32,
    /// Ways of the first level for code.
    pub l1i_ways: u32,
    /// Size of the first level for data.
    pub l1d_kib: u32,
    /// Ways of the first level for data.
    pub l1d_ways: u32,
    /// Size of the second level; 0: no second level.
    pub l2_kib: u32,
    /// Ways of the second level.
    pub l2_ways: u32,
    /// Added when the first level misses and the second level hits.
    pub l2_cycles: u32,
    /// Size of the last level, which all cores share; 0: no last level. With 0 the machine still tracks which core has which
    /// line, so that stores and devices invalidate the lines of other caches.
    pub last_kib: u32,
    /// Ways of the last level.
    pub last_ways: u32,
    /// Added when all levels before the last level miss.
    pub last_cycles: u32,
    /// Added when a line of code comes from memory. This models a core with lines shorter than 64 bytes, which needs several
    /// fetches for 64 bytes of straight code.
    #[serde(default)]
    pub fetch_cycles: u32,
    /// Added when another core must give up a line or the right to write it.
    pub snoop_cycles: u32,
    /// Number of stores that may wait for their lines while the core goes on; 0: the core waits for every store.
    pub store_buffer: u32,
    /// Whether the SMU's accesses to memory go through the hierarchy. If not, the times of its steps (`smu`) include them.
    #[serde(default = "smu_timed")]
    pub smu_timed: bool,
}

/// Memory: banks, each with one open row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramParams {
    /// Number of banks in all channels together, a power of two.
    pub banks: u32,
    /// Size of a row, KiB.
    pub row_kib: u32,
    /// Time from the last level's miss to the data, if the row is open, ns.
    pub column_ns: f64,
    /// Time to open a row, ns.
    pub activate_ns: f64,
    /// Time to close a row, ns.
    pub precharge_ns: f64,
    /// Time for which a request to an open row keeps the bank busy, ns.
    pub burst_ns: f64,
}

/// Translation look-aside buffers of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbParams {
    /// Number of entries of the first level for data.
    pub data_entries: u32,
    /// Ways of the first level for data.
    pub data_ways: u32,
    /// Number of entries of the first level for code.
    pub code_entries: u32,
    /// Ways of the first level for code.
    pub code_ways: u32,
    /// Number of entries of the second level.
    pub second_entries: u32,
    /// Ways of the second level.
    pub second_ways: u32,
    /// Added when the first level misses.
    pub second_cycles: u32,
}

/// Branch predictor of each hart. It has two-bit counters indexed by address and global history, a table of the last
/// targets of indirect jumps, and a return stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictorParams {
    /// Number of branches in the global history, and log2 of the number of counters, 1 to 16.
    pub history_bits: u32,
    /// Number of targets of indirect jumps to remember, a power of two, 1 to 4096.
    pub targets: u32,
    /// Number of return addresses to remember, a power of two, 1 to 64.
    pub returns: u32,
    /// Added for a wrong prediction.
    pub mispredict_cycles: u32,
}

impl Detail {
    /// Returns the configuration of caches and memory for `cores` cores with this clock.
    pub fn hierarchy(&self, cores: usize, clock: ClockHz) -> HierarchyConfig {
        let c = &self.caches;
        let level = |kib: u32, ways: u32, cycles: u32| Level {
            sets: (lines(kib) / ways) as usize,
            ways: ways as usize,
            cycles: cycles.into(),
        };
        let ns = |ns: f64| clock.cycles(Picos::from_nanos(ns)).0;
        HierarchyConfig {
            cores,
            l1i: level(c.l1i_kib, c.l1i_ways, 0),
            l1d: level(c.l1d_kib, c.l1d_ways, 0),
            l2: (c.l2_kib > 0).then(|| level(c.l2_kib, c.l2_ways, c.l2_cycles)),
            last: if c.last_kib > 0 {
                level(c.last_kib, c.last_ways, c.last_cycles)
            } else {
                // A directory without data, so large that it does not limit the other caches.
                let held = (c.l1i_kib + c.l1d_kib + c.l2_kib).next_power_of_two() * cores.next_power_of_two() as u32;
                level(DIRECTORY_SCALE * held, DIRECTORY_WAYS, 0)
            },
            last_has_data: c.last_kib > 0,
            fetch_cycles: c.fetch_cycles.into(),
            snoop_cycles: c.snoop_cycles.into(),
            dram: DramTiming {
                column: ns(self.dram.column_ns),
                activate: ns(self.dram.activate_ns),
                precharge: ns(self.dram.precharge_ns),
                burst: ns(self.dram.burst_ns),
                banks: self.dram.banks as usize,
                row_lines: lines(self.dram.row_kib).into(),
            },
        }
    }

    /// Returns the configuration of a core's TLBs.
    pub fn tlb(&self) -> TlbConfig {
        let t = &self.tlb;
        let shape = |entries: u32, ways: u32| ((entries / ways) as usize, ways as usize);
        TlbConfig {
            data: shape(t.data_entries, t.data_ways),
            code: shape(t.code_entries, t.code_ways),
            second: shape(t.second_entries, t.second_ways),
            second_cycles: t.second_cycles.into(),
        }
    }
}

/// Returns the rules for the keys of section `detail`. The table may be incomplete.
pub(crate) fn rules(detail: &Table) -> Vec<(&'static str, Rule)> {
    let whole = |section: &str, key: &str| detail.get(section)?.get(key)?.as_integer();
    let ways = |section: &str, key: &str| whole(section, key).unwrap_or(1);
    let cache = |key: &str, or_none| Rule::Ways { ways: ways("caches", key), per_unit: LINES_PER_KIB.into(), or_none };
    let tlb = |key: &str| Rule::Ways { ways: ways("tlb", key), per_unit: 1, or_none: false };
    // The ways of an absent level may be 0.
    let of = |kib: &str| Rule::Whole(i64::from(whole("caches", kib) != Some(0)), 1 << 24);
    let some = Rule::Whole(1, 1 << 24);
    let cycles = Rule::Whole(0, 10_000);
    let ns = Rule::Number(0.0, 1e6);
    vec![
        ("caches.l1_cycles", cycles.clone()),
        ("caches.l1i_ways", some.clone()),
        ("caches.l1i_kib", cache("l1i_ways", false)),
        ("caches.l1d_ways", some.clone()),
        ("caches.l1d_kib", cache("l1d_ways", false)),
        ("caches.l2_ways", of("l2_kib")),
        ("caches.l2_kib", cache("l2_ways", true)),
        ("caches.l2_cycles", cycles.clone()),
        ("caches.last_ways", of("last_kib")),
        ("caches.last_kib", cache("last_ways", true)),
        ("caches.last_cycles", cycles.clone()),
        ("caches.fetch_cycles", cycles.clone()),
        ("caches.snoop_cycles", cycles.clone()),
        ("caches.store_buffer", cycles.clone()),
        ("caches.smu_timed", Rule::Flag),
        ("dram.banks", Rule::PowerOfTwo(1, 65_536)),
        ("dram.row_kib", Rule::PowerOfTwo(1, 65_536)),
        ("dram.column_ns", ns.clone()),
        ("dram.activate_ns", ns.clone()),
        ("dram.precharge_ns", ns.clone()),
        ("dram.burst_ns", ns),
        ("tlb.data_ways", some.clone()),
        ("tlb.data_entries", tlb("data_ways")),
        ("tlb.code_ways", some.clone()),
        ("tlb.code_entries", tlb("code_ways")),
        ("tlb.second_ways", some),
        ("tlb.second_entries", tlb("second_ways")),
        ("tlb.second_cycles", cycles.clone()),
        ("predictor.history_bits", Rule::Whole(1, 16)),
        ("predictor.targets", Rule::PowerOfTwo(1, 4096)),
        ("predictor.returns", Rule::PowerOfTwo(1, 64)),
        ("predictor.mispredict_cycles", cycles),
    ]
}

/// A directory without data has room for this multiple of the lines in all caches.
const DIRECTORY_SCALE: u32 = 4;
/// Ways of such a directory.
const DIRECTORY_WAYS: u32 = 16;

/// Number of lines in one KiB.
const LINES_PER_KIB: u32 = 1024 >> LINE_SHIFT;

/// Returns the number of lines in `kib` KiB.
fn lines(kib: u32) -> u32 {
    kib.saturating_mul(LINES_PER_KIB)
}
