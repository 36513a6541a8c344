// SPDX-License-Identifier: Apache-2.0
//! Page faults that the operating system serves, and the time at which each step began.

use crate::tree::Cost;

/// Names of the points at which the steps of a page fault begin, in order. A step that a fault does not reach takes no time.
pub const STEPS: [&str; 13] = [
    "trap",
    "handler",
    "file_map",
    "file_system",
    "block",
    "driver",
    "doorbell",
    "device_end",
    "interrupt",
    "completion",
    "wake",
    "run",
    "return",
];

/// Names of what happens between one point and the next.
pub const SPANS: [&str; STEPS.len() - 1] = [
    "exception",
    "fault handling",
    "file map",
    "file system",
    "block layer",
    "driver",
    "device",
    "interrupt delivery",
    "interrupt",
    "completion",
    "context switch",
    "rest of the fault",
];

/// A user access faulted.
pub const TRAP: usize = 0;
/// The drive's doorbell was rung, or a request port of the SMU was written.
pub const DOORBELL: usize = 6;
/// The drive wrote its completion entry, or the SMU answered.
pub const DEVICE_END: usize = 7;
/// The interrupt that woke the task was taken.
pub const INTERRUPT: usize = 8;
/// The driver's handler began in that interrupt.
pub const COMPLETION: usize = 9;
/// The task was woken up.
pub const WAKE: usize = 10;
/// The task ran again.
pub const RUN: usize = 11;
/// User code continued.
pub const RETURN: usize = 12;

/// A page fault of a user access.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Hart that took the fault.
    pub hart: usize,
    /// Number of the task in the attribution.
    pub context: usize,
    /// Address accessed.
    pub va: u64,
    /// Exception code.
    pub cause: u64,
    /// First block that was read for the fault.
    pub lba: Option<u64>,
    /// Time at which each of [`STEPS`] began, in core cycles.
    pub at: [Option<u64>; STEPS.len()],
    /// Time at which the kernel first switched away from the task.
    pub slept: Option<u64>,
    /// What the task itself spent from trap to return.
    pub cost: Cost,
}

impl Fault {
    /// Creates a fault that has just been taken.
    pub fn new(hart: usize, context: usize, va: u64, cause: u64, now: u64) -> Fault {
        let mut at = [None; STEPS.len()];
        at[TRAP] = Some(now);
        Fault { hart, context, va, cause, lba: None, at, slept: None, cost: Cost::default() }
    }

    /// Notes the time at which the fault first reaches a step.
    pub fn reach(&mut self, step: usize, now: u64) {
        self.at[step].get_or_insert(now);
    }

    /// Whether the fault waited for a device.
    pub fn read(&self) -> bool {
        self.at[DEVICE_END].is_some()
    }

    /// Begin of each step, and the end of the fault. Before the device's end, a step that was not reached begins with the next;
    /// after it, with the step before. So its time belongs to the last step that was reached, or to the rest of the fault.
    pub fn bounds(&self) -> [u64; STEPS.len()] {
        let mut begins = self.at;
        for step in (TRAP..DEVICE_END).rev() {
            begins[step] = begins[step].or(begins[step + 1]);
        }
        let mut last = begins[TRAP].unwrap_or(0);
        let end = begins[RETURN].unwrap_or(u64::MAX);
        begins.map(|at| {
            last = at.unwrap_or(last).max(last).min(end);
            last
        })
    }
}

/// Sums over faults.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Number of faults.
    pub count: u64,
    /// Cycles of each of [`SPANS`].
    pub spans: [u64; SPANS.len()],
    /// Cycles from trap to return.
    pub whole: u64,
    /// What the tasks themselves spent.
    pub cost: Cost,
}

impl Sums {
    /// Adds a fault that is over.
    pub fn add(&mut self, fault: &Fault) {
        let bounds = fault.bounds();
        for (sum, pair) in self.spans.iter_mut().zip(bounds.windows(2)) {
            *sum += pair[1] - pair[0];
        }
        self.whole += bounds[RETURN] - bounds[TRAP];
        self.cost += fault.cost;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_add_up_whatever_was_reached() {
        let mut fault = Fault::new(0, 0, 0x1000, 13, 100);
        fault.reach(DOORBELL, 150);
        fault.reach(DEVICE_END, 400);
        fault.reach(INTERRUPT, 390); // it began for another command
        fault.reach(WAKE, 450);
        fault.reach(WAKE, 999);
        fault.reach(RETURN, 500);
        assert!(fault.read());
        let bounds = fault.bounds();
        assert_eq!((bounds[1], bounds[DOORBELL], bounds[INTERRUPT]), (150, 150, 400));
        assert_eq!((bounds[WAKE], bounds[RUN]), (450, 450));
        let mut sums = Sums::default();
        sums.add(&fault);
        assert_eq!((sums.spans.iter().sum::<u64>(), sums.whole), (400, 400));
        assert_eq!(sums.spans[DEVICE_END - 1], 250, "{SPANS:?}");
    }
}
