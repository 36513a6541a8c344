// SPDX-License-Identifier: Apache-2.0
//! The verilated model, as rtl/cva6/sim/model.cpp shows it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use trapless_memory::{Cycle, Ram};

use crate::platform::Lines;

#[cfg(not(test))]
mod shim {
    unsafe extern "C" {
        pub fn trapless_model_new(ram: *mut u8, base: u64, size: u64);
        pub fn trapless_model_configure(boot_address: u64, read: u16, write: u16, device: u16);
        pub fn trapless_model_reset();
        pub fn trapless_model_watch(address: u64);
        pub fn trapless_model_run(until: u64);
        pub fn trapless_model_stop();
        pub fn trapless_model_cycle() -> u64;
        pub fn trapless_model_instructions() -> u64;
        pub fn trapless_model_pc() -> u64;
        pub fn trapless_model_lines(external: u8, software: bool, timer: bool);
        pub fn trapless_model_written(address: u64, length: u64);
        pub fn trapless_model_save(path: *const std::ffi::c_char) -> bool;
        pub fn trapless_model_restore(path: *const std::ffi::c_char) -> bool;
    }
}

/// No model: tests of this crate link without one.
#[cfg(test)]
mod shim {
    use std::ffi::c_char;

    pub unsafe fn trapless_model_new(_: *mut u8, _: u64, _: u64) {}
    pub unsafe fn trapless_model_configure(_: u64, _: u16, _: u16, _: u16) {}
    pub unsafe fn trapless_model_reset() {}
    pub unsafe fn trapless_model_watch(_: u64) {}
    pub unsafe fn trapless_model_run(_: u64) {}
    pub unsafe fn trapless_model_stop() {}
    pub unsafe fn trapless_model_cycle() -> u64 {
        0
    }
    pub unsafe fn trapless_model_instructions() -> u64 {
        0
    }
    pub unsafe fn trapless_model_pc() -> u64 {
        0
    }
    pub unsafe fn trapless_model_lines(_: u8, _: bool, _: bool) {}
    pub unsafe fn trapless_model_written(_: u64, _: u64) {}
    pub unsafe fn trapless_model_save(_: *const c_char) -> bool {
        false
    }
    pub unsafe fn trapless_model_restore(_: *const c_char) -> bool {
        false
    }
}

/// Cycles that an access takes on its way.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Memory, address to first word.
    pub read: u16,
    /// Memory, last word to answer.
    pub write: u16,
    /// Devices, both.
    pub device: u16,
}

/// The one model of the process.
#[derive(Clone, Copy, Debug)]
pub struct Model(());

// SAFETY of all calls below: the shim keeps one model in static storage and is used from one thread only; `new` must come
// first, which the type guarantees.
impl Model {
    /// Makes the model over `ram`, which must outlive it.
    pub fn new(ram: &Ram) -> Model {
        // SAFETY: see above; the pointer is valid for `size` bytes as long as the RAM lives.
        unsafe { shim::trapless_model_new(ram.host_base(), ram.base().0, ram.size()) };
        Model(())
    }

    /// Sets what does not change in a run.
    pub fn configure(self, boot_address: u64, latencies: Latencies) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_configure(boot_address, latencies.read, latencies.write, latencies.device) };
    }

    /// Holds the reset for some cycles; the cycle count starts behind it.
    pub fn reset(self) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_reset() };
    }

    /// Reports writes to this address (`tohost`).
    pub fn watch(self, address: u64) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_watch(address) };
    }

    /// Runs to the end of cycle `until`, or of the cycle in which [`stop`] is called.
    pub fn run(self, until: Cycle) {
        // SAFETY: see above; the platform is not borrowed by the caller, so that `ffi` may reach it.
        unsafe { shim::trapless_model_run(until.0) };
    }

    /// The cycle, counted from the reset.
    pub fn cycle(self) -> Cycle {
        cycle()
    }

    /// Instructions retired.
    pub fn instructions(self) -> u64 {
        // SAFETY: see above.
        unsafe { shim::trapless_model_instructions() }
    }

    /// Address of the instruction that is next to retire.
    pub fn pc(self) -> u64 {
        // SAFETY: see above.
        unsafe { shim::trapless_model_pc() }
    }

    /// Sets the interrupt lines.
    pub fn set_lines(self, lines: Lines) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_lines(lines.external, lines.software, lines.timer) };
    }

    /// Tells that a device has written memory.
    pub fn written(self, address: u64, length: u64) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_written(address, length) };
    }

    /// Writes the model's state to a file; whether that went well.
    pub fn save(self, path: &Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes());
        // SAFETY: see above; the string lives through the call.
        path.is_ok_and(|path| unsafe { shim::trapless_model_save(path.as_ptr()) })
    }

    /// Reads the model's state from a file; whether that went well.
    pub fn restore(self, path: &Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes());
        // SAFETY: see above; the string lives through the call.
        path.is_ok_and(|path| unsafe { shim::trapless_model_restore(path.as_ptr()) })
    }
}

/// The cycle, for calls that come from the model.
pub fn cycle() -> Cycle {
    // SAFETY: the model exists when it calls; see above.
    Cycle(unsafe { shim::trapless_model_cycle() })
}

/// Makes [`Model::run`] return at the end of the cycle.
pub fn stop() {
    // SAFETY: see above.
    unsafe { shim::trapless_model_stop() }
}
