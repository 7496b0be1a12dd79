//! The switch's errors, and ours.

use flow::ErrorCode;
use openflow::error::{HELLO_INCOMPATIBLE, experimenter_of, from_v10, to_version};
use openflow::message::ErrorMessage;
use openflow::names::{error_code_name, error_type_name, experimenter_error_name};
use openflow::{Body, Message, Version};

/// How much of a peer's sentence goes into a line of the log.
const SENTENCE_LEN: usize = 200;

/// An error's numbers in those of 1.3.
pub fn canonical_code(version: Version, error: &ErrorMessage) -> ErrorCode {
    let code = ErrorCode { kind: error.kind, code: error.code };
    if version == Version::V1_0 { from_v10(code) } else { code }
}

/// An error in words: its type and code by name and, where the specification has a sentence in it, the sentence.
pub fn describe(version: Version, error: &ErrorMessage) -> String {
    let ErrorMessage { kind, code, .. } = *error;
    if let Some(experimenter) = error.experimenter {
        if let Some(name) = experimenter_error_name(experimenter, code) {
            return format!("OFPET_BUNDLE_FAILED, {name}");
        }
        return format!("OFPET_EXPERIMENTER 0x{experimenter:08x}, type {code}");
    }
    let Some(name) = error_type_name(version, kind) else {
        return format!("an error of unknown type {kind}, code {code}");
    };
    let code = error_code_name(version, kind, code).unwrap_or_else(|| format!("code {code}"));
    match sentence(kind, &error.data) {
        Some(sentence) => format!("{name}, {code}: \"{sentence}\""),
        None => format!("{name}, {code}"),
    }
}

/// OFPET_HELLO_FAILED carries a sentence; it is the peer's, so control characters are left out.
fn sentence(kind: u16, data: &[u8]) -> Option<String> {
    if kind != HELLO_INCOMPATIBLE.kind || data.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(&data[..data.len().min(SENTENCE_LEN)]);
    Some(text.chars().filter(|character| !character.is_control()).collect())
}

/// An error of ours, in the numbers of the version in which it goes out.
pub fn error_message(version: Version, xid: u32, error: ErrorCode, data: &[u8]) -> Message {
    let error = to_version(error, version);
    let ErrorCode { kind, code } = error;
    let experimenter = experimenter_of(error);
    Message {
        version,
        xid,
        body: Body::Error(ErrorMessage { kind, code, experimenter, data: data.to_vec() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, kind: u16, code: u16, data: &[u8], expected: &str) {
        let error = ErrorMessage { kind, code, experimenter: None, data: data.to_vec() };
        assert_eq!(describe(version, &error), expected);
    }

    #[test]
    fn an_error_reads_as_the_specification_names_it() {
        check(Version::V1_3, 5, 1, &[0; 64], "OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL");
        check(Version::V1_0, 3, 0, &[0; 64], "OFPET_FLOW_MOD_FAILED, OFPFMFC_ALL_TABLES_FULL");
        check(Version::V1_3, 5, 99, &[], "OFPET_FLOW_MOD_FAILED, code 99");
        check(Version::V1_3, 99, 1, &[], "an error of unknown type 99, code 1");
    }

    #[test]
    fn the_sentence_of_a_failed_hello_is_kept_but_for_control_characters() {
        check(
            Version::V1_3,
            0,
            0,
            b"we speak\n1.5\x1b[0m",
            "OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE: \"we speak1.5[0m\"",
        );
    }
}
