//! What a reader of a stream follows.
//!
//! In: a typed wish, or the payload of a call. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::Kind;

/// What to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Follow {
    /// The kinds of objects, as for every service of the view. Empty: rules, groups and meters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// In place of objects: the states of the caller's own sets. The key of an entry is the set's name, the value a
    /// [`crate::SetState`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub states: bool,
}

impl Follow {
    /// The states of the caller's own sets.
    pub const STATES: Follow = Follow { kinds: Vec::new(), states: true };

    /// The payload of the call.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain data can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the payload of a call. No bytes: all kinds.
    ///
    /// # Errors
    /// A sentence that names the wrong field. The caller has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Follow, String> {
        if payload.is_empty() {
            return Ok(Follow::default());
        }
        let follow: Follow =
            serde_json::from_slice(payload).map_err(|why| format!("the question is wrong: {why}"))?;
        match follow.states && !follow.kinds.is_empty() {
            true => Err("states: a stream has either states or kinds of objects".to_owned()),
            false => Ok(follow),
        }
    }
}
