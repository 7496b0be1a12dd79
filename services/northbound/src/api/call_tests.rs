//! The questions of requests to the services of the network, and the responses from their answers.

use super::routes::answer;
use super::{Answer, Call};
use crate::http::{Method, Problem, Request, Response};
use crate::state::State;
use burnet_sdk::query_status;
use northbound_contract::Role;
use serde_json::{Value, json};

/// A state with the connected switch 1.
pub fn with_switch() -> State {
    with_switch_of("1.3")
}

/// The same, with a switch of this version.
pub fn with_switch_of(openflow: &str) -> State {
    use burnet_sdk::view::{Change, Object, Stamp, Tables};
    let switch: Object = serde_json::from_value(
        json!({"kind": "switch", "id": "1", "state": "up", "openflow": openflow, "n_tables": 2,
                                                       "n_buffers": 0, "since_ms": 5}),
    )
    .unwrap();
    let (mut state, mut tables) = (State::default(), Tables::new());
    let stamp = Stamp { term: 1, sequence: 1, origin: 0 };
    let batch = tables.apply([Change { stamp, key: switch.key(), object: Some(switch) }]);
    state.change(&batch, tables.view());
    state
}

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
    check(Method::Patch, "/api/v1/switches/1", "{}", 422, Some("annotations"));
    check(Method::Patch, "/api/v1/switches/1", r#"{"annotations":{},"state":"up"}"#, 422, Some("state"));
    check(Method::Patch, "/api/v1/switches/1", r#"{"annotations":{"":"x"}}"#, 422, Some("annotations"));
    check(Method::Patch, "/api/v1/switches/1", r#"{"annotations":7}"#, 422, None);
    check(Method::Patch, "/api/v1/ports/1", r#"{"annotations":{}}"#, 404, None);
    check(Method::Delete, "/api/v1/switches/x", "", 404, None);
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
        (Method::Patch, "/api/v1/switches/1"),
        (Method::Delete, "/api/v1/links/1/2-2/1"),
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

fn ryu(path: &str, body: Value) -> Result<Answer, Problem> {
    let mut request = Request::new(Method::Post, path)?;
    request.body = body.to_string().into_bytes();
    answer(&with_switch(), &request, Role::Operator)
}

#[test]
fn ryus_wrong_requests_are_refused_with_the_field() {
    let check = |path: &str, body: Value, status: u16, field: Option<&str>| {
        let problem = ryu(path, body.clone()).unwrap_err();
        assert_eq!((problem.status, problem.field.as_deref()), (status, field), "{body}: {}", problem.detail);
    };
    let add = "/stats/flowentry/add";
    check(add, json!([]), 400, None);
    check(add, json!({}), 422, Some("dpid"));
    check(add, json!({"dpid": 2}), 404, None);
    check(add, json!({"dpid": "x"}), 404, None);
    check(add, json!({"dpid": 1, "priority": 65536}), 422, Some("flow.priority"));
    check(add, json!({"dpid": 1, "match": {"colour": 1}}), 422, Some("match.colour"));
    check(add, json!({"dpid": 1, "actions": [{"type": "X"}]}), 422, Some("actions[0].type"));
    check(add, json!({"dpid": 1, "buffer_id": 7}), 422, Some("buffer_id"));
    check(add, json!({"dpid": 1, "table_id": "ALL"}), 422, Some("table_id"));
    check("/stats/flowentry/delete", json!({"dpid": 1, "cookie_mask": 1}), 422, Some("cookie_mask"));
    check("/stats/flowentry/modify", json!({"dpid": 1, "cookie_mask": 1}), 422, Some("cookie_mask"));
    // Nothing but the last member is wrong.
    check(add, json!({"dpid": 1, "cookie_mask": 1, "buffer_id": 7}), 422, Some("buffer_id"));
    check("/stats/groupentry/add", json!({"dpid": 1}), 422, Some("group.group_id"));
    check("/stats/groupentry/add", json!({"dpid": 1, "group_id": 1, "type": "SOME"}), 422, Some("type"));
    check(
        "/stats/meterentry/add",
        json!({"dpid": 1, "meter_id": 1, "bands": [{"type": "X"}]}),
        422,
        Some("bands[0].type"),
    );
    check("/stats/flow/2", json!({}), 404, None);
    check("/stats/flow/1", json!({"match": {"colour": 1}}), 422, Some("match.colour"));
}

#[test]
fn a_request_for_statistics_becomes_the_one_of_the_standard() {
    let check = |path: &str, multipart: u16, expected: &[u8]| {
        let request = Request::new(Method::Get, path).unwrap();
        match answer(&with_switch(), &request, Role::Viewer).unwrap() {
            Answer::Ask(asked) => {
                assert_eq!(
                    (asked.switch.0, asked.multipart, asked.body.as_slice()),
                    (1, multipart, expected),
                    "{path}"
                );
            }
            other => panic!("{path}: {other:?}"),
        }
    };
    let any = [0xff; 4];
    let flows = [&[0xff, 0, 0, 0][..], &any, &any, &[0; 20], &[0, 1, 0, 4, 0, 0, 0, 0]].concat();
    check("/stats/flow/1", 1, &flows);
    check("/stats/aggregateflow/0x1", 2, &flows);
    check("/stats/table/1", 3, &[]);
    check("/stats/port/1", 4, &[&any[..], &[0; 4]].concat());
    check("/stats/port/1/7", 4, &[0, 0, 0, 7, 0, 0, 0, 0]);
    check("/stats/queue/1/ALL/2", 5, &[&any[..], &[0, 0, 0, 2]].concat());
    check("/stats/group/1", 6, &[0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0]);
    check("/stats/meterconfig/1/3", 10, &[0, 0, 0, 3, 0, 0, 0, 0]);
    check("/stats/groupdesc/1/7", 7, &[]);
    check("/stats/portdesc/1/7", 13, &[]);
    check("/stats/queueconfig/1", burnet_sdk::QUEUE_CONFIG, &[&any[..], &[0; 4]].concat());
    check("/stats/queueconfig/1/7", burnet_sdk::QUEUE_CONFIG, &[0, 0, 0, 7, 0, 0, 0, 0]);
    check("/stats/role/1", burnet_sdk::ROLE, &[]);
    let request = Request::new(Method::Get, "/stats/port/1/2/3").unwrap();
    assert_eq!(answer(&with_switch(), &request, Role::Viewer).unwrap_err().status, 404);
}

/// Plays the service `flows`: each of its answers, until the request is answered. Returns the questions and the status.
fn play(mut at: Answer, answers: &[(u16, Value)]) -> (Vec<Value>, u16) {
    let mut asked = Vec::new();
    for (status, payload) in answers {
        at = match at {
            Answer::Then(first) => {
                asked.push(serde_json::from_slice(&first.payload).unwrap());
                (first.next)(*status, payload.to_string().as_bytes()).unwrap()
            }
            Answer::Call(call) => {
                asked.push(serde_json::from_slice(&call.payload).unwrap());
                Answer::Ready(reply(call, *status, "").unwrap())
            }
            other => panic!("{other:?}"),
        };
    }
    match at {
        Answer::Ready(response) => (asked, response.status),
        other => panic!("it goes on: {other:?}"),
    }
}

fn rule(set: &str, priority: u16, matching: Value) -> Value {
    let id = format!("of:0000000000000001/{priority:016x}");
    json!({"stamp": {"term": 1, "sequence": 1, "origin": 0},
           "object": {"kind": "rule", "id": id, "owner": "northbound", "set": set, "table_id": 0, "priority": priority,
                      "match": matching, "instructions": [{"type": "apply_actions", "actions": [{"type": "output", "port": 2}]}],
                      "cookie": 1, "state": "installed"}})
}

#[test]
fn ryus_deletions_remove_what_was_added_here_and_fits() {
    let page = json!({"entries": [rule("ryu/flow/a", 5, json!({"in_port": 1, "eth_type": "0x0800"})),
                                  rule("ryu/flow/b", 6, json!({"in_port": 2})), rule("other", 7, json!({"in_port": 1}))]});
    let check = |path: &str, body: Value, expected: &[&str]| {
        let mut answers = vec![(0, page.clone())];
        answers.extend(expected.iter().map(|_| (0, Value::Null)));
        let (asked, status) = play(ryu(path, body.clone()).unwrap(), &answers);
        let removed: Vec<_> = asked.iter().skip(1).map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!((status, removed.as_slice()), (200, expected), "{path} {body}");
        assert!(asked.iter().skip(1).all(|it| it["op"] == "remove"));
        assert_eq!(asked[0]["filter"], json!({"switch": "of:0000000000000001", "owner": "northbound"}));
    };
    check("/stats/flowentry/delete", json!({"dpid": 1}), &["ryu/flow/a", "ryu/flow/b"]);
    check("/stats/flowentry/delete", json!({"dpid": 1, "match": {"in_port": 1}}), &["ryu/flow/a"]);
    check("/stats/flowentry/delete", json!({"dpid": 1, "match": {"in_port": 3}}), &[]);
    check("/stats/flowentry/delete", json!({"dpid": 1, "table_id": 1}), &[]);
    check("/stats/flowentry/delete", json!({"dpid": 1, "out_port": 2}), &["ryu/flow/a", "ryu/flow/b"]);
    check("/stats/flowentry/delete", json!({"dpid": 1, "out_port": 3}), &[]);
    let strict = "/stats/flowentry/delete_strict";
    check(strict, json!({"dpid": 1, "priority": 5, "match": {"in_port": 1}}), &[]);
    check(
        strict,
        json!({"dpid": 1, "priority": 5, "match": {"dl_type": 2048, "in_port": 1}}),
        &["ryu/flow/a"],
    );
}

#[test]
fn a_change_of_flow_entries_adds_none() {
    let page = json!({"entries": [rule("ryu/flow/a", 5, json!({"in_port": 1}))]});
    let changed = json!({"dpid": 1, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 9}]});
    let (asked, status) =
        play(ryu("/stats/flowentry/modify", changed).unwrap(), &[(0, page.clone()), (0, Value::Null)]);
    assert_eq!(
        (status, asked[1]["op"].as_str(), &asked[1]["rules"][0]["priority"]),
        (200, Some("put"), &json!(5))
    );
    assert_eq!(asked[1]["rules"][0]["instructions"][0]["actions"][0]["port"], 9);
    let nothing = json!({"dpid": 1, "match": {"in_port": 4}, "actions": []});
    assert_eq!(play(ryu("/stats/flowentry/modify", nothing).unwrap(), &[(0, page)]).1, 200);
}

#[test]
fn onos_adds_a_rule_and_tells_its_number() {
    let body = json!({"priority": 40000, "timeout": 0, "isPermanent": true, "deviceId": "of:0000000000000001",
                      "treatment": {"instructions": [{"type": "OUTPUT", "port": "2"}]},
                      "selector": {"criteria": [{"type": "IN_PORT", "port": "1"}]}});
    let mut request = Request::new(Method::Post, "/onos/v1/flows/of:0000000000000001?appId=a").unwrap();
    request.body = body.to_string().into_bytes();
    let started = answer(&with_switch(), &request, Role::Operator).unwrap();
    let page = json!({"entries": [rule("onos/x", 40000, json!({"in_port": 1}))]});
    let Answer::Then(put) = started else { panic!("it puts a set first") };
    let question: Value = serde_json::from_slice(&put.payload).unwrap();
    assert_eq!(question["rules"][0]["match"], json!({"in_port": 1}));
    let Answer::Then(find) = (put.next)(0, b"").unwrap() else { panic!("then it looks for the number") };
    let Answer::Ready(response) = (find.next)(0, page.to_string().as_bytes()).unwrap() else {
        panic!("then it answers")
    };
    assert_eq!(response.status, 201);
    assert_eq!(response.headers, [("location", "/onos/v1/flows/of:0000000000000001/40000".to_owned())]);
}

#[test]
fn onos_removes_no_rule_of_others() {
    let request = Request::new(Method::Delete, "/onos/v1/flows/of:1/7").unwrap();
    let Answer::Then(get) = answer(&with_switch(), &request, Role::Operator).unwrap() else {
        panic!("it asks whose it is")
    };
    let problem = (get.next)(0, rule("intent/7", 7, json!({})).to_string().as_bytes()).unwrap_err();
    assert_eq!(problem.status, 409);
    let Answer::Then(get) = answer(&with_switch(), &request, Role::Operator).unwrap() else {
        panic!("as before")
    };
    let Answer::Call(remove) = (get.next)(0, rule("onos/x", 7, json!({})).to_string().as_bytes()).unwrap()
    else {
        panic!("it removes the set")
    };
    assert_eq!(remove.payload, br#"{"op":"remove","name":"onos/x"}"#);
}

#[test]
fn onoss_intents_become_intents() {
    let add = |body: Value| {
        let mut request = Request::new(Method::Post, "/onos/v1/intents").unwrap();
        request.body = body.to_string().into_bytes();
        match answer(&with_switch(), &request, Role::Operator)? {
            Answer::Call(call) => Ok::<Value, Problem>(serde_json::from_slice(&call.payload).unwrap()),
            other => panic!("{other:?}"),
        }
    };
    let hosts = json!({"type": "HostToHostIntent", "appId": "org.onosproject.ovsdb", "priority": 55, "one": "46:E4:3C:A4:17:C8/-1",
                       "two": "08:00:27:56:8A:15/-1"});
    let question = add(hosts).unwrap();
    assert_eq!(question["intent"]["type"], "host_to_host");
    assert_eq!(
        (&question["intent"]["one"], &question["intent"]["priority"]),
        (&json!("46:e4:3c:a4:17:c8"), &json!(55))
    );
    let ports = json!({"type": "PointToPointIntent", "appId": "a", "key": "k",
                       "ingressPoint": {"device": "of:0000000000000001", "port": "1"},
                       "egressPoint": {"device": "of:0000000000000002", "port": "2"},
                       "selector": {"criteria": [{"type": "ETH_TYPE", "ethType": "0x800"}]},
                       "constraints": [{"type": "LinkTypeConstraint", "types": ["OPTICAL"], "inclusive": false}]});
    let question = add(ports.clone()).unwrap();
    assert_eq!(
        (&question["name"], &question["intent"]["from"]),
        (&json!("k"), &json!("of:0000000000000001/1"))
    );
    let check = |name: &str, value: Value, field: &str| {
        let mut body = ports.clone();
        body[name] = value;
        assert_eq!(add(body).unwrap_err().field.as_deref(), Some(field), "{name}");
    };
    check("type", json!("OpticalIntent"), "type");
    check("ingressPoint", json!({"device": "x"}), "ingressPoint");
    check("selector", json!({"criteria": [{"type": "X"}]}), "selector.criteria[0]");
    check("constraints", json!([{"type": "X"}]), "constraints[0]");
    check("priority", json!("high"), "priority");
}

fn onos(method: Method, target: &str, body: Value) -> Result<Answer, Problem> {
    let mut request = Request::new(method, target)?;
    if method != Method::Get {
        request.body = body.to_string().into_bytes();
    }
    answer(&with_switch(), &request, Role::Operator)
}

#[test]
fn onos_removes_the_rules_of_one_app_and_asks_again_for_the_rest() {
    let target = "/onos/v1/flows/application/org.example.fwd";
    let records = [
        rule("onos/org.example.fwd/aa", 1, json!({})),
        rule("onos/other/bb", 2, json!({})),
        rule("onos/1/0/3/cc", 3, json!({})),
    ];
    let page = json!({ "entries": records });
    let (asked, status) =
        play(onos(Method::Delete, target, json!({})).unwrap(), &[(0, page.clone()), (0, Value::Null)]);
    assert_eq!(
        (&asked[0]["filter"]["owner"], &asked[1]["name"]),
        (&json!("northbound"), &json!("onos/org.example.fwd/aa"))
    );
    assert_eq!(status, 204);
    // The service lists pages without end, and the first one has a rule of the app.
    let next = "rule/of:0000000000000001/0000000000000001";
    let mut answers = vec![(0, json!({ "entries": [], "next": next })); 10];
    answers[0].1["entries"] = json!([rule("onos/org.example.fwd/aa", 1, json!({}))]);
    answers.push((0, Value::Null));
    let (asked, status) = play(onos(Method::Delete, target, json!({})).unwrap(), &answers);
    assert_eq!((asked.len(), status), (11, 202));
}

#[test]
fn the_app_of_onos_is_in_the_name_of_the_set() {
    let body = json!({"priority": 5, "isPermanent": true, "deviceId": "of:0000000000000001"});
    let put = |app: &str| match onos(Method::Post, &format!("/onos/v1/flows/of:1{app}"), body.clone())? {
        Answer::Then(first) => {
            let question: Value = serde_json::from_slice(&first.payload).unwrap();
            Ok(question["name"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    };
    let check =
        |app: &str, start: &str| assert!(put(app).is_ok_and(|name: String| name.starts_with(start)), "{app}");
    check("", "onos/1/0/5/");
    check("?appId=org.example.fwd", "onos/org.example.fwd/");
    let problem: Problem = put("?appId=a/b").unwrap_err();
    assert_eq!((problem.status, problem.field.as_deref()), (400, Some("appId")));
    assert!(put(&format!("?appId={}", "a".repeat(43))).is_err());
}

#[test]
fn onos_configures_hosts_and_ports() {
    let asks = |method, target: &str, body: Value| match onos(method, target, body) {
        Ok(Answer::Call(call)) => Ok(serde_json::from_slice::<Value>(&call.payload).unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err((problem.status, problem.field.unwrap_or_default())),
    };
    let host = json!({"mac": "46:E4:3C:A4:17:C8", "vlan": "-1", "ipAddresses": ["10.0.0.1"],
                      "locations": [{"elementId": "of:0000000000000001", "port": "3"}]});
    let question = asks(Method::Post, "/onos/v1/hosts", host.clone()).unwrap();
    assert_eq!((&question["op"], &question["id"]), (&json!("add"), &json!("46:e4:3c:a4:17:c8")));
    assert_eq!(
        (&question["at"], &question["addresses"]),
        (&json!("of:0000000000000001/3"), &json!(["10.0.0.1"]))
    );
    for (member, wrong) in [
        ("mac", json!("x")),
        ("locations", json!([])),
        ("locations", json!([{"port": 1}])),
        ("ipAddresses", json!(["x"])),
    ] {
        let mut body = host.clone();
        body[member] = wrong;
        assert_eq!(asks(Method::Post, "/onos/v1/hosts", body), Err((422, member.to_owned())));
    }
    let question = asks(Method::Delete, "/onos/v1/hosts/46:E4:3C:A4:17:C8/None", json!({})).unwrap();
    assert_eq!(question, json!({"op": "remove", "id": "46:e4:3c:a4:17:c8"}));
    let question = asks(Method::Delete, "/onos/v1/devices/of:1", json!({})).unwrap();
    assert_eq!((&question["op"], &question["key"]), (&json!("remove"), &json!("switch/of:0000000000000001")));
    let missing = asks(Method::Post, "/onos/v1/devices/of:1/portstate/9", json!({"enabled": true}));
    assert_eq!(missing, Err((404, String::new())));
}

#[test]
fn disjoint_paths_of_onos_are_one_pair() {
    let shown = |target: &str| {
        let Ok(Answer::Call(call)) = onos(Method::Get, target, json!({})) else { panic!("it asks for ways") };
        let question: Value = serde_json::from_slice(&call.payload).unwrap();
        let ways = json!({"ways": [{"links": [], "weight": 0}, {"links": [], "weight": 0}]}).to_string();
        let response = (call.read)(0, ways.as_bytes()).unwrap();
        (
            question["choice"].clone(),
            serde_json::from_slice::<Value>(&response.body).unwrap()["paths"].clone(),
        )
    };
    let path = json!({"cost": 0, "links": []});
    assert_eq!(shown("/onos/v1/paths/of:1/of:1"), (json!("equal"), json!([path, path])));
    assert_eq!(
        shown("/onos/v1/paths/of:1/of:1/disjoint"),
        (json!("link_disjoint"), json!([{"primary": path, "backup": path}]))
    );
    let request = Request::new(Method::Get, "/onos/v1/paths/of:1/of:1/other").unwrap();
    assert_eq!(answer(&with_switch(), &request, Role::Viewer).unwrap_err().status, 404);
}
