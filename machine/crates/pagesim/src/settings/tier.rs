// SPDX-License-Identifier: Apache-2.0
//! Compressed memory between DRAM and the drive.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pages::Pid;

const PAGE_BYTES: f64 = 4096.0;
/// Largest number of points in a distribution.
const MOST_POINTS: usize = 1000;

/// A part of DRAM that holds evicted pages compressed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// What it does when it is full.
    pub kind: TierKind,
    /// Largest amount of memory that it takes, in pages of 4 KiB. This memory is part of `memory.frames`.
    pub frames: u32,
    /// The size of a page divided by its compressed size.
    #[serde(default)]
    pub ratio: Ratio,
    /// Processor time to compress a page, us.
    #[serde(default = "compress_us")]
    pub compress_us: f64,
    /// Processor time to decompress a page, us.
    #[serde(default = "decompress_us")]
    pub decompress_us: f64,
    /// What happens to evicted pages that have not changed.
    #[serde(default)]
    pub clean: Clean,
}

fn compress_us() -> f64 {
    4.5
}

fn decompress_us() -> f64 {
    2.2
}

/// What happens when the tier is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierKind {
    /// The pages that have been in it for longest go to the drive. A page that compression does not make smaller is not stored.
    Zswap,
    /// Further pages go to the drive, as to a swap area of lower priority. A page that compression does not make smaller takes a
    /// frame.
    Zram,
}

/// What happens to an evicted page that has not changed since it was read from the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clean {
    /// It is dropped, as in Linux, because the drive has it.
    #[default]
    Drop,
    /// It is stored. When the tier is full, it is dropped.
    Store,
}

/// How well pages compress. A given page compresses equally well each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number, or pairs of a share of the pages and a ratio")]
pub enum Ratio {
    /// All pages have the same ratio.
    Same(f64),
    /// Pairs of a share of the pages, from 0 to 1, and a ratio: this share of the pages has at most this ratio. Between pairs,
    /// the ratio is interpolated linearly.
    Shape(Vec<(f64, f64)>),
}

impl Default for Ratio {
    /// The ratio that lzo-rle, Linux's default, reaches for the pages of a desktop.
    fn default() -> Ratio {
        Ratio::Same(2.74)
    }
}

impl Ratio {
    /// Size of a page in bytes after compression: 1 to 4096.
    pub fn bytes(&self, owner: Pid, vpn: u64) -> u32 {
        let ratio = match self {
            Ratio::Same(ratio) => *ratio,
            Ratio::Shape(points) => {
                let share = (scatter(vpn ^ (owner as u64) << 48) >> 11) as f64 / (1_u64 << 53) as f64;
                let at = points.partition_point(|point| point.0 <= share).clamp(1, points.len() - 1);
                let ((from, low), (to, high)) = (points[at - 1], points[at]);
                low + (high - low) * (share - from) / (to - from)
            }
        };
        (PAGE_BYTES / ratio).ceil().clamp(1.0, PAGE_BYTES) as u32
    }

    fn is_valid(&self) -> bool {
        let range = 1.0..=PAGE_BYTES;
        match self {
            Ratio::Same(ratio) => range.contains(ratio),
            Ratio::Shape(points) => {
                let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
                let ends = points.first().is_some_and(|point| point.0 == 0.0)
                    && points.last().is_some_and(|point| point.0 == 1.0);
                (2..=MOST_POINTS).contains(&points.len())
                    && ends
                    && points.windows(2).all(rises)
                    && points.iter().all(|point| range.contains(&point.1))
            }
        }
    }
}

/// A number that looks random (the finalizer of splitmix64: Steele, Lea and Flood, OOPSLA 2014).
fn scatter(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl Tier {
    /// Checks that all values are in range, if the tier may have at most `room` frames.
    ///
    /// # Errors
    /// A value is out of range. The error names the first such key, its value and the range.
    pub fn check(&self, room: f64) -> Result<(), Error> {
        let checks = [
            ("tier.frames", self.frames.into(), 1.0, room),
            ("tier.compress_us", self.compress_us, 0.0, 1e6),
            ("tier.decompress_us", self.decompress_us, 0.0, 1e6),
        ];
        for (key, value, low, high) in checks {
            if !(low..=high).contains(&value) {
                return Err(Error::Settings(format!("{key}: {value} is not from {low} to {high}")));
            }
        }
        if !self.ratio.is_valid() {
            return Err(Error::Settings(format!(
                "tier.ratio must be a number from 1 to 4096, or 2 to {MOST_POINTS} pairs of a share of the pages (0.0 first, 1.0 \
                 last, rising) and such a number (not falling)"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(text: &str) -> Result<Tier, String> {
        let tier: Tier = toml::from_str(&format!("kind = 'zswap'\nframes = 4\n{text}"))
            .map_err(|error| error.message().to_owned())?;
        tier.check(10.0).map(|()| tier).map_err(|error| error.to_string())
    }

    #[test]
    fn every_page_has_its_size() {
        let same = tier("ratio = 4").unwrap().ratio;
        assert_eq!((same.bytes(0, 1), same.bytes(3, 99)), (1024, 1024));
        assert_eq!(Ratio::default().bytes(0, 0), 1495);
        // Half of the pages have ratios between 1 and 2, half between 2 and 8. So half of the sizes exceed 2048.
        let shape = tier("ratio = [[0.0, 1.0], [0.5, 2.0], [1.0, 8.0]]").unwrap().ratio;
        let sizes: Vec<_> = (0..10_000).map(|vpn| shape.bytes(1, vpn)).collect();
        let large = sizes.iter().filter(|size| **size > 2048).count();
        assert!((4800..5200).contains(&large), "{large}");
        assert!(sizes.iter().all(|size| (512..=4096).contains(size)));
        assert_eq!(shape.bytes(1, 7), shape.bytes(1, 7));
        assert!((0..100).any(|vpn| shape.bytes(1, vpn) != shape.bytes(2, vpn)));
    }

    #[test]
    fn wrong_values_are_refused() {
        for (text, says) in [
            ("ratio = 0.5", "tier.ratio must be a number from 1 to 4096, or "),
            ("ratio = [[0.0, 1.0]]", "tier.ratio must be "),
            ("ratio = [[0.0, 2.0], [1.0, 1.0]]", "tier.ratio must be "),
            ("ratio = [[0.0, 1.0], [0.0, 2.0], [1.0, 3.0]]", "tier.ratio must be "),
            ("ratio = [[0.1, 1.0], [1.0, 2.0]]", "tier.ratio must be "),
            ("ratio = 'good'", "must be a number, or pairs of a share of the pages and a ratio"),
            ("compress_us = -1.0", "tier.compress_us: -1 is not from 0 to 1000000"),
            ("decompress_us = nan", "tier.decompress_us: NaN is not from 0 to 1000000"),
        ] {
            let error = tier(text).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
        }
        let large: Tier = toml::from_str("kind = 'zram'\nframes = 11\n").unwrap();
        assert_eq!(large.check(10.0).unwrap_err().to_string(), "tier.frames: 11 is not from 1 to 10");
    }
}
