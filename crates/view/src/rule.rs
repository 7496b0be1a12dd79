//! The objects of switches' tables: wanted rules, groups and meters, and their ids.
//!
//! ```text
//!   "of:0000000000000001/00000000000000a2" <──> RuleId { switch, number: 0xa2 }
//! ```
//!
//! In: values of the service that keeps them installed. Out: their text and JSON forms. It checks that a text is well formed, not that
//! the object exists. An object can be known while its switch is not: it waits for the switch.

use crate::id::NotAKey;
use flow::{DatapathId, Instruction, Match};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rule in a switch. The number follows from its table, priority and match. Text: `of:0000000000000001/00000000000000a2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleId {
    /// The switch.
    pub switch: DatapathId,
    /// Its number there.
    pub number: u64,
}

/// A group in a switch. Text: `of:0000000000000001/7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupId {
    /// The switch.
    pub switch: DatapathId,
    /// Its number there.
    pub number: u32,
}

/// A meter in a switch. Text: `of:0000000000000001/7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MeterId {
    /// The switch.
    pub switch: DatapathId,
    /// Its number there.
    pub number: u32,
}

/// Whether the switch has what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// The switch has not confirmed it yet.
    Pending,
    /// The switch has confirmed it.
    Installed,
    /// The switch is not connected, or its tables are not known yet.
    Waiting,
    /// It cannot be installed.
    Failed,
    /// It is being removed.
    Removing,
}

/// A wanted rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Its switch and number.
    pub id: RuleId,
    /// The app that wants it.
    pub owner: String,
    /// The set that it is a part of.
    pub set: String,
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Which packets it is for.
    #[serde(rename = "match")]
    pub matching: Match,
    /// What it does with them.
    pub instructions: Vec<Instruction>,
    /// Its cookie in the switch.
    pub cookie: u64,
    /// Seconds without a packet until the switch removes it; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle_timeout_s: u16,
    /// Seconds until the switch removes it; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hard_timeout_s: u16,
    /// Whether the switch has it.
    pub state: EntryState,
}

/// A wanted group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its switch and number.
    pub id: GroupId,
    /// The app that wants it.
    pub owner: String,
    /// The set that it is a part of.
    pub set: String,
    /// `all`, `select`, `indirect` or `fast_failover`.
    #[serde(rename = "type")]
    pub group_type: String,
    /// Its buckets as in a group mod of OpenFlow 1.3, in hexadecimal digits.
    pub buckets: String,
    /// Whether the switch has it.
    pub state: EntryState,
}

/// A wanted meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// Its switch and number.
    pub id: MeterId,
    /// The app that wants it.
    pub owner: String,
    /// The set that it is a part of.
    pub set: String,
    /// `ofp_meter_flags`.
    pub flags: u16,
    /// Its bands as in a meter mod of OpenFlow 1.3, in hexadecimal digits.
    pub bands: String,
    /// Whether the switch has it.
    pub state: EntryState,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:016x}", self.switch, self.number)
    }
}

impl FromStr for RuleId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (switch, digits) = in_switch(text, "16 hexadecimal digits")?;
        match u64::from_str_radix(digits, 16) {
            Ok(number) if digits.len() == 16 => Ok(RuleId { switch, number }),
            _ => Err(NotAKey(format!("{digits:?} is no number of a rule: write 16 hexadecimal digits"))),
        }
    }
}

/// The switch of an id, and the text of the number.
fn in_switch<'t>(text: &'t str, number: &str) -> Result<(DatapathId, &'t str), NotAKey> {
    let (switch, digits) = text
        .rsplit_once('/')
        .ok_or_else(|| NotAKey(format!("{text:?}: write DATAPATH/NUMBER, with {number}")))?;
    let switch = switch.parse().map_err(|why| NotAKey(format!("{why}")))?;
    Ok((switch, digits))
}

macro_rules! numbered {
    ($($type:ident: $word:literal),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.switch, self.number)
            }
        }

        impl FromStr for $type {
            type Err = NotAKey;

            fn from_str(text: &str) -> Result<Self, NotAKey> {
                let (switch, digits) = in_switch(text, "a decimal number")?;
                let no_number = |_| NotAKey(format!("{digits:?} is no number of a {}: write a decimal number", $word));
                Ok($type { switch, number: digits.parse().map_err(no_number)? })
            }
        }
    )*};
}

numbered!(GroupId: "group", MeterId: "meter");

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = NotAKey;

            fn try_from(text: String) -> Result<Self, NotAKey> {
                text.parse()
            }
        }
    )*};
}

as_text!(RuleId, GroupId, MeterId);

#[cfg(test)]
mod tests {
    use crate::Key;

    #[test]
    fn a_damaged_id_is_refused_with_the_wrong_part() {
        let check = |text: &str, part: &str| {
            let why = text.parse::<Key>().unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("rule/of:0000000000000001", "write DATAPATH/NUMBER");
        check("rule/of:0000000000000001/a2", "is no number of a rule");
        check("rule/of:0000000000000001/000000000000000g", "is no number of a rule");
        check("group/of:0000000000000001/x", "is no number of a group");
        check("meter/of:0000000000000001/4294967296", "is no number of a meter");
        check("meter/x/1", "x");
    }

    #[test]
    fn an_id_survives_its_text() {
        for text in [
            "rule/of:0000000000000001/00000000000000a2",
            "group/of:0000000000000001/4294967295",
            "meter/of:0000000000000001/1",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
    }
}
