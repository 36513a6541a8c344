// SPDX-License-Identifier: Apache-2.0
//! Trace-driven simulation of demand paging under multiprogramming: synchronous and asynchronous fault handling, after
//! ASPF (adaptive synchronous page faults on ultra-low-latency storage).

mod error;
pub mod input;

pub use error::Error;
