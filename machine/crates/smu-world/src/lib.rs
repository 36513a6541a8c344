// SPDX-License-Identifier: Apache-2.0
//! Everything around an SMU, for its tests: memory, page tables, rings, devices, walkers and an operating system that keeps its
//! side of the contract. The world sees every access and keeps the first breach of a rule. It takes any
//! [`trapless_smu::SmuUnit`]: the reference model or the RTL.

#![allow(missing_docs)] // a world for tests: its names say what they are

pub mod disguise;
pub mod games;
pub mod lockstep;
pub mod sim;
pub mod steps;
pub mod world;
