//! What is kept of hosts in the store: configured places and addresses, and notes.
//!
//! In: values, or bytes of the store. Out: the other of the two. It calls no store.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use view::{Annotations, ConnectPoint, HostId};

/// How the keys in the store begin. The rest is the host's id.
pub const PREFIX: &str = "hosts/";

/// What is kept of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kept {
    /// The configured place. `None`: the host has only notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<ConnectPoint>,
    /// The configured addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Notes.
    #[serde(skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

impl Kept {
    /// Whether nothing is to be kept.
    pub fn is_nothing(&self) -> bool {
        self.at.is_none() && self.annotations.is_empty()
    }

    /// The value in the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only maps whose keys are no texts can fail, and these have texts.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a value of the store.
    ///
    /// # Errors
    /// A sentence for the log: somebody else has written the key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Kept, String> {
        serde_json::from_slice(bytes).map_err(|why| why.to_string())
    }
}

/// The key of a host in the store.
pub fn key_of(id: HostId) -> String {
    format!("{PREFIX}{id}")
}

/// The host of a key in the store.
pub fn id_of(key: &str) -> Option<HostId> {
    key.strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_value_is_refused_and_a_sound_one_survives() {
        for damaged in ["", "{", r#"{"at":"x"}"#, r#"{"place":"1/1"}"#] {
            assert!(Kept::from_bytes(damaged.as_bytes()).is_err(), "{damaged}");
        }
        let kept = Kept {
            at: Some("of:1/3".parse().unwrap()),
            addresses: vec!["10.0.0.1".parse().unwrap()],
            annotations: [("rack".to_owned(), "7".to_owned())].into(),
        };
        assert_eq!(Kept::from_bytes(&kept.to_bytes()), Ok(kept));
    }

    #[test]
    fn a_key_names_its_host() {
        let id: HostId = "00:00:00:00:00:01.100".parse().unwrap();
        assert_eq!((key_of(id).as_str(), id_of(&key_of(id))), ("hosts/00:00:00:00:00:01.100", Some(id)));
        assert_eq!((id_of("hosts/x"), id_of("other/00:00:00:00:00:01")), (None, None));
    }
}
