//! Splits text into words: `key`, `key=value`, `key:value`, `key(value)`, separated by commas or blanks.
//!
//! Never looks inside a value; brackets in it are only counted.

use super::BadText;
use crate::value;

/// One word of a match or a list of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The whole word.
    pub whole: &'a str,
    /// The text before `=`, `:` or `(`.
    pub key: &'a str,
    /// The text after it; `None` if there is only a key.
    pub value: Option<&'a str>,
    /// Whether the value was in parentheses.
    pub in_parentheses: bool,
    /// Bytes from the start of the text to the word.
    pub offset: usize,
}

impl<'a> Token<'a> {
    /// An error about this word.
    pub fn fault(&self, message: impl Into<String>) -> BadText {
        BadText::new(self.offset, self.whole, message)
    }

    /// The value, or an error that says what was expected.
    pub fn needed(&self, expected: &str) -> Result<&'a str, BadText> {
        let value = self.value.filter(|value| !value.is_empty());
        value.ok_or_else(|| self.fault(format!("expected {expected} behind '{}'", self.key)))
    }

    /// Refuses a value if none is allowed.
    pub fn bare<T>(&self, meaning: T) -> Result<T, BadText> {
        match self.value {
            None | Some("") => Ok(meaning),
            Some(_) => Err(self.fault(format!("'{}' takes nothing behind it", self.key))),
        }
    }

    /// Bytes from the start of the text to the value.
    pub fn value_offset(&self) -> usize {
        self.offset + self.key.len() + 1
    }
}

/// The number behind a word's key.
pub(super) fn number<T: TryFrom<u128>>(word: &Token<'_>, expected: &str) -> Result<T, BadText> {
    let read = value::read_number(word.needed(expected)?).and_then(|number| T::try_from(number).ok());
    read.ok_or_else(|| word.fault(format!("expected {expected}")))
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n')
}

/// The words of a text.
pub(super) fn words(text: &str) -> Result<Vec<Token<'_>>, BadText> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(next) = text.as_bytes().get(at) {
        if is_separator(*next) {
            at += 1;
            continue;
        }
        let word = word_at(text, at)?;
        at += word.whole.len();
        words.push(word);
    }
    Ok(words)
}

fn word_at(text: &str, offset: usize) -> Result<Token<'_>, BadText> {
    let rest = text.get(offset..).unwrap_or_default();
    let bytes = rest.as_bytes();
    let ends_key = |byte: &u8| is_separator(*byte) || matches!(byte, b'=' | b':' | b'(');
    let key_len = bytes.iter().position(ends_key).unwrap_or(bytes.len());
    let key = &rest[..key_len];
    let word = |length: usize, value, in_parentheses| Token {
        whole: &rest[..length],
        key,
        value,
        in_parentheses,
        offset,
    };
    match bytes.get(key_len) {
        Some(b'(') => {
            let end = end_of_value(bytes, key_len + 1, true)
                .ok_or_else(|| BadText::new(offset, rest, "the parenthesis is not closed"))?;
            let word = word(end + 1, Some(&rest[key_len + 1..end]), true);
            let follows = bytes.get(end + 1).copied();
            if follows.is_some_and(|byte| !is_separator(byte)) {
                return Err(word.fault("expected a comma behind the parenthesis"));
            }
            Ok(word)
        }
        Some(b'=' | b':') => {
            let end = end_of_value(bytes, key_len + 1, false).unwrap_or(bytes.len());
            Ok(word(end, Some(&rest[key_len + 1..end]), false))
        }
        _ => Ok(word(key_len, None, false)),
    }
}

/// Where a value ends: at a separator outside brackets, or at the parenthesis that closes it.
fn end_of_value(bytes: &[u8], start: usize, in_parentheses: bool) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b')' if depth == 0 && in_parentheses => return Some(at),
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !in_parentheses && is_separator(*byte) => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Option<&str>)]) {
        let words = words(text).unwrap();
        let found: Vec<_> = words.iter().map(|word| (word.key, word.value)).collect();
        assert_eq!(found, expected, "{text}");
        for word in words {
            assert_eq!(&text[word.offset..word.offset + word.whole.len()], word.whole);
        }
    }

    #[test]
    fn an_open_parenthesis_is_refused() {
        assert_eq!(words("a, b(c").unwrap_err().offset, 3);
        assert!(words("a(b)c").is_err());
    }

    #[test]
    fn commas_and_blanks_separate() {
        check("", &[]);
        check(" , ,", &[]);
        check("ip , in_port=1\tx", &[("ip", None), ("in_port", Some("1")), ("x", None)]);
        check("a=", &[("a", Some(""))]);
    }

    #[test]
    fn values_keep_what_is_in_brackets() {
        check("a(b,c(d),e),f", &[("a", Some("b,c(d),e")), ("f", None)]);
        check("load:0x5->R[0..3],g:1:2", &[("load", Some("0x5->R[0..3]")), ("g", Some("1:2"))]);
        check("ipv6_src=2001::1/64", &[("ipv6_src", Some("2001::1/64"))]);
    }
}
