//! The answers of the service `flows`.
//!
//! In: typed answers, or bytes. Out: the other of the two. Refusals of a batch are compact; the rest is JSON.

use crate::bytes::Reader;
use crate::state::SetState;
use flow::DatapathId;
use serde::{Deserialize, Serialize};
use view::{Key, Record, RuleId};

/// A part of a list of rules, groups or meters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryPage {
    /// The objects, in the order of their ids.
    pub entries: Vec<Record>,
    /// The `after` of the next question, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Key>,
}

/// A set and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetSummary {
    /// The app that wants it.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Whether it is kept in the store.
    pub permanent: bool,
    /// Its state.
    #[serde(flatten)]
    pub state: SetState,
}

/// A part of the list of sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetPage {
    /// The sets, in the order of owners and names.
    pub sets: Vec<SetSummary>,
    /// The `after` of the next question, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<(String, String)>,
}

/// The counters of a rule in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Which rule.
    pub id: RuleId,
    /// Whether the service wants it. Otherwise it is another owner's rule.
    pub wanted: bool,
    /// Packets that it matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it exists, in seconds.
    pub duration_s: u32,
}

/// Whether the tables of a switch are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tables {
    /// The switch is not connected.
    Away,
    /// The switch was asked for its rules. Until it has answered, nothing is added or removed.
    Reading,
    /// They are known.
    Known,
}

/// What is known of a switch's tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchSummary {
    /// The switch.
    pub switch: DatapathId,
    /// Whether its tables are known.
    pub tables: Tables,
    /// Wanted rules, groups and meters.
    pub wanted: u64,
    /// Those that the switch has confirmed.
    pub installed: u64,
    /// Commands that wait for the switch.
    pub pending: u64,
    /// Rules that other apps or other controllers added, in the last reading.
    pub foreign: u64,
    /// Rules of this service that no set wants. They are removed when the time for sets to come back is over.
    pub orphans: u64,
    /// How often the tables were read.
    pub audits: u64,
    /// Rules that an audit found missing or changed, and that were added again.
    pub repaired: u64,
}

/// A change of a batch that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The number of the change in the batch, from 0.
    pub number: u32,
    /// One of [`mod@crate::status`].
    pub status: u16,
    /// The reason in words.
    pub reason: String,
}

/// The payload of an answer with the status `SOME_REFUSED`.
pub fn write_refusals(refusals: &[Refusal]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Refusal { number, status, reason } in refusals {
        let reason = &reason.as_bytes()[..reason.floor_char_boundary(u16::MAX.into())];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&status.to_le_bytes());
        // Cut above.
        bytes.extend_from_slice(&(reason.len() as u16).to_le_bytes());
        bytes.extend_from_slice(reason);
    }
    bytes
}

/// Reads the payload of an answer with the status `SOME_REFUSED`.
///
/// # Errors
/// A sentence. It is the service's fault.
pub fn read_refusals(payload: &[u8]) -> Result<Vec<Refusal>, String> {
    const WHAT: &str = "a refusal";
    let mut reader = Reader::new(payload);
    let mut refusals = Vec::new();
    while !reader.is_empty() {
        let (number, status) = (reader.u32(WHAT)?, reader.u16(WHAT)?);
        let length = reader.u16(WHAT)?;
        let reason = reader.text(length.into(), "a reason")?.to_owned();
        refusals.push(Refusal { number, status, reason });
    }
    Ok(refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_as_they_were_written_and_cut_ones_are_refused() {
        let refusal = |number, reason: &str| Refusal { number, status: 4, reason: reason.to_owned() };
        let refusals = [refusal(0, "a"), refusal(7, "")];
        let bytes = write_refusals(&refusals);
        assert_eq!(read_refusals(&bytes).unwrap(), refusals);
        assert_eq!(read_refusals(&[]).unwrap(), []);
        assert!((1..bytes.len()).filter(|end| read_refusals(&bytes[..*end]).is_ok()).count() == 1);
        let long = read_refusals(&write_refusals(&[refusal(1, &"é".repeat(40_000))])).unwrap();
        assert_eq!(long[0].reason.len(), 65_534);
    }
}
