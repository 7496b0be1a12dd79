//! The questions to the service `labels`, as JSON.
//!
//! ```text
//!   {"op":"labels","slice":"blue"} <──> Question::Labels { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two. It checks what can be checked without knowing the slices.

use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use view::LinkId;

/// The longest question in bytes. A longer one is refused before it is parsed.
pub const QUESTION_BYTES_MAX: usize = 32 << 10;

/// The longest name of a slice or VNIC in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The most VNICs of a slice. More are refused.
pub const VNICS_MAX: usize = 4_096;

/// The greatest rate: 10 Tbit/s.
const RATE_MAX_BPS: u64 = 10_000_000_000_000;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// A slice says what has changed. The answer is a [`Heard`](crate::Heard).
    Report(Report),
    /// The labels of a slice as they are now. The answer is a list of [`Label`](crate::Label).
    Labels {
        /// Its name.
        slice: String,
    },
    /// The flows of a slice. The answer is a list of [`Flow`](crate::Flow).
    Flows {
        /// Its name.
        slice: String,
    },
    /// What the VNICs of a slice got lately. The answer is a [`Past`](crate::Past).
    Past {
        /// Its name.
        slice: String,
        /// How far back, in seconds.
        since_s: u64,
    },
    /// What a slice is promised. The answer is a [`Hose`].
    Promise {
        /// Its name.
        slice: String,
    },
    /// All slices. The answer is a list of [`Standing`](crate::Standing).
    Slices,
    /// What the service has counted since it started. The answer is [`Counts`](crate::Counts).
    Counts,
    /// The agents that the service has keys for. The answer is a list of [`AgentStanding`](crate::AgentStanding).
    Agents,
    /// A slice is promised this, in place of what it was promised before.
    Put {
        /// Its name.
        slice: String,
        /// The promise.
        hose: Hose,
    },
    /// There is no such slice any more.
    Remove {
        /// Its name.
        slice: String,
    },
}

/// What a slice is promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hose {
    /// Its VNICs by name.
    pub vnics: BTreeMap<String, Vnic>,
    /// The links that it has. None: all links of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<LinkId>>,
    /// How coarse its labels are, in percent of a link's capacity, 1 to 100. None: exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_percent: Option<u8>,
}

/// A VNIC of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vnic {
    /// What it may send and what it may receive, in bit/s.
    pub rate_bps: u64,
    /// Its number among agents, if an agent meters or shapes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The agent of its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u32>,
}

/// What a reader of the stream follows: the labels of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// Its name.
    pub slice: String,
}

impl Follow {
    /// The payload of the call.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads the payload of a call.
    ///
    /// # Errors
    /// A sentence that names the wrong field. The caller has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Follow, String> {
        contract::from_json(payload, QUESTION_BYTES_MAX)
    }
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
        match &question {
            Question::Report(report) => report.check()?,
            Question::Put { slice, hose } => {
                check_name("slice", slice)?;
                hose.check()?;
            }
            _ => {}
        }
        Ok(question)
    }
}

impl Hose {
    /// Whether a slice can be promised this.
    ///
    /// # Errors
    /// A sentence that begins with the field.
    pub fn check(&self) -> Result<(), String> {
        if self.vnics.len() > VNICS_MAX {
            return Err(format!("vnics: {} are too many, a slice has at most {VNICS_MAX}", self.vnics.len()));
        }
        for (name, vnic) in &self.vnics {
            check_name("vnics", name)?;
            if !(1..=RATE_MAX_BPS).contains(&vnic.rate_bps) {
                return Err(format!(
                    "vnics.{name}.rate_bps: {} is not possible; write 1 to {RATE_MAX_BPS}",
                    vnic.rate_bps
                ));
            }
        }
        match self.step_percent {
            Some(step @ (0 | 101..)) => {
                Err(format!("step_percent: {step} is not possible; write 1 to 100, or leave it out"))
            }
            _ => Ok(()),
        }
    }
}

fn check_name(field: &str, name: &str) -> Result<(), String> {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "{field}: {name:?} is no name: write 1 to {NAME_BYTES_MAX} bytes without control characters"
        )),
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
        check(r#"{"op":"labels"}"#, "missing field `slice`");
        let put = |hose: &str| format!(r#"{{"op":"put","slice":"blue","hose":{hose}}}"#);
        check(&put(r#"{"vnics":{"":{"rate_bps":1}}}"#), "vnics: \"\" is no name");
        check(&put(r#"{"vnics":{"E":{"rate_bps":0}}}"#), "vnics.E.rate_bps: 0 is not possible");
        check(&put(r#"{"vnics":{},"step_percent":0}"#), "step_percent: 0");
        check(&put(r#"{"vnics":{},"steps":1}"#), "unknown field `steps`");
        check(&put(r#"{"vnics":{},"links":["1/1"]}"#), "1/1");
        let report = |rest: &str| format!(r#"{{"op":"report","slice":"blue","session":1,{rest}}}"#);
        check(&report(r#""number":0,"entries":[]"#), "number: 0");
        check(&report(r#""number":1,"entries":[{"is":"path","from":"E","to":"F","links":[]}]"#), "rules");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let check = |text: &str| {
            let question = Question::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(Question::from_bytes(&question.to_bytes()).unwrap(), question, "{text}");
        };
        check(r#"{"op":"slices"}"#);
        check(r#"{"op":"agents"}"#);
        check(
            r#"{"op":"put","slice":"blue","hose":{"vnics":{"E":{"rate_bps":10,"number":3,"agent":1}},"links":["1/1-2/1"],"step_percent":10}}"#,
        );
        check(
            r#"{"op":"report","slice":"blue","session":7,"number":2,"reset":true,"more":true,"entries":[
                {"is":"path","from":"E","to":"F","links":["1/1-2/1"],"rules":2},{"is":"nopath","from":"E","to":"F"},
                {"is":"link","link":"1/1-2/1"},{"is":"nolink","link":"1/1-2/1"}]}"#,
        );
    }
}
