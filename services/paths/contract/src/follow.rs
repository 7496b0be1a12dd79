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
    /// What intents reserve on links, in place of objects: entries of [`crate::Reserved`]. Then `kinds` is empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
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
        let follow: Follow =
            serde_json::from_slice(payload).map_err(|why| format!("the question is wrong: {why}"))?;
        match follow.reserved && !follow.kinds.is_empty() {
            true => Err("reserved: a stream of reservations has no objects: leave out kinds".to_owned()),
            false => Ok(follow),
        }
    }

    /// The payload of a call.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain data can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether the reader gets objects of this kind.
    pub fn wants(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_followed_without_objects() {
        let follow = Follow { reserved: true, ..Follow::default() };
        assert_eq!(follow.to_bytes(), br#"{"reserved":true}"#);
        assert_eq!(Follow::from_bytes(&follow.to_bytes()), Ok(follow));
        assert!(!Follow::from_bytes(b"").unwrap().reserved);
        let both = Follow::from_bytes(br#"{"kinds":["path"],"reserved":true}"#).unwrap_err();
        assert!(both.starts_with("reserved:"), "{both}");
    }
}
