//! What a reader of a stream follows.
//!
//! In: a typed wish, or the payload of a call. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::Kind;

/// What to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Follow {
    /// The kinds of objects, as for every service of the view. Empty: paths and intents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
}

impl Follow {
    /// Reads the payload of a call. No bytes: all kinds.
    ///
    /// # Errors
    /// A sentence that names the wrong field. The caller has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Follow, String> {
        if payload.is_empty() {
            return Ok(Follow::default());
        }
        serde_json::from_slice(payload).map_err(|why| format!("the question is wrong: {why}"))
    }

    /// Whether the reader gets objects of this kind.
    pub fn wants(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}
