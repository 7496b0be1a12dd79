//! The eight bytes with which every message begins, and cutting a stream into messages.
//!
//! Never reads beyond the header.

use flow::BadInput;

use crate::error::{BAD_LEN, bad};
use crate::version::Version;

/// The length of the header; no message is shorter.
pub const HEADER_LEN: usize = 8;

/// `ofp_header` (1.3.5, 7.1; the same in every version).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the rest of the message.
    pub version: Version,
    /// `ofp_type` in the numbers of that version.
    pub kind: u8,
    /// The length of the whole message in bytes, including the header.
    pub length: u16,
    /// The transaction id.
    pub xid: u32,
}

impl Header {
    /// Reads the first eight bytes. Does not check the version or the type.
    ///
    /// # Errors
    /// OFPBRC_BAD_LEN if there are fewer, or if the length is less than eight.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Header, BadInput> {
        let Some([version, kind, l0, l1, x0, x1, x2, x3]) = bytes.first_chunk() else {
            return Err(cut_off(bytes));
        };
        let header = Header {
            version: Version(*version),
            kind: *kind,
            length: u16::from_be_bytes([*l0, *l1]),
            xid: u32::from_be_bytes([*x0, *x1, *x2, *x3]),
        };
        if usize::from(header.length) < HEADER_LEN { Err(too_short(header.length)) } else { Ok(header) }
    }

    /// The eight bytes.
    #[inline]
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [length_high, length_low] = self.length.to_be_bytes();
        let [a, b, c, d] = self.xid.to_be_bytes();
        [self.version.0, self.kind, length_high, length_low, a, b, c, d]
    }
}

/// The length of the message at the start of `bytes`, the beginning of a stream. `None` if there are too few bytes to
/// tell. The message may be longer than `bytes`.
///
/// # Errors
/// OFPBRC_BAD_LEN if the length is less than eight: the stream cannot be cut from there on.
///
/// ```
/// use openflow::frame_len;
/// assert_eq!(frame_len(&[4, 2, 0]), None);
/// assert_eq!(frame_len(&[4, 2, 0, 12, 0, 0, 0, 1, 9]), Some(Ok(12)));
/// assert!(frame_len(&[4, 2, 0, 7]).unwrap().is_err());
/// ```
#[inline]
pub fn frame_len(bytes: &[u8]) -> Option<Result<usize, BadInput>> {
    let [_, _, high, low, ..] = *bytes else { return None };
    let length = u16::from_be_bytes([high, low]);
    Some(if usize::from(length) < HEADER_LEN { Err(too_short(length)) } else { Ok(usize::from(length)) })
}

/// The error for an incomplete header.
#[cold]
fn cut_off(bytes: &[u8]) -> BadInput {
    let (field, from) = match bytes.len() {
        0 => ("version", 0),
        1 => ("type", 1),
        2 | 3 => ("length", 2),
        _ => ("xid", 4),
    };
    let message = format!("there are {} bytes, and a header has {HEADER_LEN}", bytes.len());
    bad(from, field, BAD_LEN, message)
}

#[cold]
fn too_short(length: u16) -> BadInput {
    bad(2, "length", BAD_LEN, format!("{length} is less than the header's {HEADER_LEN}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_below_eight_is_refused() {
        for length in 0..8 {
            let refused = Header::read(&[4, 0, 0, length, 0, 0, 0, 1]).unwrap_err();
            assert_eq!((refused.offset, refused.field, refused.error), (2, "length", BAD_LEN));
            assert!(frame_len(&[4, 0, 0, length]).unwrap().is_err());
        }
    }

    #[test]
    fn a_header_cut_off_names_the_first_field_that_is_missing() {
        assert_eq!(Header::read(&[]).unwrap_err().field, "version");
        assert_eq!(Header::read(&[4, 0, 0]).unwrap_err().field, "length");
        assert_eq!(Header::read(&[4, 0, 0, 8, 0, 0, 0]).unwrap_err().field, "xid");
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let header = Header { version: Version(9), kind: 200, length: 0x1234, xid: 0xdead_beef };
        assert_eq!(Header::read(&header.to_bytes()), Ok(header));
    }
}
