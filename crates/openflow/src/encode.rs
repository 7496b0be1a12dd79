//! A [`Message`] to bytes.
//!
//! Writes a complete message or nothing. What a version cannot express is refused with the reason, never changed. Only
//! information that a version has no place for and that has no effect is left out, such as the table of a 1.0
//! packet-in.

use crate::connection::{write_error, write_hello};
use crate::envelope::{TYPE_ERROR, TYPE_HELLO, write_message};
use crate::error::Unwritable;
use crate::message::{Body, Message};
use crate::version::Version;
use crate::{v10, v13};

impl Message {
    /// Appends the message's bytes to `out`.
    ///
    /// # Errors
    /// This version cannot express the message, or the message is longer than [`crate::MAX_MESSAGE_LEN`]. Nothing is appended
    /// then.
    ///
    /// ```
    /// use openflow::{Body, Message, Version};
    /// let mut out = Vec::new();
    /// Message { version: Version::V1_3, xid: 7, body: Body::BarrierRequest }.encode(&mut out).unwrap();
    /// assert_eq!(out, [4, 20, 0, 8, 0, 0, 0, 7]);
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        let Some(kind) = self.body.type_number(self.version) else {
            return Err(Unwritable::new("type", format!("OpenFlow {} has no such message", self.version)));
        };
        write_message(self.version, kind, self.xid, out, |out| match (&self.body, self.version) {
            (Body::Hello(hello), version) => write_hello(version, hello, out),
            (Body::Error(error), version) => write_error(version, error, out),
            (body, Version::V1_0) => v10::write(body, out),
            (body, _) => v13::write(body, self.xid, out),
        })
    }
}

impl Body {
    /// The number of this type of message (`ofp_type`) in a version, or `None` if it has none. A hello and an error
    /// have a number in every version.
    pub const fn type_number(&self, version: Version) -> Option<u8> {
        match self {
            Body::Hello(_) => Some(TYPE_HELLO),
            Body::Error(_) => Some(TYPE_ERROR),
            _ if version.0 == Version::V1_0.0 => v10::type_number(self),
            _ if version.0 == Version::V1_3.0 => Some(v13::type_number(self)),
            _ => None,
        }
    }
}
