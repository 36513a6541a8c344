// SPDX-License-Identifier: Apache-2.0
//! What the model calls: registers of devices, markers, `tohost`. The model runs on the thread that has put the platform here.

use std::cell::RefCell;

use crate::model;
use crate::platform::Platform;
use crate::regions::Regions;

/// A marker that the guest has executed (spec/platform.md).
#[derive(Clone, Copy, Debug)]
pub struct Marker {
    /// Which.
    pub number: u32,
    /// Register a0.
    pub a0: u64,
    /// When.
    pub cycle: u64,
}

/// What the model's calls reach.
pub struct Reach {
    /// RAM and devices.
    pub platform: Platform,
    /// Markers since the last look.
    pub markers: Vec<Marker>,
    /// What was written to `tohost`.
    pub to_host: Option<u64>,
    /// What is measured in regions of interest.
    pub regions: Regions,
}

thread_local! {
    static REACH: RefCell<Option<Reach>> = const { RefCell::new(None) };
}

/// Puts what the model's calls reach in place.
pub fn install(platform: Platform) {
    REACH.with_borrow_mut(|reach| {
        *reach = Some(Reach { platform, markers: Vec::new(), to_host: None, regions: Regions::default() });
    });
}

/// Works with it, between the model's runs and in its calls.
pub fn reach<R>(work: impl FnOnce(&mut Reach) -> R) -> R {
    REACH.with_borrow_mut(|reach| work(reach.as_mut().expect("installed before the model runs")))
}

/// A core or the SMU reads a device register.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_device_read(address: u64, size: u32) -> u64 {
    let now = model::cycle();
    // Reading can end an interrupt, so the lines are looked at again.
    model::stop();
    reach(|reach| reach.platform.read(address, size, now))
}

/// A core or the SMU writes a device register.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_device_write(address: u64, size: u32, value: u64) {
    let now = model::cycle();
    model::stop();
    reach(|reach| reach.platform.write(address, size, value, now));
}

/// The guest executes a marker.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_marker(number: u32, a0: u64) {
    let cycle = model::cycle().0;
    model::stop();
    reach(|reach| reach.markers.push(Marker { number, a0, cycle }));
}

/// The walker's request is accepted, or answered.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_walker(answer: bool, done: bool) {
    let now = model::cycle().0;
    reach(|reach| if answer { reach.regions.answered(now, done) } else { reach.regions.requested(now) });
}

/// The guest writes `tohost`.
#[unsafe(no_mangle)]
pub extern "C" fn trapless_to_host(value: u64) {
    model::stop();
    reach(|reach| reach.to_host = Some(value));
}
