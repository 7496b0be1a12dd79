//! Reads TOML that users write. An error has the line and a suggestion.
//!
//! In: the text of a file. Out: the type, or a [`Fault`]. It does not know the file's path; the caller adds it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;

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
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Fault { line: before.matches('\n').count() + 1, reason: in_our_words(error.message()) }
    })
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
    fn what_is_no_toml_is_refused_with_its_line() {
        let fault = parse::<Example>("limits = true\nlimits = ").unwrap_err();
        assert_eq!(fault.line, 2, "{fault}");
    }
}
