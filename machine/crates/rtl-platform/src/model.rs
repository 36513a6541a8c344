// SPDX-License-Identifier: Apache-2.0
//! The verilated model, through the functions of rtl/cva6/sim/model.cpp.

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

/// Replaces the model in tests of this crate, which are linked without one.
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

/// Cycles that accesses take.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// From the address of a read of memory to its first word.
    pub read: u16,
    /// From the last word of a write to memory to its answer.
    pub write: u16,
    /// Reads and writes of devices.
    pub device: u16,
}

/// The only model of the process.
#[derive(Clone, Copy, Debug)]
pub struct Model(());

// SAFETY of all calls below: the shim keeps one model in static storage and is used from one thread only. `new` must be
// called first, which the type guarantees.
impl Model {
    /// Creates the model over `ram`, which must outlive the model.
    pub fn new(ram: &Ram) -> Model {
        // SAFETY: see above; the pointer is valid for `size` bytes as long as the RAM lives.
        unsafe { shim::trapless_model_new(ram.host_base(), ram.base().0, ram.size()) };
        Model(())
    }

    /// Sets what stays the same during a run.
    pub fn configure(self, boot_address: u64, latencies: Latencies) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_configure(boot_address, latencies.read, latencies.write, latencies.device) };
    }

    /// Holds the reset for some cycles. The cycle count starts after them.
    pub fn reset(self) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_reset() };
    }

    /// Makes the model report writes to this address (`tohost`).
    pub fn watch(self, address: u64) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_watch(address) };
    }

    /// Runs to the end of cycle `until`, or of the cycle in which [`stop`] is called.
    pub fn run(self, until: Cycle) {
        // SAFETY: see above; the platform is not borrowed by the caller, so that `ffi` may reach it.
        unsafe { shim::trapless_model_run(until.0) };
    }

    /// The current cycle, counted from the reset.
    pub fn cycle(self) -> Cycle {
        cycle()
    }

    /// Number of retired instructions.
    pub fn instructions(self) -> u64 {
        // SAFETY: see above.
        unsafe { shim::trapless_model_instructions() }
    }

    /// Address of the instruction that retires next.
    pub fn pc(self) -> u64 {
        // SAFETY: see above.
        unsafe { shim::trapless_model_pc() }
    }

    /// Sets the interrupt lines.
    pub fn set_lines(self, lines: Lines) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_lines(lines.external, lines.software, lines.timer) };
    }

    /// Tells the model that a device has written memory.
    pub fn written(self, address: u64, length: u64) {
        // SAFETY: see above.
        unsafe { shim::trapless_model_written(address, length) };
    }

    /// Writes the model's state to a file. Returns whether that worked.
    pub fn save(self, path: &Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes());
        // SAFETY: see above; the string lives through the call.
        path.is_ok_and(|path| unsafe { shim::trapless_model_save(path.as_ptr()) })
    }

    /// Reads the model's state from a file. Returns whether that worked.
    pub fn restore(self, path: &Path) -> bool {
        let path = CString::new(path.as_os_str().as_bytes());
        // SAFETY: see above; the string lives through the call.
        path.is_ok_and(|path| unsafe { shim::trapless_model_restore(path.as_ptr()) })
    }
}

/// The current cycle, for functions that the model calls.
pub fn cycle() -> Cycle {
    // SAFETY: the model exists when it calls; see above.
    Cycle(unsafe { shim::trapless_model_cycle() })
}

/// Makes [`Model::run`] return at the end of the current cycle.
pub fn stop() {
    // SAFETY: see above.
    unsafe { shim::trapless_model_stop() }
}
