//! What is asked of the node's store, as it lies in a command and in an event: the operations, their bounds and the answers' words.
//!
//! ```text
//!   app ──command STORE (op, key, value)──> kernel ──event STORE (ticket, app, hard limit, op, key, value)──> service
//!   app <──event QUERY_REPLY── kernel <──command QUERY_ANSWER (status, payload)── service
//! ```
//!
//! In: bodies of frames. Out: [`Ask`], whose key and value are within their bounds. It knows nothing of prefixes and capabilities, and keeps
//! nothing.

use crate::frame::{Malformed, Reader};
use crate::header::HEADER_LEN;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Longest key, in bytes of UTF-8: a path of a few names. A longer one is refused as malformed.
pub const KEY_BYTES_MAX: usize = 256;

/// Longest value, in bytes: several of them fit into the ring by which the service hears of them, so that one does not hold up all others. A
/// longer one is refused as malformed; who has more puts it under several keys.
pub const VALUE_BYTES_MAX: usize = 32 << 10;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Give the value of a key.
    Get = 0,
    /// Keep a value under a key, in place of what is there.
    Put = 1,
    /// Take a key out.
    Delete = 2,
    /// Give the keys that begin with this one and come after the value.
    List = 3,
}

impl Op {
    /// The operation with this number.
    pub const fn from_number(number: u8) -> Option<Op> {
        match number {
            0 => Some(Op::Get),
            1 => Some(Op::Put),
            2 => Some(Op::Delete),
            3 => Some(Op::List),
            _ => None,
        }
    }

    /// Whether it changes what is kept.
    pub const fn writes(self) -> bool {
        matches!(self, Op::Put | Op::Delete)
    }
}

/// The statuses of answers of the store, beside those of every query ([`crate::event::NO_SUCH_SERVICE`] and the others).
pub mod status {
    /// It is done, and on disk; of a get, the payload is the value; of a list, keys ([`super::keys`]), and there are no more.
    pub const DONE: u16 = 0;
    /// There is no such key.
    pub const NOT_FOUND: u16 = 1;
    /// The app would have more in the store than the hard limit of its quota `store_bytes`. Nothing is changed.
    pub const APP_FULL: u16 = 2;
    /// All apps together would have more in the store than it takes. Nothing is changed.
    pub const STORE_FULL: u16 = 3;
    /// The disk failed, which the node's log says more of. Nothing is changed.
    pub const FAILED: u16 = 4;
    /// Of a list: these are keys, and there are more of them behind the last.
    pub const MORE_KEYS: u16 = 5;
}

/// What an app asks of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// What is to be done.
    pub op: Op,
    /// Which key; of a list, what the keys begin with, which may be nothing.
    pub key: &'a str,
    /// Of a put, what is kept; of a list, the key behind which it begins. Nothing otherwise.
    pub value: &'a [u8],
}

/// What an app asks, as the service hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// To be named in the answer.
    pub ticket: u64,
    /// Who asks, by name.
    pub app: &'a str,
    /// How many bytes it may have in the store.
    pub hard_bytes: u64,
    /// What.
    pub ask: Ask<'a>,
}

/// How many bytes an app has in the store, as the service says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used<'a> {
    /// Which app, by name.
    pub app: &'a str,
    /// Bytes of its keys and values.
    pub bytes: u64,
    /// Grows with each word of one life of the service: words go by several workers, and the last counts.
    pub revision: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AskFixed {
    key_len: U16,
    op: u8,
    reserved: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AskedFixed {
    ticket: U64,
    hard_bytes: U64,
    app_len: U16,
    reserved: [u8; 2],
    ask: AskFixed,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct UsedFixed {
    bytes: U64,
    revision: U64,
}

impl<'a> Ask<'a> {
    pub(crate) fn read(mut body: Reader<'a>) -> Result<Self, Malformed> {
        let fixed: &AskFixed = body.fixed()?;
        Ask::behind(fixed, body)
    }

    fn behind(fixed: &AskFixed, mut body: Reader<'a>) -> Result<Self, Malformed> {
        let wrong = |reason| Malformed { offset: HEADER_LEN, reason };
        let op = Op::from_number(fixed.op).ok_or(wrong("there is no such operation of the store"))?;
        let key = body.text(fixed.key_len.get().into())?;
        let ask = Ask { op, key, value: body.rest() };
        ask.flaw().map_or(Ok(ask), |flaw| Err(wrong(flaw)))
    }

    fn flaw(&self) -> Option<&'static str> {
        let Ask { op, key, value } = *self;
        if key.len() > KEY_BYTES_MAX {
            return Some("a key of the store is longer than 256 bytes");
        }
        if key.is_empty() && op != Op::List {
            return Some("a key of the store is empty");
        }
        match op {
            Op::Put if value.len() > VALUE_BYTES_MAX => Some("a value for the store is longer than 32 KiB"),
            Op::List if value.len() > KEY_BYTES_MAX => Some("a key of the store is longer than 256 bytes"),
            Op::List if std::str::from_utf8(value).is_err() => Some("a text is not UTF-8"),
            Op::Get | Op::Delete if !value.is_empty() => Some("a value stands where there is none"),
            _ => None,
        }
    }

    /// `None` if the key is longer than its length can say.
    pub(crate) fn fixed(&self) -> Option<AskFixed> {
        let key_len = u16::try_from(self.key.len()).ok()?;
        Some(AskFixed { key_len: key_len.into(), op: self.op as u8, reserved: 0 })
    }
}

impl<'a> Asked<'a> {
    pub(crate) fn read(mut body: Reader<'a>) -> Result<Self, Malformed> {
        let fixed: &AskedFixed = body.fixed()?;
        let (ticket, hard_bytes) = (fixed.ticket.get(), fixed.hard_bytes.get());
        let app = body.text(fixed.app_len.get().into())?;
        Ok(Asked { ticket, app, hard_bytes, ask: Ask::behind(&fixed.ask, body)? })
    }

    pub(crate) fn fixed(&self) -> Option<AskedFixed> {
        let app_len = u16::try_from(self.app.len()).ok()?;
        Some(AskedFixed {
            ticket: self.ticket.into(),
            hard_bytes: self.hard_bytes.into(),
            app_len: app_len.into(),
            reserved: [0; 2],
            ask: self.ask.fixed()?,
        })
    }
}

impl<'a> Used<'a> {
    pub(crate) fn read(mut body: Reader<'a>) -> Result<Self, Malformed> {
        let fixed: &UsedFixed = body.fixed()?;
        let (bytes, revision) = (fixed.bytes.get(), fixed.revision.get());
        Ok(Used { app: body.rest_as_text()?, bytes, revision })
    }

    pub(crate) fn fixed(&self) -> UsedFixed {
        UsedFixed { bytes: self.bytes.into(), revision: self.revision.into() }
    }
}

/// Appends a key to the payload of a list's answer.
pub fn push_key(payload: &mut Vec<u8>, key: &str) {
    // A key has 256 bytes at most; nothing longer was ever kept.
    let Ok(length) = u16::try_from(key.len()) else { return };
    payload.extend_from_slice(&length.to_le_bytes());
    payload.extend_from_slice(key.as_bytes());
}

/// The keys in the payload of a list's answer. It ends where something is damaged.
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
    fn each_bound_is_kept_and_what_lies_within_passes() {
        let check = |op, key: &str, value: &[u8], sound: bool| {
            assert_eq!(
                Ask { op, key, value }.flaw().is_none(),
                sound,
                "{op:?} {} {}",
                key.len(),
                value.len()
            );
        };
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        for op in [Op::Get, Op::Delete] {
            check(op, "", b"", false);
            check(op, "k", b"v", false);
            check(op, &long, b"", false);
            check(op, &long[1..], b"", true);
        }
        check(Op::Put, "", b"v", false);
        check(Op::Put, "k", &[0; VALUE_BYTES_MAX + 1], false);
        check(Op::Put, "k", &[0xff; VALUE_BYTES_MAX], true);
        check(Op::List, &long, b"", false);
        check(Op::List, "", long.as_bytes(), false);
        check(Op::List, "", b"\xff", false);
        check(Op::List, "", b"", true);
    }
}
