// SPDX-License-Identifier: Apache-2.0
//! Trace-driven simulation of demand paging under multiprogramming, with synchronous and asynchronous handling of page faults.
//! It follows the paper "Exploring Synchronous Page Fault Handling" (Chen, Wu, Chang and Kuo, IEEE TCAD 41(11), 2022). Comments
//! cite this paper as ASPF, with the numbers of its sections, figures and algorithms.

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
