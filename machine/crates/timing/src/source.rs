// SPDX-License-Identifier: Apache-2.0
//! TOML tables: reading, merging, overrides, and conversion to values.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::{FileKind, FileName, ProfileError};
use crate::rules::Rules;

/// Built-in profiles or drives: names and TOML texts.
pub(crate) type BuiltIn = [(&'static str, &'static str)];

impl FileKind {
    /// Returns the file of this kind with this name.
    pub(crate) fn called(self, name: &str) -> FileName {
        FileName { kind: self, name: name.to_owned() }
    }
}

impl FileName {
    /// Reads the built-in file with this name, or else the file of the host.
    pub(crate) fn read(&self, built_in: &BuiltIn) -> Result<String, ProfileError> {
        if let Some((_, text)) = built_in.iter().find(|file| file.0 == self.name) {
            return Ok((*text).to_owned());
        }
        std::fs::read_to_string(Path::new(&self.name)).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => self.unknown(built_in),
            _ => ProfileError::Read { file: self.clone(), reason: e.to_string() },
        })
    }

    /// Returns the table of the built-in file that the value of `key` names. The caller merges this file's table into it.
    pub(crate) fn base(&self, key: &str, name: &Value, built_in: &BuiltIn) -> Result<Table, ProfileError> {
        match built_in.iter().find(|file| name.as_str() == Some(file.0)) {
            Some((name, text)) => self.kind.called(name).parse(text),
            None => Err(ProfileError::Value {
                file: self.clone(),
                key: key.into(),
                must: format!("a built-in name ({})", names(built_in)),
                value: name.to_string(),
            }),
        }
    }

    fn unknown(&self, built_in: &BuiltIn) -> ProfileError {
        ProfileError::Unknown { file: self.clone(), known: names(built_in) }
    }

    /// Parses a text.
    pub(crate) fn parse(&self, text: &str) -> Result<Table, ProfileError> {
        text.parse::<Table>().map_err(|e| {
            let at = e.span().map_or(0, |s| s.start.min(text.len()));
            let line = 1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
            let reason = e.message().lines().collect::<Vec<_>>().join("; ");
            ProfileError::Syntax { file: self.clone(), line, reason }
        })
    }

    /// Checks a table against the rules and converts it to values.
    pub(crate) fn values<T: DeserializeOwned>(&self, table: Table, rules: &Rules) -> Result<T, ProfileError> {
        rules.check(self, &table)?;
        serde_path_to_error::deserialize(Value::Table(table)).map_err(|e| {
            let reason = e.inner().message().lines().next().unwrap_or_default();
            let missing = reason.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
            let path = e.path().to_string();
            match missing {
                Some(key) if path == "." => ProfileError::Missing { file: self.clone(), key: key.into() },
                Some(key) => ProfileError::Missing { file: self.clone(), key: format!("{path}.{key}") },
                // The rules allow a value that the type does not, so a rule is wrong.
                None => ProfileError::Value {
                    file: self.clone(),
                    key: path,
                    must: "of another type".into(),
                    value: reason.into(),
                },
            }
        })
    }
}

fn names(built_in: &BuiltIn) -> String {
    built_in.iter().map(|file| file.0).collect::<Vec<_>>().join(", ")
}

/// Merges `over` into `base`, table by table. Values of `over` replace those of `base`.
pub(crate) fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(b)), Value::Table(o)) => merge(b, o),
            (_, value) => drop(base.insert(key, value)),
        }
    }
}

/// Applies one override `section.key=value`. A value that is not TOML is used as a string, so that names need no quotes.
pub(crate) fn apply(table: &mut Table, change: &str) -> Result<(), ProfileError> {
    let wrong = || ProfileError::Override(change.into());
    let (path, text) = change.split_once('=').ok_or_else(wrong)?;
    let (path, text) = (path.trim(), text.trim());
    let value = format!("v = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(text.into()));
    let (sections, key) = path.rsplit_once('.').map_or((None, path), |(s, k)| (Some(s), k));
    if key.is_empty() {
        return Err(wrong());
    }
    let mut at = table;
    for section in sections.into_iter().flat_map(|s| s.split('.')) {
        if section.is_empty() {
            return Err(wrong());
        }
        at = at.entry(section).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    }
    at.insert(key.into(), value);
    Ok(())
}
