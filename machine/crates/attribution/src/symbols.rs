// SPDX-License-Identifier: Apache-2.0
//! Names of guest functions by address: a kernel's System.map, and ELF files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind};

use crate::Error;

/// A function, or what stands for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(pub u32);

/// A file with symbols, and where it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFile {
    /// A System.map or an ELF file.
    pub path: PathBuf,
    /// Address of the first byte of an ELF file's first segment, if it is not the one in the file.
    pub base: Option<u64>,
}

impl FromStr for SymbolFile {
    type Err = String;

    fn from_str(text: &str) -> Result<SymbolFile, String> {
        let Some((path, base)) = text.rsplit_once('@') else {
            return Ok(SymbolFile { path: text.into(), base: None });
        };
        let base = u64::from_str_radix(base.trim_start_matches("0x"), 16)
            .map_err(|_| format!("'{base}' is not a hexadecimal address"))?;
        Ok(SymbolFile { path: path.into(), base: Some(base) })
    }
}

/// Last address of user code: all of the lower half.
const USER_END: u64 = 1 << 63;

/// A symbol of code: address, end if known, name.
#[derive(Debug)]
struct Symbol {
    at: u64,
    end: Option<u64>,
    name: String,
}

/// Functions by address and by name.
#[derive(Debug, Default)]
pub struct Symbols {
    names: Vec<String>,
    by_name: HashMap<String, Function>,
    /// Where what begins, in order of addresses; covers everything.
    starts: Vec<(u64, Function)>,
    /// Address of the kernel's first task.
    init_task: Option<u64>,
}

impl Symbols {
    /// Code of user programs that no symbol file names.
    pub const USER: Function = Function(0);
    /// Other code without a name.
    pub const UNNAMED: Function = Function(1);

    /// Without any file.
    pub fn new() -> Symbols {
        let mut symbols = Symbols::default();
        symbols.intern("[user]");
        symbols.intern("[unnamed]");
        symbols.starts = vec![(0, Symbols::USER), (USER_END, Symbols::UNNAMED)];
        symbols
    }

    /// From these files; where they overlap, the last one counts.
    ///
    /// # Errors
    /// A file cannot be read, or has no symbols of code.
    pub fn load(files: &[SymbolFile]) -> Result<Symbols, Error> {
        let mut symbols = Symbols::new();
        for file in files {
            let data = std::fs::read(&file.path).map_err(|e| Error::file(&file.path, e))?;
            let found = if data.starts_with(b"\x7fELF") {
                elf(&file.path, &data, file.base)?
            } else {
                symbols.system_map(&file.path, &data)?
            };
            if found.is_empty() {
                return Err(Error::file(&file.path, "has no symbols of code"));
            }
            symbols.add(found);
        }
        Ok(symbols)
    }

    /// The function of this name, made up if there is none.
    pub fn intern(&mut self, name: &str) -> Function {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let function = Function(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), function);
        function
    }

    /// The function of this name.
    pub fn by_name(&self, name: &str) -> Option<Function> {
        self.by_name.get(name).copied()
    }

    /// A function's name.
    pub fn name(&self, function: Function) -> &str {
        &self.names[function.0 as usize]
    }

    /// All names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where the kernel's first task is.
    pub fn init_task(&self) -> Option<u64> {
        self.init_task
    }

    /// The function at an address, and where it reaches.
    pub fn at(&self, address: u64) -> (Function, Range<u64>) {
        let next = self.starts.partition_point(|(start, _)| *start <= address);
        let (start, function) = self.starts[next - 1];
        (function, start..self.starts.get(next).map_or(u64::MAX, |(start, _)| *start))
    }

    /// Symbols of code in System.map: lines of address, type, name. Every other symbol ends the function before it.
    fn system_map(&mut self, path: &Path, data: &[u8]) -> Result<Vec<Symbol>, Error> {
        let wrong =
            |line: usize| Error::file(path, format!("line {line} is not one of a System.map, and it is no ELF file"));
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

    /// Enters what one file names. Of several names for one address, the one that says most is shown; all of them are known.
    fn add(&mut self, mut found: Vec<Symbol>) {
        found.sort_by(|a, b| (a.at, rank(&a.name), &a.name).cmp(&(b.at, rank(&b.name), &b.name)));
        let mut fresh: Vec<(u64, Option<u64>, Function)> = Vec::new();
        for symbol in found {
            match fresh.last_mut() {
                Some((at, end, function)) if *at == symbol.at => {
                    *end = (*end).max(symbol.end);
                    let function = *function;
                    self.by_name.entry(symbol.name).or_insert(function);
                }
                _ => {
                    let function = self.intern(&symbol.name);
                    fresh.push((symbol.at, symbol.end, function));
                }
            }
        }
        let (Some(first), Some(last)) = (fresh.first().map(|f| f.0), fresh.last().map(|f| f.1.unwrap_or(f.0 + 1)))
        else {
            return;
        };
        let resumes = self.at(last).0;
        self.starts.retain(|(at, _)| !(first..last).contains(at));
        for (n, (at, end, function)) in fresh.iter().enumerate() {
            self.starts.push((*at, *function));
            let next = fresh.get(n + 1).map_or(last, |f| f.0);
            if let Some(end) = end.filter(|end| *end < next && *end > *at) {
                self.starts.push((end, if end < USER_END { Symbols::USER } else { Symbols::UNNAMED }));
            }
        }
        if !self.starts.iter().any(|(at, _)| *at == last) {
            self.starts.push((last, resumes));
        }
        self.starts.sort_unstable();
        self.starts.dedup_by_key(|(at, _)| *at);
    }
}

/// Of names for one address, those that mark sections say least, then those with underscores in front.
fn rank(name: &str) -> (bool, usize) {
    let marks = name.contains("_text_") || matches!(name, "_stext" | "_text" | "_etext");
    (marks, name.len() - name.trim_start_matches('_').len())
}

/// Symbols of code in an ELF file.
fn elf(path: &Path, data: &[u8], base: Option<u64>) -> Result<Vec<Symbol>, Error> {
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
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Symbols {
        let mut symbols = Symbols::new();
        let map = "ffffffff80000000 T _start\nffffffff80000000 T _stext\nffffffff80000100 t __memcpy\n\
                   ffffffff80000100 W memcpy\nffffffff80000200 T last\nffffffff80000210 R _etext\nffffffff80001000 D init_task\n";
        let found = symbols.system_map(Path::new("System.map"), map.as_bytes()).unwrap();
        symbols.add(found);
        symbols
    }

    #[test]
    fn a_function_reaches_to_the_next_symbol() {
        let s = kernel();
        let name = |at: u64| s.name(s.at(at).0).to_owned();
        assert_eq!(name(0x1000), "[user]");
        assert_eq!(name(0xffff_ffff_8000_0000), "_start");
        assert_eq!(name(0xffff_ffff_8000_00ff), "_start");
        assert_eq!(name(0xffff_ffff_8000_0100), "memcpy");
        assert_eq!(name(0xffff_ffff_8000_020f), "last");
        assert_eq!(name(0xffff_ffff_8000_0210), "[unnamed]");
        assert_eq!(s.by_name("__memcpy"), s.by_name("memcpy"));
        assert_eq!(s.at(0xffff_ffff_8000_0180).1, 0xffff_ffff_8000_0100..0xffff_ffff_8000_0200);
        assert_eq!(s.init_task(), Some(0xffff_ffff_8000_1000));
    }

    #[test]
    fn a_program_lies_in_its_place() {
        let mut s = kernel();
        s.add(vec![
            Symbol { at: 0x2000, end: Some(0x2010), name: "f".into() },
            Symbol { at: 0x2020, end: Some(0x2030), name: "g".into() },
        ]);
        let name = |at: u64| s.name(s.at(at).0).to_owned();
        assert_eq!([0x1fff, 0x2000, 0x2010, 0x2020, 0x2030].map(name), ["[user]", "f", "[user]", "g", "[user]"]);
        assert_eq!(name(0xffff_ffff_8000_0200), "last");
    }

    #[test]
    fn bad_files_are_named() {
        let mut s = Symbols::new();
        assert!(s.system_map(Path::new("x"), b"not a map").unwrap_err().to_string().starts_with("x: line 1"));
        assert!("prog@12g".parse::<SymbolFile>().is_err());
        assert_eq!("a@b@0x1000".parse(), Ok(SymbolFile { path: "a@b".into(), base: Some(0x1000) }));
    }
}
