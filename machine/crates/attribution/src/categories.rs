// SPDX-License-Identifier: Apache-2.0
//! Assigns functions to categories of work, and to the steps of a fault that begin with them.

use std::path::Path;

use serde::Deserialize;

use crate::symbols::{Function, Symbols};
use crate::{Error, STEPS};

/// The table for the kernel that this repository builds.
const LINUX: &str = include_str!("../linux.toml");

/// An index into [`Categories::names`].
pub type Category = u8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    category: Vec<CategoryEntry>,
    #[serde(default)]
    step: Vec<StepEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryEntry {
    name: String,
    functions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    name: String,
    functions: Vec<String>,
}

/// Categories of functions. A function that is not in the table has the category of its caller.
#[derive(Debug)]
pub struct Categories {
    names: Vec<String>,
    /// The category of each function, if the table names it.
    own: Vec<Option<Category>>,
    /// The step of a fault that begins when each function is entered, if any.
    steps: Vec<Option<u8>>,
}

impl Categories {
    /// The category of code to which the table gives none.
    pub const OTHER: Category = 0;

    /// Loads a table; without a path, the one for the kernel of this repository.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a table.
    pub fn load(path: Option<&Path>, symbols: &Symbols) -> Result<Categories, Error> {
        let (text, place) = match path {
            Some(path) => (std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?, path),
            None => (LINUX.to_owned(), Path::new("linux.toml")),
        };
        Categories::parse(&text, symbols).map_err(|e| Error::file(place, e))
    }

    fn parse(text: &str, symbols: &Symbols) -> Result<Categories, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string().replace('\n', " "))?;
        if file.category.len() >= usize::from(Category::MAX) {
            return Err("has more than 254 categories".into());
        }
        let names = std::iter::once("other".to_owned()).chain(file.category.iter().map(|c| c.name.clone())).collect();
        let mut categories =
            Categories { names, own: vec![None; symbols.names().len()], steps: vec![None; symbols.names().len()] };
        // Complete names take precedence over beginnings, longer beginnings over shorter ones.
        let mut beginnings = Vec::new();
        for (number, entry) in file.category.iter().enumerate() {
            let category = number as Category + 1;
            for pattern in &entry.functions {
                match pattern.strip_suffix('*') {
                    Some(beginning) => beginnings.push((beginning, category)),
                    None => {
                        if let Some(Function(f)) = symbols.by_name(pattern) {
                            categories.own[f as usize] = Some(category);
                        }
                    }
                }
            }
        }
        beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        let user = categories.own[Symbols::USER.0 as usize];
        for (n, (name, own)) in (0..).zip(symbols.names().iter().zip(&mut categories.own)) {
            if symbols.is_user(Function(n)) {
                *own = user;
                continue;
            }
            let claimed = || beginnings.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, c)| *c);
            *own = own.or_else(claimed);
        }
        for entry in file.step {
            let step =
                STEPS.iter().position(|s| *s == entry.name).ok_or_else(|| format!("no step '{}'", entry.name))?;
            for name in &entry.functions {
                if let Some(Function(f)) = symbols.by_name(name) {
                    categories.steps[f as usize] = Some(step as u8);
                }
            }
        }
        Ok(categories)
    }

    /// All names, by number of the category.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The category of a function that code of the category `caller` calls.
    pub fn of(&self, function: Function, caller: Category) -> Category {
        self.own.get(function.0 as usize).copied().flatten().unwrap_or(caller)
    }

    /// The step of a fault that begins with this function.
    pub fn step(&self, function: Function) -> Option<usize> {
        self.steps.get(function.0 as usize).copied().flatten().map(usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_entries_beat_beginnings_and_callers() {
        let mut symbols = Symbols::new();
        let [read, special, copy] = ["ext4_read", "ext4_special", "memcpy"].map(|n| symbols.intern(n));
        let table = "[[category]]\nname = 'fs'\nfunctions = ['ext4_*']\n[[category]]\nname = 'x'\nfunctions = ['ext4_special']\n\
                     [[step]]\nname = 'file_system'\nfunctions = ['ext4_read']\n";
        let c = Categories::parse(table, &symbols).unwrap();
        assert_eq!(c.names(), ["other", "fs", "x"]);
        assert_eq!([read, special, copy].map(|f| c.of(f, 7)), [1, 2, 7]);
        assert_eq!(c.step(read).map(|s| STEPS[s]), Some("file_system"));
        assert_eq!(c.step(copy), None);
        let wrong = "category = []\n[[step]]\nname = 'nonsense'\nfunctions = []\n";
        assert!(Categories::parse(wrong, &symbols).unwrap_err().contains("nonsense"));
    }

    #[test]
    fn the_kernels_table_is_one() {
        assert!(Categories::load(None, &Symbols::new()).unwrap().names().len() > 8);
    }
}
