//! The error for malformed bytes: the offset, the field, and the OpenFlow error to send back.
//!
//! Never holds the bytes, and never decides what happens to the session.

use std::borrow::Cow;
use std::fmt;

/// An OpenFlow error type and code (OpenFlow 1.3.5, 7.5.4), in the numbers of 1.3. For a 1.0 switch the sender
/// translates the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// `ofp_error_type`, for example 4 for OFPET_BAD_MATCH.
    pub kind: u16,
    /// The code within that type.
    pub code: u16,
}

/// Input that was refused: damaged, unknown or with a wrong length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// Bytes from the start of the whole input to the byte that is wrong.
    pub offset: usize,
    /// The field's name as the specification spells it, for example `oxm_length`.
    pub field: &'static str,
    /// The error that the protocol defines for this.
    pub error: ErrorCode,
    /// One sentence: what was found and what was expected.
    pub message: Cow<'static, str>,
}

impl BadInput {
    /// The same error with an offset from the start of a buffer that begins `bytes` earlier.
    pub fn shifted(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}: {}", self.field, self.offset, self.message)
    }
}

impl std::error::Error for BadInput {}
