//! The links of slices: what the node says of them, and what their readers follow.
//!
//! ```text
//!   node: SliceLinks of each slice ──settings──> service ──stream: key `SLICE LINK`, value LinkState──> slices, labels
//! ```
//!
//! In: typed values, or bytes. Out: the other of the two. It decides nothing.

use flow::{DatapathId, Match};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use view::{ConnectPoint, LinkId};

/// What stands for all slices in [`FollowLinks`]. No slice has this name.
pub const ALL_SLICES: &str = "*";

/// A slice, as far as its links concern the service. The node passes it on as a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SliceLinks {
    /// Its packets between switches, without input ports. None: the slice only observes, and gets no rules.
    pub packets: Vec<Match>,
    /// Its ports. No link of a slice with a packet in common leads over them.
    pub ports: Vec<ConnectPoint>,
    /// Its own ports. No link of any slice leads over them.
    pub own_ports: Vec<ConnectPoint>,
    /// Its links, each in one direction.
    pub links: Vec<LinkId>,
    /// What its VNICs at each switch may send and receive together, in bit/s. Empty: its links are not judged.
    pub rates_bps: BTreeMap<DatapathId, u64>,
}

/// What a reader of links follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowLinks {
    /// The slice, or [`ALL_SLICES`].
    pub links_of: String,
}

impl FollowLinks {
    /// The payload of the call.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads the payload of a call. `None`: it follows something else.
    pub fn from_bytes(payload: &[u8]) -> Option<FollowLinks> {
        serde_json::from_slice(payload).ok()
    }
}

/// How one direction of a link of a slice is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkState {
    /// Whether it carries frames. Both directions of a link are up, or none is.
    pub is_up: bool,
    /// The links of the network below it, first to last. None if it is down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<LinkId>,
    /// Why it is down, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// It is up, and a link of the network below it does not carry what it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<Lack>,
}

/// A link of the network that does not carry the worst traffic of all slices beside what intents have reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lack {
    /// The link.
    pub hop: LinkId,
    /// The most that the slice can put on it, by this link of its own.
    pub worst_kbps: u64,
    /// What other slices and intents leave.
    pub left_kbps: u64,
    /// What it carries.
    pub capacity_kbps: u64,
}

impl Lack {
    /// What is said of the link: `hop s3:1-s4:1 lacks 1.0M: its VNICs can put 4.0M there, and 3.0M of 10.0M is left`, with this name of the hop.
    pub fn text(&self, hop: &str) -> String {
        let Lack { worst_kbps, left_kbps, capacity_kbps, .. } = *self;
        let lacking_kbps = worst_kbps.saturating_sub(left_kbps);
        let [lacking, worst, left, capacity] =
            [lacking_kbps, worst_kbps, left_kbps, capacity_kbps].map(rate_text);
        format!(
            "hop {hop} lacks {lacking}: its VNICs can put {worst} there, and {left} of {capacity} is left"
        )
    }
}

/// As `hose::Bandwidth` is shown, so that all sentences about slices look alike: one digit behind the point, rounded down. A contract may not build on
/// that crate.
fn rate_text(kbps: u64) -> String {
    let scale = [(1_000_000, 'G'), (1_000, 'M'), (1, 'k')].into_iter().find(|(scale, _)| kbps >= *scale);
    let digits = |(scale, letter)| format!("{}.{}{letter}", kbps / scale, kbps % scale * 10 / scale);
    scale.map_or_else(|| "0".to_owned(), digits)
}

impl LinkState {
    /// The value of an entry of the stream.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads the value of an entry.
    ///
    /// # Errors
    /// A sentence: the service and its reader have different versions.
    pub fn from_bytes(value: &[u8]) -> Result<LinkState, String> {
        serde_json::from_slice(value).map_err(|why| format!("the state of a link cannot be read: {why}"))
    }
}

/// The key of an entry of the stream.
pub fn link_key(slice: &str, link: LinkId) -> Vec<u8> {
    format!("{slice} {link}").into_bytes()
}

/// The slice and the link of a key.
pub fn read_link_key(key: &[u8]) -> Option<(&str, LinkId)> {
    let (slice, link) = std::str::from_utf8(key).ok()?.split_once(' ')?;
    Some((slice, link.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_states_survive_their_bytes() {
        let link: LinkId = "1/2-2/2".parse().unwrap();
        assert_eq!(read_link_key(&link_key("blue", link)), Some(("blue", link)));
        for wrong in [&b"blue"[..], b"blue x", b"\xff 1/2-2/2"] {
            assert_eq!(read_link_key(wrong), None);
        }
        let lack = Lack { hop: link, worst_kbps: 4_000, left_kbps: 2_950, capacity_kbps: 10_000 };
        let state = LinkState { is_up: true, hops: vec![link], why: None, lack: Some(lack) };
        assert_eq!(LinkState::from_bytes(&state.to_bytes()), Ok(state));
        assert!(LinkState::from_bytes(b"{}").is_err());
        let follow = FollowLinks { links_of: "blue".to_owned() };
        assert_eq!(FollowLinks::from_bytes(&follow.to_bytes()), Some(follow));
        assert_eq!(FollowLinks::from_bytes(br#"{"kinds":["path"]}"#), None);
    }

    #[test]
    fn what_a_hop_lacks_is_a_sentence() {
        let check = |worst_kbps, left_kbps, capacity_kbps, expected: &str| {
            let lack = Lack { hop: "1/2-2/2".parse().unwrap(), worst_kbps, left_kbps, capacity_kbps };
            assert_eq!(lack.text("s1:2-s2:2"), expected);
        };
        let most = "hop s1:2-s2:2 lacks 1.0M: its VNICs can put 4.0M there, and 2.9M of 10.0M is left";
        check(4_000, 2_950, 10_000, most);
        check(
            1_100_000,
            1_099_988,
            2_500_000,
            "hop s1:2-s2:2 lacks 12.0k: its VNICs can put 1.1G there, and 1.0G of 2.5G is left",
        );
        check(
            4_000,
            0,
            3_000,
            "hop s1:2-s2:2 lacks 4.0M: its VNICs can put 4.0M there, and 0 of 3.0M is left",
        );
    }
}
