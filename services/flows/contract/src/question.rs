//! The questions to the service `flows` in JSON: lists, counters, and sets of operators.
//!
//! ```text
//!   {"op":"list","kind":"rule","filter":{"switch":"of:1"},"limit":100} <──> Question::List { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two. It checks what can be checked without the tables.

use crate::read::check_name;
use flow::{Action, DatapathId, Instruction, Match, PortNo};
use serde::{Deserialize, Serialize};
use view::rule::EntryState;
use view::{Key, Kind};

/// The longest question in bytes. A longer one is refused before it is parsed.
pub const QUESTION_BYTES_MAX: usize = 96 << 10;

/// The most objects in one answer. A greater limit is cut to it.
pub const PAGE_MAX: usize = 1_000;

/// The objects in one answer if the question names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// Wanted rules, groups or meters, in the order of their ids. The answer is an [`EntryPage`](crate::EntryPage).
    List {
        /// `rule`, `group` or `meter`.
        kind: Kind,
        /// Which.
        #[serde(default)]
        filter: Filter,
        /// Only objects behind this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Key>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// One rule, group or meter. The answer is a `view::Record`.
    Get {
        /// Which.
        key: Key,
    },
    /// The counters of the rules in one switch, as it reports them now. The answer is [`Counters`](crate::Counters).
    Counters {
        /// The switch.
        switch: DatapathId,
        /// Only this table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table_id: Option<u8>,
    },
    /// What is in a switch now for a packet, and what is wanted there for it. The answer is a [`Look`](crate::Look).
    Look {
        /// The switch.
        switch: DatapathId,
        /// The fields of the packet that arrives, with its input port. A masked field is refused.
        packet: Match,
    },
    /// The sets and their states, in the order of owners and names. The answer is a [`SetPage`](crate::SetPage).
    Sets {
        /// Only sets of this app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// Only sets behind this owner and name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<(String, String)>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// What is known of each switch's tables. The answer is a list of [`SwitchSummary`](crate::SwitchSummary).
    Switches,
    /// Puts a set of the caller. The answer has no payload.
    Put(WantedSet),
    /// Removes a set of the caller, whatever its version. The answer has no payload.
    Remove {
        /// Its name.
        name: String,
    },
    /// Reads the tables of a switch now, and corrects what differs.
    Audit {
        /// The switch.
        switch: DatapathId,
    },
}

/// A set in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedSet {
    /// Its name.
    pub name: String,
    /// Its version. `None`: one more than that of the set that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// As in [`SetOptions`](crate::SetOptions).
    #[serde(default)]
    pub in_order: bool,
    /// As in [`SetOptions`](crate::SetOptions).
    #[serde(default)]
    pub permanent: bool,
    /// Its rules.
    pub rules: Vec<WantedRule>,
    /// Its groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<WantedGroup>,
    /// Its meters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<WantedMeter>,
}

/// A group in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedGroup {
    /// The switch.
    pub switch: DatapathId,
    /// Its number.
    pub group_id: u32,
    /// Its type.
    #[serde(rename = "type")]
    pub group_type: GroupType,
    /// Its buckets.
    pub buckets: Vec<WantedBucket>,
}

/// The type of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum GroupType {
    /// Every bucket gets the packet.
    All = 0,
    /// The switch chooses a bucket.
    Select = 1,
    /// There is one bucket.
    Indirect = 2,
    /// The first live bucket.
    FastFailover = 3,
}

/// A bucket in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedBucket {
    /// Its weight in a select group.
    #[serde(default)]
    pub weight: u16,
    /// The port whose liveness decides. `None`: no port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_port: Option<PortNo>,
    /// The group whose liveness decides. `None`: no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_group: Option<u32>,
    /// What it does with the packet. Empty: it drops it.
    #[serde(default)]
    pub actions: Vec<Action>,
}

/// A meter in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedMeter {
    /// The switch.
    pub switch: DatapathId,
    /// Its number.
    pub meter_id: u32,
    /// What its rates count.
    #[serde(default)]
    pub unit: MeterUnit,
    /// Whether its bands have burst sizes.
    #[serde(default)]
    pub burst: bool,
    /// Whether the switch counts what it drops.
    #[serde(default)]
    pub stats: bool,
    /// Its bands.
    pub bands: Vec<WantedBand>,
}

/// What the rates of a meter count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeterUnit {
    /// Kilobits per second.
    #[default]
    Kbps,
    /// Packets per second.
    PacketsPerS,
}

/// A band in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "WrittenBand")]
pub enum WantedBand {
    /// Drops packets above the rate.
    Drop {
        /// The rate.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
    },
    /// Raises the drop precedence of packets above the rate.
    DscpRemark {
        /// The rate.
        rate: u32,
        /// The burst size, in kilobits or packets.
        burst_size: u32,
        /// By how much.
        prec_level: u8,
    },
}

/// A band as it is written. The type is read apart: as a tag, a number would also name one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBand {
    #[serde(rename = "type")]
    kind: BandKind,
    rate: u32,
    #[serde(default)]
    burst_size: u32,
    #[serde(default)]
    prec_level: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum BandKind {
    Drop,
    DscpRemark,
}

impl TryFrom<WrittenBand> for WantedBand {
    type Error = &'static str;

    fn try_from(band: WrittenBand) -> Result<WantedBand, &'static str> {
        let WrittenBand { kind, rate, burst_size, prec_level } = band;
        match (kind, prec_level) {
            (BandKind::Drop, None) => Ok(WantedBand::Drop { rate, burst_size }),
            (BandKind::Drop, Some(_)) => Err("prec_level: a band that drops has none"),
            (BandKind::DscpRemark, Some(prec_level)) => {
                Ok(WantedBand::DscpRemark { rate, burst_size, prec_level })
            }
            (BandKind::DscpRemark, None) => Err("missing field `prec_level`"),
        }
    }
}

/// A rule in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedRule {
    /// The switch.
    pub switch: DatapathId,
    /// Its table.
    #[serde(default)]
    pub table_id: u8,
    /// As in [`Rule`](crate::Rule).
    #[serde(default)]
    pub stage: u8,
    /// Its priority.
    pub priority: u16,
    /// As in [`Rule`](crate::Rule).
    #[serde(default)]
    pub idle_timeout_s: u16,
    /// As in [`Rule`](crate::Rule).
    #[serde(default)]
    pub hard_timeout_s: u16,
    /// Which packets it is for.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// What it does with them. Empty: they are dropped.
    #[serde(default)]
    pub instructions: Vec<Instruction>,
}

/// Which objects a list has. Each field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Objects in this switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<DatapathId>,
    /// Objects that this app wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Objects of sets with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Rules of this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table_id: Option<u8>,
    /// Objects in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<EntryState>,
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

    /// Whether it changes what is wanted, or makes a switch work.
    pub fn writes(&self) -> bool {
        matches!(self, Question::Put(_) | Question::Remove { .. } | Question::Audit { .. })
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Question::List { kind, .. } if kind.service() != crate::SERVICE => {
                Err(format!("kind: this service has no objects of the kind {kind}"))
            }
            Question::Get { key } if key.kind().service() != crate::SERVICE => {
                Err(format!("key: this service has no objects of the kind {}", key.kind()))
            }
            Question::Look { packet, .. } => {
                let is_whole =
                    |entry: &flow::MatchEntry| matches!(entry, flow::MatchEntry::Field { mask: None, .. });
                match packet.entries().iter().all(is_whole) {
                    true => Ok(()),
                    false => Err("packet: a packet has one value of each field, and no mask".to_owned()),
                }
            }
            Question::Put(set) => check_name(&set.name),
            Question::Remove { name } => check_name(name),
            _ => Ok(()),
        }
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
        check(r#"{"op":"list"}"#, "missing field `kind`");
        check(r#"{"op":"list","kind":"host"}"#, "no objects of the kind host");
        check(r#"{"op":"list","kind":"rule","filter":{"port":1}}"#, "unknown field `port`");
        check(r#"{"op":"get","key":"switch/1"}"#, "no objects of the kind switch");
        check(r#"{"op":"get","key":"rule/1"}"#, "write DATAPATH/NUMBER");
        check(r#"{"op":"look","switch":"1","packet":{"ipv4_dst":"10.0.0.0/8"}}"#, "packet: ");
        check(r#"{"op":"put","name":"","rules":[]}"#, "name: ");
        check(r#"{"op":"put","name":"a"}"#, "missing field `rules`");
        check(r#"{"op":"put","name":"a","rules":[{"switch":"1"}]}"#, "missing field `priority`");
        let group = r#"{"op":"put","name":"a","rules":[],"groups":[{"switch":"1","group_id":1,"type":"some","buckets":[]}]}"#;
        check(group, "unknown variant `some`");
        check(
            r#"{"op":"put","name":"a","rules":[],"meters":[{"switch":"1","meter_id":1}]}"#,
            "missing field `bands`",
        );
        let band = |band: &str| {
            format!(
                r#"{{"op":"put","name":"a","rules":[],"meters":[{{"switch":"1","meter_id":1,"bands":[{{{band}}}]}}]}}"#
            )
        };
        check(&band(r#""type":0,"rate":1"#), "invalid type");
        check(&band(r#""type":"slow","rate":1"#), "unknown variant `slow`");
        check(&band(r#""type":"drop","rate":1,"prec_level":1"#), "prec_level");
        check(&band(r#""type":"dscp_remark","rate":1"#), "missing field `prec_level`");
        check(r#"{"op":"remove","name":"\n"}"#, "control character");
        check(&" ".repeat(QUESTION_BYTES_MAX + 1), "are read");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let check = |text: &str| {
            let question = Question::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(Question::from_bytes(&question.to_bytes()).unwrap(), question, "{text}");
        };
        check(r#"{"op":"list","kind":"rule","filter":{"switch":"1","state":"failed"},"limit":7}"#);
        check(r#"{"op":"list","kind":"group","after":"group/1/7"}"#);
        check(r#"{"op":"get","key":"rule/1/00000000000000a2"}"#);
        check(r#"{"op":"counters","switch":"1"}"#);
        check(r#"{"op":"sets","owner":"paths","after":["paths","intent/1"]}"#);
        check(r#"{"op":"look","switch":"1","packet":{"in_port":1,"eth_type":"0x0800"}}"#);
        check(r#"{"op":"switches"}"#);
        check(
            r#"{"op":"put","name":"a","permanent":true,"rules":[{"switch":"1","priority":7,"match":{"in_port":1},
               "instructions":[{"type":"apply_actions","actions":[{"type":"output","port":2}]}]}]}"#,
        );
        check(
            r#"{"op":"put","name":"a","rules":[],"groups":[{"switch":"1","group_id":7,"type":"select",
               "buckets":[{"weight":1,"actions":[{"type":"output","port":2}]}]}],
               "meters":[{"switch":"1","meter_id":7,"bands":[{"type":"drop","rate":100}]}]}"#,
        );
        check(r#"{"op":"remove","name":"a"}"#);
        check(r#"{"op":"audit","switch":"1"}"#);
    }
}
