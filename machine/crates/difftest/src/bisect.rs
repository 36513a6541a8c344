// SPDX-License-Identifier: Apache-2.0
//! Bisects a cell whose hash is wrong: finds the instruction, its round and its operands.
//!
//! Instructions are left out by replacing them with others that do nothing. So the code keeps its addresses, and the rest is
//! translated, cached and split over pages as before. The reference gives the operands.

use std::path::Path;

use anyhow::Result;

use crate::cells::Cell;
use crate::compare::{self, Record};
use crate::layout::*;
use crate::listing;
use crate::program::{Block, Mode, Program};
use crate::run::{Run, Runner};

/// `addi x0, x0, 0` and `c.nop`.
const NOP: [u8; 4] = 0x13u32.to_le_bytes();
const C_NOP: [u8; 2] = 1u16.to_le_bytes();
/// How often a page is entered before its code is tried: far more often than needed to be translated.
const WARM_UP: u64 = 64;
/// Maximum number of traps of a cell for which the log has room.
const TRAPS: u64 = 100_000;
/// Maximum number of differences that are shown.
const SHOWN: usize = 8;

/// Result of a bisection.
#[derive(Debug)]
pub struct Culprit {
    /// Name of the cell.
    pub cell: String,
    /// The first round that goes wrong; the first one is 1.
    pub round: u64,
    /// Mnemonics of the instruction, or of instructions that only work together; empty if the cell's frame goes wrong.
    pub mnemonics: Vec<&'static str>,
    /// The code, what it does and what it should do, for people to read.
    pub text: String,
}

/// A cell as the last block of its program, and the two runners.
struct Pair<'a> {
    program: Program,
    cell: &'a Cell,
    ours: &'a Runner,
    reference: &'a Runner,
    folder: &'a Path,
}

/// Finds out which of a cell's instructions goes wrong; `None` if none does, even after the cells before it.
///
/// # Errors
/// A program cannot be run.
pub fn bisect(
    program: &Program,
    cell: &Cell,
    ours: &Runner,
    reference: &Runner,
    folder: &Path,
) -> Result<Option<Culprit>> {
    let mut pair = Pair { program: program.only(cell.block), cell, ours, reference, folder };
    let name = program.blocks[cell.block].name.clone();
    let all = vec![true; cell.spans.len()];
    if !pair.differ(&all, cell.rounds)? {
        // The cell may depend on what other cells left in shared pages.
        pair.program = program.with(program.blocks[..=cell.block].to_vec());
        if !pair.differ(&all, cell.rounds)? {
            return Ok(None);
        }
    }
    // Try only the round that goes wrong, from the state in which the reference enters it. If that is not enough, because the
    // mistake depends on earlier rounds, run all rounds.
    let round = lowest(1, cell.rounds, |rounds| pair.differ(&all, rounds))?;
    let (mut rounds, mut before) = (round, None);
    if let Some(program) = pair.enter(round)? {
        let whole = std::mem::replace(&mut pair.program, program);
        if pair.differ(&all, 1)? {
            rounds = 1;
        } else {
            before = Some(std::mem::replace(&mut pair.program, whole));
            rounds = cell.rounds;
        }
    }
    // Find the shortest beginning that goes wrong: its last part is the culprit.
    let first = |count: usize| (0..all.len()).map(|n| n < count).collect::<Vec<_>>();
    let count = lowest(0, all.len() as u64, |count| pair.differ(&first(count as usize), rounds))? as usize;
    let Some(culprit) = count.checked_sub(1) else {
        let block = pair.program.blocks.last().expect("the cell");
        let listing = listing::listing(&block.code, block.entry, folder);
        let text = format!("  none of its instructions, but what is around them:\n{listing}\n");
        return Ok(Some(Culprit { cell: name, round, mnemonics: Vec::new(), text }));
    };
    let mut keep = first(count);
    pair.leave_out(&mut keep, culprit, rounds)?;
    let text = pair.describe(&keep, culprit, rounds, before.is_none())?;
    let (at, code) = pair.code_of(culprit);
    let mnemonics = listing::instructions(code, at).map(|(_, bytes)| listing::mnemonic(bytes)).collect();
    Ok(Some(Culprit { cell: name, round, mnemonics, text }))
}

/// The first cell whose end record or memory differs.
pub fn first_difference<'a>(program: &Program, cells: &'a [Cell], ours: &Run, theirs: &Run) -> Option<&'a Cell> {
    let (a, b) = (compare::records(&ours.memory), compare::records(&theirs.memory));
    let end = |records: &[Record], number: usize| {
        records.iter().find_map(|r| match r {
            Record::End { block, words } if *block == number => {
                let mask = |(n, w): (usize, &u64)| w & compare::end_mask(&program.blocks[number], n);
                Some(words.iter().enumerate().map(mask).collect::<Vec<u64>>())
            }
            _ => None,
        })
    };
    cells.iter().find(|cell| {
        end(&a, cell.block) != end(&b, cell.block)
            || cell.pages.iter().any(|at| page_of(ours, *at) != page_of(theirs, *at))
    })
}

fn page_of(run: &Run, at: u64) -> &[u8] {
    &run.memory[at as usize..at as usize + 4096]
}

/// The lowest number from `low` to `high` for which `is` holds. It must hold for `high`, and for all above the first.
fn lowest(mut low: u64, mut high: u64, mut is: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    while low < high {
        let middle = low + (high - low) / 2;
        if is(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(high)
}

impl Pair<'_> {
    /// The program with only the parts of the cell that `keep` selects, running for this number of `rounds`.
    fn variant(&self, keep: &[bool], rounds: u64) -> Program {
        let mut program = self.program.with(self.program.blocks.clone());
        program.data[self.cell.counter..self.cell.counter + 8].copy_from_slice(&rounds.to_le_bytes());
        for (span, _) in self.cell.spans.iter().zip(keep).filter(|(_, keep)| !**keep) {
            let range = (span.start - CODE) as usize..(span.end - CODE) as usize;
            let lengths: Vec<usize> =
                listing::instructions(&program.code[range.clone()], 0).map(|(_, bytes)| bytes.len()).collect();
            let nops = lengths.into_iter().flat_map(|n| if n == 4 { &NOP[..] } else { &C_NOP[..] });
            let nops: Vec<u8> = nops.copied().collect();
            program.code[range.start..range.start + nops.len()].copy_from_slice(&nops);
        }
        program
    }

    fn differ(&self, keep: &[bool], rounds: u64) -> Result<bool> {
        let program = self.variant(keep, rounds);
        let (a, b) = (self.ours.run(&program, self.folder)?, self.reference.run(&program, self.folder)?);
        Ok(a.trouble.is_some() || !compare::differences(&program, &a.memory, &b.memory, 1).is_empty())
    }

    /// The program that begins with round `round`, in the state in which the reference enters it, and with the pages of its code
    /// as warm as they were; `None` for the first round, which needs no such program.
    fn enter(&self, round: u64) -> Result<Option<Program>> {
        if round == 1 {
            return Ok(None);
        }
        let run = self.reference.run(&self.variant(&vec![true; self.cell.spans.len()], round - 1), self.folder)?;
        let words = end_words(&run);
        let mut block = self.program.blocks.last().expect("the cell").clone();
        if let (Some(x), Some(f), Some(fcsr)) = (words.get(..31), words.get(31..63), words.get(63)) {
            block.x[1..].copy_from_slice(x);
            block.f.copy_from_slice(f);
            block.fcsr = *fcsr;
        }
        // Blocks with only an `ebreak`: the one of the cell, and the one of the block before it.
        let nothing = |at: u64| {
            let mut block = Block::new("warm-up", Mode::Machine);
            (block.entry, block.end, block.repeat) = (at, at, WARM_UP);
            block
        };
        let before = block.entry.checked_sub(4).filter(|at| *at >= CODE);
        let warm_up = before.into_iter().chain([block.end]).map(nothing);
        let mut program = self.program.with(warm_up.chain([block.clone()]).collect());
        program.data.copy_from_slice(&run.memory[..DATA_SIZE as usize]);
        Ok(Some(program))
    }

    /// Leaves out all parts that are not needed for part `culprit` to go wrong.
    fn leave_out(&self, keep: &mut [bool], culprit: usize, rounds: u64) -> Result<()> {
        let mut size = culprit.div_ceil(2);
        while size > 0 {
            for from in (0..culprit).step_by(size) {
                let range = from..(from + size).min(culprit);
                let mut without = keep.to_vec();
                without[range.clone()].fill(false);
                if without != keep && self.differ(&without, rounds)? {
                    keep[range].fill(false);
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Address and code of a part.
    fn code_of(&self, part: usize) -> (u64, &[u8]) {
        let span = &self.cell.spans[part];
        (span.start, &self.program.code[(span.start - CODE) as usize..(span.end - CODE) as usize])
    }

    /// Describes what goes wrong when the parts in `keep` run, up to `culprit`. Adds its operands if only one round runs.
    fn describe(&self, keep: &[bool], culprit: usize, rounds: u64, one_round: bool) -> Result<String> {
        let (at, code) = self.code_of(culprit);
        let mut text = format!("{}\n", listing::listing(code, at, self.folder));
        let others: Vec<String> = (0..culprit)
            .filter(|n| keep[*n])
            .map(|n| listing::listing(self.code_of(n).1, self.code_of(n).0, self.folder))
            .collect();
        if !others.is_empty() {
            text += &format!("  after\n{}\n", others.join("\n"));
        }
        if one_round {
            // A run of the reference without the culprit shows the culprit's operands.
            let mut without = keep.to_vec();
            without[culprit] = false;
            let input = end_words(&self.reference.run(&self.variant(&without, rounds), self.folder)?);
            let operands = operands(code).into_iter().filter_map(|n| {
                let value = input.get(n)?;
                Some(format!("{} = {value:#x}", compare::name_of(n)))
            });
            text += &format!("  with {}\n", operands.collect::<Vec<_>>().join(", "));
        }
        // Run with a log of traps, in case the hash of traps is what differs.
        let program = self.variant(keep, rounds);
        let mut blocks = program.blocks.clone();
        if let Some(cell) = blocks.last_mut() {
            cell.flags &= !flag::HASH_TRAPS;
            cell.traps = TRAPS;
        }
        let program = program.with(blocks);
        let (a, b) = (self.ours.run(&program, self.folder)?, self.reference.run(&program, self.folder)?);
        for line in a.trouble.into_iter().chain(compare::differences(&program, &a.memory, &b.memory, SHOWN)) {
            text += &format!("  {line}\n");
        }
        Ok(text)
    }
}

/// Words of the last end record; earlier ones belong to the warm-up.
fn end_words(run: &Run) -> Vec<u64> {
    let end = |r| if let Record::End { words, .. } = r { Some(words) } else { None };
    compare::records(&run.memory).into_iter().rev().find_map(end).unwrap_or_default()
}

/// Words of an end record that an instruction may read, judged only by its register fields.
fn operands(code: &[u8]) -> Vec<usize> {
    let mut registers: Vec<u32> = Vec::new();
    for (_, bytes) in listing::instructions(code, 0) {
        match bytes {
            [a, b] => {
                let half = u32::from(u16::from_le_bytes([*a, *b]));
                registers.extend([half >> 7 & 31, half >> 2 & 31, 8 + (half >> 7 & 7), 8 + (half >> 2 & 7)]);
            }
            [a, b, c, d] => {
                let word = u32::from_le_bytes([*a, *b, *c, *d]);
                registers.extend([word >> 15 & 31, word >> 20 & 31]);
                // It has four operands.
                if word & 0x73 == 0x43 {
                    registers.push(word >> 27);
                }
            }
            _ => {}
        }
    }
    let mut words: Vec<usize> = Vec::new();
    for r in registers {
        let x = (r > 0).then(|| r as usize - 1);
        for word in x.into_iter().chain([31 + r as usize]) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words.push(63);
    words
}
