//! What is said of bytes that do not mean anything: where, which field, and the OpenFlow error to send back.
//!
//! Never holds the bytes themselves, and never decides what happens to the session they came from.

use std::borrow::Cow;
use std::fmt;

/// An OpenFlow error type and code (OpenFlow 1.3.5, 7.5.4), in the numbers of 1.3.
/// Who sends it to a 1.0 switch translates the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// `ofp_error_type`, for example 4 for OFPET_BAD_MATCH.
    pub kind: u16,
    /// The code within that type.
    pub code: u16,
}

/// Input that was refused: damaged, unknown or lying about its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// Bytes from the start of the whole input to the byte that is wrong.
    pub offset: usize,
    /// The field's name as the specification spells it, for example `oxm_length`.
    pub field: &'static str,
    /// The error that the protocol has for this.
    pub error: ErrorCode,
    /// One sentence: what was found and what was expected.
    pub message: Cow<'static, str>,
}

impl BadInput {
    /// The same error seen from a buffer that begins `bytes` before the one that was read.
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
