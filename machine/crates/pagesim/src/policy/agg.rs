// SPDX-License-Identifier: Apache-2.0
//! Agg_virtual: reads more pages of the address space, as many as the drive serves at once (ASPF IV-A, after Wu et al., IEEE TCAD
//! 2020, which manages memory in parts of a huge page).

use super::{Policy, Registration};
use crate::core::Core;
use crate::pages::{Origin, PageId, Pid};
use crate::settings::us;

/// The policy of this file.
pub const POLICIES: &[Registration] = &[Registration {
    name: "agg",
    about: "Agg_virtual: reads the missing pages of an aligned part of a huge page. The part is as large as the data that the drive has under way at its full rate",
    make: |_| Box::new(Agg),
}];

/// Reads the missing pages of the aligned part of a huge page around the missing page. The size of the part is what the drive can
/// carry while it serves a single read, times the number of commands that it serves at once (studies/aspf/choices.md).
#[derive(Debug)]
pub struct Agg;

/// Number of pages in a huge page.
const HUGE: u64 = 512;

impl Agg {
    /// Number of pages in a part: the largest power of two that does not exceed the pages under way in the drive at its full
    /// rate.
    fn part(core: &Core) -> u64 {
        let drive = core.drive();
        let carried = us(drive.read_us) as f64 / us(4096.0 / drive.mb_per_s) as f64;
        let pages = (carried * f64::from(drive.channels)).clamp(1.0, HUGE as f64) as u64;
        1 << pages.ilog2()
    }
}

impl Policy for Agg {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let (vpn, part) = (core.pages[page].vpn, Agg::part(core));
        let first = vpn / part * part;
        for near in first..first + part {
            if let Some(page) = core.pages.mapped(pid, near) {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }
}
