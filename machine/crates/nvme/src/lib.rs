// SPDX-License-Identifier: Apache-2.0
//! An NVMe controller with one namespace (NVM Express Base Specification 1.4, a subset) and the SSD behind it.
//!
//! Everything happens in simulated time: a doorbell write makes the controller fetch commands a little later, the timing
//! model says when each is done, and only then is data moved and the completion queue entry written, in this order.
//! Commands, lists and data cross guest memory by DMA and nothing else.

mod backend;
mod controller;

pub use backend::{Backend, BackendError, ImageMode, open_image};
pub use controller::{CommandRecord, Controller, ControllerConfig};
