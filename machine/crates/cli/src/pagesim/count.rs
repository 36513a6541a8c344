// SPDX-License-Identifier: Apache-2.0
//! Numbers of accesses, as the command line and people write them.

use std::fmt;
use std::str::FromStr;

/// A number, read and printed with the suffix k, M or G for 10^3, 10^6 or 10^9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        let (digits, unit) = match text.char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 1_000),
            Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
            Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
            _ => (text, 1),
        };
        let number: u64 = digits.parse().map_err(|_| format!("'{text}' is not a number such as 500M"))?;
        number.checked_mul(unit).map(Count).ok_or_else(|| format!("'{text}' is too large"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ ..10_000 => write!(f, "{n}"),
            n @ ..10_000_000 => write!(f, "{:.1} k", n as f64 / 1e3),
            n @ ..10_000_000_000 => write!(f, "{:.1} M", n as f64 / 1e6),
            n => write!(f, "{:.1} G", n as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!("500M".parse(), Ok(Count(500_000_000)));
        assert_eq!("12".parse(), Ok(Count(12)));
        for wrong in ["", "M", "1.5M", "-1", "99999999999999999G"] {
            assert!(wrong.parse::<Count>().is_err(), "{wrong}");
        }
        assert_eq!(Count(1_234_567).to_string(), "1234.6 k");
    }
}
