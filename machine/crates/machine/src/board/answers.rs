// SPDX-License-Identifier: Apache-2.0
//! What the SMU says.

use trapless_smu::{Answer, Miss, SmuSink};

/// What the SMU has said while time went on. Walkers' answers need the harts, which have to wait until all is said.
#[derive(Default)]
pub struct Answers {
    /// To walkers.
    pub walkers: Vec<Answer>,
    /// To request ports.
    pub ports: Vec<Answer>,
    /// Misses that are over.
    pub over: Vec<Miss>,
}

impl SmuSink for Answers {
    fn answer(&mut self, answer: Answer) {
        self.walkers.push(answer);
    }

    fn port_answered(&mut self, answer: &Answer) {
        self.ports.push(*answer);
    }

    fn miss_over(&mut self, miss: &Miss) {
        self.over.push(*miss);
    }
}
