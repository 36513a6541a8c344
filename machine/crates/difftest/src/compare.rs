// SPDX-License-Identifier: Apache-2.0
//! Compares two memories after the same program, and finds the first differences, in words.

use std::collections::BTreeSet;

use crate::layout::*;
use crate::program::{Block, Program};

const FS_AND_SD: u64 = 1 << 63 | 3 << 13;
const MPRV: u64 = 1 << 17;
const BREAKPOINT: u64 = 3;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A trap.
    Trap {
        /// Whether the S handler took it.
        supervisor: bool,
        /// The vector; 0 for the base.
        vector: u64,
        /// Number of the block.
        block: usize,
        /// Cause, pc, trap value, status.
        words: [u64; 4],
    },
    /// A block's end.
    End {
        /// Number of the block.
        block: usize,
        /// x1..x31, f0..f31, fcsr, mstatus, sepc, scause, stval, hash of traps.
        words: Vec<u64>,
    },
}

impl Record {
    fn block(&self) -> usize {
        match self {
            Record::Trap { block, .. } | Record::End { block, .. } => *block,
        }
    }
}

/// Reads the records of the log.
pub fn records(memory: &[u8]) -> Vec<Record> {
    let words: Vec<u64> = memory[(LOG - DATA) as usize..]
        .chunks_exact(8)
        .map(|c| u64::from_le_bytes(c.try_into().expect("eight bytes")))
        .collect();
    let mut at = 0;
    let mut list = Vec::new();
    while let Some(&header) = words.get(at) {
        let block = (header & 0xffff_ffff_ffff) as usize;
        let vector = header >> 48 & 0xff;
        let kind = header >> 56;
        let length = if kind == record::END { record::END_WORDS } else { record::TRAP_WORDS };
        let Some(body) = words.get(at + 1..at + length) else { break };
        list.push(match kind {
            record::TRAP_M | record::TRAP_S => Record::Trap {
                supervisor: kind == record::TRAP_S,
                vector,
                block,
                words: body.try_into().expect("a trap record has this length"),
            },
            record::END => Record::End { block, words: body.to_vec() },
            _ => break,
        });
        at += length;
    }
    list
}

/// Name of what word `n` of an end record holds.
pub(crate) fn name_of(word: usize) -> String {
    match word {
        0..31 => format!("x{}", word + 1),
        31..63 => format!("f{}", word - 31),
        _ => ["fcsr", "mstatus", "sepc", "scause", "stval", "hash of traps"][word - 63].to_owned(),
    }
}

/// Bits of word `n` of an end record that are compared.
pub(crate) fn end_mask(block: &Block, n: usize) -> u64 {
    match n {
        0..31 if block.relax.x >> (n + 1) & 1 == 1 => 0,
        64 => status_mask(block),
        // QEMU 7.2 keeps the lowest bit of sepc; by the specification it reads as zero.
        65 => !1,
        67 if block.relax.tval => 0,
        _ => !0,
    }
}

fn status_mask(block: &Block) -> u64 {
    STATUS & !if block.relax.fs { FS_AND_SD } else { 0 } & !if block.relax.mprv { MPRV } else { 0 }
}

fn trap_masks(block: &Block, words: &[u64; 4]) -> [u64; 4] {
    // After a breakpoint the trap value may be its address or zero; QEMU 7.2 writes zero.
    let tval = if block.relax.tval || words[0] == BREAKPOINT { 0 } else { !0 };
    let cause = if block.relax.cause { 0 } else { !0 };
    [cause, !1, tval, status_mask(block)]
}

/// Differences between `ours` and `theirs`, one line each, at most `limit`.
pub fn differences(program: &Program, ours: &[u8], theirs: &[u8], limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let (a, b) = (records(ours), records(theirs));
    for (index, (ours, theirs)) in a.iter().zip(&b).enumerate() {
        if found.len() >= limit {
            return found;
        }
        let Some(block) = program.blocks.get(theirs.block()) else {
            found.push(format!("record {index}: the reference names block {}, which does not exist", theirs.block()));
            return found;
        };
        let at = format!("{} (block {}, record {index})", block.name, theirs.block());
        match (ours, theirs) {
            (
                Record::Trap { supervisor, vector, block: number, words },
                Record::Trap { supervisor: s2, vector: v2, block: n2, words: w2 },
            ) if (supervisor, vector, number) == (s2, v2, n2) => {
                let masks = trap_masks(block, w2);
                for (n, name) in ["cause", "pc", "trap value", "status"].into_iter().enumerate() {
                    if (words[n] ^ w2[n]) & masks[n] != 0 {
                        found.push(format!(
                            "{at}: trap at {:#x}, cause {:#x}: {name} is {:#x}, reference has {:#x}",
                            w2[1], w2[0], words[n], w2[n]
                        ));
                    }
                }
                if words[1] != w2[1] || words[0] != w2[0] {
                    return found;
                }
            }
            (Record::End { block: number, words }, Record::End { block: n2, words: w2 }) if number == n2 => {
                for n in 0..words.len() {
                    if (words[n] ^ w2[n]) & end_mask(block, n) != 0 {
                        found.push(format!("{at}: {} is {:#x}, reference has {:#x}", name_of(n), words[n], w2[n]));
                    }
                }
            }
            _ => {
                found.push(format!("{at}: record {}, reference has {}", brief(ours), brief(theirs)));
                return found;
            }
        }
    }
    if a.len() != b.len() {
        let next = a.get(b.len()).or(b.get(a.len())).map(brief).unwrap_or_default();
        found.push(format!("{} records, reference has {}; the first that only one has: {next}", a.len(), b.len()));
    }
    let data = (LOG - DATA) as usize;
    for at in (0..data).step_by(8).filter(|&at| ours[at..at + 8] != theirs[at..at + 8]) {
        if found.len() >= limit {
            break;
        }
        let word = |m: &[u8]| u64::from_le_bytes(m[at..at + 8].try_into().expect("eight bytes"));
        found.push(format!(
            "memory at {:#x} (window {}): {:#018x}, reference has {:#018x}",
            DATA + at as u64,
            at as u64 / WINDOW,
            word(ours),
            word(theirs)
        ));
    }
    found
}

fn brief(record: &Record) -> String {
    match record {
        Record::Trap { supervisor, vector, block, words } => format!(
            "{} trap in block {block}: cause {:#x} at {:#x}, value {:#x}, vector {vector}",
            if *supervisor { "S" } else { "M" },
            words[0],
            words[1],
            words[2]
        ),
        Record::End { block, .. } => format!("end of block {block}"),
    }
}

/// Whether the log reaches the end of the last block.
pub fn complete(program: &Program, list: &[Record]) -> bool {
    matches!(list.last(), Some(Record::End { block, .. }) if block + 1 == program.blocks.len())
}

/// Causes of traps in the log, as text.
pub fn causes(list: &[Record]) -> BTreeSet<String> {
    list.iter()
        .filter_map(|r| match r {
            Record::Trap { supervisor, words, .. } => {
                let by = if *supervisor { "S" } else { "M" };
                let (kind, code) =
                    if words[0] >> 63 == 1 { ("interrupt", words[0] << 1 >> 1) } else { ("exception", words[0]) };
                Some(format!("{kind} {code} in {by}-mode"))
            }
            Record::End { .. } => None,
        })
        .collect()
}

/// Differences between the log and what a block expects.
pub fn broken_expectations(program: &Program, list: &[Record], who: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, block) in program.blocks.iter().enumerate() {
        let Some(expected) = &block.expected else {
            registers(block, number, list, who, &mut found);
            continue;
        };
        let mut traps = list.iter().filter_map(|r| match r {
            Record::Trap { block, words, .. } if *block == number => Some(*words),
            _ => None,
        });
        for e in expected.iter().filter(|e| e.cause.is_some()) {
            let wanted = e.cause.map(|c| (c, e.tval));
            let got = traps.next().map(|w| (w[0], w[2]));
            let same = match (wanted, got) {
                (Some(w), Some(g)) => w.0 == g.0 && (w.1 == g.1 || block.relax.tval),
                _ => false,
            };
            if !same {
                let show =
                    |t: Option<(u64, u64)>| t.map_or("nothing".to_owned(), |(c, v)| format!("cause {c} for {v:#x}"));
                found.push(format!("{}, {}: {who} has {}, must have {}", block.name, e.what, show(got), show(wanted)));
                break;
            }
        }
        if let Some(extra) = traps.next()
            && !found.last().is_some_and(|f| f.starts_with(&block.name))
        {
            found.push(format!("{}: {who} has an unexpected trap: cause {} for {:#x}", block.name, extra[0], extra[2]));
        }
    }
    found
}

/// Checks the integer registers at the end of a block.
fn registers(block: &Block, number: usize, list: &[Record], who: &str, found: &mut Vec<String>) {
    let ends = list.iter().filter_map(|r| match r {
        Record::End { block, words } if *block == number => Some(words),
        _ => None,
    });
    for words in ends {
        for (x, value) in &block.expected_x {
            let got = words[usize::from(*x) - 1];
            if got != *value {
                found.push(format!("{}: {who} has x{x} = {got:#x}, must have {value:#x}", block.name));
            }
        }
    }
}
