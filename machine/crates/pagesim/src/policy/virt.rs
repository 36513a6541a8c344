// SPDX-License-Identifier: Apache-2.0
//! Virt_prefetch: reads the pages that follow in the address space (ASPF IV-A, after Wu et al., IEEE TC 2020).

use super::{Policy, Registration};
use crate::core::Core;
use crate::pages::{Origin, PageId, Pid};

/// The policy of this file.
pub const POLICIES: &[Registration] = &[Registration {
    name: "virt",
    about: "Virt_prefetch: also reads the next `prefetch.pages` mapped pages of the address space",
    make: |_| Box::new(Virt),
}];

/// Reads the next `prefetch.pages` pages with the missing one.
#[derive(Debug)]
pub struct Virt;

impl Policy for Virt {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        for next in vpn + 1..=vpn + u64::from(core.settings.prefetch.pages) {
            if let Some(page) = core.pages.mapped(pid, next) {
                core.prefetch(page, Origin::Neighbour);
            }
        }
    }
}
