// SPDX-License-Identifier: Apache-2.0
//! Trace-driven simulation of demand paging under multiprogramming: synchronous and asynchronous fault handling, after
//! ASPF (adaptive synchronous page faults on ultra-low-latency storage).

pub mod core;
pub mod cpus;
pub mod drive;
mod error;
pub mod faults;
pub mod input;
pub mod latency;
mod links;
pub mod mrc;
pub mod optimum;
pub mod pages;
pub mod policy;
pub mod replacement;
pub mod report;
pub mod sched;
pub mod settings;
pub mod sim;
pub mod stats;
pub mod tier;
pub mod warm_up;

pub use error::{At, Error};
