// SPDX-License-Identifier: Apache-2.0
//! Profiles: TOML files with the parts and times of a machine.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use trapless_memory::{ClockHz, PAGE_SIZE, Paging};

use crate::detail::{self, Detail};
use crate::drive::{self, SsdParams};
use crate::error::{FileKind, ProfileError};
use crate::rules::{Rule, Rules};
use crate::source::{apply, merge};

/// Parts and times of a machine.
///
/// ```
/// use trapless_timing::Profile;
///
/// let profile = Profile::load("server", &["ssd=optane-ssd".into(), "machine.harts=4".into()])?;
/// assert_eq!((profile.machine.harts, profile.ssd.name.as_str()), (4, "optane-ssd"));
///
/// let error = Profile::load("server", &["core.mmio=-1".into()]).unwrap_err();
/// assert_eq!(error.to_string(), "profile server: core.mmio must be 1 to 10000, not -1");
/// # Ok::<(), trapless_timing::ProfileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, as printed in results.
    pub name: String,
    /// Harts, clocks, memory.
    pub machine: MachineParams,
    /// Cycles per instruction.
    pub core: CoreCosts,
    /// The Storage Management Unit.
    pub smu: SmuParams,
    /// The drive of every disk without the option `ssd`.
    pub ssd: SsdParams,
    /// Parameters of detailed timing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// Harts, clocks, memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineParams {
    /// Number of harts, 1 to 64.
    pub harts: u32,
    /// Number of harts that share a core with its issue slots, caches and TLBs, 1 or 2. If 2, harts 0 and 1 share a core.
    #[serde(default = "one_thread")]
    pub threads_per_core: u32,
    /// Core clock, Hz.
    pub clock_hz: u64,
    /// Clock of `mtime`, Hz.
    pub timebase_hz: u64,
    /// Size of memory, bytes.
    pub memory_bytes: u64,
    /// Longest turn of a hart before the other harts run, cycles.
    pub quantum_cycles: u64,
    /// Longest turn while both harts of a core run, cycles. It bounds the time until one hart notices that the other stalls.
    #[serde(default = "a_thousand")]
    pub thread_turn_cycles: u64,
    /// The deepest mode of virtual memory that harts have; an operating system may use a mode with fewer levels.
    #[serde(default)]
    pub paging: Paging,
    /// Number of upper page table entries that each hart's walker caches; 0: none. Reading a cached entry takes one cycle.
    pub walk_cache_entries: u32,
    /// Cost of an SBI call that the built-in SBI serves, cycles.
    pub sbi_call_cycles: u64,
}

fn one_thread() -> u32 {
    1
}

fn a_thousand() -> u64 {
    1000
}

/// Cycles that one instruction of each class takes when nothing misses, and the costs of traps and page table walks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreCosts {
    /// Integer arithmetic, logic, shifts, comparisons, and all instructions that are in no other class.
    pub alu: u32,
    /// Loads, including floating point.
    pub load: u32,
    /// Stores, including floating point.
    pub store: u32,
    /// Conditional branch that is not taken.
    pub branch: u32,
    /// Conditional branch that is taken.
    pub branch_taken: u32,
    /// `jal`.
    pub jump: u32,
    /// `jalr`. Detailed timing adds `mispredict_cycles` for a wrong prediction.
    pub jump_indirect: u32,
    /// Integer multiplication.
    pub mul: u32,
    /// Integer division and remainder.
    pub div: u32,
    /// LR, SC and AMO.
    pub amo: u32,
    /// Floating point moves, comparisons, sign injections.
    pub fp_move: u32,
    /// Floating point addition and subtraction.
    pub fp_add: u32,
    /// Floating point multiplication.
    pub fp_mul: u32,
    /// Fused multiply and add.
    pub fp_fma: u32,
    /// Conversions from and to floating point.
    pub fp_convert: u32,
    /// Floating point division.
    pub fp_div: u32,
    /// Square root.
    pub fp_sqrt: u32,
    /// CSR instructions, `wfi`, and `ecall` and `ebreak` without the trap.
    pub csr: u32,
    /// `fence`.
    pub fence: u32,
    /// `fence.i`.
    pub fence_i: u32,
    /// `sfence.vma`.
    pub sfence: u32,
    /// `mret` and `sret`.
    pub xret: u32,
    /// Entry into a trap handler.
    pub trap_entry: u32,
    /// Each level that a page table walk reads. With detailed timing, the caches decide this time instead.
    pub walk_level: u32,
    /// Added to a load or store whose address is not a multiple of its size.
    pub misaligned: u32,
    /// Added to a load or store outside memory, before the hart goes on. The device acts at once; the device's own times
    /// include the time to reach it.
    pub mmio: u32,
}

/// The Storage Management Unit. spec/smu.md has its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmuParams {
    /// Whether the machine has an SMU.
    pub present: bool,
    /// Number of PMSHR entries, 1 to 255.
    pub pmshr_entries: u32,
    /// Number of frames that the free page fetcher prefetches, 1 to 255.
    pub prefetch_entries: u32,
    /// Time of a request from the walker to the SMU, cycles.
    pub request_cycles: u64,
    /// Time of a search in the PMSHR, cycles.
    pub cam_cycles: u64,
    /// Time to write the 64-byte command, ns.
    pub command_write_ns: f64,
    /// Time to write the doorbell, ns.
    pub doorbell_ns: f64,
    /// Time to decode a completion queue entry, cycles.
    pub completion_cycles: u64,
    /// Time to update PTE, PMD and PUD, all three together, cycles.
    pub update_cycles: u64,
    /// Time of an answer from the SMU to the walker, cycles.
    pub notify_cycles: u64,
    /// Time between two polls of the completion queue, cycles.
    pub poll_interval_cycles: u64,
    /// Time from a doorbell to the first poll, cycles. If absent, the SMU polls at multiples of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_look_cycles: Option<u64>,
    /// Time to read a free ring entry, ns.
    pub ring_read_ns: f64,
}

impl Profile {
    /// The built-in profiles: name and TOML text.
    pub const BUILT_IN: [(&'static str, &'static str); 3] = [
        ("vc707", include_str!("../../../profiles/vc707.toml")),
        ("server", include_str!("../../../profiles/server.toml")),
        ("cva6", include_str!("../../../profiles/cva6.toml")),
    ];

    /// Loads the built-in profile called `name`, or else the file `name`, and applies `overrides`, each
    /// `section.key=value`. A file may say `extends = "NAME"` to change only some keys of a built-in profile. Its `ssd` is the
    /// name or file of a drive, or a section, which again may say `extends = "NAME"`; `ssd=NAME` changes the drive.
    ///
    /// # Errors
    /// Fails with one line that names the profile and the key.
    pub fn load(name: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
        let text = FileKind::Profile.called(name).read(&Profile::BUILT_IN)?;
        Profile::parse(name, &text, overrides)
    }

    /// Like [`Profile::load`], but takes the text of the file. Errors call the profile `name`.
    ///
    /// # Errors
    /// Fails with one line that names the profile and the key.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
        let file = FileKind::Profile.called(name);
        let mut table = file.parse(text)?;
        let whole_drive = drive::expand(&file, &mut table)?;
        if let Some(base) = table.remove("extends") {
            let base = file.base("extends", &base, &Profile::BUILT_IN)?;
            let own = std::mem::replace(&mut table, base);
            // The base's drive is needed only if this profile has no complete drive.
            if !whole_drive {
                drive::expand(&file, &mut table)?;
            }
            merge(&mut table, own);
        }
        for change in overrides {
            apply(&mut table, change)?;
            drive::expand(&file, &mut table)?;
        }
        let rules = rules(&table);
        file.values(table, &rules)
    }

    /// Returns the core clock.
    pub fn clock(&self) -> ClockHz {
        ClockHz(self.machine.clock_hz)
    }
}

/// Returns the rules for all keys of a profile. The table may be incomplete.
fn rules(profile: &Table) -> Rules {
    let section = |name| profile.get(name).and_then(Value::as_table).cloned().unwrap_or_default();
    let mut rules = Rules::new();
    rules.section("", [("name", Rule::Text)]);
    rules.section("machine", machine_rules(&section("machine")));
    rules.section("core", CORE_COSTS.map(|key| (key, Rule::Whole(1, 10_000))));
    rules.section("smu", smu_rules());
    rules.section("ssd", drive::rules(&section("ssd")));
    rules.section("detail", detail::rules(&section("detail")));
    rules
}

fn machine_rules(machine: &Table) -> Vec<(&'static str, Rule)> {
    let clock_hz = machine.get("clock_hz").and_then(Value::as_integer).unwrap_or(i64::MAX);
    vec![
        ("harts", Rule::Whole(1, 64)),
        ("threads_per_core", Rule::Whole(1, 2)),
        ("clock_hz", Rule::Whole(1_000_000, 100_000_000_000)),
        ("timebase_hz", Rule::Whole(1_000, clock_hz.min(1_000_000_000))),
        ("memory_bytes", Rule::Multiple(16 << 20, 64 << 30, PAGE_SIZE as i64)),
        ("quantum_cycles", Rule::Whole(10, 10_000_000)),
        ("thread_turn_cycles", Rule::Whole(10, 10_000_000)),
        ("paging", Rule::OneOf(&["sv39", "sv48", "sv57"], "")),
        ("walk_cache_entries", Rule::Whole(0, 1024)),
        ("sbi_call_cycles", Rule::Whole(0, 1_000_000)),
    ]
}

/// The keys of [`CoreCosts`].
const CORE_COSTS: [&str; 26] = [
    "alu",
    "load",
    "store",
    "branch",
    "branch_taken",
    "jump",
    "jump_indirect",
    "mul",
    "div",
    "amo",
    "fp_move",
    "fp_add",
    "fp_mul",
    "fp_fma",
    "fp_convert",
    "fp_div",
    "fp_sqrt",
    "csr",
    "fence",
    "fence_i",
    "sfence",
    "xret",
    "trap_entry",
    "walk_level",
    "misaligned",
    "mmio",
];

fn smu_rules() -> Vec<(&'static str, Rule)> {
    let cycles = Rule::Whole(0, 1_000_000);
    let ns = Rule::Number(0.0, 1e6);
    vec![
        ("present", Rule::Flag),
        ("pmshr_entries", Rule::Whole(1, 255)),
        ("prefetch_entries", Rule::Whole(1, 255)),
        ("request_cycles", cycles.clone()),
        ("cam_cycles", cycles.clone()),
        ("command_write_ns", ns.clone()),
        ("doorbell_ns", ns.clone()),
        ("completion_cycles", cycles.clone()),
        ("update_cycles", cycles.clone()),
        ("notify_cycles", cycles.clone()),
        ("poll_interval_cycles", Rule::Whole(1, 1_000_000)),
        ("first_look_cycles", cycles),
        ("ring_read_ns", ns),
    ]
}

#[cfg(test)]
mod tests;
