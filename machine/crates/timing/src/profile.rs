// SPDX-License-Identifier: Apache-2.0
//! Profiles: TOML files that say what a machine is made of and how long everything takes.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use trapless_memory::{ClockHz, PAGE_SIZE, Paging};

use crate::Detail;
use crate::drive::{self, SsdParams};

/// A profile could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a built-in profile nor a file.
    #[error("profile {0}: no such built-in profile ({known}) and no such file", known = Profile::BUILT_IN.map(|p| p.0).join(", "))]
    Unknown(String),
    /// Neither a built-in drive nor a file.
    #[error("ssd {0}: no such built-in drive ({known}) and no such file", known = SsdParams::BUILT_IN.map(|d| d.0).join(", "))]
    UnknownDrive(String),
    /// The file cannot be read.
    #[error("profile {name}: cannot read it: {reason}")]
    Read {
        /// Profile name or file.
        name: String,
        /// What the host said.
        reason: String,
    },
    /// Not TOML.
    #[error("profile {name}: line {line}: {reason}")]
    Syntax {
        /// Profile name or file.
        name: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A key is unknown, missing or of the wrong type.
    #[error("profile {name}: {key}: {reason}")]
    Key {
        /// Profile name or file.
        name: String,
        /// The key, dotted.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A value is out of range.
    #[error("profile {name}: {key}: {value} is out of range ({range})")]
    Range {
        /// Profile name or file.
        name: String,
        /// The key, dotted.
        key: String,
        /// The value found.
        value: String,
        /// What it should be.
        range: String,
    },
    /// An override that is not `section.key=value`.
    #[error("--set {0}: should be section.key=value")]
    Override(String),
}

/// What a machine is made of and how long everything takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, as printed in results.
    pub name: String,
    /// Harts, clocks, memory.
    pub machine: MachineParams,
    /// Cycles an instruction.
    pub core: CoreCosts,
    /// The Storage Management Unit.
    pub smu: SmuParams,
    /// The SSDs, all alike unless a disk has its own.
    pub ssd: SsdParams,
    /// What detailed timing needs besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
}

/// Harts, clocks, memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineParams {
    /// Number of harts, 1 to 64.
    pub harts: u32,
    /// Harts that share a core with its issue slots, caches and TLBs, 1 or 2: harts 0 and 1 are the first core's.
    #[serde(default = "one_thread")]
    pub threads_per_core: u32,
    /// Core clock, Hz.
    pub clock_hz: u64,
    /// Clock of `mtime`, Hz.
    pub timebase_hz: u64,
    /// RAM, bytes.
    pub memory_bytes: u64,
    /// The longest turn a hart takes before the others run, cycles.
    pub quantum_cycles: u64,
    /// The same while both harts of a core run: how soon the one feels that the other stalls.
    #[serde(default = "a_thousand")]
    pub thread_turn_cycles: u64,
    /// The deepest mode of virtual memory that harts have; operating systems may take one with fewer levels.
    #[serde(default)]
    pub paging: Paging,
    /// Upper page table entries that each hart's walker keeps; 0: none. One that it has costs a cycle to read.
    pub walk_cache_entries: u32,
    /// Cost of an SBI call that the machine serves itself, cycles.
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
#[allow(missing_docs)] // The names are the classes; the built-in profiles say what each stands for.
pub struct CoreCosts {
    pub alu: u32,
    pub load: u32,
    pub store: u32,
    pub branch: u32,
    pub branch_taken: u32,
    pub jump: u32,
    /// `jalr` without what detailed timing adds for a wrong prediction.
    pub jump_indirect: u32,
    pub mul: u32,
    pub div: u32,
    pub amo: u32,
    pub fp_move: u32,
    pub fp_add: u32,
    pub fp_mul: u32,
    pub fp_fma: u32,
    pub fp_convert: u32,
    pub fp_div: u32,
    pub fp_sqrt: u32,
    /// CSR instructions, `wfi`, and `ecall` and `ebreak` without the trap.
    pub csr: u32,
    pub fence: u32,
    pub fence_i: u32,
    pub sfence: u32,
    /// `mret` and `sret`.
    pub xret: u32,
    pub trap_entry: u32,
    /// A page table walk costs this much for every level it reads. Detailed timing asks the caches instead.
    pub walk_level: u32,
    /// Added when an access is split.
    pub misaligned: u32,
    /// Added to a load or store outside memory: the hart goes on so much later. The device acts at once; what it takes to be
    /// reached is part of its own times.
    pub mmio: u32,
}

/// The Storage Management Unit. Rules: spec/smu.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmuParams {
    /// Whether there is one.
    pub present: bool,
    /// PMSHR entries, 1 to 255.
    pub pmshr_entries: u32,
    /// Frames the free page fetcher holds in advance, 1 to 255.
    pub prefetch_entries: u32,
    /// Walker to SMU, cycles.
    pub request_cycles: u64,
    /// PMSHR search, cycles.
    pub cam_cycles: u64,
    /// Writing the 64-byte command, ns.
    pub command_write_ns: f64,
    /// Writing the doorbell, ns.
    pub doorbell_ns: f64,
    /// Decoding a completion queue entry, cycles.
    pub completion_cycles: u64,
    /// Updating PTE, PMD and PUD, cycles for all three.
    pub update_cycles: u64,
    /// SMU to walker, cycles.
    pub notify_cycles: u64,
    /// Between two looks at the completion queue, cycles.
    pub poll_interval_cycles: u64,
    /// From a doorbell to the first look; without it looks are at multiples of the interval, whenever the doorbell was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_look_cycles: Option<u64>,
    /// Reading a free ring entry, ns.
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
    /// One line that names the profile and the key.
    pub fn load(name: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
        let text = match Profile::BUILT_IN.iter().find(|p| p.0 == name) {
            Some((_, text)) => (*text).to_owned(),
            None => match std::fs::read_to_string(Path::new(name)) {
                Ok(text) => text,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(ProfileError::Unknown(name.into())),
                Err(e) => return Err(ProfileError::Read { name: name.into(), reason: e.to_string() }),
            },
        };
        Profile::parse(name, &text, overrides)
    }

    /// As [`Profile::load`], from a text; `name` is used in errors.
    ///
    /// # Errors
    /// One line that names the profile and the key.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
        let mut table = parse_table(name, text)?;
        let whole_drive = drive::expand(&mut table)?;
        if let Some(base) = table.remove("extends") {
            let known = base.as_str().and_then(|base| Profile::BUILT_IN.iter().find(|p| p.0 == base));
            let Some((base_name, base_text)) = known else {
                return Err(ProfileError::Key {
                    name: name.into(),
                    key: "extends".into(),
                    reason: format!("{base} is not a built-in profile"),
                });
            };
            let own = std::mem::replace(&mut table, parse_table(base_name, base_text)?);
            // Nothing of the base's drive is left when there is another.
            if !whole_drive {
                drive::expand(&mut table)?;
            }
            merge(&mut table, own);
        }
        for change in overrides {
            apply(&mut table, change)?;
            drive::expand(&mut table)?;
        }
        let profile: Profile = deserialize(name, table)?;
        profile.check(name)?;
        Ok(profile)
    }

    /// The core clock.
    pub fn clock(&self) -> ClockHz {
        ClockHz(self.machine.clock_hz)
    }

    fn check(&self, name: &str) -> Result<(), ProfileError> {
        let fail = |key: &str, value: String, range: String| {
            Err(ProfileError::Range { name: name.into(), key: key.into(), value, range })
        };
        let (m, s) = (&self.machine, &self.smu);
        let ints: [(&'static str, u64, u64, u64); 12] = [
            ("machine.harts", m.harts.into(), 1, 64),
            ("machine.clock_hz", m.clock_hz, 1_000_000, 100_000_000_000),
            ("machine.timebase_hz", m.timebase_hz, 1_000, m.clock_hz.min(1_000_000_000)),
            ("machine.memory_bytes", m.memory_bytes, 16 << 20, 64 << 30),
            ("machine.quantum_cycles", m.quantum_cycles, 10, 10_000_000),
            ("machine.threads_per_core", m.threads_per_core.into(), 1, 2),
            ("machine.thread_turn_cycles", m.thread_turn_cycles, 10, 10_000_000),
            ("machine.walk_cache_entries", m.walk_cache_entries.into(), 0, 1024),
            ("machine.sbi_call_cycles", m.sbi_call_cycles, 0, 1_000_000),
            ("smu.pmshr_entries", s.pmshr_entries.into(), 1, 255),
            ("smu.prefetch_entries", s.prefetch_entries.into(), 1, 255),
            ("smu.poll_interval_cycles", s.poll_interval_cycles, 1, 1_000_000),
        ];
        for (key, value, low, high) in ints {
            if value < low || value > high {
                return fail(key, value.to_string(), format!("{low} to {high}"));
            }
        }
        let cycles = [
            ("smu.request_cycles", s.request_cycles),
            ("smu.cam_cycles", s.cam_cycles),
            ("smu.completion_cycles", s.completion_cycles),
            ("smu.update_cycles", s.update_cycles),
            ("smu.notify_cycles", s.notify_cycles),
            ("smu.first_look_cycles", s.first_look_cycles.unwrap_or(0)),
        ];
        for (key, value) in cycles {
            if value > 1_000_000 {
                return fail(key, value.to_string(), "0 to 1000000".into());
            }
        }
        let floats = [
            ("smu.command_write_ns", s.command_write_ns, 0.0, 1e6),
            ("smu.doorbell_ns", s.doorbell_ns, 0.0, 1e6),
            ("smu.ring_read_ns", s.ring_read_ns, 0.0, 1e6),
        ];
        for (key, value, low, high) in floats {
            if !(low..=high).contains(&value) {
                return fail(key, value.to_string(), format!("{low:.3} to {high}"));
            }
        }
        if m.memory_bytes % PAGE_SIZE != 0 {
            return fail("machine.memory_bytes", m.memory_bytes.to_string(), "a multiple of 4096".into());
        }
        if let Some((key, value, range)) = self.ssd.wrong() {
            return fail(&format!("ssd.{key}"), value, range);
        }
        if let Some((key, value, range)) = self.detail.as_ref().and_then(Detail::wrong) {
            return fail(key, value, range);
        }
        // All costs of the core, by the names they have in the file.
        let costs = Table::try_from(&self.core).unwrap_or_default();
        match costs.iter().find(|(_, v)| !v.as_integer().is_some_and(|v| (1..=10_000).contains(&v))) {
            Some((key, value)) => fail(&format!("core.{key}"), value.to_string(), "1 to 10000".into()),
            None => Ok(()),
        }
    }
}

/// A struct from a table; errors name the profile and the key.
pub(crate) fn deserialize<T: serde::de::DeserializeOwned>(name: &str, table: Table) -> Result<T, ProfileError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|e| {
        let reason = e.inner().message().lines().next().unwrap_or_default().to_owned();
        ProfileError::Key { name: name.into(), key: e.path().to_string(), reason }
    })
}

pub(crate) fn parse_table(name: &str, text: &str) -> Result<Table, ProfileError> {
    text.parse::<Table>().map_err(|e| {
        let at = e.span().map_or(0, |s| s.start.min(text.len()));
        let line = 1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        let reason = e.message().lines().collect::<Vec<_>>().join("; ");
        ProfileError::Syntax { name: name.into(), line, reason }
    })
}

/// Lays `over` upon `base`, table by table.
pub(crate) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(b)), Value::Table(o)) => merge(b, o),
            (_, value) => drop(base.insert(key, value)),
        }
    }
}

/// Applies one `section.key=value`. A value that is not TOML is taken as a string, so that names need no quotes.
fn apply(table: &mut Table, change: &str) -> Result<(), ProfileError> {
    let wrong = || ProfileError::Override(change.into());
    let (path, text) = change.split_once('=').ok_or_else(wrong)?;
    let (path, text) = (path.trim(), text.trim());
    let value = format!("v = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(text.into()));
    let (sections, key) = path.rsplit_once('.').map_or((None, path), |(s, k)| (Some(s), k));
    if key.is_empty() {
        return Err(wrong());
    }
    let mut at = table;
    for section in sections.into_iter().flat_map(|s| s.split('.')) {
        if section.is_empty() {
            return Err(wrong());
        }
        at = at.entry(section).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    }
    // An integer where a fraction is expected is meant as that fraction.
    let value = match (at.get(key), value) {
        (Some(Value::Float(_)), Value::Integer(i)) => Value::Float(i as f64),
        (_, value) => value,
    };
    at.insert(key.into(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ClockHz = ClockHz(2_800_000_000);

    fn vc707(overrides: &[&str]) -> Result<Profile, ProfileError> {
        Profile::load("vc707", &overrides.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn message(overrides: &[&str]) -> String {
        let text = vc707(overrides).unwrap_err().to_string();
        assert!(!text.contains('\n'), "more than one line: {text}");
        text
    }

    #[test]
    fn built_in_profiles_are_valid() {
        for (name, _) in Profile::BUILT_IN {
            let profile = Profile::load(name, &[]).unwrap();
            assert_eq!((profile.name.as_str(), profile.machine.paging), (name, Paging::Sv39));
        }
    }

    #[test]
    fn overrides_change_one_value() {
        let p = vc707(&["ssd.read_us=10", "machine.harts = 2", "smu.present=false", "name=mine"]).unwrap();
        assert_eq!((p.ssd.read_us, p.machine.harts, p.smu.present, p.name.as_str()), (10.0, 2, false, "mine"));
        assert_eq!(p.core, vc707(&[]).unwrap().core);
        assert_eq!(vc707(&["machine.paging=sv57"]).unwrap().machine.paging, Paging::Sv57);
    }

    #[test]
    fn errors_name_the_profile_and_the_key() {
        assert!(message(&["machine.hearts=4"]).starts_with("profile vc707: machine.hearts: unknown field"));
        assert!(message(&["machine.harts=four"]).starts_with("profile vc707: machine.harts: invalid type"));
        assert_eq!(message(&["machine.harts=0"]), "profile vc707: machine.harts: 0 is out of range (1 to 64)");
        assert_eq!(message(&["core.load=0"]), "profile vc707: core.load: 0 is out of range (1 to 10000)");
        assert!(message(&["ssd.read_us=nan"]).starts_with("profile vc707: ssd.read_us: NaN is out of range"));
        assert!(message(&["ssd.read_us=1"]).contains("ssd.read_us"), "less than fetch and transfer take");
        assert!(message(&["ssd.block_bytes=1024"]).contains("512 or 4096"));
        assert!(message(&["ssd.max_transfer_pages=3"]).contains("a power of two"));
        assert_eq!(
            message(&["machine.paging=sv64"]),
            "profile vc707: machine.paging: unknown variant `sv64`, expected one of `sv39`, `sv48`, `sv57`"
        );
        assert!(message(&["machine.memory_bytes=100000001"]).contains("a multiple of 4096"));
        assert!(message(&["machine.harts=-1"]).contains("machine.harts"));
        for wrong in ["harts", "=1", "machine.=1", ".harts=1", "machine.harts.x=1"] {
            assert_eq!(message(&[wrong]), format!("--set {wrong}: should be section.key=value"));
        }
    }

    #[test]
    fn what_detailed_timing_needs_is_checked() {
        let wrong = |change: &str| Profile::load("server", &[change.to_owned()]).unwrap_err().to_string();
        for (change, key) in [
            ("detail.caches.l1d_ways=3", "detail.caches.l1d_kib"),
            ("detail.caches.last_ways=0", "detail.caches.last_kib"),
            ("detail.tlb.data_entries=0", "detail.tlb.data_entries"),
            ("detail.dram.banks=3", "detail.dram.banks"),
            ("detail.dram.column_ns=nan", "detail.dram.column_ns"),
            ("detail.predictor.history_bits=17", "detail.predictor.history_bits"),
            ("detail.predictor.targets=8192", "detail.predictor.targets"),
            ("detail.tlb.second_cycles=20000", "detail.tlb.second_cycles"),
            ("detail.caches.l3_kib=1", "detail.caches.l3_kib: unknown field"),
        ] {
            assert!(wrong(change).starts_with(&format!("profile server: {key}")), "{}", wrong(change));
        }
        let config = Profile::load("server", &["detail.caches.l2_kib=0".into()]).unwrap().detail.unwrap();
        assert!(config.hierarchy(1, CLOCK).l2.is_none());
    }

    #[test]
    fn a_missing_key_is_named() {
        let text = Profile::BUILT_IN[0].1.replace("harts = 4", "");
        let e = Profile::parse("f.toml", &text, &[]).unwrap_err().to_string();
        assert_eq!(e, "profile f.toml: machine: missing field `harts`");
    }

    #[test]
    fn syntax_errors_name_the_line() {
        let e = Profile::parse("f.toml", "a = 1\nb = = 2\n", &[]).unwrap_err().to_string();
        assert!(e.starts_with("profile f.toml: line 2: ") && !e.contains('\n'), "{e}");
    }

    #[test]
    fn a_profile_may_extend_a_built_in_one() {
        let text = "extends = 'server'\nname = 'optane'\n[ssd]\nread_us = 6.5\n";
        let p = Profile::parse("f.toml", text, &[]).unwrap();
        assert_eq!((p.name.as_str(), p.ssd.read_us, p.machine.harts), ("optane", 6.5, 8));
        let e = Profile::parse("f.toml", "extends = 'x'", &[]).unwrap_err().to_string();
        assert_eq!(e, "profile f.toml: extends: \"x\" is not a built-in profile");
    }

    #[test]
    fn a_profile_that_is_not_there_is_named() {
        let e = Profile::load("no/such.toml", &[]).unwrap_err().to_string();
        assert!(e.starts_with("profile no/such.toml: no such built-in profile (vc707, server, cva6)"), "{e}");
        let e = Profile::load("/", &[]).unwrap_err().to_string();
        assert!(e.starts_with("profile /: cannot read it"), "{e}");
    }
}
