//! The errors of the protocol: the numbers that readers return, their translation to 1.0, and the error for messages
//! that cannot be written.
//!
//! Readers always return the numbers of 1.3 ([`flow::ErrorCode`]). A session with a 1.0 peer translates them here.
//! Never decides whether an error is sent.

use std::borrow::Cow;
use std::fmt;

use flow::{BadInput, ErrorCode};

use crate::message::ONF_EXPERIMENTER;
use crate::version::Version;

/// OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE: no version in common.
pub const HELLO_INCOMPATIBLE: ErrorCode = ErrorCode { kind: 0, code: 0 };
/// OFPBRC_BAD_VERSION: a version that is not supported.
pub const BAD_VERSION: ErrorCode = ErrorCode { kind: 1, code: 0 };
/// OFPBRC_BAD_TYPE: a type that this version does not have.
pub const BAD_TYPE: ErrorCode = ErrorCode { kind: 1, code: 1 };
/// OFPBRC_BAD_MULTIPART: a type of multipart (1.0: statistics) that this version does not have.
pub const BAD_MULTIPART: ErrorCode = ErrorCode { kind: 1, code: 2 };
/// OFPBRC_BAD_LEN: a wrong length.
pub const BAD_LEN: ErrorCode = ErrorCode { kind: 1, code: 6 };
/// OFPBAC_BAD_TYPE.
pub const BAD_ACTION_TYPE: ErrorCode = ErrorCode { kind: 2, code: 0 };
/// OFPBAC_BAD_LEN.
pub const BAD_ACTION_LEN: ErrorCode = ErrorCode { kind: 2, code: 1 };
/// OFPBMC_BAD_TYPE: a match that is not OXM.
pub const BAD_MATCH_TYPE: ErrorCode = ErrorCode { kind: 4, code: 0 };
/// OFPBMC_BAD_LEN.
pub const BAD_MATCH_LEN: ErrorCode = ErrorCode { kind: 4, code: 1 };
/// OFPBMC_BAD_FIELD.
pub const BAD_MATCH_FIELD: ErrorCode = ErrorCode { kind: 4, code: 6 };
/// OFPFMFC_BAD_COMMAND.
pub const BAD_FLOW_COMMAND: ErrorCode = ErrorCode { kind: 5, code: 6 };
/// OFPFMFC_BAD_FLAGS.
pub const BAD_FLOW_FLAGS: ErrorCode = ErrorCode { kind: 5, code: 7 };
/// OFPGMFC_BAD_TYPE.
pub const BAD_GROUP_TYPE: ErrorCode = ErrorCode { kind: 6, code: 10 };
/// OFPGMFC_BAD_COMMAND.
pub const BAD_GROUP_COMMAND: ErrorCode = ErrorCode { kind: 6, code: 11 };
/// OFPGMFC_BAD_BUCKET.
pub const BAD_BUCKET: ErrorCode = ErrorCode { kind: 6, code: 12 };
/// OFPRRFC_BAD_ROLE.
pub const BAD_ROLE: ErrorCode = ErrorCode { kind: 11, code: 2 };
/// OFPMMFC_BAD_COMMAND.
pub const BAD_METER_COMMAND: ErrorCode = ErrorCode { kind: 12, code: 4 };
/// OFPMMFC_BAD_BAND.
pub const BAD_METER_BAND: ErrorCode = ErrorCode { kind: 12, code: 8 };
/// OFPTFFC_BAD_LEN.
pub const BAD_TABLE_FEATURES_LEN: ErrorCode = ErrorCode { kind: 13, code: 3 };

/// OFPET_EXPERIMENTER. The only errors of an experimenter that this crate makes are those of the ONF's bundles.
pub const EXPERIMENTER: u16 = 0xffff;

/// An error about bundles: in 1.3 it is the ONF's, whose types begin with this one (extension 230; 1.4.0, 7.5.4.18).
pub const fn bundle_failed(code: u16) -> ErrorCode {
    const ONF_BUNDLE_FAILED: u16 = 2300;
    ErrorCode { kind: EXPERIMENTER, code: ONF_BUNDLE_FAILED + code }
}

/// OFPBFC_MSG_BAD_LEN: the length of a bundled message is wrong.
pub const BUNDLED_BAD_LEN: ErrorCode = bundle_failed(8);
/// OFPBFC_MSG_BAD_XID: a bundled message has another transaction id than the message that adds it.
pub const BUNDLED_BAD_XID: ErrorCode = bundle_failed(9);
/// OFPBFC_MSG_UNSUP: a message that cannot be in a bundle.
pub const BUNDLED_UNSUPPORTED: ErrorCode = bundle_failed(10);

/// Whose error it is, if it is of OFPET_EXPERIMENTER.
pub const fn experimenter_of(error: ErrorCode) -> Option<u32> {
    if error.kind == EXPERIMENTER { Some(ONF_EXPERIMENTER) } else { None }
}

/// Translates an error of 1.3 to the closest error of OpenFlow 1.0 (5.4.4).
///
/// Version 1.0 has no errors for matches, instructions, groups, meters and roles. A malformed match or instruction
/// becomes a bad length or an unsupported flow mod. The rest becomes OFPBRC_BAD_TYPE, since a 1.0 peer cannot have
/// requested it.
pub const fn to_v10(error: ErrorCode) -> ErrorCode {
    const FLOW_MOD_UNSUPPORTED: ErrorCode = ErrorCode { kind: 3, code: 5 };
    let (kind, code) = (error.kind, error.code);
    match kind {
        0 => error,
        1 if code <= 8 => error,
        1 => ErrorCode { kind: 1, code: 5 },
        2 if code <= 8 => error,
        2 => ErrorCode { kind: 2, code: 5 },
        3 if code == 7 => BAD_LEN,
        4 if code == 1 => BAD_LEN,
        3 | 4 => FLOW_MOD_UNSUPPORTED,
        5 => match code {
            1 => ErrorCode { kind: 3, code: 0 },
            3 => ErrorCode { kind: 3, code: 1 },
            4 => ErrorCode { kind: 3, code: 2 },
            6 => ErrorCode { kind: 3, code: 4 },
            _ => FLOW_MOD_UNSUPPORTED,
        },
        7 => match code {
            0 | 1 => ErrorCode { kind: 4, code },
            _ => ErrorCode { kind: 4, code: 0 },
        },
        9 if code <= 2 => ErrorCode { kind: 5, code },
        _ => BAD_TYPE,
    }
}

/// Translates an error of 1.0 to 1.3.
///
/// A number that 1.0 does not define stays unchanged.
pub const fn from_v10(error: ErrorCode) -> ErrorCode {
    let code = error.code;
    match error.kind {
        3 => ErrorCode {
            kind: 5,
            code: match code {
                0 => 1,
                1 => 3,
                2 => 4,
                3 => 5,
                4 => 6,
                _ => 0,
            },
        },
        4 => ErrorCode { kind: 7, code },
        5 => ErrorCode { kind: 9, code },
        _ => error,
    }
}

/// Translates an error of 1.3 to the version in which it is sent.
pub const fn to_version(error: ErrorCode, version: Version) -> ErrorCode {
    if version.0 == Version::V1_0.0 { to_v10(error) } else { error }
}

/// Makes the error for refused input.
pub(crate) fn bad(
    offset: usize,
    field: &'static str,
    error: ErrorCode,
    message: impl Into<Cow<'static, str>>,
) -> BadInput {
    BadInput { offset, field, error, message: message.into() }
}

/// A message that its version cannot express. The fault is in the caller who made the message. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The part that cannot be expressed, with the specification's name: `table_id`, `OFPIT_GOTO_TABLE` …
    pub what: &'static str,
    /// One sentence with the reason.
    pub why: Cow<'static, str>,
}

impl Unwritable {
    pub(crate) fn new(what: &'static str, why: impl Into<Cow<'static, str>>) -> Self {
        Unwritable { what, why: why.into() }
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be written: {}", self.what, self.why)
    }
}

impl std::error::Error for Unwritable {}

impl From<flow::canonical::Unwritable> for Unwritable {
    fn from(refused: flow::canonical::Unwritable) -> Self {
        Unwritable { what: refused.what, why: refused.reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: u16, code: u16, expected: (u16, u16)) {
        let error = to_v10(ErrorCode { kind, code });
        assert_eq!((error.kind, error.code), expected, "{kind}/{code}");
    }

    #[test]
    fn what_1_0_cannot_say_becomes_the_nearest_that_it_can() {
        check(1, 13, (1, 5));
        check(2, 15, (2, 5));
        check(3, 7, (1, 6));
        check(4, 1, (1, 6));
        check(4, 9, (3, 5));
        check(5, 5, (3, 5));
        check(6, 0, (1, 1));
        check(12, 3, (1, 1));
        check(0xffff, 7, (1, 1));
    }

    #[test]
    fn what_both_can_say_keeps_its_meaning() {
        check(0, 0, (0, 0));
        check(1, 6, (1, 6));
        check(5, 1, (3, 0));
        check(5, 6, (3, 4));
        check(7, 1, (4, 1));
        check(9, 1, (5, 1));
        for (kind, codes) in [(0, 2), (1, 9), (2, 9), (4, 2), (5, 3)] {
            for code in 0..codes {
                let error = ErrorCode { kind, code };
                assert_eq!(to_v10(from_v10(error)), error, "{kind}/{code}");
            }
        }
    }
}
