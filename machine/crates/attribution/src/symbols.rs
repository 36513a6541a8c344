// SPDX-License-Identifier: Apache-2.0
//! Names of guest functions by address, from a kernel's System.map and from ELF files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use object::{Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind};

use crate::Error;

/// A function, or a pseudo function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(pub u32);

/// A file with symbols, and where it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFile {
    /// A System.map or an ELF file.
    pub path: PathBuf,
    /// Address at which the first byte of an ELF file's first segment was loaded, if it differs from the one in the file.
    pub base: Option<u64>,
    /// Whether its functions belong to all tasks. If not, a program's functions belong only to tasks with the program's name.
    pub of_all: bool,
}

impl FromStr for SymbolFile {
    type Err = String;

    fn from_str(text: &str) -> Result<SymbolFile, String> {
        let Some((path, base)) = text.rsplit_once('@') else {
            return Ok(SymbolFile { path: text.into(), base: None, of_all: false });
        };
        let base = u64::from_str_radix(base.trim_start_matches("0x"), 16)
            .map_err(|_| format!("'{base}' is not a hexadecimal address"))?;
        Ok(SymbolFile { path: path.into(), base: Some(base), of_all: false })
    }
}

/// Longest name of a task (TASK_COMM_LEN, without the final zero).
const TASK_NAME: usize = 15;
/// First address that is not user code: the lower half of the address space is.
const USER_END: u64 = 1 << 63;

/// A symbol of code: address, end (if known), name.
#[derive(Debug)]
struct Symbol {
    at: u64,
    end: Option<u64>,
    name: String,
}

/// The functions and their start addresses, in order; they cover all addresses.
type Starts = Vec<(u64, Function)>;

/// Functions by address and by name.
#[derive(Debug, Default)]
pub struct Symbols {
    names: Vec<String>,
    /// Functions of the kernel by name. Functions of programs are left out, because they may have the same names.
    by_name: HashMap<String, Function>,
    /// Whether each function belongs to a program.
    of_program: Vec<bool>,
    /// Functions by address: first those for all tasks, then those for tasks with a certain name.
    spaces: Vec<(String, Starts)>,
    /// Address of the kernel's first task.
    init_task: Option<u64>,
}

impl Symbols {
    /// Code of user programs that no symbol file names.
    pub const USER: Function = Function(0);
    /// Other code without a name.
    pub const UNNAMED: Function = Function(1);

    /// Creates a table without symbols.
    pub fn new() -> Symbols {
        let mut symbols = Symbols::default();
        symbols.intern("[user]");
        symbols.intern("[unnamed]");
        symbols.space("");
        symbols
    }

    /// The number of the space for tasks with this name; creates it if necessary.
    fn space(&mut self, task: &str) -> usize {
        self.spaces.iter().position(|(name, _)| name == task).unwrap_or_else(|| {
            self.spaces.push((task.to_owned(), vec![(0, Symbols::USER), (USER_END, Symbols::UNNAMED)]));
            self.spaces.len() - 1
        })
    }

    /// The number of the space for a task with this name.
    pub fn space_of(&self, task: &str) -> usize {
        self.spaces.iter().position(|(name, _)| name == task).unwrap_or(0)
    }

    /// Loads these files. Where they overlap, the last one counts.
    ///
    /// # Errors
    /// A file cannot be read, or has no symbols of code.
    pub fn load(files: &[SymbolFile]) -> Result<Symbols, Error> {
        let mut symbols = Symbols::new();
        for file in files {
            let data = std::fs::read(&file.path).map_err(|e| Error::file(&file.path, e))?;
            let (mut task, mut guests) = (String::new(), false);
            let found = if data.starts_with(b"\x7fELF") {
                let (found, is_program) = elf(&file.path, &data, file.base)?;
                guests = !file.of_all;
                if is_program && !file.of_all {
                    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                    task = name.chars().take(TASK_NAME).collect();
                }
                found
            } else {
                symbols.system_map(&file.path, &data)?
            };
            if found.is_empty() {
                return Err(Error::file(&file.path, "has no symbols of code"));
            }
            let space = symbols.space(&task);
            symbols.add(space, found, guests);
        }
        Ok(symbols)
    }

    /// The function with this name; creates it if necessary.
    pub fn intern(&mut self, name: &str) -> Function {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let function = self.make(name, false);
        self.by_name.insert(name.to_owned(), function);
        function
    }

    fn make(&mut self, name: &str, of_program: bool) -> Function {
        self.names.push(name.to_owned());
        self.of_program.push(of_program);
        Function(self.names.len() as u32 - 1)
    }

    /// Whether a function is user code: a function of a program or a library, or user code without a name.
    pub fn is_user(&self, function: Function) -> bool {
        function == Symbols::USER || self.of_program[function.0 as usize]
    }

    /// The function with this name.
    pub fn by_name(&self, name: &str) -> Option<Function> {
        self.by_name.get(name).copied()
    }

    /// A function's name.
    pub fn name(&self, function: Function) -> &str {
        &self.names[function.0 as usize]
    }

    /// All names, by number of the function.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Address of the kernel's first task.
    pub fn init_task(&self) -> Option<u64> {
        self.init_task
    }

    /// The function at an address, for a task of this space, and the function's range.
    pub fn at(&self, space: usize, address: u64) -> (Function, Range<u64>) {
        let look = |space: usize| {
            let starts = &self.spaces[space].1;
            let next = starts.partition_point(|(start, _)| *start <= address);
            let (start, function) = starts[next - 1];
            (function, start..starts.get(next).map_or(u64::MAX, |(start, _)| *start))
        };
        let (function, own) = look(space);
        if space == 0 || !matches!(function, Symbols::USER | Symbols::UNNAMED) {
            return (function, own);
        }
        let (function, range) = look(0);
        (function, range.start.max(own.start)..range.end.min(own.end))
    }

    /// Reads symbols of code from a System.map: lines of address, type, name. Any other symbol ends the function before it.
    fn system_map(&mut self, path: &Path, data: &[u8]) -> Result<Vec<Symbol>, Error> {
        let wrong =
            |line: usize| Error::file(path, format!("line {line} is not of a System.map, and the file is not an ELF"));
        let text = std::str::from_utf8(data).map_err(|_| wrong(1))?;
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let (Some(at), Some(kind), Some(name), None) = (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(wrong(number + 1));
            };
            let at = u64::from_str_radix(at, 16).map_err(|_| wrong(number + 1))?;
            if name == "init_task" {
                self.init_task = Some(at);
            }
            if matches!(kind, "t" | "T" | "w" | "W") && !name.starts_with(['$', '.']) {
                found.push(Symbol { at, end: None, name: name.to_owned() });
            } else if let Some(last) = found.last_mut().filter(|last: &&mut Symbol| last.end.is_none() && last.at < at)
            {
                last.end = Some(at);
            }
        }
        Ok(found)
    }

    /// Adds the symbols of one file, a kernel's or a program's. Of several names for one address, the first by `rank` is shown.
    fn add(&mut self, space: usize, mut found: Vec<Symbol>, of_program: bool) {
        found.sort_by(|a, b| (a.at, rank(&a.name), &a.name).cmp(&(b.at, rank(&b.name), &b.name)));
        let mut fresh: Vec<(u64, Option<u64>, Function)> = Vec::new();
        for symbol in found {
            match fresh.last_mut() {
                Some((at, end, function)) if *at == symbol.at => {
                    *end = (*end).max(symbol.end);
                    let function = *function;
                    if !of_program {
                        self.by_name.entry(symbol.name).or_insert(function);
                    }
                }
                _ => {
                    let name = &symbol.name;
                    let function = if of_program { self.make(name, true) } else { self.intern(name) };
                    fresh.push((symbol.at, symbol.end, function));
                }
            }
        }
        let (Some(first), Some(last)) =
            (fresh.first().map(|f| f.0), fresh.last().map(|f| f.1.unwrap_or(f.0.saturating_add(1))))
        else {
            return;
        };
        let resumes = self.at(space, last).0;
        let starts = &mut self.spaces[space].1;
        starts.retain(|(at, _)| !(first..last).contains(at));
        for (n, (at, end, function)) in fresh.iter().enumerate() {
            starts.push((*at, *function));
            let next = fresh.get(n + 1).map_or(last, |f| f.0);
            if let Some(end) = end.filter(|end| *end < next && *end > *at) {
                starts.push((end, if end < USER_END { Symbols::USER } else { Symbols::UNNAMED }));
            }
        }
        if !starts.iter().any(|(at, _)| *at == last) {
            starts.push((last, resumes));
        }
        starts.sort_unstable();
        starts.dedup_by_key(|(at, _)| *at);
    }
}

/// Order of several names for one address: names that mark a border come last, names with leading underscores before these.
fn rank(name: &str) -> (bool, usize) {
    let marks = name.contains("_text_") || name.ends_with("_end") || matches!(name, "_stext" | "_text" | "_etext");
    (marks, name.len() - name.trim_start_matches('_').len())
}

/// Reads symbols of code from an ELF file. Returns also whether it is a program: its address is fixed, or it has an interpreter.
fn elf(path: &Path, data: &[u8], base: Option<u64>) -> Result<(Vec<Symbol>, bool), Error> {
    let file = object::File::parse(data).map_err(|e| Error::file(path, e))?;
    let first = file.segments().map(|s| s.address()).min().unwrap_or(0);
    let moved = base.map_or(0, |base| base.wrapping_sub(first & !4095));
    let code = |s: &object::Symbol<'_, '_>| {
        let section = s.section_index().and_then(|index| file.section_by_index(index).ok());
        section.is_some_and(|section| section.kind() == SectionKind::Text)
            && matches!(s.kind(), SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown)
    };
    let mut found = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()).filter(code) {
        let Ok(name) = symbol.name() else { continue };
        if name.is_empty() || name.starts_with(['$', '.']) {
            continue;
        }
        let at = symbol.address().wrapping_add(moved);
        let end = (symbol.size() > 0).then(|| at + symbol.size());
        found.push(Symbol { at, end, name: name.to_owned() });
    }
    let is_program = file.kind() == ObjectKind::Executable || file.section_by_name(".interp").is_some();
    Ok((found, is_program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Symbols {
        let mut symbols = Symbols::new();
        let map = "ffffffff80000000 T _start\nffffffff80000000 T _stext\nffffffff80000100 t __memcpy\n\
                   ffffffff80000100 W memcpy\nffffffff80000200 T last\nffffffff80000210 R _etext\nffffffff80001000 D init_task\n";
        let found = symbols.system_map(Path::new("System.map"), map.as_bytes()).unwrap();
        symbols.add(0, found, false);
        symbols
    }

    #[test]
    fn a_function_reaches_to_the_next_symbol() {
        let s = kernel();
        let name = |at: u64| s.name(s.at(0, at).0).to_owned();
        assert_eq!(name(0x1000), "[user]");
        assert_eq!(name(0xffff_ffff_8000_0000), "_start");
        assert_eq!(name(0xffff_ffff_8000_00ff), "_start");
        assert_eq!(name(0xffff_ffff_8000_0100), "memcpy");
        assert_eq!(name(0xffff_ffff_8000_020f), "last");
        assert_eq!(name(0xffff_ffff_8000_0210), "[unnamed]");
        assert_eq!(s.by_name("__memcpy"), s.by_name("memcpy"));
        assert_eq!(s.at(0, 0xffff_ffff_8000_0180).1, 0xffff_ffff_8000_0100..0xffff_ffff_8000_0200);
        assert_eq!(s.init_task(), Some(0xffff_ffff_8000_1000));
    }

    #[test]
    fn a_program_lies_in_its_place() {
        let mut s = kernel();
        let mine = s.space("prog");
        s.add(mine, vec![Symbol { at: 0x2000, end: Some(0x2010), name: "f".into() }], true);
        s.add(0, vec![Symbol { at: 0x2020, end: Some(0x2030), name: "memcpy".into() }], true);
        let kernels = s.by_name("memcpy").unwrap();
        assert!(s.at(0, 0x2020).0 != kernels && s.is_user(s.at(0, 0x2020).0) && !s.is_user(kernels));
        let name = |space: usize, at: u64| s.name(s.at(space, at).0).to_owned();
        let names = |space: usize| [0x1fff, 0x2000, 0x2010, 0x2020, 0x2030].map(|at| name(space, at));
        assert_eq!(names(s.space_of("prog")), ["[user]", "f", "[user]", "memcpy", "[user]"]);
        assert_eq!(names(s.space_of("other")), ["[user]", "[user]", "[user]", "memcpy", "[user]"]);
        assert_eq!(s.at(mine, 0x2018).1, 0x2010..0x2020, "the range in which both spaces agree");
        assert_eq!([0, mine].map(|space| name(space, 0xffff_ffff_8000_0200)), ["last", "last"]);
    }

    #[test]
    fn bad_files_are_named() {
        let mut s = Symbols::new();
        assert!(s.system_map(Path::new("x"), b"not a map").unwrap_err().to_string().starts_with("x: line 1"));
        assert!("prog@12g".parse::<SymbolFile>().is_err());
        assert_eq!("a@b@0x1000".parse(), Ok(SymbolFile { path: "a@b".into(), base: Some(0x1000), of_all: false }));
    }
}
