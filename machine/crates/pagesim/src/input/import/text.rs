// SPDX-License-Identifier: Apache-2.0
//! Reads parts of lines.

/// The beginning of a line or field for messages: on one line, at most 60 bytes.
pub fn shown(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&text[..text.len().min(60)]))
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// Whether a line is empty or a comment.
pub fn is_remark(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty() || line.starts_with(b"#")
}

/// Reads a decimal number that consists of digits only.
#[inline]
pub fn decimal(text: &[u8]) -> Option<u64> {
    let digit = |b: &u8| b.is_ascii_digit().then(|| u64::from(b - b'0'));
    let sum = text.iter().try_fold(0u64, |sum, b| sum.checked_mul(10)?.checked_add(digit(b)?));
    sum.filter(|_| !text.is_empty())
}

/// Reads a hexadecimal number without a prefix.
#[inline]
pub fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |sum, b| Some(sum << 4 | u64::from(char::from(*b).to_digit(16)?)))
}

/// Reads a decimal number, or a hexadecimal one with the prefix 0x.
#[inline]
pub fn number(text: &[u8]) -> Option<u64> {
    match text {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits),
        _ => decimal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, value) in
            [("0", 0), ("18446744073709551615", u64::MAX), ("0xffffffffffffffff", u64::MAX), ("0X1f", 31), ("007", 7)]
        {
            assert_eq!(number(text.as_bytes()), Some(value), "{text}");
        }
        for wrong in ["", "0x", "18446744073709551616", "0x1ffffffffffffffff", "1f", "-1", "+1", " 1", "1.0", "0xg"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(words(b"  a b\t c ").collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        assert!(shown(&[b'\n'; 100]).lines().count() == 1);
    }
}
