// SPDX-License-Identifier: Apache-2.0
//! From a cell whose hash is wrong to the instruction, its round and its operands.
//!
//! The code stays where it is: instructions are left out by putting others that do nothing in their places, so what is left
//! is translated, cached and crossed by pages as before. The reference gives the operands.

use std::path::Path;

use anyhow::Result;

use crate::cells::Cell;
use crate::compare::{self, Record};
use crate::layout::*;
use crate::listing;
use crate::program::Program;
use crate::run::{Run, Runner};

/// `addi x0, x0, 0` and `c.nop`.
const NOP: [u8; 4] = 0x13u32.to_le_bytes();
const C_NOP: [u8; 2] = 1u16.to_le_bytes();
/// Traps of a cell for which there is room in the log.
const TRAPS: u64 = 100_000;
/// Differences shown.
const SHOWN: usize = 8;

/// What a bisection found.
#[derive(Debug)]
pub struct Culprit {
    /// Name of the cell.
    pub cell: String,
    /// The first round that goes wrong, from 1.
    pub round: u64,
    /// Mnemonics of the instruction, or of those that make no sense without each other; empty: the cell's frame is wrong.
    pub mnemonics: Vec<&'static str>,
    /// The code, and what it does and should do, for people.
    pub text: String,
}

/// A cell by itself on two runners.
struct Pair<'a> {
    program: Program,
    cell: &'a Cell,
    ours: &'a Runner,
    reference: &'a Runner,
    folder: &'a Path,
}

/// Finds out which of a cell's instructions goes wrong; `None` if the cell by itself does not.
///
/// # Errors
/// When a program cannot be run.
pub fn bisect(
    program: &Program,
    cell: &Cell,
    ours: &Runner,
    reference: &Runner,
    folder: &Path,
) -> Result<Option<Culprit>> {
    let pair = Pair { program: program.only(cell.block), cell, ours, reference, folder };
    let all = cell.spans.len();
    if !pair.differ(&vec![true; all], cell.rounds)? {
        return Ok(None);
    }
    // The shortest beginning that goes wrong: its last part is what does. More rounds are more operands.
    let first = |count: usize| (0..all).map(|n| n < count).collect::<Vec<_>>();
    let count = lowest(0, all as u64, |count| pair.differ(&first(count as usize), cell.rounds))? as usize;
    let mut keep = first(count);
    if count > 0 {
        pair.leave_out(&mut keep, count - 1)?;
    }
    let round = lowest(1, cell.rounds, |rounds| pair.differ(&keep, rounds))?;
    let text = pair.describe(&keep, count.checked_sub(1), round)?;
    let mnemonics = count.checked_sub(1).map(|n| pair.code_of(n)).map_or(Vec::new(), |(at, code)| {
        listing::instructions(code, at).map(|(_, bytes)| listing::mnemonic(bytes)).collect()
    });
    Ok(Some(Culprit { cell: pair.program.blocks[0].name.clone(), round, mnemonics, text }))
}

/// The first cell whose end or memory differs.
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

/// The lowest number from `low` to `high` for which `is` holds; it does for `high`, and for all above one for which it does.
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
    /// The program with these parts of the cell, for so many rounds.
    fn variant(&self, keep: &[bool], rounds: u64) -> Program {
        let mut program = self.program.only(0);
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

    /// Leaves out whatever is not needed for part `culprit` to go wrong.
    fn leave_out(&self, keep: &mut [bool], culprit: usize) -> Result<()> {
        let mut size = culprit.div_ceil(2);
        while size > 0 {
            for from in (0..culprit).step_by(size) {
                let range = from..(from + size).min(culprit);
                let mut without = keep.to_vec();
                without[range.clone()].fill(false);
                if without != keep && self.differ(&without, self.cell.rounds)? {
                    keep[range].fill(false);
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Address and bytes of a part.
    fn code_of(&self, part: usize) -> (u64, &[u8]) {
        let span = &self.cell.spans[part];
        (span.start, &self.program.code[(span.start - CODE) as usize..(span.end - CODE) as usize])
    }

    /// What goes wrong in `round`, in which the parts of `keep` run and `culprit` is the last.
    fn describe(&self, keep: &[bool], culprit: Option<usize>, round: u64) -> Result<String> {
        let mut text = String::new();
        let Some(culprit) = culprit else {
            let block = &self.program.blocks[0];
            let listing = listing::listing(&block.code, block.entry, self.folder);
            return Ok(format!("  not one of its instructions alone, but what is around them:\n{listing}\n"));
        };
        let (at, code) = self.code_of(culprit);
        text += &format!("{}\n", listing::listing(code, at, self.folder));
        let others: Vec<String> = (0..culprit)
            .filter(|n| keep[*n])
            .map(|n| listing::listing(self.code_of(n).1, self.code_of(n).0, self.folder))
            .collect();
        if !others.is_empty() {
            text += &format!("  only after\n{}\n", others.join("\n"));
        }

        // The reference's state before the round, run on without the culprit: what the culprit gets.
        let mut before = self.variant(keep, 1);
        if round > 1 {
            let run = self.reference.run(&self.variant(keep, round - 1), self.folder)?;
            restart(&mut before, &run);
            before.data[self.cell.counter..self.cell.counter + 8].copy_from_slice(&1u64.to_le_bytes());
        }
        let mut without = keep.to_vec();
        without[culprit] = false;
        let mut input = self.variant(&without, 1);
        (input.blocks, input.data) = (before.blocks.clone(), before.data.clone());
        let input = end_words(&self.reference.run(&input, self.folder)?);
        let operands = operands(code).into_iter().filter_map(|n| {
            let value = input.get(n)?;
            Some(format!("{} = {value:#x}", compare::name_of(n)))
        });
        text += &format!("  with {}\n", operands.collect::<Vec<_>>().join(", "));
        // With a log of its traps, if it is the hash of traps that differs.
        let mut program = self.variant(keep, round);
        program.blocks[0].flags &= !flag::HASH_TRAPS;
        program.blocks[0].traps = TRAPS;
        let program = program.only(0);
        let (a, b) = (self.ours.run(&program, self.folder)?, self.reference.run(&program, self.folder)?);
        for line in a.trouble.into_iter().chain(compare::differences(&program, &a.memory, &b.memory, SHOWN)) {
            text += &format!("  {}\n", line);
        }
        Ok(text)
    }
}

/// Lets a program of one block begin where a run of it ended.
fn restart(program: &mut Program, run: &Run) {
    let words = end_words(run);
    let block = &mut program.blocks[0];
    if let (Some(x), Some(f), Some(fcsr)) = (words.get(..31), words.get(31..63), words.get(63)) {
        block.x[1..].copy_from_slice(x);
        block.f.copy_from_slice(f);
        block.fcsr = *fcsr;
    }
    program.data.copy_from_slice(&run.memory[..DATA_SIZE as usize]);
}

fn end_words(run: &Run) -> Vec<u64> {
    let end = |r| if let Record::End { words, .. } = r { Some(words) } else { None };
    compare::records(&run.memory).into_iter().find_map(end).unwrap_or_default()
}

/// Words of an end record that an instruction may read, whatever it is: its fields for registers.
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
                // Four operands.
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
