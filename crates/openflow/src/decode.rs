//! Bytes to a [`Message`].
//!
//! Takes exactly one message; [`crate::frame_len`] cuts a stream. For any bytes, it never panics, never loops, and
//! allocates at most a small multiple of the input.

use flow::BadInput;

use crate::connection::{read_error, read_hello};
use crate::envelope::{TYPE_ERROR, TYPE_HELLO, not_spoken, split};
use crate::message::{Body, Message};
use crate::version::Version;
use crate::{v10, v13};

impl Message {
    /// Reads one message.
    ///
    /// A hello and an error can be read in any version, because they serve to find a common version. Other messages
    /// must be of 1.0 or 1.3.
    ///
    /// # Errors
    /// The place of the fault, and the OpenFlow error to send back (1.3.5, 7.5.4). OFPBRC_BAD_LEN: `bytes` has another
    /// length than the header says, or a part does not fit. OFPBRC_BAD_TYPE: the type does not exist in this version.
    /// Also OFPBRC_BAD_VERSION, OFPBRC_BAD_MULTIPART, and the errors of matches, actions, instructions, groups and
    /// meters.
    ///
    /// ```
    /// use openflow::{Body, Message};
    /// let message = Message::decode(&[4, 20, 0, 8, 0, 0, 0, 7]).unwrap();
    /// assert_eq!((message.xid, message.body), (7, Body::BarrierRequest));
    /// let refused = Message::decode(&[1, 24, 0, 8, 0, 0, 0, 7]).unwrap_err();
    /// assert_eq!((refused.offset, refused.field, refused.error.code), (1, "type", 1));
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Message, BadInput> {
        let (header, body) = split(bytes)?;
        let version = header.version;
        let body = match (header.kind, version) {
            (TYPE_HELLO, _) => Body::Hello(read_hello(version, body)?),
            (TYPE_ERROR, _) => Body::Error(read_error(version, body)?),
            (kind, Version::V1_0) => v10::read(kind, body)?,
            (kind, Version::V1_3) => v13::read(kind, header.xid, body)?,
            _ => return Err(not_spoken(version)),
        };
        Ok(Message { version, xid: header.xid, body })
    }
}
