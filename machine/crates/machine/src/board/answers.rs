// SPDX-License-Identifier: Apache-2.0
//! Collects the SMU's answers.

use trapless_smu::{Answer, Miss, SmuSink};

/// Answers of the SMU, collected while time advances. Walkers get theirs afterwards, because that needs the harts.
#[derive(Default)]
pub struct Answers {
    /// Answers to walkers.
    pub walkers: Vec<Answer>,
    /// Answers to request ports.
    pub ports: Vec<Answer>,
    /// Misses that have ended.
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
