//! Reads and writes frames. Every length is checked.
//!
//! Reading never copies a body and never allocates.

use crate::header::{HEADER_LEN, Header, MAX_FRAME_LEN};
use flow::DatapathId;
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A malformed frame. It is the writer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Bytes from the start of the frame.
    pub offset: usize,
    /// What is wrong at this offset.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed frame at offset {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for Malformed {}

/// A frame with a valid header: its length field is the length of the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The header.
    pub header: &'a Header,
    /// The body.
    pub body: &'a [u8],
    /// The whole frame.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the header. The bytes must be exactly one frame.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = Header::ref_from_prefix(bytes)
            .map_err(|_| Malformed { offset: 0, reason: "it is shorter than a header" })?;
        if header.length.get() as usize != bytes.len() || bytes.len() > MAX_FRAME_LEN {
            return Err(Malformed { offset: 4, reason: "its length differs from its length field" });
        }
        Ok(Frame { header, body, bytes })
    }

    /// Splits the first frame from a sequence of frames.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (header, _) = Header::ref_from_prefix(bytes)
            .map_err(|_| Malformed { offset: 0, reason: "it is shorter than a header" })?;
        let length = header.length.get() as usize;
        if length < HEADER_LEN || length > bytes.len() {
            return Err(Malformed { offset: 4, reason: "its length field exceeds the buffer" });
        }
        let (first, rest) = bytes.split_at(length);
        Ok((Frame::read(first)?, rest))
    }

    /// The switch of the frame.
    #[inline]
    pub fn datapath(&self) -> DatapathId {
        DatapathId(self.header.datapath.get())
    }
}

/// Reads a body from front to back.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(frame: &Frame<'a>) -> Self {
        Reader { rest: frame.body, offset: HEADER_LEN }
    }

    #[inline]
    pub(crate) fn fixed<T>(&mut self) -> Result<&'a T, Malformed>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let (fixed, rest) = T::ref_from_prefix(self.rest)
            .map_err(|_| Malformed { offset: self.offset, reason: "the body is too short for its kind" })?;
        self.rest = rest;
        self.offset += size_of::<T>();
        Ok(fixed)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed { offset: self.offset, reason: "a part is longer than the rest of the body" })?;
        self.rest = rest;
        self.offset += length;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let offset = self.offset;
        std::str::from_utf8(self.bytes(length)?)
            .map_err(|_| Malformed { offset, reason: "a text is not UTF-8" })
    }

    #[inline]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn rest_as_text(self) -> Result<&'a str, Malformed> {
        let offset = self.offset;
        std::str::from_utf8(self.rest).map_err(|_| Malformed { offset, reason: "a text is not UTF-8" })
    }
}

/// Appends one frame to `out`: header, fixed part, then the parts in order.
///
/// Returns `false` and appends nothing if the frame is longer than [`MAX_FRAME_LEN`].
#[inline]
pub(crate) fn write<T>(out: &mut Vec<u8>, mut header: Header, fixed: &T, parts: &[&[u8]]) -> bool
where
    T: IntoBytes + Immutable,
{
    let length = HEADER_LEN + size_of::<T>() + parts.iter().map(|part| part.len()).sum::<usize>();
    if length > MAX_FRAME_LEN {
        return false;
    }
    // Checked above: the length fits in 32 bits.
    header.length = (length as u32).into();
    out.reserve(length);
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(fixed.as_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    true
}

/// As [`write`], for a frame with a fixed part of 24 bytes and a first part of eight bytes. It copies all but the second part at once, and returns
/// the length of the frame.
#[inline(always)]
pub(crate) fn write_with_eight<T>(
    out: &mut Vec<u8>,
    mut header: Header,
    fixed: &T,
    eight: &[u8; 8],
    rest: &[u8],
) -> Option<usize>
where
    T: IntoBytes + Immutable,
{
    const FIXED_END: usize = HEADER_LEN + 24;
    const { assert!(size_of::<T>() == 24) };
    let length = FIXED_END + eight.len() + rest.len();
    if length > MAX_FRAME_LEN {
        return None;
    }
    // Checked above: the length fits in 32 bits.
    header.length = (length as u32).into();
    let mut head = [0; FIXED_END + 8];
    head[..HEADER_LEN].copy_from_slice(header.as_bytes());
    head[HEADER_LEN..FIXED_END].copy_from_slice(fixed.as_bytes());
    head[FIXED_END..].copy_from_slice(eight);
    out.reserve(length);
    out.extend_from_slice(&head);
    out.extend_from_slice(rest);
    Some(length)
}
