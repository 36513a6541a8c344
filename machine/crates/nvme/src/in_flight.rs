// SPDX-License-Identifier: Apache-2.0
//! Commands in service, in the order in which they are done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trapless_memory::Cycle;

use crate::controller::InFlight;

/// Commands by the cycle at which they are due, then by the order of their arrival.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlightSet {
    commands: BTreeMap<(Cycle, u64), InFlight>,
    arrivals: u64,
}

impl InFlightSet {
    pub fn insert(&mut self, due: Cycle, command: InFlight) {
        self.arrivals += 1;
        self.commands.insert((due, self.arrivals), command);
    }

    pub fn first_due(&self) -> Option<Cycle> {
        self.commands.first_key_value().map(|((due, _), _)| *due)
    }

    pub fn pop_first(&mut self) -> Option<InFlight> {
        self.commands.pop_first().map(|(_, command)| command)
    }

    /// Takes out all commands that `wanted` picks.
    pub fn extract(&mut self, wanted: impl Fn(&InFlight) -> bool) -> Vec<InFlight> {
        let mut out = Vec::new();
        self.commands.retain(|_, command| {
            let take = wanted(command);
            if take {
                out.push(*command);
            }
            !take
        });
        out
    }
}
