//! The questions of requests to the services of the network, and the responses from their answers.

use super::routes::answer;
use super::{Answer, Call};
use crate::http::{Method, Problem, Request, Response};
use crate::state::State;
use burnet_sdk::query_status;
use northbound_contract::Role;
use serde_json::{Value, json};

fn ask_as(role: Role, method: Method, target: &str, body: &str) -> Result<Call, Problem> {
    let mut request = Request::new(method, target)?;
    request.body = body.as_bytes().to_vec();
    match answer(&State::default(), &request, role)? {
        Answer::Call(call) => Ok(call),
        other => panic!("{target}: {other:?}"),
    }
}

fn ask(method: Method, target: &str, body: &str) -> Result<Call, Problem> {
    ask_as(Role::Operator, method, target, body)
}

const INTENT: &str = r#"{"name":"a","type":"point_to_point","from":"1/1","to":"2/1"}"#;

#[test]
fn a_wrong_body_is_refused_with_the_field_before_a_service_is_asked() {
    let check = |method, target: &str, body: &str, status: u16, field: Option<&str>| {
        let problem = ask(method, target, body).unwrap_err();
        assert_eq!((problem.status, problem.field.as_deref()), (status, field), "{body}: {}", problem.detail);
    };
    let intents = "/api/v1/intents";
    check(Method::Post, intents, "", 400, None);
    check(Method::Post, intents, "{", 400, None);
    check(Method::Post, intents, "[]", 400, None);
    check(Method::Post, intents, "{}", 422, Some("type"));
    check(Method::Post, intents, r#"{"type":"point_to_point","from":"1/1"}"#, 422, Some("to"));
    check(Method::Post, intents, r#"{"type":"point_to_point","from":"1/1","to":"1/1"}"#, 422, Some("to"));
    check(
        Method::Post,
        intents,
        r#"{"type":"point_to_point","from":"1/1","to":"1/2","prio":1}"#,
        422,
        Some("prio"),
    );
    check(Method::Put, "/api/v1/intents/7", "{}", 422, Some("type"));
    check(Method::Put, "/api/v1/intents/x", INTENT, 404, None);
    check(Method::Post, "/api/v1/hosts", r#"{"id":"00:00:00:00:00:01"}"#, 422, Some("at"));
    check(Method::Post, "/api/v1/hosts", r#"{"id":"01:00:00:00:00:01","at":"1/1"}"#, 422, Some("id"));
    check(Method::Patch, "/api/v1/hosts/00:00:00:00:00:01", r#"{"place":"1/1"}"#, 422, Some("place"));
    check(Method::Put, "/api/v1/rule-sets/a", r#"{"rules":[{"switch":"1"}]}"#, 422, Some("priority"));
    check(Method::Put, "/api/v1/rule-sets/a", "{}", 422, Some("rules"));
    check(Method::Get, "/api/v1/routes?from=1", "", 400, Some("to"));
    check(Method::Get, "/api/v1/routes?from=1&to=00:00:00:00:00:01", "", 400, Some("to"));
    check(Method::Get, "/api/v1/routes?from=1&to=2&k=17", "", 400, Some("k"));
    check(Method::Get, "/api/v1/flows?table_id=256", "", 400, Some("table_id"));
    check(Method::Get, "/api/v1/groups?after=x", "", 400, None);
}

#[test]
fn a_viewer_changes_nothing() {
    for (method, target) in [
        (Method::Post, "/api/v1/intents"),
        (Method::Put, "/api/v1/intents/1"),
        (Method::Delete, "/api/v1/intents/1"),
        (Method::Post, "/api/v1/hosts"),
        (Method::Patch, "/api/v1/hosts/00:00:00:00:00:01"),
        (Method::Delete, "/api/v1/hosts/00:00:00:00:00:01"),
        (Method::Put, "/api/v1/rule-sets/a"),
        (Method::Delete, "/api/v1/rule-sets/a"),
    ] {
        let problem = ask_as(Role::Viewer, method, target, INTENT).unwrap_err();
        assert_eq!((problem.status, problem.name), (403, "role-too-low"), "{target}");
    }
}

#[test]
fn a_change_of_another_state_is_refused() {
    let mut request = Request::new(Method::Delete, "/api/v1/intents/7").unwrap();
    request.if_match = Some("\"1.1.0\"".to_owned());
    let problem = answer(&State::default(), &request, Role::Operator).unwrap_err();
    assert_eq!((problem.status, problem.name), (412, "changed"));
}

#[test]
fn a_request_becomes_the_question_of_the_contract() {
    let check = |method, target: &str, body: &str, service: &str, expected: Value| {
        let call = ask(method, target, body).unwrap();
        let payload: Value = serde_json::from_slice(&call.payload).unwrap();
        assert_eq!((call.service, payload), (service, expected), "{target}");
    };
    let wanted = json!({"type": "point_to_point", "from": "1/1", "to": "2/1"});
    check(
        Method::Post,
        "/api/v1/intents",
        INTENT,
        "paths",
        json!({"op": "add", "name": "a", "intent": wanted}),
    );
    let changed = json!({"op": "change", "id": 7, "intent": wanted});
    check(Method::Put, "/api/v1/intents/7", &wanted.to_string(), "paths", changed);
    check(Method::Delete, "/api/v1/intents/7", "", "paths", json!({"op": "withdraw", "id": 7}));
    let host = r#"{"id":"00:00:00:00:00:01","at":"1/1"}"#;
    let added = json!({"op": "add", "id": "00:00:00:00:00:01", "at": "1/1"});
    check(Method::Post, "/api/v1/hosts", host, "hosts", added);
    let removed = json!({"op": "remove", "id": "00:00:00:00:00:01"});
    check(Method::Delete, "/api/v1/hosts/00:00:00:00:00:01", "", "hosts", removed);
    let one = "of:0000000000000001";
    let list = json!({"op": "list", "kind": "rule", "filter": {"owner": "a", "switch": one}, "limit": 2});
    check(Method::Get, "/api/v1/switches/1/flows?owner=a&limit=2", "", "flows", list);
    let ways = json!({"op": "ways", "from": one, "to": "of:0000000000000002", "count": 3, "choice": "link_disjoint",
                      "constraints": {"bandwidth_kbps": 5}});
    check(
        Method::Get,
        "/api/v1/routes?from=1/4&to=2&k=3&choice=link_disjoint&bandwidth_kbps=5",
        "",
        "paths",
        ways,
    );
}

fn reply(call: Call, status: u16, payload: &str) -> Result<Response, Problem> {
    (call.read)(status, payload.as_bytes())
}

#[test]
fn an_answer_becomes_the_object_with_its_address() {
    let record = r#"{"stamp":{"term":1,"sequence":2,"origin":0},"object":{"kind":"intent","id":7,"owner":"northbound","state":"requested",
                     "type":"point_to_point","from":"1/1","to":"2/1","since_ms":1}}"#;
    let response = reply(ask(Method::Post, "/api/v1/intents", INTENT).unwrap(), 0, record).unwrap();
    assert_eq!((response.status, response.etag.as_deref()), (201, Some("\"1.2.0\"")));
    assert_eq!(response.headers, [("location", "/api/v1/intents/7".to_owned())]);
    let object: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(
        (object["state"].as_str(), object["_links"]["self"].as_str()),
        (Some("requested"), Some("/api/v1/intents/7"))
    );
}

#[test]
fn a_refusal_of_a_service_keeps_its_sentence() {
    let check = |status: u16, sentence: &str, expected: (u16, Option<&str>)| {
        let problem =
            reply(ask(Method::Post, "/api/v1/intents", INTENT).unwrap(), status, sentence).unwrap_err();
        assert_eq!((problem.status, problem.field.as_deref()), expected, "{}", problem.detail);
        assert!(problem.detail.contains(sentence), "{}", problem.detail);
    };
    check(
        paths_contract::status::CONFLICT,
        "name: you have another intent of this name",
        (409, Some("name")),
    );
    check(paths_contract::status::FULL, "100,000 intents are kept", (507, None));
    check(paths_contract::status::NOT_READY, "it reads its intents", (503, None));
    check(query_status::BAD_QUESTION, "intent.to: it is no edge", (422, Some("to")));
    check(query_status::NO_SUCH_SERVICE, "this node does not run it", (503, None));
    let damaged = reply(ask(Method::Post, "/api/v1/intents", INTENT).unwrap(), 0, "no record");
    assert_eq!(damaged.unwrap_err().status, 503);
}

#[test]
fn a_page_of_rules_has_the_address_of_the_next_one() {
    let page = r#"{"entries":[],"next":"rule/of:0000000000000001/00000000000000a2"}"#;
    let call = ask(Method::Get, "/api/v1/flows?owner=a&limit=2", "").unwrap();
    let body: Value = serde_json::from_slice(&reply(call, 0, page).unwrap().body).unwrap();
    let next = "/api/v1/flows?owner=a&limit=2&after=of:0000000000000001/00000000000000a2";
    assert_eq!(body, json!({"items": [], "next": next}));
    let call = ask(Method::Get, next, "").unwrap();
    let payload: Value = serde_json::from_slice(&call.payload).unwrap();
    assert_eq!(payload["after"], "rule/of:0000000000000001/00000000000000a2");
}
