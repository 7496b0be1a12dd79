//! The grant of a caller of the store: the keys that it may read and write, and its quota in bytes.
//!
//! In: the operator's grants, or the bytes that the kernel passes to the service. Out: the other form. It decides about one key at a time.

use crate::{Ask, Op};
use serde::{Deserialize, Serialize};

/// The default quota of an app for keys and values, in bytes: thousands of small settings.
pub const BYTES_DEFAULT: u32 = 1 << 20;

/// A set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefixes {
    /// No key.
    #[default]
    Nothing,
    /// Every key.
    All,
    /// The keys with one of these prefixes.
    Only(Vec<String>),
}

impl Prefixes {
    /// Whether the set has this key.
    pub fn hold(&self, key: &str) -> bool {
        match self {
            Prefixes::Nothing => false,
            Prefixes::All => true,
            Prefixes::Only(prefixes) => prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())),
        }
    }
}

/// The grant of an app for the store. It is transferred as JSON, which the node writes once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The keys that it may read: `store.read`.
    #[serde(default)]
    pub read: Prefixes,
    /// The keys that it may write: `store.write`.
    #[serde(default)]
    pub write: Prefixes,
    /// The hard limit of its bytes: `store_bytes`.
    pub hard_bytes: u32,
}

impl Default for Grant {
    fn default() -> Grant {
        Grant { read: Prefixes::Nothing, write: Prefixes::Nothing, hard_bytes: BYTES_DEFAULT }
    }
}

impl Grant {
    /// Encodes the grant. The kernel does not read it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Texts and numbers can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes the grant. Empty bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        if bytes.is_empty() {
            return Ok(Grant::default());
        }
        serde_json::from_slice(bytes).map_err(|error| format!("a grant cannot be read: {error}"))
    }

    /// Checks whether the grant allows this request.
    ///
    /// # Errors
    /// A sentence for the caller, which starts with the missing capability.
    pub fn check(&self, ask: &Ask<'_>) -> Result<(), String> {
        let Ask { op, key, .. } = *ask;
        let prefixes = if op.writes() { &self.write } else { &self.read };
        if prefixes.hold(key) {
            return Ok(());
        }
        Err(match (prefixes, op) {
            (Prefixes::Nothing, op) => format!("{}: the app does not hold this capability", op.capability()),
            (_, Op::List) => format!("{}: it is not granted for the prefix {key:?}", op.capability()),
            (_, op) => format!("{}: it is not granted for the key {key:?}", op.capability()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grant: &Grant, op: Op, key: &str, expected: Result<(), &str>) {
        let said = grant.check(&Ask { op, key, value: &[] });
        assert_eq!(said, expected.map_err(str::to_owned));
    }

    #[test]
    fn nothing_is_granted_by_default_and_what_cannot_be_read_grants_nothing() {
        let nothing = Grant::from_bytes(b"").unwrap();
        check(&nothing, Op::Get, "k", Err("store.read: the app does not hold this capability"));
        check(&nothing, Op::Put, "k", Err("store.write: the app does not hold this capability"));
        for damaged in [&b"{"[..], b"[]", b"{}", br#"{"hard_bytes":1,"all":true}"#] {
            assert!(Grant::from_bytes(damaged).is_err());
        }
    }

    #[test]
    fn a_prefix_stands_for_all_keys_that_begin_so() {
        let only = |prefixes: &[&str]| Prefixes::Only(prefixes.iter().map(|it| (*it).to_owned()).collect());
        let grant = Grant { read: only(&["shared/"]), write: only(&["fw/", "host"]), ..Grant::default() };
        let grant = Grant::from_bytes(&grant.to_bytes()).unwrap();
        for key in ["fw/", "fw/x", "fw//", "host", "hosts/1"] {
            check(&grant, Op::Put, key, Ok(()));
            check(&grant, Op::Delete, key, Ok(()));
        }
        check(&grant, Op::Put, "fw", Err("store.write: it is not granted for the key \"fw\""));
        check(&grant, Op::Put, "shared/k", Err("store.write: it is not granted for the key \"shared/k\""));
        check(&grant, Op::Get, "fw/x", Err("store.read: it is not granted for the key \"fw/x\""));
        check(&grant, Op::List, "", Err("store.read: it is not granted for the prefix \"\""));
        check(&grant, Op::List, "shared/", Ok(()));
        check(&Grant { read: Prefixes::All, ..grant }, Op::List, "", Ok(()));
    }
}
