// SPDX-License-Identifier: Apache-2.0
//! Functions that the model calls: device registers, markers, `tohost`. The model runs on the thread that installed the platform.

use std::cell::RefCell;

use crate::model;
use crate::platform::Platform;
use crate::regions::Regions;

/// A marker that the guest has executed (spec/platform.md).
#[derive(Clone, Copy, Debug)]
pub struct Marker {
    /// Number of the marker.
    pub number: u32,
    /// Register a0.
    pub a0: u64,
    /// Cycle at which it was executed.
    pub cycle: u64,
}

/// What the model's calls work on.
pub struct Reach {
    /// RAM and devices.
    pub platform: Platform,
    /// Markers since the run loop last took them.
    pub markers: Vec<Marker>,
    /// Last value written to `tohost`.
    pub to_host: Option<u64>,
    /// Measurements of the regions of interest.
    pub regions: Regions,
}

thread_local! {
    static REACH: RefCell<Option<Reach>> = const { RefCell::new(None) };
}

/// Installs the platform on which the model's calls work.
pub fn install(platform: Platform) {
    REACH.with_borrow_mut(|reach| {
        *reach = Some(Reach { platform, markers: Vec::new(), to_host: None, regions: Regions::default() });
    });
}

/// Runs `work` on it, between the model's runs or in one of the model's calls.
pub fn reach<R>(work: impl FnOnce(&mut Reach) -> R) -> R {
    REACH.with_borrow_mut(|reach| work(reach.as_mut().expect("installed before the model runs")))
}

/// Reads a device register for a core or the SMU.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_device_read(address: u64, size: u32) -> u64 {
    let now = model::cycle();
    // Reading may end an interrupt, so the interrupt lines must be set again.
    model::stop();
    reach(|reach| reach.platform.read(address, size, now))
}

/// Writes a device register for a core or the SMU.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_device_write(address: u64, size: u32, value: u64) {
    let now = model::cycle();
    model::stop();
    reach(|reach| reach.platform.write(address, size, value, now));
}

/// Notes that the guest executes a marker.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_marker(number: u32, a0: u64) {
    let cycle = model::cycle().0;
    model::stop();
    reach(|reach| reach.markers.push(Marker { number, a0, cycle }));
}

/// Notes that the walker's request is accepted or, if `answer`, answered.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_walker(answer: bool, done: bool) {
    let now = model::cycle().0;
    reach(|reach| if answer { reach.regions.answered(now, done) } else { reach.regions.requested(now) });
}

/// Notes that the guest writes `tohost`.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_to_host(value: u64) {
    model::stop();
    reach(|reach| reach.to_host = Some(value));
}
