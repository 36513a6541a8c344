// SPDX-License-Identifier: Apache-2.0
//! Reads stored traces (docs/reference/trace-format.md) as steps. Memory use does not grow with the length of a trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use trapless_trace::{Entry, Grain, Header, Reader};

use super::{LINE_SHIFT, Source, Step, Tail};
use crate::Error;

/// Bytes read at once.
const BUFFER: usize = 1 << 20;

/// The accesses of a trace that are used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which {
    /// Root page table (page number) of the address space to use. If it is `None`, the trace must have only one address space.
    pub space: Option<u64>,
    /// Whether accesses of the kernel in this address space are used as well.
    pub kernel: bool,
}

/// One hart of the trace.
#[derive(Clone, Default)]
struct Hart {
    /// Instructions retired up to its last entry.
    instructions: u64,
    /// Whether its last entry is used. If so, the instructions that follow belong to this program.
    taken: bool,
    /// Whether the last run of each stream is used.
    open: [bool; 3],
}

impl Hart {
    /// Number of accesses of a run that has ended, without the first one, which its step counts.
    fn beyond_first(&self, stream: usize, ended: u64) -> u64 {
        if self.open[stream] { ended.saturating_sub(1) } else { 0 }
    }
}

/// A stored trace of one program. If the trace has several harts, steps come in the order of the file.
///
/// In a trace of pages, each step is to the first line of its page. That is enough to count pages, but not to simulate CPU
/// caches. Instructions count from an entry that is used to the hart's next entry. So if a trace does not have the kernel's
/// accesses, the instructions of a system call count as the program's, because they take the program's time.
pub struct Recorded {
    path: PathBuf,
    name: String,
    reader: Reader<BufReader<File>>,
    which: Which,
    /// The space of the steps so far.
    space: Option<u64>,
    /// Shift from block numbers of the trace to line numbers.
    shift: u32,
    harts: Vec<Hart>,
    /// Instructions since the last step.
    instructions: u64,
    /// For each stream, accesses of the runs that have ended since its last step, without first ones.
    repeats: [u64; 3],
    steps: u64,
    accesses: u64,
}

impl Recorded {
    /// Opens a trace. Checks that it is complete, as far as possible without reading all of it.
    ///
    /// # Errors
    /// The file has no trace, or an incomplete one.
    pub fn open(path: &Path, which: Which) -> Result<Recorded, Error> {
        let wrong = |error| Error::Trace { path: path.to_owned(), error };
        let file = File::open(path).map_err(Error::io(path))?;
        let totals = Reader::skim(&file).map_err(wrong)?;
        let reader = entries(path)?;
        let header = reader.header();
        Ok(Recorded {
            path: path.to_owned(),
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            which,
            space: which.space,
            shift: header.grain.shift() - LINE_SHIFT,
            harts: vec![Hart::default(); header.harts.into()],
            reader,
            instructions: 0,
            repeats: [0; 3],
            steps: 0,
            accesses: totals.accesses.iter().sum(),
        })
    }

    /// The header of the trace.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// Makes the error for a trace that has no access, or accesses of several spaces.
    #[cold]
    fn unclear(&self) -> Result<Error, Error> {
        let mut spaces: BTreeMap<u64, u64> = BTreeMap::new();
        let mut open = vec![[None; 3]; self.harts.len()];
        for entry in entries(&self.path)? {
            let mut count = |space: Option<u64>, n| *space.map_or(&mut 0, |s| spaces.entry(s).or_default()) += n;
            match entry.map_err(|error| Error::Trace { path: self.path.clone(), error })? {
                Entry::Run { hart, kind, place, ended, .. } => {
                    let taken = (self.which.kernel || !place.kernel).then_some(place.space);
                    count(std::mem::replace(&mut open[usize::from(hart)][kind as usize], taken), ended);
                }
                Entry::Close { hart, ended, .. } => {
                    open[usize::from(hart)].iter_mut().zip(ended).for_each(|(space, n)| count(space.take(), n));
                }
            }
        }
        let path = self.path.clone();
        Ok(if spaces.is_empty() {
            Error::Empty { path }
        } else {
            Error::Spaces { path, spaces: spaces.into_iter().collect() }
        })
    }
}

fn entries(path: &Path) -> Result<Reader<BufReader<File>>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    Reader::new(BufReader::with_capacity(BUFFER, file)).map_err(|error| Error::Trace { path: path.to_owned(), error })
}

impl Source for Recorded {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        while let Some(entry) = self.reader.next() {
            let entry = entry.map_err(|error| Error::Trace { path: self.path.clone(), error })?;
            let (hart, at) = match entry {
                Entry::Run { hart, at, .. } | Entry::Close { hart, at, .. } => (hart, at),
            };
            let hart = &mut self.harts[usize::from(hart)];
            let passed = at.instructions.wrapping_sub(std::mem::replace(&mut hart.instructions, at.instructions));
            self.instructions = self.instructions.wrapping_add(if hart.taken { passed } else { 0 });
            match entry {
                Entry::Run { kind, place, ended, .. } => {
                    let stream = kind as usize;
                    self.repeats[stream] = self.repeats[stream].wrapping_add(hart.beyond_first(stream, ended));
                    hart.taken = self.which.kernel || !place.kernel;
                    if hart.taken && self.space != Some(place.space) {
                        match self.space {
                            None => self.space = Some(place.space),
                            Some(_) if self.which.space.is_none() => return Err(self.unclear()?),
                            Some(_) => hart.taken = false,
                        }
                    }
                    hart.open[stream] = hart.taken;
                    if hart.taken {
                        self.steps += 1;
                        return Ok(Some(Step {
                            line: place.block << self.shift,
                            kind,
                            instructions: std::mem::take(&mut self.instructions),
                            repeats: std::mem::take(&mut self.repeats[stream]),
                        }));
                    }
                }
                Entry::Close { ended, .. } => {
                    for (stream, n) in ended.into_iter().enumerate() {
                        self.repeats[stream] = self.repeats[stream].wrapping_add(hart.beyond_first(stream, n));
                    }
                    (hart.taken, hart.open) = (false, [false; 3]);
                }
            }
        }
        if self.steps == 0 { Err(self.unclear()?) } else { Ok(None) }
    }

    fn tail(&self) -> Tail {
        Tail { repeats: self.repeats, instructions: self.instructions }
    }

    fn accesses(&self) -> Option<u64> {
        Some(self.accesses)
    }

    fn has_lines(&self) -> bool {
        self.header().grain == Grain::Line
    }

    fn name(&self) -> &str {
        &self.name
    }
}
