// SPDX-License-Identifier: Apache-2.0
//! The hart: an RV64GC interpreter with M, S and U mode, Sv39, PMP, and a page walker that understands armed entries.
//!
//! The functional core knows nothing of caches or devices. It reaches the world through [`Bus`], takes the price of each
//! instruction from a [`CostTable`], asks [`Timing`] for more when its own translation cache misses, and tells an
//! [`Observer`] what happened. Harts that run in turn share one [`CodeCache`].

mod config;
mod env;
mod exit;
mod hart;

pub use config::{CostTable, HartConfig, SmuWalkConfig};
pub use env::{Bus, Env, Fill, Observer, Timing, TrapInfo};
pub use exit::{Access, Exit, Privilege, WalkAnswer, WalkRequest};
pub use hart::{CodeCache, Hart, HartState, Interrupt};
