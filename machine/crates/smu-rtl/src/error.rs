// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a simulated unit.

use std::path::PathBuf;

/// Why a unit cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// No library, or none that can be loaded.
    #[error("cannot load the simulated SMU {0}: {1}; python3 -m rtl.smu.sim.build makes it")]
    Load(PathBuf, String),
    /// The library was built with other parameters.
    #[error("{0}: built for {1} = {2}, but {3} is needed")]
    Parameters(PathBuf, &'static str, u32, u32),
}
