//! The grant of a caller of the store: the keys that it may read and write, and its quota in bytes.
//!
//! In: what the operator granted, or the bytes that the kernel hands to the service. Out: the other of the two. It decides about one key at a time.

use crate::declaration::{BYTES, BYTES_DEFAULT, READ, WRITE};
use crate::{Ask, Change, Op, changes};
use contract::{Part, Permitted};

/// A set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Prefixes {
    /// No key.
    #[default]
    Nothing,
    /// Every key.
    All,
    /// Those that begin with one of these texts.
    Only(Vec<String>),
}

impl Prefixes {
    fn of(permitted: Option<&Permitted>) -> Prefixes {
        match permitted {
            None => Prefixes::Nothing,
            Some(Permitted::All) => Prefixes::All,
            Some(Permitted::Only(prefixes)) => Prefixes::Only(prefixes.clone()),
        }
    }

    fn to_permitted(&self) -> Option<Permitted> {
        match self {
            Prefixes::Nothing => None,
            Prefixes::All => Some(Permitted::All),
            Prefixes::Only(prefixes) => Some(Permitted::Only(prefixes.clone())),
        }
    }

    /// Whether the set has this key.
    pub fn hold(&self, key: &str) -> bool {
        match self {
            Prefixes::Nothing => false,
            Prefixes::All => true,
            Prefixes::Only(prefixes) => prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())),
        }
    }
}

/// The part of an app's grant that concerns the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Keys that it may read: `store.read`.
    pub read: Prefixes,
    /// Keys that it may write: `store.write`.
    pub write: Prefixes,
    /// The hard limit of the bytes that it keeps: `store_bytes`.
    pub hard_bytes: u32,
}

impl Default for Grant {
    fn default() -> Grant {
        Grant { read: Prefixes::Nothing, write: Prefixes::Nothing, hard_bytes: BYTES_DEFAULT }
    }
}

impl Grant {
    /// The bytes that the kernel passes on.
    pub fn to_bytes(&self) -> Vec<u8> {
        let named = [(READ, self.read.to_permitted()), (WRITE, self.write.to_permitted())];
        let capabilities = named.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))).collect();
        Part { capabilities, quotas: [(BYTES.to_owned(), self.hard_bytes.into())].into() }.to_bytes()
    }

    /// Reads the bytes that come with a call. No bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        let part = Part::from_bytes(bytes)?;
        let hard = part.hard(BYTES).map(|hard| u32::try_from(hard).unwrap_or(u32::MAX));
        Ok(Grant {
            read: Prefixes::of(part.permitted(READ)),
            write: Prefixes::of(part.permitted(WRITE)),
            hard_bytes: hard.unwrap_or(BYTES_DEFAULT),
        })
    }

    /// Whether this question is within it.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the capability that is missing.
    pub fn check(&self, ask: &Ask<'_>) -> Result<(), String> {
        let Ask { op, key, value } = *ask;
        if op == Op::ChangeAll {
            let each = |change: Change<'_>| {
                let op = if change.value.is_some() { Op::Put } else { Op::Delete };
                self.check(&Ask { op, key: change.key, value: &[] })
            };
            return changes(value).map_while(Result::ok).try_for_each(each);
        }
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
        check(&Grant { read: Prefixes::All, ..grant.clone() }, Op::List, "", Ok(()));
        let several = |keys: [&str; 2]| {
            let mut changes = crate::Changes::default();
            assert!(changes.add(&Change { key: keys[0], value: Some(b"v") }));
            assert!(changes.add(&Change { key: keys[1], value: None }));
            grant.check(&Ask { op: Op::ChangeAll, key: "", value: changes.as_bytes() })
        };
        assert_eq!(several(["fw/x", "host"]), Ok(()));
        let why = "store.write: it is not granted for the key \"shared/k\"".to_owned();
        assert_eq!(several(["fw/x", "shared/k"]), Err(why));
    }
}
