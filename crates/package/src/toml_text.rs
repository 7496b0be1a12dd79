//! Reads TOML that users write. An error has the line and a suggestion.
//!
//! In: the text of a file. Out: the type, or a [`Fault`]. It does not know the file's path; the caller adds it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A fault in a TOML text, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Fault {}

/// Reads a file's text.
///
/// # Errors
/// The first fault.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    parse_explained(text, |_, reason| reason)
}

/// The same. `explain` gets the keys that lead to the faulty place, and the reason. It returns the reason to show.
///
/// # Errors
/// The first fault.
pub fn parse_explained<T: DeserializeOwned>(
    text: &str,
    explain: impl FnOnce(&[String], String) -> String,
) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let keys = error.span().map(|span| keys_to(text, span.start)).unwrap_or_default();
        let reason = explain(&keys, in_our_words(error.message()));
        Fault { line: before.matches('\n').count() + 1, reason }
    })
}

/// The keys that lead to this place of a text: that of a value, or of a key.
fn keys_to(text: &str, at: usize) -> Vec<String> {
    let mut keys = Vec::new();
    descend(DeTable::parse_recoverable(text).0.get_ref(), at, &mut keys);
    keys
}

/// Appends the keys of the way. The span of a table does not contain what is written under its header, so all tables are searched.
fn descend(table: &DeTable<'_>, at: usize, keys: &mut Vec<String>) -> bool {
    table.iter().any(|(key, value)| {
        keys.push(key.get_ref().to_string());
        let is_here = key.span().contains(&at) || is_in(value, at, keys);
        if !is_here {
            keys.pop();
        }
        is_here
    })
}

fn is_in(value: &Spanned<DeValue<'_>>, at: usize, keys: &mut Vec<String>) -> bool {
    let inside = match value.get_ref() {
        DeValue::Table(table) => descend(table, at, keys),
        DeValue::Array(items) => items.iter().any(|item| is_in(item, at, keys)),
        _ => false,
    };
    inside || value.span().contains(&at)
}

/// Converts a table to the JSON object for an app. A date becomes text.
///
/// # Errors
/// A number that is not finite, which JSON cannot express.
pub fn json_object(table: toml::Table) -> Result<Map<String, Value>, String> {
    table.into_iter().map(|(key, value)| Ok((key, json(value)?))).collect()
}

fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(when) => Value::String(when.to_string()),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("{number} cannot be passed to an app: write a number"))?,
        toml::Value::Array(values) => Value::Array(values.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(table) => Value::Object(json_object(table)?),
    })
}

/// Rewrites serde's error about an unknown key with the known keys. Other errors stay, on one line.
fn in_our_words(message: &str) -> String {
    let message = message.trim_end().replace('\n', "; ");
    let Some(rest) = message.strip_prefix("unknown field ") else { return message };
    let mut names = rest.split('`').skip(1).step_by(2);
    let unknown = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    if let Some(dotted) = known.iter().find(|name| first_part_is(name, unknown)) {
        return format!("`{unknown}` alone is no key: put quotes around the whole name, as in \"{dotted}\"");
    }
    match nearest(unknown, &known) {
        Some(near) => format!("unknown key `{unknown}`: did you mean `{near}`?"),
        None => format!("unknown key `{unknown}`: the keys here are {}", known.join(", ")),
    }
}

/// Without quotes, TOML reads `packet.in` as a key `in` in a table `packet`.
fn first_part_is(name: &str, unknown: &str) -> bool {
    name.split_once('.').is_some_and(|(first, _)| first == unknown)
}

/// The known word that differs from `word` by a small typing error, if there is one.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // A third of the word. With more errors it is another word.
    let slips_max = (word.chars().count() / 3).max(1);
    let by_slips = known.iter().map(|name| (slips(word, name), *name));
    by_slips.min().filter(|(slips, _)| *slips <= slips_max).map(|(_, name)| name)
}

/// The Levenshtein distance of two words: insertions, deletions and changes of letters.
pub(crate) fn slips(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (column, other) in two.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only what is said of it counts")]
    struct Example {
        #[serde(rename = "packet.in")]
        packet_in: Option<bool>,
        limits: Option<bool>,
    }

    fn refused(text: &str, expected: &str) {
        assert_eq!(parse::<Example>(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_what_to_write() {
        refused("\nlimit = true", "line 2: unknown key `limit`: did you mean `limits`?");
        refused("weather = true", "line 1: unknown key `weather`: the keys here are packet.in, limits");
        refused(
            "packet.in = true",
            "line 1: `packet` alone is no key: put quotes around the whole name, as in \"packet.in\"",
        );
    }

    #[test]
    fn the_keys_to_a_fault_are_known() {
        let check = |text: &str, expected: &[&str]| {
            let mut found = Vec::new();
            let explain = |keys: &[String], reason: String| {
                found = keys.to_vec();
                reason
            };
            assert!(parse_explained::<std::collections::BTreeMap<String, Tables>>(text, explain).is_err());
            assert_eq!(found, expected, "{text}");
        };
        check("[a.b]\nc = 1\nd = 'x'", &["a", "b", "d"]);
        check("[a.b]\nc = 1\n[a.e]\nc = ['x', 2]", &["a", "e", "c"]);
        check("a = { b = 1 }", &["a", "b"]);
        // What is no TOML is a table without keys.
        check("a.b.c = {", &[]);
    }

    type Tables = std::collections::BTreeMap<String, std::collections::BTreeMap<String, i64>>;

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let fault = parse::<Example>("limits = true\nlimits = ").unwrap_err();
        assert_eq!(fault.line, 2, "{fault}");
    }
}
