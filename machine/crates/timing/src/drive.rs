// SPDX-License-Identifier: Apache-2.0
//! Drives: TOML files with the times and limits of an SSD.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::{FileKind, FileName, ProfileError};
use crate::rules::{Rule, Rules, number};
use crate::source::merge;

/// An SSD. Latencies are from the doorbell write to the completion queue entry, for 4 KiB on an idle drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParams {
    /// Name, as printed in results.
    #[serde(default)]
    pub name: String,
    /// Latency of a read, us.
    pub read_us: f64,
    /// Latency of a write, us. With `flash`: of a write into the buffer.
    pub write_us: f64,
    /// Latency of a flush, us. With `flash`: the time of a flush after the buffer was programmed.
    pub flush_us: f64,
    /// Latency of every admin command, us.
    pub admin_us: f64,
    /// Time from the doorbell write until the drive reads the command from the queue, us; part of the latencies.
    pub fetch_us: f64,
    /// Number of commands in service at the same time; with `flash`: number of dies.
    pub channels: u32,
    /// Data rate, 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Whether latencies vary.
    #[serde(default)]
    pub latency: Latency,
    /// Distribution of read latencies. Each pair is a fraction of the reads, from 0 to 1, and the latency that this fraction
    /// does not exceed, as a factor of `read_us`. Between pairs, the distribution is linear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_shape: Vec<(f64, f64)>,
    /// Distribution of write latencies, as a factor of `write_us`, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_shape: Vec<(f64, f64)>,
    /// Seed of the random latencies.
    #[serde(default)]
    pub seed: u64,
    /// Present for a medium that programs pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashParams>,
    /// Size of a logical block, 512 or 4096 bytes, for namespaces without the option `block`.
    pub block_bytes: u32,
    /// Largest transfer of one command in 4 KiB pages, a power of two (MDTS).
    pub max_transfer_pages: u32,
    /// Number of I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Number of entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}

/// Whether latencies vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Latency {
    /// Latencies do not vary.
    #[default]
    Constant,
    /// Latencies are drawn from `read_shape` and `write_shape`.
    Shape,
}

/// A medium that reads and programs pages. A program makes reads of the same die wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParams {
    /// Size of a flash page, KiB, a power of two. Its data lies together on a die, and one read serves all of it.
    pub page_kib: u32,
    /// Time of a program, us.
    pub program_us: f64,
    /// Size of a program, KiB.
    pub program_kib: u32,
    /// Time of an erase, us.
    pub erase_us: f64,
    /// Number of programs of a die between two erases; 0: no erases.
    pub erase_every: u32,
    /// Size of the write buffer, KiB. The drive accepts writes into it before it programs them.
    pub buffer_kib: u32,
}

impl SsdParams {
    /// The built-in drives: name and TOML text.
    pub const BUILT_IN: [(&'static str, &'static str); 8] = [
        ("optane-m2", include_str!("../../../profiles/ssd/optane-m2.toml")),
        ("z-ssd", include_str!("../../../profiles/ssd/z-ssd.toml")),
        ("optane-ssd", include_str!("../../../profiles/ssd/optane-ssd.toml")),
        ("optane-pmm", include_str!("../../../profiles/ssd/optane-pmm.toml")),
        ("tlc", include_str!("../../../profiles/ssd/tlc.toml")),
        ("ull", include_str!("../../../profiles/ssd/ull.toml")),
        ("rdma", include_str!("../../../profiles/ssd/rdma.toml")),
        ("cxl", include_str!("../../../profiles/ssd/cxl.toml")),
    ];

    /// Loads the built-in drive called `name`, or else the file `name`, which may say `extends = "NAME"` to change only some
    /// keys of a built-in drive.
    ///
    /// # Errors
    /// Fails with one line that names the drive and the key.
    pub fn load(name: &str) -> Result<SsdParams, ProfileError> {
        let file = FileKind::Drive.called(name);
        let table = table(&file)?;
        let rules = alone(&table);
        file.values(table, &rules)
    }

    /// Checks that all values are in range. Errors call the drive `name`.
    ///
    /// # Errors
    /// Fails with one line that names the drive, the key and the range.
    pub fn check(&self, name: &str) -> Result<(), ProfileError> {
        let file = FileKind::Drive.called(name);
        match Table::try_from(self) {
            Ok(table) => alone(&table).check(&file, &table),
            // The seed is too large for an integer in TOML.
            Err(_) => Err(ProfileError::Value {
                file,
                key: "seed".into(),
                must: format!("0 to {}", i64::MAX),
                value: self.seed.to_string(),
            }),
        }
    }
}

/// Returns the rules for a drive in a separate file.
fn alone(drive: &Table) -> Rules {
    let mut all = Rules::new();
    all.section("", rules(drive));
    all
}

/// Returns the rules for the keys of a drive. The table may be incomplete.
pub(crate) fn rules(drive: &Table) -> Vec<(&'static str, Rule)> {
    let value = |key: &str| drive.get(key).and_then(number);
    let whole = |table: &Table, key: &str| table.get(key).and_then(Value::as_integer).unwrap_or(0);
    let fetch = value("fetch_us").unwrap_or(0.0);
    let fetch_and_transfer = fetch + 4096.0 / value("mb_per_s").unwrap_or(f64::INFINITY);
    let shape = |us: &str| Rule::Shape(value(us).map_or(0.0, |us| fetch_and_transfer / us), 1e4);
    let has_shape = ["read_shape", "write_shape"].iter().any(|key| {
        // A value that is not an array breaks the rule of its own key.
        drive.get(*key).is_some_and(|shape| shape.as_array().is_none_or(|points| !points.is_empty()))
    });
    let latency = match has_shape {
        true => Rule::OneOf(&["constant", "shape"], ""),
        false => Rule::OneOf(&["constant"], ", as there is neither read_shape nor write_shape"),
    };
    let program_kib = drive.get("flash").and_then(Value::as_table).map_or(0, |flash| whole(flash, "program_kib"));
    // The buffer must have room for the largest command in addition to data that does not fill a program yet.
    let least_buffer = whole(drive, "max_transfer_pages").saturating_mul(4).saturating_add(program_kib);
    vec![
        ("name", Rule::Text),
        ("channels", Rule::Whole(1, 1024)),
        ("max_transfer_pages", Rule::PowerOfTwo(1, 1024)),
        ("max_io_queues", Rule::Whole(1, 64)),
        ("max_queue_entries", Rule::Whole(2, 65_536)),
        ("block_bytes", Rule::Among(&[512, 4096])),
        ("mb_per_s", Rule::Number(0.1, 1e6)),
        ("fetch_us", Rule::Number(0.0, 1e6)),
        ("read_us", Rule::Number(fetch_and_transfer, 1e7)),
        ("write_us", Rule::Number(fetch_and_transfer, 1e7)),
        ("flush_us", Rule::Number(fetch, 1e7)),
        ("admin_us", Rule::Number(fetch, 1e7)),
        ("read_shape", shape("read_us")),
        ("write_shape", shape("write_us")),
        ("latency", latency),
        ("seed", Rule::Whole(0, i64::MAX)),
        ("flash.page_kib", Rule::PowerOfTwo(4, 1024)),
        ("flash.program_us", Rule::Number(0.0, 1e7)),
        ("flash.program_kib", Rule::Whole(1, 1 << 16)),
        ("flash.erase_us", Rule::Number(0.0, 1e7)),
        ("flash.erase_every", Rule::Whole(0, 1 << 20)),
        ("flash.buffer_kib", Rule::Whole(least_buffer, 1 << 24)),
    ]
}

/// Loads the complete table of a built-in drive or of a file.
fn table(file: &FileName) -> Result<Table, ProfileError> {
    let own = file.parse(&file.read(&SsdParams::BUILT_IN)?)?;
    extended(file, "extends", own)
}

/// Merges `own` into the built-in drive that it extends, if any.
fn extended(file: &FileName, key: &str, mut own: Table) -> Result<Table, ProfileError> {
    let Some(base) = own.remove("extends") else { return Ok(own) };
    let mut drive = file.base(key, &base, &SsdParams::BUILT_IN)?;
    merge(&mut drive, own);
    Ok(drive)
}

/// Replaces the name of a drive in a profile by the drive's table. Returns whether the profile now has a complete drive, and
/// not only changes to the drive of the profile that it extends.
pub(crate) fn expand(file: &FileName, profile: &mut Table) -> Result<bool, ProfileError> {
    let drive = match profile.get("ssd") {
        Some(Value::String(name)) => table(&FileKind::Drive.called(name))?,
        Some(Value::Table(own)) if own.contains_key("extends") => extended(file, "ssd.extends", own.clone())?,
        _ => return Ok(false),
    };
    profile.insert("ssd".into(), Value::Table(drive));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    fn profile(overrides: &[&str]) -> Result<Profile, ProfileError> {
        Profile::load("vc707", &overrides.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn built_in_drives_are_valid() {
        for (name, _) in SsdParams::BUILT_IN {
            assert_eq!(SsdParams::load(name).unwrap().name, name);
        }
    }

    #[test]
    fn a_profile_names_its_drive_and_the_drive_can_be_changed() {
        assert_eq!(profile(&[]).unwrap().ssd, SsdParams::load("optane-m2").unwrap());
        assert_eq!(profile(&["ssd=tlc"]).unwrap().ssd, SsdParams::load("tlc").unwrap());
        let p = profile(&["ssd=optane-pmm", "ssd.read_us=3", "ssd.seed=7"]).unwrap();
        assert_eq!((p.ssd.read_us, p.ssd.seed, p.ssd.name.as_str()), (3.0, 7, "optane-pmm"));
        // A change of a drive has no effect if a later override selects another drive.
        assert_eq!(profile(&["ssd.read_us=99", "ssd=z-ssd"]).unwrap().ssd.read_us, 10.9);
    }

    #[test]
    fn a_section_is_a_drive_or_changes_one() {
        let parse = |ssd: &str| Profile::parse("f.toml", &format!("extends = 'server'\nname = 'f'\n{ssd}"), &[]);
        let z = SsdParams::load("z-ssd").unwrap();
        assert_eq!(parse("").unwrap().ssd, z);
        assert_eq!(parse("[ssd]\nread_us = 9.0").unwrap().ssd, SsdParams { read_us: 9.0, ..z });
        let pmm = parse("[ssd]\nextends = 'optane-pmm'\nchannels = 2").unwrap().ssd;
        assert_eq!(pmm, SsdParams { channels: 2, ..SsdParams::load("optane-pmm").unwrap() });
        assert_eq!(parse("[ssd]\nextends = 'tlc'").unwrap().ssd, SsdParams::load("tlc").unwrap());
        let e = parse("[ssd]\nextends = 'floppy'").unwrap_err().to_string();
        assert!(e.starts_with("profile f.toml: ssd.extends must be a built-in name (optane-m2, "), "{e}");
        assert!(e.ends_with(", not \"floppy\""), "{e}");
        // The section `ssd` of a profile needs no name.
        let whole = SsdParams::BUILT_IN[1].1.replace("name = \"z-ssd\"\n", "");
        let text = Profile::BUILT_IN[1].1.replace("ssd = \"z-ssd\"", "") + "[ssd]\n" + &whole;
        let own = Profile::parse("f.toml", &text, &[]).unwrap().ssd;
        assert_eq!(own, SsdParams { name: String::new(), ..SsdParams::load("z-ssd").unwrap() });
    }

    #[test]
    fn a_drive_may_be_a_file() {
        let file = std::env::temp_dir().join(format!("trapless-drive-{}.toml", std::process::id()));
        std::fs::write(&file, "extends = 'tlc'\nname = 'mine'\nseed = 3\n[flash]\nbuffer_kib = 8192\n").unwrap();
        let name = file.to_str().unwrap();
        let drive = SsdParams::load(name);
        let p = profile(&[&format!("ssd={name}")]);
        std::fs::remove_file(&file).unwrap();
        let drive = drive.unwrap();
        assert_eq!((drive.name.as_str(), drive.seed, drive.read_us), ("mine", 3, 66.7));
        assert_eq!(drive.flash.as_ref().map(|f| (f.buffer_kib, f.page_kib)), Some((8192, 16)));
        assert_eq!(p.unwrap().ssd, drive);
        let e = SsdParams::load("/no/such.toml").unwrap_err().to_string();
        assert!(e.starts_with("ssd /no/such.toml: no such built-in drive (optane-m2, "), "{e}");
    }

    #[test]
    fn errors_name_the_drive_and_the_key() {
        let message = |overrides: &[&str]| profile(overrides).unwrap_err().to_string();
        let e = message(&["ssd=floppy"]);
        assert!(e.starts_with("ssd floppy: no such built-in drive (optane-m2, z-ssd,") && !e.contains('\n'), "{e}");
        for (changes, says) in [
            (["ssd=tlc", "ssd.flash.page_kib=12"], "ssd.flash.page_kib must be a power of two, 4 to 1024, not 12"),
            (["ssd=tlc", "ssd.flash.buffer_kib=16"], "ssd.flash.buffer_kib must be 528 to 16777216, not 16"),
            (["ssd=tlc", "ssd.flash.erase_us=-1"], "ssd.flash.erase_us must be 0 to 10000000, not -1"),
            (
                ["ssd=tlc", "ssd.flash.erase=1"],
                "no such key: ssd.flash.erase (there are page_kib, program_us, program_kib, erase_us, erase_every, buffer_kib)",
            ),
            (["ssd=optane-m2", "ssd.read_us=1"], "ssd.read_us must be 4.413 to 10000000, not 1"),
            (
                ["ssd=optane-m2", "ssd.latency=shape"],
                "ssd.latency must be constant, as there is neither read_shape nor write_shape, not \"shape\"",
            ),
            (["ssd=tlc", "ssd.latency=gauss"], "ssd.latency must be constant or shape, not \"gauss\""),
        ] {
            assert_eq!(message(&changes), format!("profile vc707: {says}"));
        }
        for shape in ["[[0, 1]]", "[[0, 1], [0.9, 2]]", "[[0, 2], [1, 1]]", "[[0, 0.01], [1, 1]]", "[[0, 1], [1, nan]]"]
        {
            let e = message(&[&format!("ssd.read_shape={shape}")]);
            assert!(e.starts_with("profile vc707: ssd.read_shape must be pairs of ") && !e.contains('\n'), "{e}");
        }
    }
}
