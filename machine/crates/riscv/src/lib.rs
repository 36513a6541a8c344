// SPDX-License-Identifier: Apache-2.0
//! The hart: an RV64GC interpreter with M, S and U mode, Sv39 to Sv57, PMP, and a page walker that understands armed entries.
//!
//! The functional core does not know caches or devices. It reaches memory and devices through [`Bus`] and takes the price of
//! each instruction from a [`CostTable`]. It asks [`Timing`] for extra cycles when its own translation cache misses, and
//! reports events to an [`Observer`]. Harts that run in turn share one [`CodeCache`].

mod atomic;
#[cfg_attr(not(feature = "seeded-bugs"), allow(dead_code, unreachable_pub))]
mod bugs;
mod code;
mod compressed;
mod config;
mod csr;
mod decode;
mod entry;
mod env;
mod events;
mod exec;
mod exit;
mod fp;
mod hart;
#[cfg_attr(not(all(feature = "translator", target_arch = "x86_64", target_os = "linux")), path = "no_jit.rs")]
mod jit;
mod left;
mod lines;
mod mmu;
mod op;
mod page;
mod pmp;
mod predictor;
mod run;
mod tlb;
mod trap;

#[cfg(feature = "seeded-bugs")]
pub use bugs::{Bug, seed as seed_bug};
pub use code::CodeCache;
pub use config::{CostTable, HartConfig};
pub use csr::{Csrs, number as csr_number};
pub use env::{Bus, Env, Observer, Timing};
pub use events::{Fill, Jump, JumpKind, Loss, PageFault, TrapInfo};
pub use exit::{Access, Exit, Privilege, WalkAnswer, WalkRequest};
pub use hart::{Hart, HartState, Interrupt, Suspended};
pub use mmu::{is_armed, pte};
pub use pmp::Pmp;
pub use predictor::PredictorConfig;
pub use trap::cause;
