// SPDX-License-Identifier: Apache-2.0
//! All parts of the platform except core, SMU and their interconnect, which are simulated in RTL (rtl/cva6).
//!
//! The devices are the machine's: CLINT, PLIC, UART, finisher, PCIe host and NVMe drives with their timing. The verilated model
//! (rtl/cva6/sim/model.cpp) calls [`ffi`] when a register is read or written. [`run`] runs the model from one device event to
//! the next, in one thread.

mod args;
mod ffi;
mod image;
mod model;
mod platform;
mod regions;
mod run;
