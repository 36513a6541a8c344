// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim` with the policy `following`, which does the same as the built-in `virt`.

use std::process::ExitCode;

use trapless_pagesim::core::Core;
use trapless_pagesim::pages::{Origin, PageId, Pid};
use trapless_pagesim::policy::{Policy, Registration};

/// Reads the next `prefetch.pages` mapped pages with the missing one.
struct Following;

impl Policy for Following {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        for next in vpn + 1..=vpn + u64::from(core.settings.prefetch.pages) {
            if let Some(page) = core.pages.mapped(pid, next) {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }
}

fn main() -> ExitCode {
    let about = "reads the next `prefetch.pages` mapped pages";
    trapless_pagesim_cli::main_with(&[Registration { name: "following", about, make: |_| Box::new(Following) }])
}
