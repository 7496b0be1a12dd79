//! Why the virtual switch refuses a message: OpenFlow's error, and a sentence for people.
//!
//! In: nothing. Out: values. It never decides what is refused, and never writes a message. The numbers are those of OpenFlow 1.3;
//! [`openflow::error::to_version`] translates them for a tenant of 1.0.

use flow::{BadInput, ErrorCode};
use std::borrow::Cow;
use std::fmt;

/// A refused message of a tenant. Nothing of it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// OpenFlow's error, in the numbers of 1.3.
    pub error: ErrorCode,
    /// One sentence: what was wrong. `explain` shows it; the tenant's controller gets only the numbers.
    pub why: Cow<'static, str>,
}

impl Refusal {
    /// A refusal with this error.
    pub(crate) fn new(error: ErrorCode, why: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { error, why: why.into() }
    }

    /// A packet is to go to a group that the tenant does not have.
    pub(crate) fn no_group(group: u32) -> Refusal {
        Refusal::new(ACTION_OUT_GROUP, format!("the slice has no group {group}"))
    }
}

impl From<BadInput> for Refusal {
    fn from(bad: BadInput) -> Refusal {
        Refusal { error: bad.error, why: bad.to_string().into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {}/{})", self.why, self.error.kind, self.error.code)
    }
}

impl std::error::Error for Refusal {}

const fn code(kind: u16, code: u16) -> ErrorCode {
    ErrorCode { kind, code }
}

/// OFPBRC_BAD_VERSION.
pub(crate) const BAD_VERSION: ErrorCode = code(1, 0);
/// OFPBRC_BAD_TYPE.
pub(crate) const BAD_TYPE: ErrorCode = code(1, 1);
/// OFPBRC_BAD_MULTIPART.
pub(crate) const BAD_MULTIPART: ErrorCode = code(1, 2);
/// OFPBRC_BAD_EXPERIMENTER.
pub(crate) const BAD_EXPERIMENTER: ErrorCode = code(1, 3);
/// OFPBRC_EPERM.
pub(crate) const REQUEST_EPERM: ErrorCode = code(1, 5);
/// OFPBRC_BUFFER_EMPTY.
pub(crate) const BUFFER_EMPTY: ErrorCode = code(1, 7);
/// OFPBRC_BUFFER_UNKNOWN.
pub(crate) const BUFFER_UNKNOWN: ErrorCode = code(1, 8);
/// OFPBRC_BAD_TABLE_ID.
pub(crate) const BAD_TABLE_ID: ErrorCode = code(1, 9);
/// OFPBRC_IS_SLAVE.
pub(crate) const IS_SLAVE: ErrorCode = code(1, 10);
/// OFPBRC_BAD_PORT.
pub(crate) const BAD_PORT: ErrorCode = code(1, 11);
/// OFPBRC_BAD_PACKET.
pub(crate) const BAD_PACKET: ErrorCode = code(1, 12);
/// OFPBRC_MULTIPART_BUFFER_OVERFLOW.
pub(crate) const MULTIPART_OVERFLOW: ErrorCode = code(1, 13);
/// OFPBAC_BAD_TYPE.
pub(crate) const ACTION_TYPE: ErrorCode = code(2, 0);
/// OFPBAC_BAD_EXPERIMENTER.
pub(crate) const ACTION_EXPERIMENTER: ErrorCode = code(2, 2);
/// OFPBAC_BAD_OUT_PORT.
pub(crate) const ACTION_OUT_PORT: ErrorCode = code(2, 4);
/// OFPBAC_BAD_ARGUMENT.
pub(crate) const ACTION_ARGUMENT: ErrorCode = code(2, 5);
/// OFPBAC_EPERM.
pub(crate) const ACTION_EPERM: ErrorCode = code(2, 6);
/// OFPBAC_TOO_MANY.
pub(crate) const ACTION_TOO_MANY: ErrorCode = code(2, 7);
/// OFPBAC_BAD_OUT_GROUP.
pub(crate) const ACTION_OUT_GROUP: ErrorCode = code(2, 9);
/// OFPBAC_BAD_SET_TYPE.
pub(crate) const ACTION_SET_TYPE: ErrorCode = code(2, 13);
/// OFPBIC_UNSUP_INST.
pub(crate) const INSTRUCTION_UNSUPPORTED: ErrorCode = code(3, 1);
/// OFPBIC_BAD_TABLE_ID.
pub(crate) const INSTRUCTION_TABLE_ID: ErrorCode = code(3, 2);
/// OFPBIC_UNSUP_METADATA.
pub(crate) const INSTRUCTION_METADATA: ErrorCode = code(3, 3);
/// OFPBIC_BAD_EXPERIMENTER.
pub(crate) const INSTRUCTION_EXPERIMENTER: ErrorCode = code(3, 5);
/// OFPBMC_BAD_FIELD.
pub(crate) const MATCH_FIELD: ErrorCode = code(4, 6);
/// OFPFMFC_UNKNOWN.
pub(crate) const FLOW_MOD_UNKNOWN: ErrorCode = code(5, 0);
/// OFPFMFC_TABLE_FULL.
pub(crate) const TABLE_FULL: ErrorCode = code(5, 1);
/// OFPFMFC_BAD_TABLE_ID.
pub(crate) const FLOW_MOD_TABLE_ID: ErrorCode = code(5, 2);
/// OFPFMFC_OVERLAP.
pub(crate) const OVERLAP: ErrorCode = code(5, 3);
/// OFPFMFC_EPERM.
pub(crate) const FLOW_MOD_EPERM: ErrorCode = code(5, 4);
/// OFPFMFC_BAD_COMMAND.
pub(crate) const FLOW_MOD_COMMAND: ErrorCode = code(5, 6);
/// OFPFMFC_BAD_FLAGS.
pub(crate) const FLOW_MOD_FLAGS: ErrorCode = code(5, 7);
/// OFPPMFC_BAD_PORT.
pub(crate) const PORT_MOD_PORT: ErrorCode = code(7, 0);
/// OFPPMFC_BAD_HW_ADDR.
pub(crate) const PORT_MOD_HW_ADDR: ErrorCode = code(7, 1);
/// OFPPMFC_BAD_CONFIG.
pub(crate) const PORT_MOD_CONFIG: ErrorCode = code(7, 2);
/// OFPPMFC_BAD_ADVERTISE.
pub(crate) const PORT_MOD_ADVERTISE: ErrorCode = code(7, 3);
/// OFPTMFC_BAD_TABLE.
pub(crate) const TABLE_MOD_TABLE: ErrorCode = code(8, 0);
/// OFPTMFC_BAD_CONFIG.
pub(crate) const TABLE_MOD_CONFIG: ErrorCode = code(8, 1);
/// OFPQOFC_BAD_PORT.
pub(crate) const QUEUE_PORT: ErrorCode = code(9, 0);
/// OFPSCFC_BAD_FLAGS.
pub(crate) const SWITCH_CONFIG_FLAGS: ErrorCode = code(10, 0);
/// OFPRRFC_STALE.
pub(crate) const ROLE_STALE: ErrorCode = code(11, 0);
/// OFPRRFC_BAD_ROLE.
pub(crate) const ROLE_BAD: ErrorCode = code(11, 2);
/// OFPTFFC_EPERM.
pub(crate) const TABLE_FEATURES_EPERM: ErrorCode = code(13, 5);
/// OFPGMFC_GROUP_EXISTS.
pub(crate) const GROUP_EXISTS: ErrorCode = code(6, 0);
/// OFPGMFC_INVALID_GROUP.
pub(crate) const GROUP_INVALID: ErrorCode = code(6, 1);
/// OFPGMFC_OUT_OF_GROUPS.
pub(crate) const GROUP_OUT_OF_GROUPS: ErrorCode = code(6, 3);
/// OFPGMFC_OUT_OF_BUCKETS.
pub(crate) const GROUP_OUT_OF_BUCKETS: ErrorCode = code(6, 4);
/// OFPGMFC_CHAINING_UNSUPPORTED.
pub(crate) const GROUP_CHAINING: ErrorCode = code(6, 5);
/// OFPGMFC_UNKNOWN_GROUP.
pub(crate) const GROUP_UNKNOWN: ErrorCode = code(6, 8);
/// OFPGMFC_BAD_TYPE.
pub(crate) const GROUP_TYPE: ErrorCode = code(6, 10);
/// OFPGMFC_BAD_COMMAND.
pub(crate) const GROUP_COMMAND: ErrorCode = code(6, 11);
/// OFPGMFC_BAD_BUCKET.
pub(crate) const GROUP_BUCKET: ErrorCode = code(6, 12);
/// OFPGMFC_BAD_WATCH.
pub(crate) const GROUP_WATCH: ErrorCode = code(6, 13);
/// OFPMMFC_METER_EXISTS.
pub(crate) const METER_EXISTS: ErrorCode = code(12, 1);
/// OFPMMFC_INVALID_METER.
pub(crate) const METER_INVALID: ErrorCode = code(12, 2);
/// OFPMMFC_UNKNOWN_METER.
pub(crate) const METER_UNKNOWN: ErrorCode = code(12, 3);
/// OFPMMFC_BAD_COMMAND.
pub(crate) const METER_COMMAND: ErrorCode = code(12, 4);
/// OFPMMFC_BAD_BAND.
pub(crate) const METER_BAND: ErrorCode = code(12, 8);
/// OFPFMFC_BAD_TIMEOUT. For a controller of 1.0 it is OFPFMFC_BAD_EMERG_TIMEOUT, of which the translation of all errors knows nothing.
pub(crate) const FLOW_MOD_TIMEOUT: ErrorCode = code(5, 5);
/// The same in 1.0.
pub(crate) const EMERGENCY_TIMEOUT_V10: ErrorCode = code(3, 3);
/// OFPMMFC_OUT_OF_METERS.
pub(crate) const METER_OUT_OF_METERS: ErrorCode = code(12, 10);
/// OFPMMFC_OUT_OF_BANDS.
pub(crate) const METER_OUT_OF_BANDS: ErrorCode = code(12, 11);
