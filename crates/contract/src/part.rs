//! The part of a caller's grant that one service receives with each call: JSON.
//!
//! In: what was granted, or the bytes that the kernel passes on. Out: the other of the two. It decides nothing: what a
//! capability means is the service's decision.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The granted capabilities and quotas of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What was granted, by the capability's name.
    pub capabilities: BTreeMap<String, Permitted>,
    /// The hard limits that were written, by the quota's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, u64>,
}

/// How far a capability was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permitted {
    /// Without bounds. In JSON: `true`.
    All,
    /// For these names or prefixes. In JSON: a list.
    Only(Vec<String>),
}

impl Part {
    /// The bytes for the kernel.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A map of texts and numbers, which JSON can always represent.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the part from the bytes that come with a call. No bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Part, String> {
        if bytes.is_empty() {
            return Ok(Part::default());
        }
        serde_json::from_slice(bytes).map_err(|error| format!("a grant cannot be read: {error}"))
    }

    /// How far this capability was granted. `None`: not at all.
    pub fn permitted(&self, capability: &str) -> Option<&Permitted> {
        self.capabilities.get(capability)
    }

    /// Refuses a caller without this capability.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the capability.
    pub fn require(&self, capability: &str) -> Result<&Permitted, String> {
        self.permitted(capability).ok_or_else(|| not_held(capability))
    }

    /// The hard limit of this quota, if one was written.
    pub fn hard(&self, quota: &str) -> Option<u64> {
        self.quotas.get(quota).copied()
    }
}

/// The refusal of a caller that does not hold a capability, as a sentence that begins with the capability.
pub fn not_held(capability: &str) -> String {
    format!("{capability}: the app does not hold this capability")
}

impl Permitted {
    /// Whether this name is among the permitted names.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Permitted::All => true,
            Permitted::Only(names) => names.iter().any(|one| one == name),
        }
    }

    /// Whether this text begins with one of the permitted prefixes.
    pub fn begins(&self, text: &str) -> bool {
        match self {
            Permitted::All => true,
            Permitted::Only(prefixes) => prefixes.iter().any(|prefix| text.starts_with(prefix.as_str())),
        }
    }
}

impl Serialize for Permitted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Permitted::All => serializer.serialize_bool(true),
            Permitted::Only(names) => serializer.collect_seq(names),
        }
    }
}

impl<'de> Deserialize<'de> for Permitted {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            All(bool),
            Only(Vec<String>),
        }
        match Written::deserialize(input)? {
            Written::All(true) => Ok(Permitted::All),
            Written::All(false) => Err(serde::de::Error::custom("a capability is never false")),
            Written::Only(names) => Ok(Permitted::Only(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_grant_nothing() {
        assert_eq!(Part::from_bytes(b""), Ok(Part::default()));
        for damaged in
            ["{", "[]", "{}", r#"{"capabilities":{"a.b":false}}"#, r#"{"capabilities":{},"all":true}"#]
        {
            assert!(Part::from_bytes(damaged.as_bytes()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let only = Permitted::Only(vec!["a".to_owned(), "é/".to_owned()]);
        let part = Part {
            capabilities: [("x.read".to_owned(), only), ("x.write".to_owned(), Permitted::All)].into(),
            quotas: [("x.most".to_owned(), u64::MAX)].into(),
        };
        let read = Part::from_bytes(&part.to_bytes()).unwrap();
        assert_eq!(read, part);
        let permitted =
            |capability, text| read.permitted(capability).map(|it| (it.names(text), it.begins(text)));
        assert_eq!(permitted("x.read", "ab"), Some((false, true)));
        assert_eq!(permitted("x.read", "é/"), Some((true, true)));
        assert_eq!(permitted("x.read", "b"), Some((false, false)));
        assert_eq!(permitted("x.write", "b"), Some((true, true)));
        assert_eq!(permitted("x.list", "b"), None);
        assert_eq!((read.hard("x.most"), read.hard("x.least")), (Some(u64::MAX), None));
    }
}
