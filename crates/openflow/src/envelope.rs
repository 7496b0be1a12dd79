//! What surrounds a message's body: the header, the length, and the message types that all versions share.
//!
//! In: the bytes of one message, or a body to write. Out: its header and a reader of its body, or the bytes with the
//! right length. It never reads or writes a body.

use flow::BadInput;

use crate::error::{BAD_LEN, BAD_TYPE, BAD_VERSION, Unwritable, bad};
use crate::header::{HEADER_LEN, Header};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// OFPT_HELLO, the same number in every version.
pub(crate) const TYPE_HELLO: u8 = 0;
/// OFPT_ERROR, the same number in every version.
pub(crate) const TYPE_ERROR: u8 = 1;

/// The longest message: its length is 16 bits wide.
pub const MAX_MESSAGE_LEN: usize = 65535;

/// The header of exactly one message, and a reader of its body.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Result<(Header, Reader<'_>), BadInput> {
    let header = Header::read(bytes)?;
    if usize::from(header.length) != bytes.len() {
        let message = format!("the header gives {} bytes, but there are {}", header.length, bytes.len());
        return Err(bad(2, "length", BAD_LEN, message));
    }
    Ok((header, Reader::new(&bytes[HEADER_LEN..], HEADER_LEN)))
}

#[cold]
pub(crate) fn not_spoken(version: Version) -> BadInput {
    bad(0, "version", BAD_VERSION, format!("OpenFlow {version} is not supported; 1.0 and 1.3 are"))
}

#[cold]
pub(crate) fn unknown_type(version: Version, kind: u8) -> BadInput {
    bad(1, "type", BAD_TYPE, format!("OpenFlow {version} has no message of type {kind}"))
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

/// Appends a [`Writer`]'s bytes to `out`, or nothing.
pub(crate) fn all_or_nothing(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    let start = out.len();
    let written = write(&mut Writer { out });
    if written.is_err() {
        out.truncate(start);
    }
    written
}
