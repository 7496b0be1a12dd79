//! How many bytes an app has in the node's store, as the service says it.

use crate::frame::{Malformed, Reader};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
pub(crate) struct UsedFixed {
    bytes: U64,
    revision: U64,
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
