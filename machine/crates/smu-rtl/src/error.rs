// SPDX-License-Identifier: Apache-2.0
//! Errors of the simulated unit.

use std::path::PathBuf;

/// Reason why a simulated unit cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// The library does not exist or cannot be loaded.
    #[error("cannot load the simulated SMU {0}: {1}; build it with python3 -m rtl.smu.sim.build")]
    Load(PathBuf, String),
    /// The library was built with other parameters.
    #[error("{0}: the library was built with {1} = {2}, but the configuration needs {3}")]
    Parameters(PathBuf, &'static str, u32, u32),
}
