//! Slices: what a tenant sees, and what the service `labels` answers.

use super::Answer;
use super::context::{Call, First};
use super::routes::{ROUTES, answer};
use crate::http::{Method, Problem, Request, Response};
use crate::state::State;
use labels_contract::status;
use northbound_contract::Role;
use serde_json::{Value, json};

fn state() -> State {
    let mut state = State::new("r".to_owned(), 0);
    let app = |id: &str, zone: u16| {
        json!({"id": id, "role": "app", "state": "running", "zone": zone, "zone_kind": "process", "restarts": 0, "since_ms": 5,
               "limits": []})
    };
    let apps = json!({"apps": [app("hub", 1), app("slice.blue", 2), app("slice.red", 3)]});
    state.apps.take(serde_json::from_value(apps).unwrap());
    let standing = |slice: &str, stale: bool| json!({"slice": slice, "complete": true, "flows": 2, "links": 4, "stale": stale});
    let standings = json!([standing("blue", false), standing("red", true)]);
    state.slices.take(serde_json::from_value(standings).unwrap());
    let network = slice_contract::Network { slice: "blue".to_owned(), ..slice_contract::Network::default() };
    state.slices.hear_network(2, &network.to_bytes());
    state
}

/// A request of a viewer, or of the tenant of a slice.
fn ask(target: &str, tenant: Option<&str>) -> Result<Answer, Problem> {
    let mut request = Request::new(Method::Get, target)?;
    request.slice = tenant.map(str::to_owned);
    answer(&state(), &request, if tenant.is_some() { Role::Tenant } else { Role::Viewer })
}

fn body(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

fn ready(target: &str, tenant: Option<&str>) -> Value {
    match ask(target, tenant) {
        Ok(Answer::Ready(response)) => body(&response),
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn a_tenant_gets_its_own_slice_and_nothing_else() {
    let status = |target: &str| match ask(target, Some("blue")) {
        Ok(_) => 200,
        Err(problem) => problem.status,
    };
    for route in ROUTES.iter().filter(|route| route.method == Method::Get) {
        let of_blue = status(&route.path.replace("{id}", "blue"));
        let of_red = status(&route.path.replace("{id}", "red"));
        match (route.path, route.needs) {
            ("/api/v1/slices", _) => assert_eq!(of_blue, 200),
            (path, Role::Tenant) => assert_eq!((of_blue, of_red), (200, 404), "{path}"),
            (path, _) => assert_eq!((of_blue, of_red), (403, 403), "{path}"),
        }
    }
    let why = |slice: &str| ask(&format!("/api/v1/slices/{slice}"), Some("blue")).unwrap_err().detail;
    assert_eq!(
        why("red").replace("red", "X"),
        why("nobody").replace("nobody", "X"),
        "it does not say which slices there are"
    );
}

#[test]
fn the_list_has_what_the_sender_may_see() {
    let check = |tenant: Option<&str>, expected: &[&str]| {
        let page = ready("/api/v1/slices", tenant);
        let ids: Vec<&str> =
            page["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(
            (ids, page["total"].as_u64()),
            (expected.to_vec(), Some(expected.len() as u64)),
            "{tenant:?}"
        );
    };
    check(None, &["blue", "red"]);
    check(Some("blue"), &["blue"]);
    check(Some("green"), &[]);
}

#[test]
fn the_process_and_the_service_add_what_they_know() {
    let mut state = state();
    let summary =
        slice_contract::Summary { slice: "blue".to_owned(), rules: 4, ..slice_contract::Summary::default() };
    state.slices.hear(2, &summary.to_bytes());
    let request = Request::new(Method::Get, "/api/v1/slices/blue").unwrap();
    let Ok(Answer::Ready(response)) = answer(&state, &request, Role::Viewer) else { panic!("it is at hand") };
    let shown = body(&response);
    assert_eq!([&shown["rules"], &shown["flows"], &shown["links"]], [4, 2, 4]);
    assert_eq!((shown["stale"].as_bool(), shown.get("slice")), (Some(false), None));
    state.slices.take(Vec::new());
    let Ok(Answer::Ready(response)) = answer(&state, &request, Role::Viewer) else { panic!("it is at hand") };
    assert_eq!((body(&response).get("flows"), &body(&response)["rules"]), (None, &json!(4)));
}

#[test]
fn the_network_of_a_slice_is_what_its_process_told() {
    let network = ready("/api/v1/slices/blue/network", Some("blue"));
    assert_eq!(network, json!({"slice": "blue", "switches": [], "links": [], "vnics": {}}));
    let missing = ask("/api/v1/slices/red/network", None).unwrap_err();
    assert_eq!(missing.status, 503, "its process has told nothing: {}", missing.detail);
}

#[test]
fn a_flow_says_what_holds_its_sender_to_its_rate() {
    let mut state = state();
    let shaped = [("E".to_owned(), "shaped by meter 7".to_owned())].into();
    let summary =
        slice_contract::Summary { slice: "blue".to_owned(), shaped, ..slice_contract::Summary::default() };
    state.slices.hear(2, &summary.to_bytes());
    let request = Request::new(Method::Get, "/api/v1/slices/blue").unwrap();
    let Ok(Answer::Ready(response)) = answer(&state, &request, Role::Viewer) else { panic!("it is at hand") };
    assert_eq!(body(&response).get("shaped"), None);
    let request = Request::new(Method::Get, "/api/v1/slices/blue/flows").unwrap();
    let Ok(Answer::Call(call)) = answer(&state, &request, Role::Viewer) else { panic!("a call") };
    let flow =
        |from: &str| json!({"from": from, "to": "G", "links": [], "rules": 1, "counts": true, "rate_bps": 8});
    let (mut capped, other) = (flow("E"), flow("F"));
    capped["cap_bps"] = 4.into();
    let shown = body(&(call.read)(status::DONE, json!([capped, other]).to_string().as_bytes()).unwrap());
    capped["shaped"] = "shaped by meter 7".into();
    assert_eq!(shown["items"], json!([capped, other]));
}

fn labels_of(slice: &str) -> First {
    match ask(&format!("/api/v1/slices/{slice}/labels"), None) {
        Ok(Answer::Then(first)) => first,
        other => panic!("{other:?}"),
    }
}

#[test]
fn labels_come_with_whether_they_are_stale() {
    let first = labels_of("red");
    assert_eq!((first.service, &first.payload[..]), ("labels", &br#"{"op":"slices"}"#[..]));
    let standings =
        json!([{"slice": "red", "complete": true, "flows": 0, "links": 1, "stale": true}]).to_string();
    let Ok(Answer::Call(call)) = (first.next)(status::DONE, standings.as_bytes()) else { panic!("a call") };
    assert_eq!(&call.payload[..], br#"{"op":"labels","slice":"red"}"#);
    let label = json!({"link": "of:0000000000000003/1-of:0000000000000001/1", "capacity_kbps": 10_000, "label_kbps": 2_000});
    let response = (call.read)(status::DONE, json!([label]).to_string().as_bytes()).unwrap();
    assert_eq!(body(&response), json!({"items": [label], "total": 1, "stale": true}));
}

#[test]
fn vnics_are_made_of_the_promise_and_the_flows() {
    let Ok(Answer::Then(first)) = ask("/api/v1/slices/blue/vnics", Some("blue")) else { panic!("a chain") };
    assert_eq!(&first.payload[..], br#"{"op":"promise","slice":"blue"}"#);
    let hose = json!({"vnics": {"E": {"rate_bps": 8}}}).to_string();
    let Ok(Answer::Call(call)) = (first.next)(status::DONE, hose.as_bytes()) else { panic!("a call") };
    assert_eq!(&call.payload[..], br#"{"op":"flows","slice":"blue"}"#);
    let shown = body(&(call.read)(status::DONE, b"[]").unwrap());
    assert_eq!((shown["total"].as_u64(), shown["items"][0]["promised_bps"].as_u64()), (Some(1), Some(8)));
}

#[test]
fn vnics_of_the_past_are_asked_for_with_how_far_back() {
    let asked = |since: &str| ask(&format!("/api/v1/slices/blue/vnics?since_s={since}"), Some("blue"));
    for wrong in ["0", "86401", "1h", ""] {
        assert_eq!(asked(wrong).unwrap_err().status, 400, "{wrong}");
    }
    let Ok(Answer::Then(first)) = asked("3600") else { panic!("a chain") };
    let hose = json!({"vnics": {"E": {"rate_bps": 8}}}).to_string();
    let Ok(Answer::Call(call)) = (first.next)(status::DONE, hose.as_bytes()) else { panic!("a call") };
    assert_eq!(&call.payload[..], br#"{"op":"past","slice":"blue","since_s":3600}"#);
    let past =
        json!({"covers_s": 60, "vnics": [{"vnic": "E", "sends_bps": 5, "receives_bps": 0, "reasons": []}]});
    let shown = body(&(call.read)(status::DONE, past.to_string().as_bytes()).unwrap());
    let line = json!({"vnic": "E", "promised_bps": 8, "sends_bps": 5, "receives_bps": 0});
    assert_eq!(shown, json!({"items": [line], "total": 1, "covers_s": 60}));
}

#[test]
fn a_refusal_of_the_service_is_a_problem() {
    let status_of = |answered: Result<Answer, Problem>| answered.unwrap_err().status;
    for what in ["labels", "flows", "vnics"] {
        let green = ask(&format!("/api/v1/slices/green/{what}"), None);
        assert_eq!(status_of(green), 404, "{what}: a slice that is not there is asked of no service");
    }
    assert_eq!(status_of((labels_of("blue").next)(status::DONE, b"[]")), 404);
    let gone = burnet_sdk::query_status::NO_SUCH_SERVICE;
    assert_eq!(status_of((labels_of("blue").next)(gone, b"")), 503);
    assert_eq!(status_of((labels_of("blue").next)(status::DONE, b"{")), 503);
    let Ok(Answer::Call(Call { payload, read, .. })) = ask("/api/v1/slices/blue/flows", Some("blue")) else {
        panic!("a call")
    };
    assert_eq!(&payload[..], br#"{"op":"flows","slice":"blue"}"#);
    assert_eq!(read(status::NOT_FOUND, b"there is no slice blue").unwrap_err().status, 404);
}
