// SPDX-License-Identifier: Apache-2.0
//! Drives: TOML files that say how long an SSD takes for what, and what it offers.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::ProfileError;
use crate::profile::{deserialize, merge, parse_table};

/// An SSD. Latencies are from the doorbell write to the completion queue entry, for 4 KiB on an idle drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParams {
    /// Name, as printed in results.
    #[serde(default)]
    pub name: String,
    /// Read, us.
    pub read_us: f64,
    /// Write, us. With `flash`: into the buffer.
    pub write_us: f64,
    /// Flush, us. With `flash`: once the buffer is programmed.
    pub flush_us: f64,
    /// Any admin command, us.
    pub admin_us: f64,
    /// Doorbell write to the command being read from the queue, us; part of the latencies.
    pub fetch_us: f64,
    /// Commands in service at the same time; with `flash`: dies.
    pub channels: u32,
    /// Data rate, 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Whether latencies vary.
    #[serde(default)]
    pub latency: Latency,
    /// Reads: fractions of them, from 0 to 1, and the latency that so many do not exceed, as a factor of `read_us`. Linear in
    /// between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_shape: Vec<(f64, f64)>,
    /// The same for writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_shape: Vec<(f64, f64)>,
    /// What latencies that vary are drawn with.
    #[serde(default)]
    pub seed: u64,
    /// Present for a medium that programs pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashParams>,
    /// Logical block, 512 or 4096 bytes, of namespaces that do not say their own.
    pub block_bytes: u32,
    /// Largest transfer of one command in 4 KiB pages, a power of two (MDTS).
    pub max_transfer_pages: u32,
    /// I/O queue pairs, 1 to 64.
    pub max_io_queues: u32,
    /// Entries of the largest I/O queue, 2 to 65536.
    pub max_queue_entries: u32,
}

/// Whether latencies vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Latency {
    /// They do not.
    #[default]
    Constant,
    /// As `read_shape` and `write_shape` say.
    Shape,
}

/// A medium that reads and programs pages, and whose programs make reads of the same die wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParams {
    /// What lies together on a die, KiB, a power of two: one read serves it.
    pub page_kib: u32,
    /// A program, us.
    pub program_us: f64,
    /// What is programmed at once, KiB.
    pub program_kib: u32,
    /// An erase, us.
    pub erase_us: f64,
    /// Programs of a die between two erases; 0: no erases.
    pub erase_every: u32,
    /// Writes that are taken before they are programmed, KiB.
    pub buffer_kib: u32,
}

impl SsdParams {
    /// The built-in drives: name and TOML text.
    pub const BUILT_IN: [(&'static str, &'static str); 6] = [
        ("optane-m2", include_str!("../../../profiles/ssd/optane-m2.toml")),
        ("z-ssd", include_str!("../../../profiles/ssd/z-ssd.toml")),
        ("optane-ssd", include_str!("../../../profiles/ssd/optane-ssd.toml")),
        ("optane-pmm", include_str!("../../../profiles/ssd/optane-pmm.toml")),
        ("tlc", include_str!("../../../profiles/ssd/tlc.toml")),
        ("ull", include_str!("../../../profiles/ssd/ull.toml")),
    ];

    /// Loads the built-in drive called `name`, or else the file `name`, which may say `extends = "NAME"` to change only some
    /// keys of a built-in drive.
    ///
    /// # Errors
    /// One line that names the drive and the key.
    pub fn load(name: &str) -> Result<SsdParams, ProfileError> {
        let drive: SsdParams = deserialize(name, table(name)?)?;
        drive.check(name)?;
        Ok(drive)
    }

    /// Whether all values are in range, for a drive whose errors call it `name`.
    ///
    /// # Errors
    /// One line that names the drive, the key and the range.
    pub fn check(&self, name: &str) -> Result<(), ProfileError> {
        match self.wrong() {
            Some((key, value, range)) => Err(ProfileError::Range { name: name.into(), key: key.into(), value, range }),
            None => Ok(()),
        }
    }

    /// The first value out of range: its key, itself, and the range.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String, String)> {
        let d = self;
        let ints = [
            ("channels", d.channels, 1, 1024),
            ("max_transfer_pages", d.max_transfer_pages, 1, 1024),
            ("max_io_queues", d.max_io_queues, 1, 64),
            ("max_queue_entries", d.max_queue_entries, 2, 65_536),
            ("block_bytes", d.block_bytes, 512, 4096),
        ];
        for (key, value, low, high) in ints {
            if value < low || value > high {
                return Some((key, value.to_string(), format!("{low} to {high}")));
            }
        }
        let fetch_and_transfer = d.fetch_us + 4096.0 / d.mb_per_s;
        let floats = [
            ("mb_per_s", d.mb_per_s, 0.1, 1e6),
            ("fetch_us", d.fetch_us, 0.0, 1e6),
            ("read_us", d.read_us, fetch_and_transfer, 1e7),
            ("write_us", d.write_us, fetch_and_transfer, 1e7),
            ("flush_us", d.flush_us, d.fetch_us, 1e7),
            ("admin_us", d.admin_us, d.fetch_us, 1e7),
        ];
        for (key, value, low, high) in floats {
            if !(low..=high).contains(&value) {
                return Some((key, value.to_string(), format!("{low:.3} to {high}")));
            }
        }
        if !matches!(d.block_bytes, 512 | 4096) {
            return Some(("block_bytes", d.block_bytes.to_string(), "512 or 4096".into()));
        }
        if !d.max_transfer_pages.is_power_of_two() {
            return Some(("max_transfer_pages", d.max_transfer_pages.to_string(), "a power of two".into()));
        }
        if d.latency == Latency::Shape && d.read_shape.is_empty() && d.write_shape.is_empty() {
            return Some((
                "latency",
                "shape".into(),
                "constant, as there is neither read_shape nor write_shape".into(),
            ));
        }
        let shapes = [("read_shape", &d.read_shape, d.read_us), ("write_shape", &d.write_shape, d.write_us)];
        for (key, shape, us) in shapes {
            let rising = shape.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
            let ends = shape.first().is_none_or(|p| p.0 == 0.0) && shape.last().is_none_or(|p| p.0 == 1.0);
            if !(shape.is_empty() || shape.len() > 1 && rising && ends) {
                let range = "pairs of a fraction, from 0 to 1, and a factor, both rising";
                return Some((key, format!("{shape:?}"), range.into()));
            }
            let bounds = (fetch_and_transfer / us)..=1e4;
            if let Some((_, factor)) = shape.iter().find(|p| !bounds.contains(&p.1)) {
                return Some((key, factor.to_string(), format!("factors {:.3} to {}", bounds.start(), bounds.end())));
            }
        }
        d.flash.as_ref().and_then(|flash| flash.wrong(d.max_transfer_pages))
    }
}

impl FlashParams {
    fn wrong(&self, max_transfer_pages: u32) -> Option<(&'static str, String, String)> {
        let least = max_transfer_pages.saturating_mul(4).saturating_add(self.program_kib);
        let ints = [
            ("flash.page_kib", self.page_kib, 4, 1024),
            ("flash.program_kib", self.program_kib, 1, 1 << 16),
            ("flash.erase_every", self.erase_every, 0, 1 << 20),
            // One command and what is not enough for a program must fit.
            ("flash.buffer_kib", self.buffer_kib, least, 1 << 24),
        ];
        for (key, value, low, high) in ints {
            if value < low || value > high {
                return Some((key, value.to_string(), format!("{low} to {high}")));
            }
        }
        if !self.page_kib.is_power_of_two() {
            return Some(("flash.page_kib", self.page_kib.to_string(), "a power of two".into()));
        }
        [("flash.program_us", self.program_us), ("flash.erase_us", self.erase_us)]
            .into_iter()
            .find(|(_, us)| !(0.0..=1e7).contains(us))
            .map(|(key, us)| (key, us.to_string(), "0 to 10000000".into()))
    }
}

/// The whole table of a built-in drive or a file.
fn table(name: &str) -> Result<Table, ProfileError> {
    let text = match SsdParams::BUILT_IN.iter().find(|d| d.0 == name) {
        Some((_, text)) => (*text).to_owned(),
        None => match std::fs::read_to_string(Path::new(name)) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(ProfileError::UnknownDrive(name.into())),
            Err(e) => return Err(ProfileError::Read { name: name.into(), reason: e.to_string() }),
        },
    };
    let own = parse_table(name, &text)?;
    extended(own)
}

/// `own`, upon the built-in drive that it extends, if any.
fn extended(mut own: Table) -> Result<Table, ProfileError> {
    let Some(base) = own.remove("extends") else { return Ok(own) };
    let known = base.as_str().and_then(|base| SsdParams::BUILT_IN.iter().find(|d| d.0 == base));
    let Some((name, text)) = known else {
        return Err(ProfileError::UnknownDrive(base.as_str().map_or_else(|| base.to_string(), Into::into)));
    };
    let mut drive = parse_table(name, text)?;
    merge(&mut drive, own);
    Ok(drive)
}

/// Puts the drive that a profile names in the name's place; whether the profile now has a drive of its own altogether, and
/// not only changes to another's.
pub(crate) fn expand(profile: &mut Table) -> Result<bool, ProfileError> {
    let drive = match profile.get("ssd") {
        Some(Value::String(name)) => table(name)?,
        Some(Value::Table(own)) if own.contains_key("extends") => extended(own.clone())?,
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
        // What was changed before goes with the drive that it was changed of.
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
        assert!(e.starts_with("ssd floppy: no such built-in drive"), "{e}");
        // A profile may do without names.
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
        assert!(
            message(&["ssd=tlc", "ssd.flash.page_kib=12"]).contains("ssd.flash.page_kib: 12 is out of range (a power")
        );
        assert!(message(&["ssd=tlc", "ssd.flash.buffer_kib=16"]).contains("ssd.flash.buffer_kib"));
        assert!(message(&["ssd=tlc", "ssd.flash.erase_us=-1"]).contains("ssd.flash.erase_us"));
        assert!(message(&["ssd=tlc", "ssd.flash.erase=1"]).contains("ssd.flash.erase: unknown field"));
        assert!(
            message(&["ssd.latency=shape"])
                .contains("ssd.latency: shape is out of range (constant, as there is neither")
        );
        assert!(message(&["ssd.latency=gauss"]).contains("ssd.latency"));
        for shape in ["[[0, 1]]", "[[0, 1], [0.9, 2]]", "[[0, 2], [1, 1]]", "[[0, 0.01], [1, 1]]", "[[0, 1], [1, nan]]"]
        {
            let e = message(&[&format!("ssd.read_shape={shape}")]);
            assert!(e.starts_with("profile vc707: ssd.read_shape: ") && !e.contains('\n'), "{e}");
        }
    }
}
