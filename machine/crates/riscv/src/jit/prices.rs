// SPDX-License-Identifier: Apache-2.0
//! What instructions cost.

use crate::predictor::PredictorConfig;

/// What translated code adds to `acc`.
pub struct Prices {
    /// By operation.
    pub costs: [u64; 256],
    /// For a taken branch.
    pub taken: u64,
    /// Detailed timing.
    pub predictor: Option<PredictorConfig>,
}
