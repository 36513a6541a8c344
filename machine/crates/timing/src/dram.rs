// SPDX-License-Identifier: Apache-2.0
//! DRAM: banks, each with one open row.

use trapless_memory::Cycle;

use crate::cache::Line;

/// Sizes and times of DRAM. Times are in core cycles.
#[derive(Clone, Copy, Debug)]
pub struct DramTiming {
    /// Time from a request to its data, if the row is open. Further requests to the row follow after `burst` each.
    pub column: u64,
    /// Time to open a row.
    pub activate: u64,
    /// Time to close the open row.
    pub precharge: u64,
    /// Time for which a request to an open row keeps the bank busy.
    pub burst: u64,
    /// Number of banks, a power of two.
    pub banks: usize,
    /// Number of lines in a row, a power of two.
    pub row_lines: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    row: Option<u64>,
    busy_until: u64,
}

/// The memory behind all caches.
#[derive(Clone, Debug)]
pub struct Dram {
    timing: DramTiming,
    banks: Vec<Bank>,
}

impl Dram {
    /// Creates DRAM with all rows closed.
    pub fn new(timing: DramTiming) -> Dram {
        Dram { timing, banks: vec![Bank::default(); timing.banks] }
    }

    /// Reads a line at `now`. Returns the cycles until its data arrives. Consecutive rows are in different banks.
    pub fn access(&mut self, line: Line, now: Cycle) -> u64 {
        let t = &self.timing;
        let row = line.0 / t.row_lines;
        let bank = &mut self.banks[(row % t.banks as u64) as usize];
        let wait = bank.busy_until.saturating_sub(now.0);
        let open = match bank.row {
            Some(open) if open == row => 0,
            Some(_) => t.precharge + t.activate,
            None => t.activate,
        };
        bank.row = Some(row);
        bank.busy_until = now.0 + wait + open + t.burst;
        wait + open + t.column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_open_and_banks_stay_busy() {
        let timing = DramTiming { column: 10, activate: 20, precharge: 30, burst: 4, banks: 2, row_lines: 8 };
        let mut dram = Dram::new(timing);
        assert_eq!(dram.access(Line(0), Cycle(0)), 30);
        assert_eq!(dram.access(Line(7), Cycle(100)), 10);
        // The next access to the same row waits for the burst.
        assert_eq!(dram.access(Line(6), Cycle(101)), 3 + 10);
        // An access to another row of the same bank, then to another bank.
        assert_eq!(dram.access(Line(16), Cycle(200)), 60);
        assert_eq!(dram.access(Line(8), Cycle(200)), 30);
        // The bank is busy until cycle 254.
        assert_eq!(dram.access(Line(17), Cycle(210)), 44 + 10);
    }
}
