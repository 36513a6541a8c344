// SPDX-License-Identifier: Apache-2.0
//! Linux's fair schedulers. Each CPU has one.

mod cfs;
mod eevdf;

pub use cfs::Cfs;
pub use eevdf::Eevdf;

use crate::pages::Pid;
use crate::settings::{Scheduler, SchedulerKind, Time, ms};

/// Virtual run time, ps. For a process of nice 0 it is the time that it has run; for others it is scaled by the inverse of their
/// weight. It may be negative after a delay was repaid.
pub type Virtual = i64;

/// Weight of nice 0.
pub const NICE_0: u64 = 1024;

/// Weights of nice -20 to 19 (Linux, kernel/sched/core.c: each step is a factor of about 1.25).
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The scheduler's state of a process.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// Weight, which is its share of the processor.
    pub weight: u64,
    /// Virtual run time.
    pub vruntime: Virtual,
    /// EEVDF: virtual time at which its slice should be over.
    pub deadline: Virtual,
    /// EEVDF: the time that it was owed when it went to sleep.
    pub lag: Virtual,
}

impl Entity {
    /// A process of a nice value from -20 to 19 that has not run yet.
    pub fn new(nice: i8) -> Entity {
        let weight = WEIGHTS[usize::try_from(i32::from(nice) + 20).unwrap_or(20).min(39)];
        Entity { weight, vruntime: 0, deadline: 0, lag: 0 }
    }

    /// Converts a time that the process ran to virtual run time.
    pub fn virtual_time(&self, ran: Time) -> Virtual {
        (u128::from(ran) * u128::from(NICE_0) / u128::from(self.weight)) as Virtual
    }
}

/// A fair scheduler. As in Linux, the running process is not in the queue.
pub trait Schedule {
    /// Adds a process, which is not ready yet.
    fn add(&mut self, entity: Entity);
    /// The state of a process.
    fn entity(&self, pid: Pid) -> &Entity;
    /// The state of a process that is not in the queue, to change it.
    fn entity_mut(&mut self, pid: Pid) -> &mut Entity;
    /// Puts the process that has run back into the queue: it is ready.
    fn put_back(&mut self, pid: Pid);
    /// Makes a sleeping process ready.
    fn wake(&mut self, pid: Pid);
    /// Lets the running process go to sleep.
    fn sleep(&mut self, pid: Pid);
    /// Counts time that the running process has run.
    fn ran(&mut self, pid: Pid, time: Time);
    /// The process that [`Schedule::take_next`] would take.
    fn next(&self) -> Option<Pid>;
    /// Takes the process that runs next out of the queue.
    fn take_next(&mut self) -> Option<Pid>;
    /// Takes a ready process out of the queue.
    fn take(&mut self, pid: Pid);
    /// Whether the running process continues at the end of its slice.
    fn goes_on(&mut self, running: Pid) -> bool;
    /// Whether a process that has just woken takes the processor from the running one.
    fn preempts(&self, running: Pid, woken: Pid) -> bool;
    /// The length of the running process's slice.
    fn slice(&self, running: Pid) -> Time {
        self.slice_beside(running, &[])
    }
    /// The length that the running process's slice would have if `others`, which are not in the queue, were ready as well.
    fn slice_beside(&self, running: Pid, others: &[Pid]) -> Time;
    /// Processes in the queue, in the order of their virtual run times.
    fn ready(&self) -> Vec<Pid>;
    /// Number of processes in the queue.
    fn queued(&self) -> usize;
    /// Removes a process, ready or asleep, that moves to another CPU's scheduler. What it returns is relative to this scheduler,
    /// so that [`Schedule::join`] can make it relative to the other one.
    fn leave(&mut self, pid: Pid) -> Entity;
    /// Adds a process from another CPU's scheduler. It is not in the queue yet.
    fn join(&mut self, pid: Pid, entity: Entity);
}

/// Makes the scheduler of a configuration.
pub fn from_settings(settings: &Scheduler) -> Box<dyn Schedule> {
    match settings.kind {
        SchedulerKind::Cfs => Box::new(Cfs::new(
            ms(settings.latency_ms),
            ms(settings.min_granularity_ms),
            ms(settings.wakeup_granularity_ms),
        )),
        SchedulerKind::Eevdf => Box::new(Eevdf::new(ms(settings.min_granularity_ms))),
    }
}
