// SPDX-License-Identifier: Apache-2.0
//! The part of a profile for detailed timing: caches, memory, translation look-aside buffers, branch predictor.

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Picos};

use crate::cache::LINE_SHIFT;
use crate::dram::DramTiming;
use crate::hierarchy::{HierarchyConfig, Level};
use crate::tlb::TlbConfig;

/// What lies between a core and its data. A profile without it has only functional timing: every access hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// Caches; lines have 64 bytes.
    pub caches: CacheParams,
    /// Memory behind them.
    pub dram: DramParams,
    /// Translation look-aside buffers.
    pub tlb: TlbParams,
    /// Branch predictor.
    pub predictor: PredictorParams,
}

fn smu_timed() -> bool {
    true
}

/// Caches of each core, and the one that all share. Cycles are those beyond a hit in the first level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // Sizes in KiB, ways and cycles of what the names say.
pub struct CacheParams {
    /// From load to use, as the page walker waits; what loads of the pipeline cost is `core.load`.
    pub l1_cycles: u32,
    pub l1i_kib: u32,
    pub l1i_ways: u32,
    pub l1d_kib: u32,
    pub l1d_ways: u32,
    /// 0: there is no second level.
    pub l2_kib: u32,
    pub l2_ways: u32,
    pub l2_cycles: u32,
    /// 0: there is none; who holds what is known all the same, so that stores and devices reach the other caches.
    pub last_kib: u32,
    pub last_ways: u32,
    pub last_cycles: u32,
    /// Added when a line of code comes from memory: a core whose lines are shorter than these fetches straight code by several.
    #[serde(default)]
    pub fetch_cycles: u32,
    /// Added when another core has to give up a line or the right to write it.
    pub snoop_cycles: u32,
    /// Stores of a core that may wait for their lines while it goes on; 0: it waits.
    pub store_buffer: u32,
    /// Whether the SMU's accesses to memory go through the hierarchy; otherwise the times of its steps ([smu]) have them in them.
    #[serde(default = "smu_timed")]
    pub smu_timed: bool,
}

/// Memory: banks with one open row each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramParams {
    /// Banks of all channels together, a power of two.
    pub banks: u32,
    /// Size of a row, KiB.
    pub row_kib: u32,
    /// From the last level's miss to the data of an open row, ns.
    pub column_ns: f64,
    /// Opening a row, ns.
    pub activate_ns: f64,
    /// Closing one, ns.
    pub precharge_ns: f64,
    /// How long a request keeps the bank of an open row busy, ns.
    pub burst_ns: f64,
}

/// Translation look-aside buffers of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // Entries, ways and cycles of what the names say.
pub struct TlbParams {
    pub data_entries: u32,
    pub data_ways: u32,
    pub code_entries: u32,
    pub code_ways: u32,
    pub second_entries: u32,
    pub second_ways: u32,
    pub second_cycles: u32,
}

/// Branch predictor of each hart: two-bit counters by address and global history, last targets of indirect jumps, a
/// return stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictorParams {
    /// Branches of history, and log2 of the number of counters, 1 to 16.
    pub history_bits: u32,
    /// Targets of indirect jumps kept, a power of two, 1 to 4096.
    pub targets: u32,
    /// Return addresses kept, a power of two, 1 to 64.
    pub returns: u32,
    /// Added when a prediction was wrong.
    pub mispredict_cycles: u32,
}

impl Detail {
    /// The first value that makes no sense: its key, the value, what it should be.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String, String)> {
        let (c, d, t, p) = (&self.caches, &self.dram, &self.tlb, &self.predictor);
        let sizes = [
            ("detail.caches.l1i_kib", lines(c.l1i_kib), c.l1i_ways),
            ("detail.caches.l1d_kib", lines(c.l1d_kib), c.l1d_ways),
            ("detail.caches.l2_kib", lines(c.l2_kib), c.l2_ways),
            ("detail.caches.last_kib", lines(c.last_kib), c.last_ways),
            ("detail.tlb.data_entries", t.data_entries, t.data_ways),
            ("detail.tlb.code_entries", t.code_entries, t.code_ways),
            ("detail.tlb.second_entries", t.second_entries, t.second_ways),
        ];
        for (key, entries, ways) in sizes {
            if ["detail.caches.l2_kib", "detail.caches.last_kib"].contains(&key) && entries == 0 {
                continue;
            }
            let sound = ways > 0 && entries % ways == 0 && (entries / ways).is_power_of_two() && entries <= 1 << 24;
            if !sound {
                return Some((key, entries.to_string(), format!("entries or lines: {ways} ways times a power of two")));
            }
        }
        let powers = [
            ("detail.dram.banks", d.banks, 65_536),
            ("detail.dram.row_kib", d.row_kib, 65_536),
            ("detail.predictor.targets", p.targets, 4096),
            ("detail.predictor.returns", p.returns, 64),
        ];
        for (key, value, most) in powers {
            if !value.is_power_of_two() || value > most {
                return Some((key, value.to_string(), format!("a power of two up to {most}")));
            }
        }
        if !(1..=16).contains(&p.history_bits) {
            return Some(("detail.predictor.history_bits", p.history_bits.to_string(), "1 to 16".into()));
        }
        let cycles = [
            ("detail.caches.l1_cycles", c.l1_cycles),
            ("detail.caches.l2_cycles", c.l2_cycles),
            ("detail.caches.last_cycles", c.last_cycles),
            ("detail.caches.fetch_cycles", c.fetch_cycles),
            ("detail.caches.snoop_cycles", c.snoop_cycles),
            ("detail.caches.store_buffer", c.store_buffer),
            ("detail.tlb.second_cycles", t.second_cycles),
            ("detail.predictor.mispredict_cycles", p.mispredict_cycles),
        ];
        for (key, value) in cycles {
            if value > 10_000 {
                return Some((key, value.to_string(), "0 to 10000".into()));
            }
        }
        let times = [
            ("detail.dram.column_ns", d.column_ns),
            ("detail.dram.activate_ns", d.activate_ns),
            ("detail.dram.precharge_ns", d.precharge_ns),
            ("detail.dram.burst_ns", d.burst_ns),
        ];
        times
            .into_iter()
            .find(|(_, ns)| !(0.0..=1e6).contains(ns))
            .map(|(key, ns)| (key, ns.to_string(), "0 to 1000000".into()))
    }

    /// The caches and the memory of `cores` cores with this clock.
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
                // A directory in which what the other caches hold never presses for room.
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

    /// The buffers of a core.
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

/// How many times what it lists a directory without data could list.
const DIRECTORY_SCALE: u32 = 4;
/// Its ways.
const DIRECTORY_WAYS: u32 = 16;

/// Lines in so many KiB.
fn lines(kib: u32) -> u32 {
    kib.saturating_mul(1024 >> LINE_SHIFT)
}
