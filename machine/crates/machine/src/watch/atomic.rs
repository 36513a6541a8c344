// SPDX-License-Identifier: Apache-2.0
//! Checks the guest's Linux at each request for a page: code in atomic context must not wait for a device (REQ: ISA-3). Walkers
//! send requests for accesses, and software sends them through request ports. The guest does not notice the check.

use std::collections::BTreeMap;

use serde::Serialize;
use trapless_memory::Ram;
use trapless_riscv::{Hart, Privilege, csr_number};

/// Register tp. In S mode Linux keeps `current` in it, in U mode in `sscratch`.
const TP: u8 = 4;
/// Offset of `thread_info.preempt_count` in `struct task_struct` on 64-bit RISC-V: it follows `flags`.
const PREEMPT_COUNT: u64 = 8;
/// `sstatus.SIE`: interrupts are on in S mode.
const SIE: u64 = 1 << 1;
/// Maximum number of places in the code that are reported one by one.
const MOST_PLACES: usize = 1000;

/// Source of a request to the SMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// A walker, for an access.
    Walker,
    /// Software, through a request port.
    Port,
}

/// A place in the guest's code that asked for a page in atomic context. All fields but the count are those of its first request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtomicRequest {
    /// Source of the request.
    pub by: Asker,
    /// Address of the instruction that missed, or of the one after the store to a port.
    pub pc: u64,
    /// The mode: `user`, `supervisor` or `machine`.
    pub mode: &'static str,
    /// The hart.
    pub hart: usize,
    /// The address that missed; none for a port's request.
    pub address: Option<u64>,
    /// `preempt_count` of the task: locks held, interrupts, preemption off. Firmware in M mode has no task.
    pub preempt_count: Option<i32>,
    /// `pagefault_disabled` of the task, if its offset is known.
    pub pagefault_disabled: Option<i32>,
    /// Whether interrupts are off in S mode.
    pub interrupts_off: bool,
    /// Time of the request in core cycles.
    pub cycle: u64,
    /// Number of requests from this place.
    pub count: u64,
}

/// Result of checking all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AtomicChecked {
    /// Walkers' requests that were checked. A hart whose wait is cut sends its request again.
    pub walker_requests: u64,
    /// Requests through ports that were checked.
    pub port_requests: u64,
    /// Requests of both kinds that could not be judged, because they did not come from a task of Linux.
    pub unknown: u64,
    /// Requests in atomic context.
    pub reports: u64,
    /// Whether `pagefault_disabled` was checked.
    pub pagefault_disabled_known: bool,
    /// Places from which such requests came, up to a thousand.
    pub places: Vec<AtomicRequest>,
}

/// The checker.
pub struct AtomicCheck {
    /// Offset of `pagefault_disabled` in `struct task_struct`, which depends on the kernel's configuration.
    pagefault_disabled: Option<u64>,
    checked: AtomicChecked,
    /// Index of each place in `checked.places`.
    places: BTreeMap<(Asker, u64), usize>,
}

impl AtomicCheck {
    /// Creates the checker. `pagefault_disabled` is the offset of that member in the guest's `struct task_struct`, if known.
    pub fn new(pagefault_disabled: Option<u64>) -> AtomicCheck {
        let checked =
            AtomicChecked { pagefault_disabled_known: pagefault_disabled.is_some(), ..AtomicChecked::default() };
        AtomicCheck { pagefault_disabled, checked, places: BTreeMap::new() }
    }

    /// The result so far.
    pub fn checked(&self) -> &AtomicChecked {
        &self.checked
    }

    /// Checks a request of a hart.
    pub fn look(&mut self, id: usize, hart: &Hart, ram: &Ram, by: Asker, address: Option<u64>) {
        match by {
            Asker::Walker => self.checked.walker_requests += 1,
            Asker::Port => self.checked.port_requests += 1,
        }
        let mode = hart.privilege();
        let csr = |number| hart.csr(number).unwrap_or(0);
        let task = if mode == Privilege::User { csr(csr_number::SSCRATCH) } else { hart.x(TP) };
        let field = |offset: u64| {
            let at = hart.translate_debug(ram, task.wrapping_add(offset)).filter(|_| mode != Privilege::Machine)?;
            ram.load::<4>(at).map(i32::from_le_bytes)
        };
        let preempt_count = field(PREEMPT_COUNT);
        let pagefault_disabled = self.pagefault_disabled.and_then(field);
        let interrupts_off = mode == Privilege::Supervisor && csr(csr_number::SSTATUS) & SIE == 0;
        if preempt_count.is_none() {
            self.checked.unknown += 1;
        }
        let atomic = [preempt_count, pagefault_disabled].into_iter().flatten().any(|count| count != 0);
        // Firmware must not wait for a device either; it has no task that could be checked.
        if !(atomic || interrupts_off || mode == Privilege::Machine) {
            return;
        }
        self.checked.reports += 1;
        let pc = hart.pc();
        if let Some(place) = self.places.get(&(by, pc)) {
            self.checked.places[*place].count += 1;
            return;
        }
        if self.places.len() == MOST_PLACES {
            return;
        }
        let (mode, cycle) = (name(mode), hart.now().0);
        self.places.insert((by, pc), self.checked.places.len());
        let request = AtomicRequest {
            by,
            pc,
            mode,
            hart: id,
            address,
            preempt_count,
            pagefault_disabled,
            interrupts_off,
            cycle,
            count: 1,
        };
        eprintln!("trapless-machine: {}", request.line());
        self.checked.places.push(request);
    }
}

fn name(mode: Privilege) -> &'static str {
    match mode {
        Privilege::User => "user",
        Privilege::Supervisor => "supervisor",
        Privilege::Machine => "machine",
    }
}

impl AtomicRequest {
    fn line(&self) -> String {
        let what = match (self.by, self.address) {
            (Asker::Walker, Some(va)) => format!("miss at {va:#x}"),
            _ => "request through a port".to_owned(),
        };
        let count = |count: Option<i32>| count.map_or("unknown".to_owned(), |count| format!("{count:#x}"));
        format!(
            "in atomic context: {what}, hart {}, {} mode, pc {:#x}, preempt_count {}, pagefault_disabled {}, interrupts {}",
            self.hart,
            self.mode,
            self.pc,
            count(self.preempt_count),
            count(self.pagefault_disabled),
            if self.interrupts_off { "off" } else { "on" },
        )
    }
}

#[cfg(test)]
mod tests {
    use trapless_memory::PhysAddr;
    use trapless_riscv::HartConfig;

    use super::*;

    const TASK: u64 = 0x8000_0100;
    const PAGEFAULT_DISABLED: u64 = 0x40;

    /// Result of a port's request by a hart in S mode whose task has these values.
    fn reports(task: u64, preempt_count: i32, pagefault_disabled: i32, interrupts: bool, known: bool) -> AtomicChecked {
        let mut ram = Ram::new(PhysAddr(0x8000_0000), 4096).unwrap();
        ram.store(PhysAddr(TASK + PREEMPT_COUNT), preempt_count.to_le_bytes()).unwrap();
        ram.store(PhysAddr(TASK + PAGEFAULT_DISABLED), pagefault_disabled.to_le_bytes()).unwrap();
        let mut hart = Hart::new(HartConfig::new(0), 0x8000_0000);
        hart.enter_supervisor(0x8000_0000, 0);
        hart.set_x(TP, task);
        hart.set_csr(csr_number::SSTATUS, if interrupts { SIE } else { 0 });
        let mut check = AtomicCheck::new(known.then_some(PAGEFAULT_DISABLED));
        (0..2).for_each(|_| check.look(0, &hart, &ram, Asker::Port, None));
        check.checked
    }

    /// REQ: ISA-3
    #[test]
    fn each_sign_of_atomic_context_is_reported() {
        let quiet = reports(TASK, 0, 0, true, true);
        assert_eq!((quiet.port_requests, quiet.walker_requests, quiet.reports, quiet.unknown), (2, 0, 0, 0));
        for (count, disabled, interrupts) in [(1, 0, true), (0, 1, true), (0, 0, false)] {
            let found = reports(TASK, count, disabled, interrupts, true);
            assert_eq!((found.reports, found.places.len(), found.places[0].count), (2, 1, 2));
            let place = &found.places[0];
            assert_eq!(
                (place.mode, place.preempt_count, place.pagefault_disabled),
                ("supervisor", Some(count), Some(disabled))
            );
            assert_eq!(place.interrupts_off, !interrupts);
        }
        assert_eq!(reports(TASK, 0, 1, true, false).reports, 0);
    }

    #[test]
    fn where_there_is_no_task_nothing_is_known() {
        let found = reports(0, 1, 1, true, true);
        assert_eq!((found.port_requests, found.unknown, found.reports), (2, 2, 0));
    }
}
