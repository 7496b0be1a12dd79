//! Splits text into words, and parses words as numbers.
//!
//! A word is `key`, `key=value`, `key:value` or `key(value)`. Commas and blanks separate words.

use std::str::FromStr;

use flow::PortNo;
use flow::text::BadText;

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    /// The whole word.
    pub whole: &'a str,
    /// The text before `=`, `:` or `(`.
    pub key: &'a str,
    /// The text after it, without parentheses.
    pub value: Option<&'a str>,
    /// The offset in bytes from the start of the text.
    pub offset: usize,
}

/// The error with what was expected instead of `word`.
pub(super) fn fault(offset: usize, word: &str, message: impl Into<String>) -> BadText {
    BadText { offset, word: word.to_owned(), message: message.into() }
}

/// The same for a part of `text`, with the part's offset.
pub(super) fn fault_in(text: &str, part: &str, message: impl Into<String>) -> BadText {
    fault(part.as_ptr().addr().saturating_sub(text.as_ptr().addr()), part, message)
}

/// The first word (up to a blank or comma) and what follows it.
pub(super) fn first(text: &str) -> (&str, &str) {
    match text.find([' ', '\t', ',']) {
        Some(end) => (&text[..end], text[end..].trim_start_matches([' ', '\t', ','])),
        None => (text, ""),
    }
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n')
}

/// Every word.
pub(super) fn split(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text.as_bytes()[at..].iter().position(|byte| !is_separator(*byte))?;
        let word = word_at(text, at);
        at += word.whole.len();
        Some(word)
    })
}

fn word_at(text: &str, offset: usize) -> Token<'_> {
    let rest = &text[offset..];
    let mut depth = 0usize;
    let ends = |byte: u8| {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(byte)
    };
    let whole = &rest[..rest.bytes().position(ends).unwrap_or(rest.len())];
    let (key, value) = match whole.find(['=', ':', '(']) {
        Some(end) if whole[end..].starts_with('(') => {
            let within = &whole[end + 1..];
            (&whole[..end], Some(within.strip_suffix(')').unwrap_or(within)))
        }
        Some(end) => (&whole[..end], Some(&whole[end + 1..])),
        None => (whole, None),
    };
    Token { whole, key, value, offset }
}

impl<'a> Token<'a> {
    /// The error with what was expected instead of this word.
    pub fn fault(&self, message: impl Into<String>) -> BadText {
        fault(self.offset, self.whole, message)
    }

    /// The value, or an error that one was expected.
    pub fn needed(&self, expected: &str) -> Result<&'a str, BadText> {
        let given = self.value.filter(|value| !value.is_empty());
        given.ok_or_else(|| self.fault(format!("expected {expected} behind '{}'", self.key)))
    }

    /// The value as a number, decimal or hexadecimal.
    pub fn number<T: TryFrom<u64>>(&self, expected: &str) -> Result<T, BadText> {
        let value = self.needed(expected)?;
        number(value).ok_or_else(|| self.fault(format!("expected {expected}, not '{value}'")))
    }

    /// The value as a port.
    pub fn port(&self) -> Result<PortNo, BadText> {
        let value = self.needed("a port")?;
        PortNo::from_str(value).map_err(|bad| self.fault(bad.to_string()))
    }

    /// The value as a number, by its name or as digits.
    pub fn named<T: TryFrom<u64> + Copy>(&self, names: &[(T, &str)], expected: &str) -> Result<T, BadText> {
        let value = self.needed(expected)?;
        match names.iter().find(|(_, name)| name.eq_ignore_ascii_case(value)) {
            Some((named, _)) => Ok(*named),
            None => self.number(expected),
        }
    }

    /// The error for an unknown word, with the known ones.
    pub fn unknown(&self, known: &str) -> BadText {
        self.fault(format!("'{}' is unknown here: expected one of {known}", self.key))
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(super) fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if plain(digits) => u64::from_str_radix(digits, 16),
        _ if plain(text) => text.parse(),
        _ => return None,
    };
    T::try_from(parsed.ok()?).ok()
}

/// The list after `actions=` (or `action=`), its offset, and the text before it. `None` if there is no such word.
pub(super) fn split_actions(text: &str) -> (&str, Option<(&str, usize)>) {
    match split(text).find(|word| matches!(word.key, "actions" | "action") && word.value.is_some()) {
        Some(word) => {
            let at = word.offset + word.key.len() + 1;
            (&text[..word.offset], Some((&text[at..], at)))
        }
        None => (text, None),
    }
}
