//! The specification's names for message types and errors.
//!
//! In: numbers. Out: names, and the reverse. Never decides anything about a message.

use crate::error::bundle_failed;
use crate::message::{Body, ONF_EXPERIMENTER, ReplyBody, RequestBody};
use crate::version::Version;

/// One `ofp_error_type`: its name, the prefix of its codes' names, and those names from code 0 on.
struct ErrorType {
    number: u16,
    name: &'static str,
    prefix: &'static str,
    codes: &'static [&'static str],
}

const fn error_type(
    number: u16,
    name: &'static str,
    prefix: &'static str,
    codes: &'static [&'static str],
) -> ErrorType {
    ErrorType { number, name, prefix, codes }
}

/// OpenFlow 1.3.5, 7.5.4. Experimenters define the codes of OFPET_EXPERIMENTER.
const ERRORS_1_3: [ErrorType; 15] = [
    error_type(0, "HELLO_FAILED", "OFPHFC", &["INCOMPATIBLE", "EPERM"]),
    error_type(
        1,
        "BAD_REQUEST",
        "OFPBRC",
        &[
            "BAD_VERSION",
            "BAD_TYPE",
            "BAD_MULTIPART",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "EPERM",
            "BAD_LEN",
            "BUFFER_EMPTY",
            "BUFFER_UNKNOWN",
            "BAD_TABLE_ID",
            "IS_SLAVE",
            "BAD_PORT",
            "BAD_PACKET",
            "MULTIPART_BUFFER_OVERFLOW",
        ],
    ),
    error_type(
        2,
        "BAD_ACTION",
        "OFPBAC",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "BAD_OUT_PORT",
            "BAD_ARGUMENT",
            "EPERM",
            "TOO_MANY",
            "BAD_QUEUE",
            "BAD_OUT_GROUP",
            "MATCH_INCONSISTENT",
            "UNSUPPORTED_ORDER",
            "BAD_TAG",
            "BAD_SET_TYPE",
            "BAD_SET_LEN",
            "BAD_SET_ARGUMENT",
        ],
    ),
    error_type(
        3,
        "BAD_INSTRUCTION",
        "OFPBIC",
        &[
            "UNKNOWN_INST",
            "UNSUP_INST",
            "BAD_TABLE_ID",
            "UNSUP_METADATA",
            "UNSUP_METADATA_MASK",
            "BAD_EXPERIMENTER",
            "BAD_EXP_TYPE",
            "BAD_LEN",
            "EPERM",
        ],
    ),
    error_type(
        4,
        "BAD_MATCH",
        "OFPBMC",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_TAG",
            "BAD_DL_ADDR_MASK",
            "BAD_NW_ADDR_MASK",
            "BAD_WILDCARDS",
            "BAD_FIELD",
            "BAD_VALUE",
            "BAD_MASK",
            "BAD_PREREQ",
            "DUP_FIELD",
            "EPERM",
        ],
    ),
    error_type(
        5,
        "FLOW_MOD_FAILED",
        "OFPFMFC",
        &[
            "UNKNOWN",
            "TABLE_FULL",
            "BAD_TABLE_ID",
            "OVERLAP",
            "EPERM",
            "BAD_TIMEOUT",
            "BAD_COMMAND",
            "BAD_FLAGS",
        ],
    ),
    error_type(
        6,
        "GROUP_MOD_FAILED",
        "OFPGMFC",
        &[
            "GROUP_EXISTS",
            "INVALID_GROUP",
            "WEIGHT_UNSUPPORTED",
            "OUT_OF_GROUPS",
            "OUT_OF_BUCKETS",
            "CHAINING_UNSUPPORTED",
            "WATCH_UNSUPPORTED",
            "LOOP",
            "UNKNOWN_GROUP",
            "CHAINED_GROUP",
            "BAD_TYPE",
            "BAD_COMMAND",
            "BAD_BUCKET",
            "BAD_WATCH",
            "EPERM",
        ],
    ),
    error_type(
        7,
        "PORT_MOD_FAILED",
        "OFPPMFC",
        &["BAD_PORT", "BAD_HW_ADDR", "BAD_CONFIG", "BAD_ADVERTISE", "EPERM"],
    ),
    error_type(8, "TABLE_MOD_FAILED", "OFPTMFC", &["BAD_TABLE", "BAD_CONFIG", "EPERM"]),
    error_type(9, "QUEUE_OP_FAILED", "OFPQOFC", &["BAD_PORT", "BAD_QUEUE", "EPERM"]),
    error_type(10, "SWITCH_CONFIG_FAILED", "OFPSCFC", &["BAD_FLAGS", "BAD_LEN", "EPERM"]),
    error_type(11, "ROLE_REQUEST_FAILED", "OFPRRFC", &["STALE", "UNSUP", "BAD_ROLE"]),
    error_type(
        12,
        "METER_MOD_FAILED",
        "OFPMMFC",
        &[
            "UNKNOWN",
            "METER_EXISTS",
            "INVALID_METER",
            "UNKNOWN_METER",
            "BAD_COMMAND",
            "BAD_FLAGS",
            "BAD_RATE",
            "BAD_BURST",
            "BAD_BAND",
            "BAD_BAND_VALUE",
            "OUT_OF_METERS",
            "OUT_OF_BANDS",
        ],
    ),
    error_type(
        13,
        "TABLE_FEATURES_FAILED",
        "OFPTFFC",
        &["BAD_TABLE", "BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"],
    ),
    error_type(0xffff, "EXPERIMENTER", "", &[]),
];

/// OpenFlow 1.0, 5.4.4.
const ERRORS_1_0: [ErrorType; 6] = [
    error_type(0, "HELLO_FAILED", "OFPHFC", &["INCOMPATIBLE", "EPERM"]),
    error_type(
        1,
        "BAD_REQUEST",
        "OFPBRC",
        &[
            "BAD_VERSION",
            "BAD_TYPE",
            "BAD_STAT",
            "BAD_VENDOR",
            "BAD_SUBTYPE",
            "EPERM",
            "BAD_LEN",
            "BUFFER_EMPTY",
            "BUFFER_UNKNOWN",
        ],
    ),
    error_type(
        2,
        "BAD_ACTION",
        "OFPBAC",
        &[
            "BAD_TYPE",
            "BAD_LEN",
            "BAD_VENDOR",
            "BAD_VENDOR_TYPE",
            "BAD_OUT_PORT",
            "BAD_ARGUMENT",
            "EPERM",
            "TOO_MANY",
            "BAD_QUEUE",
        ],
    ),
    error_type(
        3,
        "FLOW_MOD_FAILED",
        "OFPFMFC",
        &["ALL_TABLES_FULL", "OVERLAP", "EPERM", "BAD_EMERG_TIMEOUT", "BAD_COMMAND", "UNSUPPORTED"],
    ),
    error_type(4, "PORT_MOD_FAILED", "OFPPMFC", &["BAD_PORT", "BAD_HW_ADDR"]),
    error_type(5, "QUEUE_OP_FAILED", "OFPQOFC", &["BAD_PORT", "BAD_QUEUE", "EPERM"]),
];

/// Hello failures are the same in every version. For other errors, all versions except 1.0 use the names of 1.3.
fn errors(version: Version) -> &'static [ErrorType] {
    if version == Version::V1_0 { &ERRORS_1_0 } else { &ERRORS_1_3 }
}

fn find(version: Version, kind: u16) -> Option<&'static ErrorType> {
    errors(version).iter().find(|row| row.number == kind)
}

/// The name of an error type (`OFPET_BAD_REQUEST`), or `None` if the version has no such number.
pub fn error_type_name(version: Version, kind: u16) -> Option<String> {
    find(version, kind).map(|row| format!("OFPET_{}", row.name))
}

/// The name of a code within its type (`OFPBRC_BAD_LEN`), or `None` if the version has no such number.
pub fn error_code_name(version: Version, kind: u16, code: u16) -> Option<String> {
    let row = find(version, kind)?;
    row.codes.get(usize::from(code)).map(|name| format!("{}_{name}", row.prefix))
}

/// The number of an error type's name.
pub fn error_type_number(version: Version, name: &str) -> Option<u16> {
    let bare = name.strip_prefix("OFPET_")?;
    errors(version).iter().find(|row| row.name == bare).map(|row| row.number)
}

/// The type and the code for a code's name. Its prefix determines the type.
pub fn error_code_number(version: Version, name: &str) -> Option<(u16, u16)> {
    let (prefix, bare) = name.split_once('_')?;
    let row = errors(version).iter().find(|row| row.prefix == prefix)?;
    let code = row.codes.iter().position(|there| *there == bare)?;
    Some((row.number, u16::try_from(code).ok()?))
}

/// The codes of OFPET_BUNDLE_FAILED (1.4.0, 7.5.4.18), which the ONF's errors of 1.3 have from 2300 on.
const BUNDLE_ERRORS: [&str; 16] = [
    "OFPBFC_UNKNOWN",
    "OFPBFC_EPERM",
    "OFPBFC_BAD_ID",
    "OFPBFC_BUNDLE_EXIST",
    "OFPBFC_BUNDLE_CLOSED",
    "OFPBFC_OUT_OF_BUNDLES",
    "OFPBFC_BAD_TYPE",
    "OFPBFC_BAD_FLAGS",
    "OFPBFC_MSG_BAD_LEN",
    "OFPBFC_MSG_BAD_XID",
    "OFPBFC_MSG_UNSUP",
    "OFPBFC_MSG_CONFLICT",
    "OFPBFC_MSG_TOO_MANY",
    "OFPBFC_MSG_FAILED",
    "OFPBFC_TIMEOUT",
    "OFPBFC_BUNDLE_IN_PROGRESS",
];

/// The name of an experimenter's error in 1.3 (`OFPBFC_BAD_ID`), or `None` if it is none of the ONF's about bundles.
pub fn experimenter_error_name(experimenter: u32, code: u16) -> Option<&'static str> {
    let code = code.checked_sub(bundle_failed(0).code).filter(|_| experimenter == ONF_EXPERIMENTER)?;
    BUNDLE_ERRORS.get(usize::from(code)).copied()
}

/// The experimenter and the number of such an error's name.
pub fn experimenter_error_number(name: &str) -> Option<(u32, u16)> {
    let code = (0..).zip(BUNDLE_ERRORS).find(|(_, there)| *there == name)?.0;
    Some((ONF_EXPERIMENTER, bundle_failed(code).code))
}

/// The types of messages of 1.3 by number (1.3.5, 7.1).
const TYPES_1_3: [&str; 30] = [
    "OFPT_HELLO",
    "OFPT_ERROR",
    "OFPT_ECHO_REQUEST",
    "OFPT_ECHO_REPLY",
    "OFPT_EXPERIMENTER",
    "OFPT_FEATURES_REQUEST",
    "OFPT_FEATURES_REPLY",
    "OFPT_GET_CONFIG_REQUEST",
    "OFPT_GET_CONFIG_REPLY",
    "OFPT_SET_CONFIG",
    "OFPT_PACKET_IN",
    "OFPT_FLOW_REMOVED",
    "OFPT_PORT_STATUS",
    "OFPT_PACKET_OUT",
    "OFPT_FLOW_MOD",
    "OFPT_GROUP_MOD",
    "OFPT_PORT_MOD",
    "OFPT_TABLE_MOD",
    "OFPT_MULTIPART_REQUEST",
    "OFPT_MULTIPART_REPLY",
    "OFPT_BARRIER_REQUEST",
    "OFPT_BARRIER_REPLY",
    "OFPT_QUEUE_GET_CONFIG_REQUEST",
    "OFPT_QUEUE_GET_CONFIG_REPLY",
    "OFPT_ROLE_REQUEST",
    "OFPT_ROLE_REPLY",
    "OFPT_GET_ASYNC_REQUEST",
    "OFPT_GET_ASYNC_REPLY",
    "OFPT_SET_ASYNC",
    "OFPT_METER_MOD",
];

/// The types of messages of 1.0 by number (5.1).
const TYPES_1_0: [&str; 22] = [
    "OFPT_HELLO",
    "OFPT_ERROR",
    "OFPT_ECHO_REQUEST",
    "OFPT_ECHO_REPLY",
    "OFPT_VENDOR",
    "OFPT_FEATURES_REQUEST",
    "OFPT_FEATURES_REPLY",
    "OFPT_GET_CONFIG_REQUEST",
    "OFPT_GET_CONFIG_REPLY",
    "OFPT_SET_CONFIG",
    "OFPT_PACKET_IN",
    "OFPT_FLOW_REMOVED",
    "OFPT_PORT_STATUS",
    "OFPT_PACKET_OUT",
    "OFPT_FLOW_MOD",
    "OFPT_PORT_MOD",
    "OFPT_STATS_REQUEST",
    "OFPT_STATS_REPLY",
    "OFPT_BARRIER_REQUEST",
    "OFPT_BARRIER_REPLY",
    "OFPT_QUEUE_GET_CONFIG_REQUEST",
    "OFPT_QUEUE_GET_CONFIG_REPLY",
];

/// The specification's name for a type of message (`OFPT_FLOW_MOD`), or `None` if the version has no such number.
pub fn message_type_name(version: Version, number: u8) -> Option<&'static str> {
    let types: &[&str] = match version {
        Version::V1_0 => &TYPES_1_0,
        Version::V1_3 => &TYPES_1_3,
        _ => &[],
    };
    types.get(usize::from(number)).copied()
}

impl Body {
    /// The keyword for this type of message in JSON: the name in 1.3 without OFPT_, in lower case. Statistics and
    /// vendor messages of 1.0 have the same keywords.
    pub const fn type_word(&self) -> &'static str {
        match self {
            Body::Hello(_) => "hello",
            Body::Error(_) => "error",
            Body::EchoRequest(_) => "echo_request",
            Body::EchoReply(_) => "echo_reply",
            Body::Experimenter(_) => "experimenter",
            Body::FeaturesRequest => "features_request",
            Body::FeaturesReply(_) => "features_reply",
            Body::GetConfigRequest => "get_config_request",
            Body::GetConfigReply(_) => "get_config_reply",
            Body::SetConfig(_) => "set_config",
            Body::PacketIn(_) => "packet_in",
            Body::FlowRemoved(_) => "flow_removed",
            Body::PortStatus(_) => "port_status",
            Body::PacketOut(_) => "packet_out",
            Body::FlowMod(_) => "flow_mod",
            Body::GroupMod(_) => "group_mod",
            Body::PortMod(_) => "port_mod",
            Body::TableMod(_) => "table_mod",
            Body::MultipartRequest(_) => "multipart_request",
            Body::MultipartReply(_) => "multipart_reply",
            Body::BarrierRequest => "barrier_request",
            Body::BarrierReply => "barrier_reply",
            Body::QueueGetConfigRequest(_) => "queue_get_config_request",
            Body::QueueGetConfigReply(_) => "queue_get_config_reply",
            Body::RoleRequest(_) => "role_request",
            Body::RoleReply(_) => "role_reply",
            Body::GetAsyncRequest => "get_async_request",
            Body::GetAsyncReply(_) => "get_async_reply",
            Body::SetAsync(_) => "set_async",
            Body::MeterMod(_) => "meter_mod",
            Body::BundleControl(_) => "bundle_control",
            Body::BundleAdd(_) => "bundle_add_message",
        }
    }
}

impl RequestBody {
    /// The keyword for this type of request in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            RequestBody::Desc => "desc",
            RequestBody::Flow(_) => "flow",
            RequestBody::Aggregate(_) => "aggregate",
            RequestBody::Table => "table",
            RequestBody::PortStats(_) => "port_stats",
            RequestBody::Queue { .. } => "queue",
            RequestBody::Group(_) => "group",
            RequestBody::GroupDesc => "group_desc",
            RequestBody::GroupFeatures => "group_features",
            RequestBody::Meter(_) => "meter",
            RequestBody::MeterConfig(_) => "meter_config",
            RequestBody::MeterFeatures => "meter_features",
            RequestBody::TableFeatures(_) => "table_features",
            RequestBody::PortDesc => "port_desc",
            RequestBody::Experimenter(_) => "experimenter",
        }
    }
}

impl ReplyBody {
    /// The keyword for this type of reply in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            ReplyBody::Desc(_) => "desc",
            ReplyBody::Flow(_) => "flow",
            ReplyBody::Aggregate(_) => "aggregate",
            ReplyBody::Table(_) => "table",
            ReplyBody::PortStats(_) => "port_stats",
            ReplyBody::Queue(_) => "queue",
            ReplyBody::Group(_) => "group",
            ReplyBody::GroupDesc(_) => "group_desc",
            ReplyBody::GroupFeatures(_) => "group_features",
            ReplyBody::Meter(_) => "meter",
            ReplyBody::MeterConfig(_) => "meter_config",
            ReplyBody::MeterFeatures(_) => "meter_features",
            ReplyBody::TableFeatures(_) => "table_features",
            ReplyBody::PortDesc(_) => "port_desc",
            ReplyBody::Experimenter(_) => "experimenter",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_nobody_gave_a_name_have_none() {
        assert_eq!(error_type_name(Version::V1_0, 6), None);
        assert_eq!(error_code_name(Version::V1_3, 1, 14), None);
        assert_eq!(error_code_number(Version::V1_3, "OFPBRC"), None);
        assert_eq!(error_code_number(Version::V1_0, "OFPBRC_BAD_PORT"), None);
        assert_eq!(error_type_number(Version::V1_3, "BAD_REQUEST"), None);
    }

    #[test]
    fn every_name_leads_back_to_its_number() {
        for version in [Version::V1_0, Version::V1_3] {
            for row in errors(version) {
                let name = error_type_name(version, row.number).unwrap();
                assert_eq!(error_type_number(version, &name), Some(row.number));
                for code in 0..row.codes.len() as u16 {
                    let name = error_code_name(version, row.number, code).unwrap();
                    assert_eq!(error_code_number(version, &name), Some((row.number, code)));
                }
            }
        }
    }

    #[test]
    fn errors_about_bundles_have_the_names_of_1_4_and_those_of_other_experimenters_have_none() {
        assert_eq!(experimenter_error_name(ONF_EXPERIMENTER, 2299), None);
        assert_eq!(experimenter_error_name(ONF_EXPERIMENTER, 2316), None);
        assert_eq!(experimenter_error_name(0x2320, 2302), None);
        assert_eq!(experimenter_error_name(ONF_EXPERIMENTER, 2302), Some("OFPBFC_BAD_ID"));
        for code in 2300..2316 {
            let name = experimenter_error_name(ONF_EXPERIMENTER, code).unwrap();
            assert_eq!(experimenter_error_number(name), Some((ONF_EXPERIMENTER, code)));
        }
    }

    #[test]
    fn the_same_number_means_another_error_in_another_version() {
        assert_eq!(error_type_name(Version::V1_0, 3).as_deref(), Some("OFPET_FLOW_MOD_FAILED"));
        assert_eq!(error_type_name(Version::V1_3, 3).as_deref(), Some("OFPET_BAD_INSTRUCTION"));
    }
}
