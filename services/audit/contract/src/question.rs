//! The question for records of the log, and its answer, as JSON.
//!
//! ```text
//!   {"op":"list","filter":{"app":"hub"},"before":4711,"limit":100} <──> Question::List { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two.

use crate::Record;
use serde::{Deserialize, Serialize};

/// The longest question in bytes. A longer one is refused before it is parsed.
const QUESTION_BYTES_MAX: usize = 4 << 10;

/// The records in one answer if the question names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// The most records in one answer. A greater limit is cut to it, and the limit 0 means 1.
pub const PAGE_MAX: usize = 1_000;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// The newest records that fit the filter, the newest first. The answer is a [`Page`].
    List {
        /// Which records.
        #[serde(default)]
        filter: Filter,
        /// Only records of lines before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
}

/// Which records an answer has. Each field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// The kind of action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The app that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The switch that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
}

/// A record with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of its line.
    pub line: u64,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The records, the newest first. There can be none although more follow: one question reads a bounded part of the log.
    pub records: Vec<Entry>,
    /// The `before` of the next question, if there can be more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// How many lines were left out because they are damaged. `burnet audit verify` finds the first of them.
    #[serde(default)]
    pub damaged: u64,
}

impl Question {
    /// The payload of the query.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence that names the wrong field. The caller has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Question, String> {
        contract::from_json(payload, QUESTION_BYTES_MAX)
    }
}

impl Page {
    /// The payload of the answer.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }
}

impl Filter {
    /// Whether a record fits.
    pub fn fits(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        is(&self.what, Some(&record.what))
            && is(&self.who, Some(&record.who))
            && is(&self.app, record.app.as_deref())
            && is(&self.switch, record.switch.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_question_is_refused_with_the_field() {
        let check = |text: &str, part: &str| {
            let why = Question::from_bytes(text.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("", "EOF");
        check(r#"{"op":"drop"}"#, "unknown variant `drop`");
        check(r#"{"op":"list","filter":{"port":1}}"#, "unknown field `port`");
        check(r#"{"op":"list","before":-1}"#, "-1");
        check(&" ".repeat(QUESTION_BYTES_MAX + 1), "are read");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let check = |text: &str| {
            let question = Question::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(Question::from_bytes(&question.to_bytes()).unwrap(), question, "{text}");
        };
        check(r#"{"op":"list"}"#);
        check(r#"{"op":"list","filter":{"app":"hub","what":"asked"},"before":7,"limit":3}"#);
    }

    #[test]
    fn each_field_of_a_filter_narrows_it() {
        let record = Record::new(1, "asked", "operator", "x").of_app("hub");
        let check = |json: &str, expected: bool| {
            let filter: Filter = serde_json::from_str(json).unwrap();
            assert_eq!(filter.fits(&record), expected, "{json}");
        };
        check("{}", true);
        check(r#"{"app":"hub","who":"operator","what":"asked"}"#, true);
        check(r#"{"app":"hub","who":"app"}"#, false);
        check(r#"{"what":"ended"}"#, false);
        check(r#"{"app":"other"}"#, false);
        check(r#"{"switch":"of:0000000000000001"}"#, false);
    }
}
