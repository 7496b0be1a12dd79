//! TOML that people write: read into a type, or refused with the line and what to write instead.
//!
//! In: the text of a file. Out: the type, or a [`Fault`]. It knows no file's path; the caller says it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;

/// What may not be there, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
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
/// The first thing in it that may not be there.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Fault { line: before.matches('\n').count() + 1, reason: in_our_words(error.message()) }
    })
}

/// A table as the JSON object that an app is handed. A date becomes its text.
///
/// # Errors
/// A number that is none, for which JSON has no word.
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
            .ok_or_else(|| format!("{number} cannot be handed to an app: write a number"))?,
        toml::Value::Array(values) => Value::Array(values.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(table) => Value::Object(json_object(table)?),
    })
}

/// An error of serde about an unknown key, said with the keys that there are; any other error as it is, on one line.
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

/// Without quotes TOML takes `packet.in` for a key `in` in a table `packet`.
fn first_part_is(name: &str, unknown: &str) -> bool {
    name.split_once('.').is_some_and(|(first, _)| first == unknown)
}

/// The known word that is a slip or two of the fingers away from `word`, if there is one.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // A third of the word: more is another word and no slip.
    let slips_max = (word.chars().count() / 3).max(1);
    let by_slips = known.iter().map(|name| (slips(word, name), *name));
    by_slips.min().filter(|(slips, _)| *slips <= slips_max).map(|(_, name)| name)
}

/// How many letters must be put in, taken out or changed to make one word of another (Levenshtein).
fn slips(one: &str, two: &str) -> usize {
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
