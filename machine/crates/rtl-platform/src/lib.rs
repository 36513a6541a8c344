// SPDX-License-Identifier: Apache-2.0
//! Everything of the platform but core, SMU and their interconnect, for a simulation of those in RTL (rtl/cva6).
//!
//! The devices are the machine's own: CLINT, PLIC, UART, finisher, PCIe host and NVMe drives with their timing. The verilated
//! model (rtl/cva6/sim/model.cpp) calls into [`ffi`] when a register is read or written, and is run by [`run`] from one
//! device event to the next. One thread.

mod args;
mod ffi;
mod image;
mod model;
mod platform;
mod regions;
mod run;
