// SPDX-License-Identifier: Apache-2.0
//! All targets.

mod devices;
mod files;
mod firmware;
mod imports;
mod nvme;
mod smu;
mod traces;
mod walker;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Target;
use crate::tape::Tape;

/// All targets. The tests notice anything that a guest can reach and that has no target.
pub const ALL: &[Target] = &[
    Target { name: "aclint", covers: &["aclint"], runs: 5000, run: devices::aclint },
    Target { name: "plic", covers: &["plic"], runs: 2000, run: devices::plic },
    Target { name: "uart", covers: &["uart"], runs: 2000, run: devices::uart },
    Target { name: "pcie", covers: &["pcie-config", "pcie-memory"], runs: 2000, run: devices::pcie },
    Target { name: "finisher", covers: &["finisher"], runs: 5000, run: devices::finisher },
    Target { name: "nvme", covers: &["pcie-memory", "nvme"], runs: 3000, run: nvme::run },
    Target { name: "smu", covers: &["smu"], runs: 3000, run: smu::run },
    Target { name: "sbi", covers: &["sbi"], runs: 400, run: firmware::sbi },
    Target { name: "markers", covers: &["markers"], runs: 150, run: firmware::markers },
    Target { name: "walker", covers: &["page-tables"], runs: 6000, run: walker::run },
    Target { name: "elf", covers: &["elf"], runs: 150, run: files::elf },
    Target { name: "image", covers: &["image", "initrd", "firmware", "command-line"], runs: 200, run: files::image },
    Target { name: "checkpoint", covers: &["checkpoint"], runs: 40, run: files::checkpoint },
    Target { name: "lackey", covers: &["lackey"], runs: 1000, run: traces::lackey },
    Target { name: "drmemtrace", covers: &["drmemtrace"], runs: 1000, run: imports::drmemtrace },
    Target { name: "champsim", covers: &["champsim"], runs: 1000, run: imports::champsim },
    Target { name: "oracle-general", covers: &["oracle-general"], runs: 1000, run: imports::oracle_general },
    Target { name: "csv", covers: &["csv"], runs: 1000, run: imports::csv },
    Target { name: "perf", covers: &["perf"], runs: 1000, run: imports::perf },
    Target { name: "damon", covers: &["damon"], runs: 500, run: imports::damon },
    Target { name: "archive", covers: &["gzip", "xz", "zip"], runs: 500, run: imports::archive },
    Target { name: "trace", covers: &["trace"], runs: 1000, run: traces::trace },
];

/// Saves and restores a state. The result must be the same state.
fn restored<T: Serialize + DeserializeOwned>(state: &T) -> Result<T, String> {
    let bytes = postcard::to_stdvec(state).map_err(|e| format!("cannot be saved: {e}"))?;
    let back: T = postcard::from_bytes(&bytes).map_err(|e| format!("cannot be restored: {e}"))?;
    let again = postcard::to_stdvec(&back).map_err(|e| format!("cannot be saved again: {e}"))?;
    if bytes == again { Ok(back) } else { Err("a state that was saved and restored is saved differently".into()) }
}

/// Damage uses numbers near this address, where the machine's memory begins.
const NEAR: u64 = 0x8000_0000;
const SPAN: u64 = 16 << 20;

/// Changes some bytes of a file, usually near its beginning, and sometimes shortens it.
fn damage(t: &mut Tape, bytes: &mut Vec<u8>) {
    for _ in 0..t.below(8) {
        let limit = if t.below(4) == 0 { bytes.len() as u64 } else { 256.min(bytes.len() as u64) };
        if limit < 8 {
            return;
        }
        let at = t.below(limit - 7) as usize;
        let value = t.number(NEAR, SPAN).to_le_bytes();
        let n = t.one(&[1, 2, 4, 8]);
        bytes[at..at + n].copy_from_slice(&value[..n]);
    }
    if t.below(6) == 0 {
        let length = t.below(bytes.len() as u64 + 1) as usize;
        bytes.truncate(length);
    }
}
