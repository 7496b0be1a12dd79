//! Comparison with os-ken, Ryu's successor: what its ofctl library made of a switch's answers, and which messages it sent.
//!
//! The file was recorded with `tests/ofctl/record.py` from os-ken 4.2.2 and the emulator. It has the bodies of the answers beside the JSON.

use super::{actions, bodies, matches, table_features};
use crate::api::call_tests::{with_switch, with_switch_of};
use crate::api::{Answer, routes::answer};
use crate::http::{Method, Request};
use burnet_sdk::flow::canonical::{buckets_raw, read_actions, read_instructions, read_match};
use flows_contract::{Question, WantedBand, WantedSet};
use northbound_contract::Role;
use serde_json::{Value, json};

const RECORDED: &str = include_str!("../../../tests/ofctl/recorded.json");

fn recorded(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    all[list].as_array().unwrap().clone()
}

fn bytes(digits: &Value) -> Vec<u8> {
    let digits = digits.as_str().unwrap().as_bytes();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn show(path: &str, body: &[u8]) -> Vec<Value> {
    match path {
        "flow" => bodies::flows(body, None),
        "aggregateflow" => bodies::aggregate(body),
        "table" => bodies::tables(body),
        "tablefeatures" => table_features::table_features(body),
        "port" => bodies::ports(body),
        "portdesc" => bodies::port_descriptions(body),
        "queue" => bodies::queues(body),
        "queueconfig" => bodies::queue_configurations(body),
        "role" => bodies::role(body),
        "group" => bodies::groups(body),
        "groupdesc" => bodies::group_descriptions(body),
        "groupfeatures" => bodies::group_features(body),
        "meter" => bodies::meters(body),
        "meterconfig" => bodies::meter_configurations(body),
        "meterfeatures" => bodies::meter_features(body),
        other => panic!("{other}"),
    }
}

#[test]
fn each_answer_of_a_switch_is_shown_as_os_ken_shows_it() {
    // The description comes from the view.
    let answers: Vec<Value> = recorded("answers").into_iter().filter(|it| it["path"] != "desc").collect();
    assert_eq!(answers.len(), 16);
    for recorded in answers {
        let path = recorded["path"].as_str().unwrap();
        let parts = recorded["parts"].as_array().unwrap();
        let shown: Vec<Value> = parts.iter().flat_map(|part| show(path, &bytes(part))).collect();
        assert_eq!(Value::from(shown), recorded["json"], "{path}");
    }
}

#[test]
fn a_path_is_answered_for_the_versions_for_which_os_ken_has_it() {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    let mut compared = 0;
    for (version, paths) in all["offered"].as_object().unwrap() {
        let state = with_switch_of(version);
        for (path, is_offered) in paths.as_object().unwrap() {
            let request = Request::new(Method::Get, &format!("/stats/{path}/1")).unwrap();
            let status =
                answer(&state, &request, Role::Viewer).map_or_else(|problem| problem.status, |_| 200);
            assert_eq!(status, if *is_offered == true { 200 } else { 501 }, "{path}, OpenFlow {version}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 19);
    // What os-ken lacks: a switch with OpenFlow 1.0 can name the queues of one port.
    let request = Request::new(Method::Get, "/stats/queueconfig/1/2").unwrap();
    assert!(answer(&with_switch_of("1.0"), &request, Role::Viewer).is_ok());
}

fn sent(entry: &str) -> Vec<(Value, Vec<u8>)> {
    let of = recorded("sent").into_iter().filter(|it| it["entry"] == entry);
    of.map(|it| (it["json"].clone(), bytes(&it["message"]))).collect()
}

/// The bytes of a flow mod before its match (OpenFlow 1.3.5, 7.3.4.1).
const FLOW_MOD_HEAD: usize = 48;

#[test]
fn flow_entries_mean_what_they_mean_to_os_ken() {
    let entries = sent("flow");
    assert_eq!(entries.len(), 13);
    for (json, message) in entries {
        let match_len =
            usize::from(u16::from_be_bytes([message[FLOW_MOD_HEAD + 2], message[FLOW_MOD_HEAD + 3]]));
        let theirs = read_match(&message[FLOW_MOD_HEAD + 4..FLOW_MOD_HEAD + match_len]).unwrap();
        assert_eq!(matches::read(json.get("match")).unwrap().sorted(), theirs.sorted(), "{json}");
        let theirs = read_instructions(&message[FLOW_MOD_HEAD + match_len.next_multiple_of(8)..]).unwrap();
        assert_eq!(actions::read(json.get("actions")).unwrap(), theirs, "{json}");
    }
}

/// The set that a request puts.
fn put(path: &str, mut json: Value) -> WantedSet {
    json["dpid"] = 1.into();
    let mut request = Request::new(Method::Post, path).unwrap();
    request.body = json.to_string().into_bytes();
    match answer(&with_switch(), &request, Role::Operator).unwrap() {
        Answer::Call(call) => match Question::from_bytes(&call.payload).unwrap() {
            Question::Put(set) => set,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_mean_what_they_mean_to_os_ken() {
    for (json, message) in sent("group") {
        let set = put("/stats/groupentry/add", json.clone());
        let group = &set.groups[0];
        let id = u32::from_be_bytes([message[12], message[13], message[14], message[15]]);
        assert_eq!((group.group_type as u8, group.group_id), (message[10], id), "{json}");
        let theirs: Vec<_> = buckets_raw(&message[16..]).map(Result::unwrap).collect();
        assert_eq!(group.buckets.len(), theirs.len());
        for (ours, theirs) in group.buckets.iter().zip(theirs) {
            assert_eq!(ours.weight, theirs.weight);
            assert_eq!(ours.watch_port.map_or(u32::MAX, |port| port.0), theirs.watch_port.0);
            assert_eq!(ours.watch_group.unwrap_or(u32::MAX), theirs.watch_group);
            assert_eq!(ours.actions, read_actions(theirs.actions).unwrap());
        }
    }
}

#[test]
fn meters_mean_what_they_mean_to_os_ken() {
    for (json, message) in sent("meter") {
        let set = put("/stats/meterentry/add", json.clone());
        let meter = &set.meters[0];
        let id = u32::from_be_bytes([message[12], message[13], message[14], message[15]]);
        let flags = u16::from_be_bytes([message[10], message[11]]);
        assert_eq!(meter.meter_id, id);
        assert_eq!((meter.burst, meter.stats), (flags & 4 != 0, flags & 8 != 0), "{json}");
        let of =
            |at: usize| u32::from_be_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        assert_eq!(meter.bands, [WantedBand::Drop { rate: of(20), burst_size: of(24) }]);
    }
    let wrong = json!({"meter_id": 1, "flags": ["FAST"], "dpid": 1});
    let mut request = Request::new(Method::Post, "/stats/meterentry/add").unwrap();
    request.body = wrong.to_string().into_bytes();
    let problem = answer(&with_switch(), &request, Role::Operator).unwrap_err();
    assert_eq!(problem.field.as_deref(), Some("flags"));
}
