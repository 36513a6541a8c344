// SPDX-License-Identifier: Apache-2.0
//! Page table updater: PTE, then PMD, then PUD (REQ: SMU-3). Each update is a separate event, visible before the next one.

use trapless_memory::Cycle;
use trapless_smu_regs as regs;

use crate::bugs::Bug;
use crate::pmshr::Stage;
use crate::{FailReason, Outcome, Outside, Smu};

impl Smu {
    /// Starts to update the three entries, when the data is in the frame.
    pub(crate) fn start_install(&mut self, slot: usize) {
        self.enter(slot, Stage::Pte, self.update_time(1));
    }

    /// Returns the time of the `n`-th of the three updates. The three times add up to the configured time.
    fn update_time(&self, n: u64) -> Cycle {
        let all = self.config.timing.update.0;
        let until = |n: u64| (u128::from(all) * u128::from(n) / 3) as u64;
        Cycle(until(n) - until(n - 1))
    }

    /// Exchanges the PTE if it still has the value that the walker saw.
    pub(crate) fn install_pte(&mut self, slot: usize, out: &mut Outside<'_>) {
        let (now, overwrite) = (self.now, self.bug(Bug::OverwritePte));
        let Some(entry) = self.entry(slot) else { return };
        let Some(frame) = entry.frame else { return };
        let installed = regs::pte_installed(entry.seen, frame.pfn);
        let expected = if overwrite { out.bus.read_u64(entry.pte).unwrap_or(0) } else { entry.seen };
        let exchanged = out.bus.compare_exchange_u64(entry.pte, expected, installed);
        self.lag += out.bus.took();
        match exchanged {
            Err(_) if self.bug(Bug::TrustWriteError) => self.fail(slot, FailReason::Bus),
            Err(_) => {
                self.error = true;
                self.enter(slot, Stage::ReadBack(installed), self.update_time(1));
            }
            Ok(Err(value)) => self.changed(slot, value),
            Ok(Ok(_)) => self.installed(slot, installed, now),
        }
    }

    /// Continues after the exchange. The frame now belongs to the page table.
    fn installed(&mut self, slot: usize, installed: u64, now: Cycle) {
        let Some(entry) = self.entry(slot) else { return };
        entry.frame = None;
        entry.stamps.pte = Some(now);
        self.enter(slot, Stage::Pmd(installed), self.update_time(2));
    }

    /// REQ: SMU-13. Finds out whether an exchange that met a bus error took effect. It did not if the PTE still has the value
    /// seen, because the entry cannot be armed again before this miss is over (OS-4). It did if the PTE is valid and has this
    /// frame. Otherwise the SMU cannot know: it sets the marks, so that a sync finds the page if it is installed, and returns the
    /// frame as maybe mapped.
    pub(crate) fn read_back(&mut self, slot: usize, installed: u64, out: &mut Outside<'_>) {
        let now = self.now;
        let Some(entry) = self.entry(slot) else { return };
        let seen = entry.seen;
        let found = out.bus.read_u64(entry.pte);
        self.lag += out.bus.took();
        let ours = |value| regs::PTE_V.is_set(value) && regs::PTE_PFN.get(value) == regs::PTE_PFN.get(installed);
        match found {
            Ok(value) if value == seen => self.fail(slot, FailReason::Bus),
            Ok(value) if ours(value) => self.installed(slot, installed, now),
            Ok(_) | Err(_) => self.enter(slot, Stage::Pmd(installed), self.update_time(2)),
        }
    }

    pub(crate) fn mark_pmd(&mut self, slot: usize, installed: u64, out: &mut Outside<'_>) {
        let (now, marked) = (self.now, self.bug(Bug::UpperMarksFirst));
        let Some(entry) = self.entry(slot) else { return };
        if !marked && out.bus.fetch_or_u64(entry.pmd, regs::PTE_L.mask()).is_err() {
            return self.fail(slot, FailReason::Bus);
        }
        entry.stamps.pmd = Some(now);
        self.lag += out.bus.took();
        self.enter(slot, Stage::Pud(installed), self.update_time(3));
    }

    pub(crate) fn mark_pud(&mut self, slot: usize, installed: u64, out: &mut Outside<'_>) {
        let (now, marked) = (self.now, self.bug(Bug::UpperMarksFirst));
        let Some(entry) = self.entry(slot) else { return };
        if !marked && out.bus.fetch_or_u64(entry.pud, regs::PTE_L.mask()).is_err() {
            return self.fail(slot, FailReason::Bus);
        }
        entry.stamps.pud = Some(now);
        let doubt = entry.is_in_doubt();
        self.lag += out.bus.took();
        if doubt {
            return self.fail(slot, FailReason::Bus);
        }
        self.conclude(slot, Outcome::Done(installed), 0);
    }

    /// Seeded bug: marks PMD and PUD of misses whose PTE is not installed yet.
    pub(crate) fn mark_early(&mut self, out: &mut Outside<'_>) {
        for entry in self.pmshr.entries().filter(|e| matches!(e.stage, Stage::Completing(0))) {
            let _ = out.bus.fetch_or_u64(entry.pmd, regs::PTE_L.mask());
            let _ = out.bus.fetch_or_u64(entry.pud, regs::PTE_L.mask());
        }
    }
}
