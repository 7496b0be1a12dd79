//! A [`Message`] to bytes.
//!
//! Writes a complete message or nothing. What a version cannot express is refused with the reason, never changed. Only
//! information that a version has no place for and that has no effect is left out, such as the table of a 1.0
//! packet-in.

use crate::connection::{write_error, write_hello};
use crate::decode::{TYPE_ERROR, TYPE_HELLO};
use crate::error::Unwritable;
use crate::header::Header;
use crate::message::{Body, Message};
use crate::version::Version;
use crate::wire::Writer;
use crate::{v10, v13};

/// The longest message: its length is 16 bits wide.
pub const MAX_MESSAGE_LEN: usize = 65535;

impl Message {
    /// Appends the message's bytes to `out`.
    ///
    /// # Errors
    /// This version cannot express the message, or the message is longer than [`MAX_MESSAGE_LEN`]. Nothing is appended
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
            (body, _) => v13::write(body, out),
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

/// Appends a header and the output of `write_body`, or nothing.
#[inline]
pub(crate) fn write_message(
    version: Version,
    kind: u8,
    xid: u32,
    out: &mut Vec<u8>,
    write_body: impl FnOnce(&mut Writer<'_>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    let start = out.len();
    out.extend_from_slice(&Header { version, kind, length: 0, xid }.to_bytes());
    let mut written = write_body(&mut Writer { out });
    let length = out.len() - start;
    match u16::try_from(length) {
        Ok(length) => out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes()),
        Err(_) if written.is_ok() => {
            let why = format!("{length} bytes are more than a message's {MAX_MESSAGE_LEN}");
            written = Err(Unwritable::new("length", why));
        }
        Err(_) => {}
    }
    if written.is_err() {
        out.truncate(start);
    }
    written
}
