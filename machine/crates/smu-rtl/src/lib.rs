// SPDX-License-Identifier: Apache-2.0
//! The SMU's RTL (rtl/smu/rtl), simulated by a library that rtl/smu/sim/build.py makes, in the place of the reference model.
//!
//! One clock cycle of the unit is one cycle of the machine, except that register accesses take none of the machine's time and
//! that cycles in which nothing can happen are skipped.

mod axi;
mod dice;
mod misses;
mod pins;
mod unit;

use std::path::{Path, PathBuf};

pub use axi::{Access, Memory};
pub use dice::Dice;
pub use pins::Parameters;
pub use unit::RtlSmu;

/// Why a unit cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// No library, or none that can be loaded.
    #[error("cannot load the simulated SMU {0}: {1}; python3 -m rtl.smu.sim.build makes it")]
    Load(PathBuf, String),
    /// The library was built with other parameters.
    #[error("{0}: built for {1} {2}, not {3}")]
    Parameters(PathBuf, &'static str, u32, u32),
}

impl Parameters {
    /// As rtl/smu/sim/build.py takes them.
    pub fn arguments(&self) -> String {
        let p = self;
        let list = [
            ("pmshr", p.pmshr_entries),
            ("harts", p.harts),
            ("ports", p.ports),
            ("devices", p.devices),
            ("prefetch", p.prefetch),
            ("updaters", p.updaters),
            ("data_width", p.data_width),
            ("axi_id_width", p.axi_id_width),
            ("poll_interval", p.poll_interval),
            ("socket", p.socket),
        ];
        list.map(|(name, value)| format!("{name}={value}")).join(" ")
    }

    /// The library's name in the folder of such libraries.
    pub fn library(&self, folder: &Path) -> PathBuf {
        let p = self;
        folder.join(format!(
            "smu-p{}-h{}-q{}-d{}-f{}-u{}-w{}-i{}-t{}-s{}.so",
            p.pmshr_entries,
            p.harts,
            p.ports,
            p.devices,
            p.prefetch,
            p.updaters,
            p.data_width,
            p.axi_id_width,
            p.poll_interval,
            p.socket
        ))
    }
}
