//! The state of a set, as its owner follows it.
//!
//! In: a typed state, or the value of an entry of the stream of states. Out: the other of the two.

use crate::bytes::Reader;
use flow::DatapathId;
use serde::{Deserialize, Serialize};

/// The most switches that a state names. There may be more.
pub const SWITCHES_NAMED_MAX: usize = 16;

/// The longest reason that a state has, in bytes. A longer one is cut.
const REASON_BYTES_MAX: usize = 512;

/// The state of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetState {
    /// The version that the state is about.
    pub version: u64,
    /// How many rules, groups and meters the set wants.
    pub wanted: u32,
    /// How many of them their switches have confirmed.
    pub confirmed: u32,
    /// What it waits for.
    #[serde(flatten)]
    pub phase: Phase,
}

/// How far a set is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum Phase {
    /// Switches have not confirmed everything yet.
    Pending,
    /// Every switch has confirmed all of it, and nothing of an earlier version is left.
    Installed,
    /// Everything is confirmed but what belongs to switches that are not connected, or whose rules are not known yet.
    Waiting {
        /// Some of these switches, at most `SWITCHES_NAMED_MAX`.
        switches: Vec<DatapathId>,
    },
    /// A part of it cannot be installed. What was installed of an earlier version stays. The service tries again at each audit.
    Failed(Failure),
    /// It is being removed. When nothing is left, its entry is removed from the stream.
    Removing,
}

/// Why a part of a set cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Where.
    pub switch: DatapathId,
    /// Which rule: the number in its id. 0: it is no rule.
    pub rule: u64,
    /// What kind of failure.
    pub failure: FailureKind,
    /// The reason in words.
    pub reason: String,
}

/// What a failure means for the owner of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FailureKind {
    /// The table of the switch is full. Another way through the network may help.
    TableFull = 1,
    /// The switch answered with another error. The rule is wrong for this switch.
    Switch = 2,
    /// The kernel refused it: a capability, a quota, or a rule of another owner at its place.
    Refused = 3,
    /// The OpenFlow version of the switch cannot express it.
    Unsupported = 4,
}

impl FailureKind {
    fn from_number(number: u8) -> Option<FailureKind> {
        [Self::TableFull, Self::Switch, Self::Refused, Self::Unsupported]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

const PENDING: u8 = 0;
const INSTALLED: u8 = 1;
const WAITING: u8 = 2;
const FAILED: u8 = 3;
const REMOVING: u8 = 4;

impl SetState {
    /// The value of the entry. Its key is the name of the set.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.wanted.to_le_bytes());
        bytes.extend_from_slice(&self.confirmed.to_le_bytes());
        match &self.phase {
            Phase::Pending => bytes.push(PENDING),
            Phase::Installed => bytes.push(INSTALLED),
            Phase::Removing => bytes.push(REMOVING),
            Phase::Waiting { switches } => {
                let named = &switches[..switches.len().min(SWITCHES_NAMED_MAX)];
                // At most sixteen.
                bytes.extend_from_slice(&[WAITING, named.len() as u8]);
                named.iter().for_each(|switch| bytes.extend_from_slice(&switch.0.to_le_bytes()));
            }
            Phase::Failed(failure) => {
                bytes.extend_from_slice(&[FAILED, failure.failure as u8]);
                bytes.extend_from_slice(&failure.switch.0.to_le_bytes());
                bytes.extend_from_slice(&failure.rule.to_le_bytes());
                let cut = failure.reason.floor_char_boundary(REASON_BYTES_MAX);
                bytes.extend_from_slice(&failure.reason.as_bytes()[..cut]);
            }
        }
        bytes
    }

    /// Reads the value of an entry.
    ///
    /// # Errors
    /// A sentence. It is the service's fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<SetState, String> {
        const WHAT: &str = "the state of a set";
        let mut reader = Reader::new(bytes);
        let version = reader.u64(WHAT)?;
        let wanted = reader.u32(WHAT)?;
        let confirmed = reader.u32(WHAT)?;
        let phase = match reader.u8(WHAT)? {
            PENDING => Phase::Pending,
            INSTALLED => Phase::Installed,
            REMOVING => Phase::Removing,
            WAITING => {
                let count = reader.u8(WHAT)?;
                let switches = (0..count).map(|_| reader.u64(WHAT).map(DatapathId));
                Phase::Waiting { switches: switches.collect::<Result<_, _>>()? }
            }
            FAILED => {
                let kind = reader.u8(WHAT)?;
                let failure = FailureKind::from_number(kind)
                    .ok_or_else(|| format!("the state of a set has the unknown failure {kind}"))?;
                let (switch, rule) = (DatapathId(reader.u64(WHAT)?), reader.u64(WHAT)?);
                let reason = reader.text(bytes.len() - reader.at(), "the reason")?.to_owned();
                Phase::Failed(Failure { switch, rule, failure, reason })
            }
            other => return Err(format!("the state of a set has the unknown phase {other}")),
        };
        Ok(SetState { version, wanted, confirmed, phase })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_a_cut_one_is_refused() {
        let check = |phase: Phase, json: &str| {
            let state = SetState { version: 7, wanted: 3, confirmed: 2, phase };
            let bytes = state.to_bytes();
            assert_eq!(SetState::from_bytes(&bytes), Ok(state.clone()));
            assert!(SetState::from_bytes(&bytes[..16]).is_err());
            assert_eq!(serde_json::to_string(&state).unwrap(), json);
            assert_eq!(serde_json::from_str::<SetState>(json).unwrap(), state);
        };
        check(Phase::Pending, r#"{"version":7,"wanted":3,"confirmed":2,"phase":"pending"}"#);
        check(Phase::Installed, r#"{"version":7,"wanted":3,"confirmed":2,"phase":"installed"}"#);
        check(Phase::Removing, r#"{"version":7,"wanted":3,"confirmed":2,"phase":"removing"}"#);
        let switches = vec![DatapathId(1)];
        let json =
            r#"{"version":7,"wanted":3,"confirmed":2,"phase":"waiting","switches":["of:0000000000000001"]}"#;
        check(Phase::Waiting { switches }, json);
        let failure = FailureKind::TableFull;
        let failed = Failure { switch: DatapathId(1), rule: 2, failure, reason: "full".to_owned() };
        let json = r#"{"version":7,"wanted":3,"confirmed":2,"phase":"failed","switch":"of:0000000000000001","rule":2,"failure":"table_full","reason":"full"}"#;
        check(Phase::Failed(failed), json);
    }

    #[test]
    fn a_damaged_state_is_refused() {
        let state = |tail: &[u8]| SetState::from_bytes(&[&[0; 16], tail].concat()).is_err();
        assert!(state(&[]) && state(&[9]) && state(&[WAITING]) && state(&[WAITING, 1, 0]));
        assert!(state(&[FAILED, 0]) && state(&[FAILED, 1]));
    }
}
