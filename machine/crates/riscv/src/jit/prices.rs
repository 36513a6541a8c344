// SPDX-License-Identifier: Apache-2.0
//! Prices of instructions.

use crate::predictor::PredictorConfig;

/// What translated code adds to `acc`, and its predictor.
pub struct Prices {
    /// What each operation adds.
    pub costs: [u64; 256],
    /// What a taken branch adds.
    pub taken: u64,
    /// The branch predictor; none without detailed timing.
    pub predictor: Option<PredictorConfig>,
}
