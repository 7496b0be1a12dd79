//! Messages as JSON and back: damaged objects first, then every type of message.

#[path = "../../openflow/tests/captured/mod.rs"]
mod captured;
#[path = "../../openflow/tests/corpus/mod.rs"]
mod corpus;
#[path = "../../openflow/tests/strategy/mod.rs"]
mod strategy;

use corpus::{bodies, flow_mod};
use flow::PortNo;
use openflow::hex;
use openflow::message::*;
use openflow::{Body, Message, Version};
use openflow_text::json::{bytes_of, describe, from_json, to_json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn of_1_3(body: Body) -> Message {
    Message { version: Version::V1_3, xid: 7, body }
}

fn flow_mod_object() -> Value {
    to_json(&of_1_3(Body::FlowMod(flow_mod())))
}

/// `change` breaks a flow mod that was good; the error names `key`.
fn refused(change: impl FnOnce(&mut Value), key: &str) {
    let mut object = flow_mod_object();
    change(&mut object);
    let bad = from_json(&object).expect_err("this is no flow mod any more");
    let named = format!("{bad}");
    assert!(named.contains(key), "'{named}' does not name '{key}'");
}

#[test]
fn a_missing_key_is_named() {
    for key in ["version", "type", "xid", "command", "match", "instructions", "priority"] {
        let mut object = flow_mod_object();
        object.as_object_mut().unwrap().remove(key);
        assert_eq!(from_json(&object).unwrap_err().key, key);
    }
    let mut meters = to_json(&of_1_3(Body::MultipartReply(MultipartReply {
        flags: 0,
        body: ReplyBody::MeterConfig(vec![MeterConfig { flags: 1, meter_id: 1, bands: vec![] }]),
    })));
    meters["meters"][0].as_object_mut().unwrap().remove("bands");
    assert_eq!(from_json(&meters).unwrap_err().key, "meters[0].bands");
}

#[test]
fn an_unknown_key_is_named() {
    refused(|object| object["priorty"] = 1.into(), "priorty");
    refused(|object| object["match"]["in_prot"] = 1.into(), "in_prot");
    let barrier = json!({"version": "1.3", "type": "barrier_request", "xid": 1, "data": ""});
    assert_eq!(from_json(&barrier).unwrap_err().key, "data");
}

#[test]
fn a_value_that_does_not_fit_is_named() {
    refused(|object| object["priority"] = 65536.into(), "priority");
    refused(|object| object["command"] = "ad".into(), "command");
    refused(|object| object["flags"] = json!(["send_flow_removed"]), "flags[0]");
    refused(|object| object["version"] = "1.9".into(), "version");
    refused(|object| object["type"] = "flowmod".into(), "flowmod");
    refused(
        |object| object["instructions"] = json!([{"type": "apply_actions", "actions": 3}]),
        "instructions",
    );
    let group = to_json(&of_1_3(Body::GroupMod(GroupMod {
        command: 0,
        group_type: GROUP_TYPE_SELECT,
        group_id: 1,
        buckets: vec![Bucket { weight: 1, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: vec![] }],
    })));
    let mut broken = group;
    broken["buckets"][0]["weight"] = "heavy".into();
    assert_eq!(from_json(&broken).unwrap_err().key, "buckets[0].weight");
}

#[test]
fn what_is_no_object_is_no_message() {
    for value in [json!(null), json!([]), json!("hello"), json!(1), json!({})] {
        assert!(from_json(&value).is_err(), "{value}");
    }
}

#[test]
fn an_errors_code_must_be_its_types() {
    let error = json!({"version": "1.3", "type": "error", "xid": 1, "error_type": "OFPET_BAD_ACTION", "error_code": "OFPBRC_BAD_LEN", "data": ""});
    assert_eq!(from_json(&error).unwrap_err().key, "error_code");
}

#[test]
fn bytes_that_are_no_message_become_an_error_with_the_words_of_the_protocol() {
    let expected = json!({"error": {
        "type": "OFPET_BAD_REQUEST", "type_number": 1, "code": "OFPBRC_BAD_TYPE", "code_number": 1,
        "offset": 1, "field": "type",
    }});
    let mut described = describe(&[4, 99, 0, 8, 0, 0, 0, 0]);
    let message = described["error"].as_object_mut().and_then(|error| error.remove("message"));
    assert_eq!(described, expected);
    assert!(message.is_some_and(|message| message.is_string()));
}

#[test]
fn wire_must_say_what_the_other_keys_say() {
    let mut object = to_json(&of_1_3(Body::BarrierRequest));
    object["wire"] = "0414000800000008".into();
    assert_eq!(bytes_of(&object).expect_err("another xid").key, "wire");
    object["wire"] = "04140008000000".into();
    assert_eq!(bytes_of(&object).expect_err("a byte is missing").key, "wire");
    object["wire"] = "zz".into();
    assert_eq!(bytes_of(&object).expect_err("no digits").key, "wire");
    object["wire"] = 4.into();
    assert_eq!(bytes_of(&object).expect_err("no text").key, "wire");
}

#[test]
fn bytes_that_we_would_write_otherwise_come_back_exactly() {
    // A role request whose padding is not zero.
    let odd = hex::from_text("0418001800000007000000020badf00d0000000000000001").unwrap();
    let object = describe(&odd);
    assert_eq!(object["role"], "master");
    assert_eq!(object["wire"], hex::to_text(&odd));
    assert_eq!(bytes_of(&object), Ok(odd));
    let even = hex::from_text("041800180000000700000002000000000000000000000001").unwrap();
    let object = describe(&even);
    assert_eq!(object.get("wire"), None);
    assert_eq!(bytes_of(&object), Ok(even));
}

#[test]
fn numbers_are_read_in_place_of_names() {
    let mut object = flow_mod_object();
    object["command"] = 0.into();
    object["flags"] = 1.into();
    object["buffer_id"] = u32::MAX.into();
    object["out_port"] = u32::MAX.into();
    assert_eq!(from_json(&object).unwrap(), of_1_3(Body::FlowMod(flow_mod())));
}

#[test]
fn a_flow_mod_reads_as_the_specification_names_it() {
    let expected = json!({
        "version": "1.3", "type": "flow_mod", "xid": 7,
        "cookie": u64::MAX, "cookie_mask": 0, "table_id": 0, "command": "add",
        "idle_timeout": 10, "hard_timeout": 0, "priority": 100, "buffer_id": "no_buffer",
        "out_port": "ANY", "out_group": "any", "flags": ["send_flow_rem"],
        "match": {"in_port": 1},
        "instructions": [{"type": "apply_actions", "actions": [{"type": "output", "port": 2, "max_len": 0}]}],
    });
    assert_eq!(flow_mod_object(), expected);
}

#[test]
fn a_bundled_message_is_an_object_within_the_other() {
    let object = to_json(&of_1_3(corpus::bundled(Body::BarrierRequest, vec![])));
    let expected = json!({
        "version": "1.3", "type": "bundle_add_message", "xid": 7, "bundle_id": 1, "flags": ["atomic"],
        "message": {"version": "1.3", "type": "barrier_request", "xid": 7}, "properties": [],
    });
    assert_eq!(object, expected);
    let mut nested = object.clone();
    nested["message"] = object.clone();
    assert_eq!(from_json(&nested).unwrap_err().key, "message.type");
    let mut broken = object;
    broken["message"]["type"] = "barrier".into();
    assert_eq!(from_json(&broken).unwrap_err().key, "message.type");
}

#[test]
fn an_error_about_a_bundle_has_its_name() {
    let error = json!({
        "version": "1.3", "type": "error", "xid": 1, "error_type": "OFPET_EXPERIMENTER",
        "error_code": "OFPBFC_BAD_ID", "experimenter": 0x4f4e_4600, "data": "",
    });
    let Body::Error(read) = from_json(&error).unwrap().body else { panic!("{error}") };
    assert_eq!((read.kind, read.code, read.experimenter), (0xffff, 2302, Some(ONF_EXPERIMENTER)));
    assert_eq!(to_json(&of_1_3(Body::Error(read)))["error_code"], "OFPBFC_BAD_ID");
}

#[test]
fn the_same_bits_have_other_names_in_1_0() {
    let mut message = of_1_3(Body::FlowMod(FlowMod { flags: FLOW_MOD_RESET_COUNTS, ..flow_mod() }));
    assert_eq!(to_json(&message)["flags"], json!(["reset_counts"]));
    message.version = Version::V1_0;
    assert_eq!(to_json(&message)["flags"], json!(["emerg"]));
}

#[test]
fn every_type_of_message_comes_back_from_its_json() {
    for version in [Version::V1_0, Version::V1_3] {
        for body in bodies() {
            let message = Message { version, xid: u32::MAX, body };
            let line = to_json(&message).to_string();
            assert!(!line.contains("unwritable"), "{line}");
            let again = from_json(&serde_json::from_str(&line).unwrap()).unwrap();
            assert_eq!(again, message, "{line}");
        }
    }
}

#[test]
fn captured_bytes_come_back_exactly() {
    for bytes in captured::messages() {
        let object = describe(&bytes);
        if object.get("error").is_none() {
            let line: Value = serde_json::from_str(&object.to_string()).unwrap();
            assert_eq!(bytes_of(&line), Ok(bytes), "{line}");
        }
    }
}

proptest! {
    #[test]
    fn any_message_comes_back_from_its_json(message in strategy::any_message()) {
        let line = to_json(&message).to_string();
        prop_assert_eq!(from_json(&serde_json::from_str(&line).unwrap()), Ok(message));
    }

    #[test]
    fn any_change_of_a_message_comes_back_exactly_or_is_an_error(
        message in strategy::any_message(),
        place in any::<proptest::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        // The header says what it is; what follows may be anything.
        if bytes.len() > 8 {
            let place = 8 + place.index(bytes.len() - 8);
            bytes[place] = value;
        }
        let object = describe(&bytes);
        if object.get("error").is_none() {
            prop_assert_eq!(bytes_of(&object), Ok(bytes), "{}", object);
        }
    }
}
