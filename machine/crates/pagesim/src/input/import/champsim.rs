// SPDX-License-Identifier: Apache-2.0
//! ChampSim's traces: records of 64 bytes (`input_instr` of its inc/trace_instruction.h), one for each instruction.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | address of the instruction |
//! | 1, 1 | whether it is a branch; whether the branch was taken |
//! | 2, 4 | registers written and read |
//! | 2 x 8 | addresses that it writes; 0 means none |
//! | 4 x 8 | addresses that it reads; 0 means none |
//!
//! Numbers are little-endian. The format has no sizes: each access touches only the line of its address.

use trapless_trace::{Grain, Kind, Totals};

use super::sink::About;
use super::{Format, Input, Sink, Target, only};
use crate::Error;

/// Bytes of a record.
const RECORD: usize = 64;
/// Detection needs at least this many records.
const ENOUGH: usize = 16;
/// The addresses of a program have at most 57 bits.
const ADDRESS: u64 = 1 << 57;

/// The format.
pub struct ChampSim;

/// The eight numbers of 8 bytes in a record.
#[inline]
fn numbers(record: &[u8; RECORD]) -> [u64; 8] {
    let (numbers, _) = record.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(numbers[at]))
}

impl Format for ChampSim {
    fn name(&self) -> &'static str {
        "champsim"
    }

    fn about(&self) -> &'static str {
        "ChampSim's records of 64 bytes"
    }

    /// Files have no mark of this format. So all records must make sense, and some must access memory.
    fn detects(&self, head: &[u8]) -> bool {
        let (records, _) = head.as_chunks::<RECORD>();
        let first = records.first().map(|record| numbers(record)[0]);
        let sensible = |record: &[u8; RECORD]| {
            let [at, _, addresses @ ..] = numbers(record);
            at != 0 && at < ADDRESS && record[8] <= 1 && record[9] <= 1 && addresses.iter().all(|a| *a < ADDRESS)
        };
        records.len() >= ENOUGH
            && records.iter().all(sensible)
            && records.iter().any(|record| numbers(record)[2..].iter().any(|address| *address != 0))
            && records.iter().any(|record| Some(numbers(record)[0]) != first)
    }

    fn import(&self, inputs: Vec<Input>, target: Target) -> Result<Totals, Error> {
        let mut input = only(inputs, &target)?;
        let mut sink = Sink::new(target, &About { format: self.name(), grain: Grain::Line, clock_hz: 0, note: "" })?;
        while !sink.full()
            && let Some(record) = input.record::<RECORD>()?
        {
            if record[8] > 1 || record[9] > 1 {
                let what =
                    format!("branch marks {} and {}, not 0 or 1; is this a trace of ChampSim's?", record[8], record[9]);
                return Err(input.bad_record::<RECORD>(what));
            }
            let [at, _, written @ .., a, b, c, d] = numbers(&record);
            sink.instruction(at, 1)?;
            for (kind, addresses) in [(Kind::Load, &[a, b, c, d][..]), (Kind::Store, &written)] {
                for address in addresses.iter().filter(|address| **address != 0) {
                    sink.data(kind, *address, 1)?;
                }
            }
        }
        sink.finish()
    }
}
