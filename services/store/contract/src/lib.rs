//! The contract of the service `store`: requests, answers, statuses, and the grant of a caller.
//!
//! ```text
//!   caller: Ask ──write──> payload of a query ──read──> Ask :service
//!   node:   Grant ──to_bytes──> part of the caller's grant ──from_bytes──> Grant :service
//! ```
//!
//! In: typed requests and grants, or bytes. Out: the other form. It opens no file and sends nothing. It does not depend on the kernel or the SDK.

mod changes;
mod declaration;
mod grant;

pub use changes::{CHANGES_BYTES_MAX, Change, Changes, changes};
pub use declaration::{BYTES_DEFAULT, DECLARATION};
pub use grant::{Grant, Prefixes};

/// The name of the service.
pub const SERVICE: &str = "store";

/// A message to the monitor.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToMonitor {
    /// At each start of the service and after each change: the bytes of an app in the store.
    Stored {
        /// The app's name.
        app: String,
        /// Bytes of its keys and values.
        bytes: u64,
    },
    /// The answer to a [`Save`].
    Saved {
        /// Its ticket.
        ticket: u64,
        /// Why the copy does not exist, if it does not.
        trouble: Option<String>,
    },
}

/// From the monitor: write a copy of all committed keys to the file [`SAVED`] in the folder of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// The ticket, which the answer repeats.
    pub ticket: u64,
}

/// The name of the copy in the folder of the store. Only one copy exists at a time; who asked for it removes it.
pub const SAVED: &str = "store.saved";

/// The maximum length of a key, in bytes of UTF-8. A longer key is refused.
pub const KEY_BYTES_MAX: usize = 256;

/// The maximum length of a value, in bytes. Several values fit into the ring of the service. A longer value is refused; split it
/// into several keys.
pub const VALUE_BYTES_MAX: usize = 32 << 10;

/// The bytes before the key: the operation, a zero byte, and the key's length.
const HEAD_BYTES: usize = 4;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read the value of a key.
    Get = 0,
    /// Write the value of a key, and replace an earlier one.
    Put = 1,
    /// Delete a key.
    Delete = 2,
    /// List the keys with this prefix that come after the value.
    List = 3,
    /// Make all changes in the value, or none ([`Changes`]). The key is empty.
    ChangeAll = 4,
}

impl Op {
    /// The operation with this number.
    pub const fn from_number(number: u8) -> Option<Op> {
        match number {
            0 => Some(Op::Get),
            1 => Some(Op::Put),
            2 => Some(Op::Delete),
            3 => Some(Op::List),
            4 => Some(Op::ChangeAll),
            _ => None,
        }
    }

    /// Whether it changes the store.
    pub const fn writes(self) -> bool {
        matches!(self, Op::Put | Op::Delete | Op::ChangeAll)
    }

    /// The capability that it needs.
    pub const fn capability(self) -> &'static str {
        if self.writes() { declaration::WRITE } else { declaration::READ }
    }
}

/// The statuses of answers, in addition to those common to all services.
pub mod status {
    /// Success; a change is on disk. The payload of a get is the value. The payload of a list is the last keys ([`super::keys`]).
    pub const DONE: u16 = 0;
    /// The key does not exist.
    pub const NOT_FOUND: u16 = 1;
    /// The store is full. Nothing has changed.
    pub const STORE_FULL: u16 = 3;
    /// The file cannot be read or written. The payload is a sentence with the reason. Nothing has changed.
    pub const FAILED: u16 = 4;
    /// Of a list: the payload is keys, and more keys follow.
    pub const MORE_KEYS: u16 = 5;
    /// Of a change: the file failed while it was written to disk. The change may be there. The payload is a sentence with the reason. Read
    /// the key to know it.
    pub const MAYBE_DONE: u16 = 6;
    /// The app would exceed the hard limit of its quota `store_bytes` (`abi::event::OVER_QUOTA`). Nothing has changed.
    pub const APP_FULL: u16 = 0xff81;
    /// The app has no grant for this key (`abi::event::NOT_GRANTED`). The payload is a sentence.
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The request is malformed (`abi::event::BAD_QUESTION`). The payload is a sentence.
    pub const BAD_QUESTION: u16 = 0xff82;
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// An operation.
    pub op: Op,
    /// The key. For a list, the prefix, which may be empty. For several changes, nothing.
    pub key: &'a str,
    /// For a put, the value. For a list, the key after which it starts. For several changes, these. Otherwise empty.
    pub value: &'a [u8],
}

impl<'a> Ask<'a> {
    /// Encodes the request. A key longer than 65,535 bytes is cut; the service refuses it anyway.
    pub fn to_bytes(&self) -> Vec<u8> {
        let key = &self.key[..self.key.floor_char_boundary(usize::from(u16::MAX))];
        let mut bytes = Vec::with_capacity(HEAD_BYTES + key.len() + self.value.len());
        bytes.extend_from_slice(&[self.op as u8, 0]);
        // Cut above.
        bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(key.as_bytes());
        bytes.extend_from_slice(self.value);
        bytes
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence about the error. It is the caller's fault.
    pub fn from_bytes(payload: &'a [u8]) -> Result<Ask<'a>, &'static str> {
        let (head, rest) = payload.split_first_chunk::<HEAD_BYTES>().ok_or("the question is too short")?;
        let [op, _, low, high] = *head;
        let op = Op::from_number(op).ok_or("there is no such operation of the store")?;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let (key, value) = rest.split_at_checked(length).ok_or("the key is longer than the question")?;
        let key = std::str::from_utf8(key).map_err(|_| "the key is not UTF-8")?;
        let ask = Ask { op, key, value };
        ask.flaw().map_or(Ok(ask), Err)
    }

    fn flaw(&self) -> Option<&'static str> {
        let Ask { op, key, value } = *self;
        if key.len() > KEY_BYTES_MAX {
            return Some("a key of the store is longer than 256 bytes");
        }
        if key.is_empty() && !matches!(op, Op::List | Op::ChangeAll) {
            return Some("a key of the store is empty");
        }
        match op {
            Op::ChangeAll if !key.is_empty() => Some("several changes have no common key"),
            Op::ChangeAll if value.len() > CHANGES_BYTES_MAX => {
                Some("the changes of one question to the store are longer than 48 KiB")
            }
            Op::ChangeAll if value.is_empty() => Some("several changes for the store are none"),
            Op::ChangeAll => changes(value).find_map(Result::err),
            Op::Put if value.len() > VALUE_BYTES_MAX => Some("a value for the store is longer than 32 KiB"),
            Op::List if value.len() > KEY_BYTES_MAX => Some("a key of the store is longer than 256 bytes"),
            Op::List if std::str::from_utf8(value).is_err() => Some("the key to begin after is not UTF-8"),
            Op::Get | Op::Delete if !value.is_empty() => Some("a get or delete has no value"),
            _ => None,
        }
    }
}

/// Appends a key to the payload of a list's answer.
pub fn push_key(payload: &mut Vec<u8>, key: &str) {
    // A stored key has at most 256 bytes.
    let Ok(length) = u16::try_from(key.len()) else { return };
    payload.extend_from_slice(&length.to_le_bytes());
    payload.extend_from_slice(key.as_bytes());
}

/// The keys in the payload of a list's answer. It ends at malformed data.
pub fn keys(mut payload: &[u8]) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (length, rest) = payload.split_first_chunk::<2>()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        payload = rest;
        std::str::from_utf8(key).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_in_a_list_of_keys_ends_it() {
        let mut payload = Vec::new();
        ["a", "", "é/b"].iter().for_each(|key| push_key(&mut payload, key));
        assert_eq!(keys(&payload).collect::<Vec<_>>(), ["a", "", "é/b"]);
        for length in 0..payload.len() {
            assert!(keys(&payload[..length]).count() < 3, "cut to {length}");
        }
        assert_eq!(keys(&[1, 0, 0xff]).count(), 0);
    }

    #[test]
    fn a_damaged_question_is_refused_with_the_reason() {
        let check = |payload: &[u8], expected| assert_eq!(Ask::from_bytes(payload), Err(expected));
        check(&[], "the question is too short");
        check(&[0, 0, 1], "the question is too short");
        check(&[5, 0, 1, 0, b'k'], "there is no such operation of the store");
        check(&[4, 0, 1, 0, b'k'], "several changes have no common key");
        check(&[4, 0, 0, 0, 3], "a change is longer than the question");
        check(&[0, 0, 2, 0, b'k'], "the key is longer than the question");
        check(&[0, 0, 1, 0, 0xff], "the key is not UTF-8");
        check(&[3, 0, 0, 0, 0xff], "the key to begin after is not UTF-8");
    }

    #[test]
    fn each_bound_is_kept_and_what_lies_within_passes() {
        let check = |op, key: &str, value: &[u8], sound: bool| {
            let bytes = Ask { op, key, value }.to_bytes();
            let read = Ask::from_bytes(&bytes);
            assert_eq!(read.is_ok(), sound, "{op:?} {} {}", key.len(), value.len());
            assert!(read.is_err() || read == Ok(Ask { op, key, value }));
        };
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        for op in [Op::Get, Op::Delete] {
            check(op, "", b"", false);
            check(op, "k", b"v", false);
            check(op, &long, b"", false);
            check(op, &long[1..], b"", true);
        }
        check(Op::Put, "", b"v", false);
        check(Op::Put, &"é".repeat(40_000), b"v", false);
        check(Op::Put, "k", &[0; VALUE_BYTES_MAX + 1], false);
        check(Op::Put, "k", &[0xff; VALUE_BYTES_MAX], true);
        check(Op::List, &long, b"", false);
        check(Op::List, "", long.as_bytes(), false);
        check(Op::List, "", b"", true);
    }
}
