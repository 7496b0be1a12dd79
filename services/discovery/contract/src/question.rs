//! The questions to the service `discovery`, as JSON.
//!
//! ```text
//!   {"op":"list","filter":{"kinds":["link"],"switch":"of:0000000000000001"},"limit":100} <──> Question::List { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two. It checks what can be checked without the tables.

use crate::{ANNOTATION_BYTES_MAX, ANNOTATION_NAME_BYTES_MAX, SERVICE};
use flow::DatapathId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use view::{Key, Kind};

/// The longest question in bytes. A longer one is refused before it is parsed.
pub const QUESTION_BYTES_MAX: usize = 32 << 10;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// The objects that fit the filter, in the order of their keys' texts. The answer is a [`Page`](crate::Page).
    List {
        /// Which objects.
        #[serde(default)]
        filter: Filter,
        /// Only objects behind this key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Key>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// One object. The answer is a `view::Record`.
    Get {
        /// Which.
        key: Key,
    },
    /// Sets or removes notes of an object. The answer is its `view::Record`.
    Annotate {
        /// Which.
        key: Key,
        /// Notes to set, or with `null` to remove. Others stay.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// Removes an object that is down: a switch with its ports and links, or a link. If it comes back, it is found again.
    Remove {
        /// Which.
        key: Key,
    },
    /// The last incidents, the oldest first. The answer is a list of [`Incident`](crate::Incident).
    Incidents,
    /// What the service has counted since it started. The answer is [`Counts`](crate::Counts).
    Counts,
}

/// Which objects a list has. Each field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Objects of these kinds. Empty: of all kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// The switch itself, its ports, and the links that begin or end there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<DatapathId>,
    /// Objects that are up, or that are down. A port is up if it is live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
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
        let question: Question = contract::from_json(payload, QUESTION_BYTES_MAX)?;
        question.check()?;
        Ok(question)
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        matches!(self, Question::Annotate { .. } | Question::Remove { .. })
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Question::List { limit: Some(0), .. } => Err("limit: 0 is too small: write 1 or more".to_owned()),
            Question::List { filter, .. } => {
                filter.kinds.iter().try_for_each(|kind| check_kind("filter.kinds", *kind))
            }
            Question::Get { key } => check_kind("key", key.kind()),
            Question::Annotate { key, annotations } => {
                check_kind("key", key.kind())?;
                annotations.iter().try_for_each(|(name, value)| check_note(name, value.as_deref()))
            }
            Question::Remove { key } => match key.kind() {
                Kind::Port => Err("key: a port cannot be removed alone: remove its switch".to_owned()),
                kind => check_kind("key", kind),
            },
            Question::Incidents | Question::Counts => Ok(()),
        }
    }
}

fn check_kind(field: &str, kind: Kind) -> Result<(), String> {
    match kind.service() == SERVICE {
        true => Ok(()),
        false => Err(format!("{field}: the service {SERVICE} has no {kind}: ask {}", kind.service())),
    }
}

fn check_note(name: &str, value: Option<&str>) -> Result<(), String> {
    if name.is_empty() || name.len() > ANNOTATION_NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "annotations: {name:?} is no name: write 1 to {ANNOTATION_NAME_BYTES_MAX} bytes without control characters"
        ));
    }
    if value.is_some_and(|value| value.len() + name.len() > ANNOTATION_BYTES_MAX) {
        return Err(format!("annotations.{name}: it is longer than {ANNOTATION_BYTES_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_question_is_refused_with_its_field() {
        let check = |text: &str, part: &str| {
            let why = Question::from_bytes(text.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("", "the question is wrong");
        check(r#"{"op":"drop"}"#, "unknown variant `drop`");
        check(r#"{"op":"list","filter":{"kind":"link"}}"#, "unknown field `kind`");
        check(
            r#"{"op":"list","filter":{"kinds":["host"]}}"#,
            "filter.kinds: the service discovery has no host: ask hosts",
        );
        check(r#"{"op":"list","limit":0}"#, "limit: 0 is too small");
        check(r#"{"op":"get","key":"link/x"}"#, "is no link");
        check(r#"{"op":"remove","key":"port/1/2"}"#, "key: a port cannot be removed alone");
        check(r#"{"op":"remove","key":"host/00:00:00:00:00:01"}"#, "key: the service discovery has no host");
        let annotate =
            |notes: &str| format!(r#"{{"op":"annotate","key":"switch/1","annotations":{{{notes}}}}}"#);
        check(&annotate(r#""":"x""#), "annotations: \"\" is no name");
        check(&annotate(r#""a\n":null"#), "is no name");
        let long = "x".repeat(ANNOTATION_BYTES_MAX);
        check(&annotate(&format!(r#""a":"{long}""#)), "annotations.a: it is longer than 4096 bytes");
        check(&" ".repeat(QUESTION_BYTES_MAX + 1), "at most 32768 are read");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let key = "link/of:0000000000000001/3-of:0000000000000002/1".parse().unwrap();
        let filter = Filter { kinds: vec![Kind::Link], switch: Some(DatapathId(1)), up: Some(false) };
        let notes = [("rack".to_owned(), Some("a".to_owned())), ("old".to_owned(), None)];
        for question in [
            Question::List { filter, after: Some(key), limit: Some(9) },
            Question::List { filter: Filter::default(), after: None, limit: None },
            Question::Get { key },
            Question::Annotate { key, annotations: notes.into() },
            Question::Remove { key },
            Question::Incidents,
            Question::Counts,
        ] {
            assert_eq!(Question::from_bytes(&question.to_bytes()), Ok(question));
        }
    }
}
