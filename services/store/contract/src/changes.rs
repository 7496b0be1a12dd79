//! Changes of several keys for one request: the service makes all of them or none.
//!
//! ```text
//!   change: op, key_len u16, [value_len u32], key, [value]          op 1 put, 2 delete; numbers little-endian
//! ```
//!
//! In: keys and values, or the value of a request. Out: the other of the two. A change without room is not added.

use crate::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The most bytes of the changes of one request. Several requests fit into the ring of the service.
pub const CHANGES_BYTES_MAX: usize = 48 << 10;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// A change of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The key.
    pub key: &'a str,
    /// Its new value. `None`: it is deleted.
    pub value: Option<&'a [u8]>,
}

/// Changes that are collected for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    bytes: Vec<u8>,
}

impl Changes {
    /// The value of the request.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a change. `false`: there is no room for it, or its key or value is longer than the store takes.
    pub fn add(&mut self, change: &Change<'_>) -> bool {
        let Change { key, value } = *change;
        let length = 7 + key.len() + value.map_or(0, <[u8]>::len);
        let is_sound = (1..=KEY_BYTES_MAX).contains(&key.len())
            && value.is_none_or(|value| value.len() <= VALUE_BYTES_MAX)
            && self.bytes.len() + length <= CHANGES_BYTES_MAX;
        if is_sound {
            self.bytes.push(if value.is_some() { PUT } else { DELETE });
            // Both lengths were checked above.
            self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
            if let Some(value) = value {
                self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            }
            self.bytes.extend_from_slice(key.as_bytes());
            self.bytes.extend_from_slice(value.unwrap_or_default());
        }
        is_sound
    }
}

/// The changes in the value of a request. After damage, or a key or value that is too long, it gives the reason and ends.
pub fn changes(bytes: &[u8]) -> impl Iterator<Item = Result<Change<'_>, &'static str>> + Clone {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.take().filter(|bytes| !bytes.is_empty())?;
        Some(change(bytes).map(|(change, behind)| {
            rest = Some(behind);
            change
        }))
    })
}

fn change(bytes: &[u8]) -> Result<(Change<'_>, &[u8]), &'static str> {
    const CUT: &str = "a change is longer than the question";
    let (op, bytes) = bytes.split_first().ok_or(CUT)?;
    let (key_len, bytes) = bytes.split_first_chunk().ok_or(CUT)?;
    let key_len = usize::from(u16::from_le_bytes(*key_len));
    let (value_len, bytes) = match *op {
        PUT => {
            let (length, bytes) = bytes.split_first_chunk().ok_or(CUT)?;
            (Some(u32::from_le_bytes(*length) as usize), bytes)
        }
        DELETE => (None, bytes),
        _ => return Err("there is no such change of the store"),
    };
    if !(1..=KEY_BYTES_MAX).contains(&key_len) {
        return Err("a key of the store is empty or longer than 256 bytes");
    }
    if value_len.is_some_and(|length| length > VALUE_BYTES_MAX) {
        return Err("a value for the store is longer than 32 KiB");
    }
    let (key, bytes) = bytes.split_at_checked(key_len).ok_or(CUT)?;
    let (value, bytes) = bytes.split_at_checked(value_len.unwrap_or_default()).ok_or(CUT)?;
    let key = std::str::from_utf8(key).map_err(|_| "the key is not UTF-8")?;
    Ok((Change { key, value: value_len.map(|_| value) }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [Change<'_>; 2] =
        [Change { key: "a/b", value: Some(b"value") }, Change { key: "é", value: None }];

    fn written(all: &[Change<'_>]) -> Vec<u8> {
        let mut bytes = Changes::default();
        assert!(all.iter().all(|change| bytes.add(change)));
        bytes.as_bytes().to_vec()
    }

    #[test]
    fn damage_ends_the_changes_with_a_reason() {
        let whole = written(&TWO);
        let read: Result<Vec<_>, _> = changes(&whole).collect();
        assert_eq!(read, Ok(TWO.to_vec()));
        let boundary = written(&TWO[..1]).len();
        for length in (1..whole.len()).filter(|length| *length != boundary) {
            assert!(changes(&whole[..length]).any(|it| it.is_err()), "cut to {length}");
        }
        let check = |bytes: &[u8], why| assert_eq!(changes(bytes).collect::<Vec<_>>(), [Err(why)]);
        check(&[9, 1, 0, b'k'], "there is no such change of the store");
        check(&[DELETE, 1, 0, 0xff], "the key is not UTF-8");
        check(&[DELETE, 0, 0], "a key of the store is empty or longer than 256 bytes");
        check(&[PUT, 1, 0, 1, 0x80, 0, 0, b'k'], "a value for the store is longer than 32 KiB");
    }

    #[test]
    fn what_the_store_would_refuse_is_not_added() {
        let mut changes = Changes::default();
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        for (key, value) in [("", &b"v"[..]), (long.as_str(), b"v"), ("k", &[0; VALUE_BYTES_MAX + 1])] {
            assert!(!changes.add(&Change { key, value: Some(value) }) && changes.is_empty());
        }
        let half = Change { key: "k", value: Some(&[0; CHANGES_BYTES_MAX / 2]) };
        assert!(changes.add(&half) && !changes.add(&half));
        assert!(changes.add(&Change { key: "k", value: None }), "there is room for a short one");
    }
}
