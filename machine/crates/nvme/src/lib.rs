// SPDX-License-Identifier: Apache-2.0
//! An NVMe controller with its namespaces (NVM Express Base Specification 1.4, a subset) and the SSD behind it.
//!
//! Everything happens in simulated time. A short time after a doorbell write, the controller fetches the commands. The timing
//! model says when each command is done. At that time the controller moves the data, then writes the completion queue entry.
//! It reads commands and PRP lists and moves data only by DMA.

mod admin;
mod backend;
mod command;
mod completion;
mod config;
mod controller;
mod fault;
mod feature;
mod identify;
mod image;
mod in_flight;
mod io;
mod log;
mod mmio;
mod namespace;
mod overlay;
mod prp;
mod queue;
mod record;
mod regs;
mod serve;

pub use backend::{Backend, BackendError, Written};
pub use config::ControllerConfig;
pub use controller::{Controller, ControllerState};
pub use fault::{Fault, FaultError};
pub use image::{Image, ImageMode, open_image};
pub use namespace::MAX_NAMESPACES;
pub use overlay::Overlay;
pub use record::CommandRecord;
