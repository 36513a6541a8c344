// SPDX-License-Identifier: Apache-2.0
//! The allowed values of a profile: one rule for each key, and the function that checks all of them.
//!
//! The rules of a section are defined beside its struct. They are made from the table that is checked, because some limits depend
//! on other values. The rule of such a value comes before the rules that depend on it.

use toml::{Table, Value};

use crate::error::{FileName, ProfileError};

/// Rule for one value.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// Any text.
    Text,
    /// True or false.
    Flag,
    /// An integer from the first to the second number.
    Whole(i64, i64),
    /// An integer from the first to the second number that is a multiple of the third.
    Multiple(i64, i64, i64),
    /// A power of two from the first to the second number.
    PowerOfTwo(i64, i64),
    /// One of these integers.
    Among(&'static [i64]),
    /// A number from the first to the second number, also an integer.
    Number(f64, f64),
    /// One of these texts. The last text says why others are not allowed.
    OneOf(&'static [&'static str], &'static str),
    /// A size. Its number of entries must be `ways` times a power of two; one unit of the size has `per_unit` entries.
    Ways {
        /// Number of ways.
        ways: i64,
        /// Entries of one unit: the lines of a KiB for a cache, 1 for a TLB.
        per_unit: i64,
        /// Whether 0 is allowed, too.
        or_none: bool,
    },
    /// Pairs of a fraction and a factor, or an empty list. The fractions rise from 0 to 1. The factors are in this range and
    /// do not fall.
    Shape(f64, f64),
}

/// Largest number of entries of a cache or a TLB.
const MOST_ENTRIES: i64 = 1 << 24;

impl Rule {
    /// Returns the text that follows "must be" in messages.
    pub fn says(&self) -> String {
        match self {
            Rule::Text => "a text".into(),
            Rule::Flag => "true or false".into(),
            Rule::Whole(low, high) => format!("{low} to {high}"),
            Rule::Multiple(low, high, of) => format!("{low} to {high}, a multiple of {of}"),
            Rule::PowerOfTwo(low, high) => format!("a power of two, {low} to {high}"),
            Rule::Among(all) => either(&all.iter().map(ToString::to_string).collect::<Vec<_>>()),
            Rule::Number(low, high) => format!("{} to {}", short(*low), short(*high)),
            Rule::OneOf(all, why) => either(&all.iter().map(ToString::to_string).collect::<Vec<_>>()) + why,
            Rule::Ways { ways, per_unit, or_none } => {
                let none = if *or_none { "0, or " } else { "" };
                let of = if *per_unit == 1 { "entries" } else { "lines" };
                format!("{none}{ways} ways of a power of two of {of}, at most {MOST_ENTRIES} {of}")
            }
            Rule::Shape(low, high) => format!(
                "pairs of a fraction, rising from 0 to 1, and a factor that does not fall, {} to {}",
                short(*low),
                short(*high)
            ),
        }
    }

    /// Tells whether the rule allows a value.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Rule::Text, Value::String(_)) | (Rule::Flag, Value::Boolean(_)) => true,
            (Rule::Whole(low, high), Value::Integer(v)) => (low..=high).contains(&v),
            (Rule::Multiple(low, high, of), Value::Integer(v)) => (low..=high).contains(&v) && v % of == 0,
            (Rule::PowerOfTwo(low, high), Value::Integer(v)) => (low..=high).contains(&v) && v & (v - 1) == 0,
            (Rule::Among(all), Value::Integer(v)) => all.contains(v),
            (Rule::Number(low, high), v) => number(v).is_some_and(|v| (*low..=*high).contains(&v)),
            (Rule::OneOf(all, _), Value::String(v)) => all.contains(&v.as_str()),
            (Rule::Ways { or_none, .. }, Value::Integer(0)) => *or_none,
            (Rule::Ways { ways, per_unit, .. }, Value::Integer(v)) => {
                let entries = v.checked_mul(*per_unit).filter(|entries| (1..=MOST_ENTRIES).contains(entries));
                let fits = |n: i64| *ways > 0 && n % ways == 0 && (n / ways).unsigned_abs().is_power_of_two();
                entries.is_some_and(fits)
            }
            (Rule::Shape(low, high), Value::Array(points)) => {
                let points: Option<Vec<_>> = points.iter().map(pair).collect();
                points.is_some_and(|points| is_shape(&points, *low, *high))
            }
            _ => false,
        }
    }
}

fn is_shape(points: &[(f64, f64)], low: f64, high: f64) -> bool {
    let rising = points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
    let ends = points.first().is_none_or(|p| p.0 == 0.0) && points.last().is_none_or(|p| p.0 == 1.0);
    points.len() != 1 && rising && ends && points.iter().all(|p| (low..=high).contains(&p.1))
}

/// Returns a value as a number, also if it is an integer.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|v| v as f64))
}

fn pair(value: &Value) -> Option<(f64, f64)> {
    match value.as_array()?.as_slice() {
        [fraction, factor] => Some((number(fraction)?, number(factor)?)),
        _ => None,
    }
}

/// Formats a number with at most three decimal places.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn either(all: &[String]) -> String {
    match all {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => all.concat(),
    }
}

/// The rules of a file, by dotted key, in the order of the checks.
pub(crate) struct Rules(pub Vec<(String, Rule)>);

impl Rules {
    /// Creates an empty list.
    pub fn new() -> Rules {
        Rules(Vec::new())
    }

    /// Adds the rules of a section. Keys outside sections have the section "".
    pub fn section(&mut self, section: &str, rules: impl IntoIterator<Item = (&'static str, Rule)>) {
        let dot = if section.is_empty() { "" } else { "." };
        self.0.extend(rules.into_iter().map(|(key, rule)| (format!("{section}{dot}{key}"), rule)));
    }

    fn is_section(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Checks that all keys of a table are known and that all values follow their rules.
    pub fn check(&self, file: &FileName, table: &Table) -> Result<(), ProfileError> {
        self.known(file, "", table)?;
        for (key, rule) in &self.0 {
            if let Some(value) = find(table, key).filter(|value| !rule.admits(value)) {
                return Err(ProfileError::Value {
                    file: file.clone(),
                    key: key.clone(),
                    must: rule.says(),
                    value: value.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Checks that all keys of a section are known.
    fn known(&self, file: &FileName, section: &str, table: &Table) -> Result<(), ProfileError> {
        for (name, value) in table {
            let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            match value {
                Value::Table(inner) if self.is_section(&key) => self.known(file, &key, inner)?,
                value if self.is_section(&key) => {
                    let (must, value) = ("a section".into(), value.to_string());
                    return Err(ProfileError::Value { file: file.clone(), key, must, value });
                }
                _ if self.0.iter().any(|(known, _)| *known == key) => {}
                _ => {
                    let hint = self.hint(&key);
                    return Err(ProfileError::NoKey { file: file.clone(), key, hint });
                }
            }
        }
        Ok(())
    }

    /// Returns a hint for an unknown key: a similar key of any section, otherwise the names in its section.
    fn hint(&self, key: &str) -> String {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        // The names include those of sections.
        let mut names: Vec<String> = Vec::new();
        for (known, _) in &self.0 {
            let ends = known.match_indices('.').map(|(at, _)| at).chain([known.len()]);
            for name in ends.map(|end| known[..end].to_owned()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let distance = |known: &str| {
            let (its_section, its_name) = known.rsplit_once('.').unwrap_or(("", known));
            edits(name, its_name) + usize::from(section != its_section)
        };
        match names.iter().map(|known| (distance(known), known)).min_by_key(|(distance, _)| *distance) {
            Some((distance, known)) if distance <= 1 + name.len() / 4 => format!("did you mean {known}?"),
            _ => {
                let inside = names.iter().filter(|known| known.rsplit_once('.').map_or("", |k| k.0) == section);
                let inside: Vec<_> =
                    inside.map(|known| known.rsplit_once('.').map_or(known.as_str(), |k| k.1)).collect();
                format!("there are {}", inside.join(", "))
            }
        }
    }
}

/// Returns the value of a dotted key.
fn find<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((section, rest)) => find(table.get(section)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// Returns the Levenshtein distance: the number of letters to change, add or drop to turn one word into the other.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
