// SPDX-License-Identifier: Apache-2.0
//! A test world around an SMU: memory, page tables, rings, devices, walkers, and an operating system that follows
//! spec/os-contract.md. The world checks every access and records the first breach of a rule. The unit under test is any
//! [`trapless_smu::SmuUnit`]: the reference model or the RTL.

#![allow(missing_docs)] // test code: the names of the items say what they are

pub mod disguise;
pub mod games;
pub mod lockstep;
pub mod sim;
pub mod steps;
pub mod world;
