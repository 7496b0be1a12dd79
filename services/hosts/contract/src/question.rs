//! The questions to the service `hosts`, as JSON.
//!
//! ```text
//!   {"op":"list","filter":{"at":"of:0000000000000001/3"},"limit":100} <──> Question::List { … }
//! ```
//!
//! In: typed questions, or bytes. Out: the other of the two. It checks what can be checked without the table.

use flow::DatapathId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use view::{Annotations, ConnectPoint, HostId};

/// The longest question in bytes. A longer one is refused before it is parsed.
pub const QUESTION_BYTES_MAX: usize = 32 << 10;

/// The most hosts in one answer: some 300 KiB. A greater limit is cut to it.
pub const PAGE_MAX: usize = 1_000;

/// The hosts in one answer if the question names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// The most addresses of one host, learned or configured. A learned one beyond it is ignored and counted; a question with more is refused.
pub const ADDRESSES_MAX: usize = 16;

/// The most annotations of one host. A change that would give it more is refused.
pub const ANNOTATIONS_MAX: usize = 32;

/// The longest name of an annotation in bytes.
pub const ANNOTATION_NAME_BYTES_MAX: usize = 128;

/// All annotations of one host together, in bytes. With them a record fits into an entry of a stream.
pub const ANNOTATION_BYTES_MAX: usize = 4 << 10;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Question {
    /// The hosts that fit the filter, in the order of their ids. The answer is a [`Page`](crate::Page).
    List {
        /// Which hosts.
        #[serde(default)]
        filter: Filter,
        /// Only hosts behind this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<HostId>,
        /// At most so many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// One host. The answer is a `view::Record`.
    Get {
        /// Which.
        id: HostId,
    },
    /// Configures a host. It neither moves nor expires. The answer is its `view::Record`.
    Add {
        /// Its Ethernet address and VLAN. A learned host with this id becomes the configured one.
        id: HostId,
        /// Where it is.
        at: ConnectPoint,
        /// Its addresses.
        #[serde(default)]
        addresses: Vec<IpAddr>,
        /// Notes.
        #[serde(default)]
        annotations: Annotations,
    },
    /// Changes a host. Place and addresses can be changed of a configured host only. The answer is its `view::Record`.
    Change {
        /// Which.
        id: HostId,
        /// Another place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<ConnectPoint>,
        /// Other addresses, in place of all that it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        addresses: Option<Vec<IpAddr>>,
        /// Notes to set, or with `null` to remove. Others stay.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        annotations: BTreeMap<String, Option<String>>,
    },
    /// Removes a host with its configuration and its notes. If it speaks again, it is learned again.
    Remove {
        /// Which.
        id: HostId,
    },
    /// The last incidents, the oldest first. The answer is a list of [`Incident`](crate::Incident).
    Incidents,
    /// What the service has counted since it started. The answer is [`Counts`](crate::Counts).
    Counts,
}

/// Which hosts a list has. Each field narrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Hosts at this switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<DatapathId>,
    /// Hosts at this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<ConnectPoint>,
    /// Hosts in this VLAN; 0: hosts without a VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Hosts with this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Configured hosts, or learned ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured: Option<bool>,
}

impl Question {
    /// The payload of the query.
    pub fn to_bytes(&self) -> Vec<u8> {
        contract::to_json(self)
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence that names the wrong field. The caller has made a mistake.
    pub fn from_bytes(payload: &[u8]) -> Result<Question, String> {
        let question: Question = contract::from_json(payload, QUESTION_BYTES_MAX)?;
        question.check()?;
        Ok(question)
    }

    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        matches!(self, Question::Add { .. } | Question::Change { .. } | Question::Remove { .. })
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Question::Add { id, addresses, annotations, .. } => {
                check_id(*id)?;
                check_addresses(addresses)?;
                check_annotations(annotations)
            }
            Question::Change { addresses, annotations, .. } => {
                check_addresses(addresses.as_deref().unwrap_or_default())?;
                let set =
                    annotations.iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default()));
                check_annotations(&set.collect())
            }
            _ => Ok(()),
        }
    }
}

fn check_id(id: HostId) -> Result<(), String> {
    match is_of_a_host(id) {
        true => Ok(()),
        false => Err(format!("id: {} is no address of a single host", id.mac)),
    }
}

/// Whether a host can have this Ethernet address: it is not zero, and no address of a group.
pub fn is_of_a_host(id: HostId) -> bool {
    !id.mac.is_multicast() && id.mac.0 != [0; 6]
}

/// Whether a host can have this address: it is not a group's, nobody's, the machine's own, or the limited broadcast.
pub fn is_address_of_a_host(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0);
    !(is_broadcast || address.is_unspecified() || address.is_multicast() || address.is_loopback())
}

fn check_addresses(addresses: &[IpAddr]) -> Result<(), String> {
    if addresses.len() > ADDRESSES_MAX {
        return Err(format!(
            "addresses: {} are too many, a host has at most {ADDRESSES_MAX}",
            addresses.len()
        ));
    }
    match addresses.iter().find(|address| !is_address_of_a_host(address)) {
        None => Ok(()),
        Some(wrong) => Err(format!("addresses: {wrong} is no address of a single host")),
    }
}

/// Whether a host can have these annotations.
///
/// # Errors
/// A sentence that begins with the field.
pub fn check_annotations(annotations: &Annotations) -> Result<(), String> {
    if annotations.len() > ANNOTATIONS_MAX {
        return Err(format!(
            "annotations: {} are too many, a host has at most {ANNOTATIONS_MAX}",
            annotations.len()
        ));
    }
    let is_bad = |name: &&String| {
        name.is_empty() || name.len() > ANNOTATION_NAME_BYTES_MAX || name.chars().any(char::is_control)
    };
    if let Some(name) = annotations.keys().find(is_bad) {
        return Err(format!(
            "annotations: {name:?} is no name: write 1 to {ANNOTATION_NAME_BYTES_MAX} bytes without control characters"
        ));
    }
    let bytes: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
    match bytes <= ANNOTATION_BYTES_MAX {
        true => Ok(()),
        false => {
            Err(format!("annotations: they have {bytes} bytes, and at most {ANNOTATION_BYTES_MAX} are kept"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_question_is_refused_with_the_field() {
        let check = |text: &str, part: &str| {
            let why = Question::from_bytes(text.as_bytes()).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("", "EOF");
        check("{}", "missing field `op`");
        check(r#"{"op":"drop"}"#, "unknown variant `drop`");
        check(r#"{"op":"get"}"#, "missing field `id`");
        check(r#"{"op":"get","id":"1"}"#, "1");
        check(r#"{"op":"get","id":"00:00:00:00:00:01.4095"}"#, "is no VLAN");
        check(r#"{"op":"list","filter":{"port":1}}"#, "unknown field `port`");
        check(r#"{"op":"add","id":"00:00:00:00:00:01","at":"3"}"#, "is no connect point");
        let add = |id: &str, addresses: &str, notes: &str| {
            format!(
                r#"{{"op":"add","id":"{id}","at":"1/3","addresses":[{addresses}],"annotations":{{{notes}}}}}"#
            )
        };
        check(&add("01:00:00:00:00:01", "", ""), "id: 01:00:00:00:00:01 is no address of a single host");
        check(&add("00:00:00:00:00:00", "", ""), "id: ");
        check(&add("00:00:00:00:00:01", "\"10.0.0.1/8\"", ""), "invalid IP address");
        for wrong in
            ["0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "::1", "ff02::1"]
        {
            check(&add("00:00:00:00:00:01", &format!("\"{wrong}\""), ""), "is no address of a single host");
        }
        let many = (0..17).map(|last| format!("\"10.0.0.{}\"", last + 1)).collect::<Vec<_>>().join(",");
        check(&add("00:00:00:00:00:01", &many, ""), "addresses: 17 are too many");
        check(&add("00:00:00:00:00:01", "", "\"\":\"x\""), "annotations: \"\" is no name");
        let long = "x".repeat(ANNOTATION_BYTES_MAX);
        check(&add("00:00:00:00:00:01", "", &format!("\"a\":\"{long}\"")), "annotations: they have");
        check(&" ".repeat(QUESTION_BYTES_MAX + 1), "at most 32768 are read");
    }

    #[test]
    fn a_question_survives_its_bytes() {
        let check = |text: &str| {
            let question = Question::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(Question::from_bytes(&question.to_bytes()).unwrap(), question, "{text}");
        };
        check(r#"{"op":"list"}"#);
        check(
            r#"{"op":"list","filter":{"switch":"of:1","vlan":0,"address":"10.0.0.1","configured":true},"after":"00:00:00:00:00:01","limit":7}"#,
        );
        check(r#"{"op":"get","id":"00:00:00:00:00:01.100"}"#);
        check(
            r#"{"op":"add","id":"00:00:00:00:00:01","at":"of:1/3","addresses":["10.0.0.1","2001:db8::1"]}"#,
        );
        check(r#"{"op":"change","id":"00:00:00:00:00:01","annotations":{"rack":"7","old":null}}"#);
        check(r#"{"op":"remove","id":"00:00:00:00:00:01"}"#);
        check(r#"{"op":"incidents"}"#);
        check(r#"{"op":"counts"}"#);
    }
}
