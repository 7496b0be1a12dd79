//! What is in one switch now for one packet, and what is wanted there for it.
//!
//! In and out: types and their JSON. A look compares nothing by itself: each rule says what is known of it.

use flow::{DatapathId, Instruction, Match};
use serde::{Deserialize, Serialize};
use view::{EntryState, Rule, RuleId};

/// The most rules of a look. In table 0, only rules that the packet matches count; in other tables all do, since earlier tables may change the
/// packet.
pub const LOOK_RULES_MAX: usize = 4_096;

/// A rule that the switch has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenRule {
    /// Its switch and number.
    pub id: RuleId,
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Which packets it is for.
    #[serde(rename = "match")]
    pub matching: Match,
    /// What it does with them.
    pub instructions: Vec<Instruction>,
    /// Its cookie, with the number of its owner in the top bits.
    pub cookie: u64,
    /// Packets that it matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it exists, in seconds.
    pub duration_s: u32,
    /// Whether this service added it. Its kernel, another app, or another controller may have added a rule too.
    pub is_own: bool,
    /// What is wanted in its place, if a set wants a rule there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Claim>,
}

/// Who wants a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The app.
    pub owner: String,
    /// The set.
    pub set: String,
    /// How far it is.
    pub state: EntryState,
    /// Whether the switch has it with these instructions and time-outs.
    pub is_same: bool,
}

/// A group that the switch has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenGroup {
    /// Its number.
    pub number: u32,
    /// `ofp_group_type`.
    pub group_type: u8,
    /// Its buckets as in a group mod of OpenFlow 1.3, in hexadecimal digits.
    pub buckets: String,
}

/// What is in a switch for a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The switch.
    pub switch: DatapathId,
    /// Whether its session is of OpenFlow 1.0.
    pub is_v10: bool,
    /// Its rules, in the order in which it reports them.
    pub rules: Vec<SeenRule>,
    /// Its groups.
    pub groups: Vec<SeenGroup>,
    /// The numbers of its meters.
    pub meters: Vec<u32>,
    /// Rules that are wanted for the packet, and that the switch does not have.
    pub missing: Vec<Rule>,
    /// Rules that this service cannot read, or that are beyond [`LOOK_RULES_MAX`].
    #[serde(default)]
    pub left_out: u64,
}
