//! The questions to the service `paths`, as JSON.
//!
//! ```text
//!   {"op":"add","name":"a","intent":{"type":"host_to_host","one":"…","two":"…"}} <──> Question::Add { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two. It checks what can be checked without the network.

use crate::wanted::{check_constraints, check_wanted, read_wanted};
use flow::DatapathId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use view::{Annotations, ConnectPoint, Constraints, HostId, IntentId, IntentState, LinkId, Wanted};

/// The longest question in bytes. A longer one is refused before it is parsed.
pub const QUESTION_BYTES_MAX: usize = 64 << 10;

/// The most intents of one question. A question with more is refused.
pub const ADDED_AT_ONCE_MAX: usize = 256;

/// The most intents in one answer: some 700 KiB. A greater limit is cut to it.
pub const PAGE_MAX: usize = 1_000;

/// The intents in one answer if the question names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// The longest name of an intent in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The most annotations of one intent, and the bytes of all of them. A question with more is refused.
pub const ANNOTATIONS_MAX: (usize, usize) = (32, 2 << 10);

/// The most disjoint or equal ways in one answer. A greater number is cut to it.
pub const WAYS_MAX: u8 = 16;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// Adds an intent. The answer is its `view::Record`, once it is in the store. If the caller has an intent of this name that
    /// wants the same, the answer is that one: a question can be asked again.
    Add {
        /// The name that the caller gives it. Empty: none, and each question adds another intent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        name: String,
        /// What is wanted.
        intent: Wanted,
        /// Notes.
        #[serde(default, skip_serializing_if = "Annotations::is_empty")]
        annotations: Annotations,
    },
    /// Adds several intents, at most [`ADDED_AT_ONCE_MAX`]. Each is taken or refused by itself, as by a question of its own, but they cost
    /// much less together. The answer is [`Added`](crate::Added), once the store has all that were taken.
    #[serde(rename = "add_all")]
    AddAll {
        /// The intents.
        intents: Vec<Addition>,
    },
    /// Replaces what an intent wants. The earlier rules stay until the new ones are confirmed. The answer is its `view::Record`.
    Change {
        /// Which.
        id: IntentId,
        /// What is wanted from now on.
        intent: Wanted,
    },
    /// Withdraws an intent. The answer is its `view::Record`. It is gone when no rule of it is left.
    Withdraw {
        /// Which.
        id: IntentId,
    },
    /// One intent. The answer is its `view::Record`.
    Get {
        /// Which.
        id: IntentId,
    },
    /// The intents that fit the filter, in the order of their numbers. The answer is a [`Page`](crate::Page).
    List {
        /// Which intents.
        #[serde(default)]
        filter: Filter,
        /// Only intents behind this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<IntentId>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Ways between two switches, without an intent. The answer is [`Ways`](crate::Ways).
    Ways {
        /// The first switch.
        from: DatapathId,
        /// The last switch.
        to: DatapathId,
        /// How many, at most [`WAYS_MAX`].
        #[serde(default = "one")]
        count: u8,
        /// Which ways.
        #[serde(default)]
        choice: Choice,
        /// What each of them fulfils.
        #[serde(default)]
        constraints: Constraints,
    },
    /// What the service has counted since it started. The answer is [`Counts`](crate::Counts).
    Counts,
}

/// One intent of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// As in [`Question::Add`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is wanted.
    pub intent: Wanted,
    /// Notes.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

impl Addition {
    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        check_annotations(&self.annotations)?;
        check_wanted(&self.intent)
    }
}

fn one() -> u8 {
    1
}

/// Which ways a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Ways of the same, least weight.
    #[default]
    Equal,
    /// Ways that share no link, with the least weight in total.
    LinkDisjoint,
    /// Ways that share no switch between the two, with the least weight in total.
    SwitchDisjoint,
}

/// Which intents a list has. Each field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Intents in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<IntentState>,
    /// Intents of this app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Intents of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Intents with this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// Intents with an end at this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<ConnectPoint>,
    /// Intents whose paths use this link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkId>,
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
        let value: Value = contract::from_json(payload, QUESTION_BYTES_MAX)?;
        // A flat object cannot refuse unknown members by itself.
        if let Some(intent) = value.get("intent") {
            read_wanted(intent)?;
        }
        let additions = value.get("intents").and_then(Value::as_array).into_iter().flatten();
        for (number, addition) in additions.enumerate().take(ADDED_AT_ONCE_MAX) {
            let intent = addition.get("intent").unwrap_or(&Value::Null);
            read_wanted(intent).map_err(|why| format!("intents[{number}].{why}"))?;
        }
        let question: Question =
            serde_json::from_value(value).map_err(|why| format!("the question is wrong: {why}"))?;
        question.check()?;
        Ok(question)
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Question::Add { .. }
                | Question::AddAll { .. }
                | Question::Change { .. }
                | Question::Withdraw { .. }
        )
    }

    /// What it wants, if it wants an intent.
    pub fn wanted(&self) -> Option<&Wanted> {
        match self {
            Question::Add { intent, .. } | Question::Change { intent, .. } => Some(intent),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), String> {
        if let Question::Ways { constraints, .. } = self {
            check_constraints(constraints)?;
        }
        if let Question::Add { name, annotations, .. } = self {
            check_name(name)?;
            check_annotations(annotations)?;
        }
        if let Question::AddAll { intents } = self {
            if intents.is_empty() || intents.len() > ADDED_AT_ONCE_MAX {
                return Err(format!("intents: {} intents: write 1 to {ADDED_AT_ONCE_MAX}", intents.len()));
            }
            let checked = intents.iter().map(Addition::check).enumerate();
            for (number, checked) in checked {
                checked.map_err(|why| format!("intents[{number}].{why}"))?;
            }
            return Ok(());
        }
        self.wanted().map_or(Ok(()), check_wanted)
    }
}

fn check_name(name: &str) -> Result<(), String> {
    match name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("name: it has more than {NAME_BYTES_MAX} bytes, or a control character")),
    }
}

fn check_annotations(annotations: &Annotations) -> Result<(), String> {
    let (count, bytes) = ANNOTATIONS_MAX;
    let length: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
    match annotations.len() <= count && length <= bytes {
        true => Ok(()),
        false => Err(format!("annotations: an intent has at most {count}, with {bytes} bytes in total")),
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
        check(r#"{"op":"withdraw"}"#, "missing field `id`");
        check(r#"{"op":"add"}"#, "missing field `intent`");
        check(r#"{"op":"list","filter":{"port":1}}"#, "unknown field `port`");
        let add = |intent: &str| format!("{{\"op\":\"add\",\"intent\":{{{intent}}}}}");
        check(&add(r#""from":"1/1","to":"1/2""#), "type");
        check(&add(r#""type":"point_to_point","from":"1/1""#), "missing field `to`");
        check(&add(r#""type":"point_to_point","from":"1/1","to":"1/2","prio":1"#), "intent.prio: unknown");
        check(&add(r#""type":"point_to_point","from":"1/1","to":"1/2","one":"x""#), "intent.one: unknown");
        check(&add(r#""type":"point_to_point","from":"1/1","to":"1/2","priority":65536"#), "65536");
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        let intent = r#""intent":{"type":"point_to_point","from":"1/1","to":"1/2"}"#;
        check(&format!(r#"{{"op":"add","name":"{long}",{intent}}}"#), "name: it has more than");
        let note = "x".repeat(ANNOTATIONS_MAX.1);
        check(&format!(r#"{{"op":"add","annotations":{{"a":"{note}"}},{intent}}}"#), "annotations: ");
        check(&" ".repeat(QUESTION_BYTES_MAX + 1), "at most 65536 are read");
        let all = |intents: &str| format!("{{\"op\":\"add_all\",\"intents\":[{intents}]}}");
        let sound = format!("{{{intent}}}");
        check(&all(""), "intents: 0 intents: write 1 to 256");
        check(&all(&vec![sound.as_str(); 257].join(",")), "intents: 257 intents");
        check(&all(&format!("{sound},{{}}")), "intents[1].intent: it is no object");
        let to_itself = r#"{"intent":{"type":"point_to_point","from":"1/1","to":"1/1"}}"#;
        check(&all(&format!("{sound},{to_itself}")), "intents[1].intent.to: ");
        check(&all(&format!("{{\"nam\":\"a\",{intent}}}")), "unknown field `nam`");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let check = |text: &str| {
            let question = Question::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(Question::from_bytes(&question.to_bytes()).unwrap(), question, "{text}");
        };
        check(r#"{"op":"counts"}"#);
        check(r#"{"op":"list","filter":{"state":"waiting","owner":"a","at":"1/2"},"after":7,"limit":3}"#);
        check(r#"{"op":"ways","from":"1","to":"2","count":2,"choice":"switch_disjoint"}"#);
        check(
            r#"{"op":"add","name":"a","intent":{"type":"host_to_host","one":"00:00:00:00:00:01","two":"00:00:00:00:00:02"}}"#,
        );
        check(
            r#"{"op":"add_all","intents":[{"name":"a","intent":{"type":"point_to_point","from":"1/1","to":"2/1"}}]}"#,
        );
        check(
            r#"{"op":"change","id":3,"intent":{"type":"single_to_multi","from":"1/1","to":["2/2","3/3"]}}"#,
        );
    }
}
