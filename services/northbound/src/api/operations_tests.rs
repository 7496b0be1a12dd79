//! Apps, incidents and the audit log: pages, filters, commands and their refusals.

use super::routes::{answer, ready};
use super::{Answer, answered, evidence_shown};
use crate::http::{Method, Problem, Request};
use crate::state::State;
use northbound_contract::{AppCommand, CommandRefused, IncidentReport, Role, Verb};
use serde_json::{Value, json};

fn state() -> State {
    let mut state = State::new("r".to_owned(), 0);
    state.may_change_apps = true;
    let app = json!({"id": "hub", "role": "app", "state": "running", "zone": 1, "zone_kind": "process", "restarts": 0, "since_ms": 5,
                     "limits": [], "sample": {"unix_ms": 9}});
    state.apps.take(serde_json::from_value(json!({ "apps": [app] })).unwrap());
    state
}

fn report(number: u64, app: &str) -> IncidentReport {
    serde_json::from_value(
        json!({"number": number, "unix_ms": 10 * (number / 2), "what": "app_ended", "app": app, "reason": "r",
                                  "then": "t", "finding": ""}),
    )
    .unwrap()
}

fn body(state: &State, target: &str) -> Value {
    let response = ready(state, target);
    assert_eq!(response.status, 200, "{target}: {}", String::from_utf8_lossy(&response.body));
    serde_json::from_slice(&response.body).unwrap()
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
}

fn post(state: &State, target: &str, body: &str, role: Role) -> Result<AppCommand, Problem> {
    let mut request = Request::new(Method::Post, target)?;
    request.body = body.as_bytes().to_vec();
    request.sender = "token ops".to_owned();
    match answer(state, &request, role)? {
        Answer::Order(command) => Ok(command),
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn a_command_for_an_app_needs_the_role_and_the_operators_word() {
    let check = |state: &State, target: &str, body: &str, role, expected: (u16, &str)| {
        let problem = post(state, target, body, role).unwrap_err();
        assert_eq!((problem.status, problem.name), expected, "{target} {body}: {}", problem.detail);
    };
    let state = state();
    let stop = "/api/v1/apps/hub/stop";
    check(&state, stop, "", Role::Operator, (403, "role-too-low"));
    check(&state, "/api/v1/apps/nobody/stop", "", Role::Admin, (404, "not-found"));
    check(&state, "/api/v1/apps/hub/remove", "", Role::Admin, (405, "bad-method"));
    check(&state, stop, "{", Role::Admin, (400, "bad-request"));
    check(&state, stop, "[]", Role::Admin, (400, "bad-request"));
    check(&state, stop, r#"{"reason":"x"}"#, Role::Admin, (422, "bad-field"));
    check(&state, stop, r#"{"why":7}"#, Role::Admin, (422, "bad-field"));
    check(&state, stop, &json!({ "why": "x".repeat(161) }).to_string(), Role::Admin, (422, "bad-field"));
    let mut shut = self::state();
    shut.may_change_apps = false;
    check(&shut, stop, "", Role::Admin, (403, "not-granted"));
    assert!(post(&shut, stop, "", Role::Admin).unwrap_err().detail.contains("may_change_apps = true"));
}

#[test]
fn a_command_goes_to_the_monitor_with_the_name_of_its_sender() {
    let check = |target: &str, body: &str, verb, why: Option<&str>| {
        let command = post(&state(), target, body, Role::Admin).unwrap();
        assert_eq!((command.app.as_str(), command.verb, command.why.as_deref()), ("hub", verb, why));
        assert_eq!(command.sender, "token ops");
    };
    check("/api/v1/apps/hub/start", "", Verb::Start, None);
    check("/api/v1/apps/hub/stop", "{}", Verb::Stop, None);
    check("/api/v1/apps/hub/restart", r#"{"why":"it leaks"}"#, Verb::Restart, Some("it leaks"));
    check("/api/v1/apps/hub/quarantine", "", Verb::Quarantine, None);
}

#[test]
fn the_monitors_refusal_is_a_problem() {
    let status = |refused| answered("hub", refused).map(|it| it.status).map_err(|it| (it.status, it.detail));
    assert_eq!(status(None), Ok(202));
    assert_eq!(status(Some(CommandRefused::NoSuchApp)).unwrap_err().0, 404);
    let why = "flows is a service".to_owned();
    assert_eq!(status(Some(CommandRefused::NotPossible(why.clone()))), Err((409, why)));
}

#[test]
fn incidents_come_with_the_newest_first_on_pages_of_any_size() {
    let mut state = state();
    // Two at each time, so that the order within one time counts too.
    state.on_stored(
        true,
        (1..=6).map(|number| report(number, if number == 3 { "qos" } else { "hub" })).collect(),
    );
    state.on_incident("hosts", br#"{"kind":"moved","time_ms":1000}"#);
    let all = ids(&body(&state, "/api/v1/incidents")).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(all, ["hosts-1", "6", "5", "4", "3", "2", "1"]);
    for limit in 1..=8 {
        let (mut found, mut target) = (Vec::new(), format!("/api/v1/incidents?limit={limit}"));
        loop {
            let page = body(&state, &target);
            assert_eq!(page["total"], 7);
            found.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            target = next.to_owned();
        }
        assert_eq!(found, all, "{limit}");
    }
    let check =
        |target: &str, expected: &[&str]| assert_eq!(ids(&body(&state, target)), expected, "{target}");
    check("/api/v1/incidents?app=qos", &["3"]);
    check("/api/v1/incidents?source=hosts", &["hosts-1"]);
    check("/api/v1/incidents?what=moved&source=monitor", &[]);
    assert_eq!(body(&state, "/api/v1/incidents/4")["number"], 4);
    assert_eq!(ready(&state, "/api/v1/incidents/9").status, 404);
    for wrong in ["after=x", "after=x.1", "limit=0", "colour=red"] {
        assert_eq!(ready(&state, &format!("/api/v1/incidents?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn evidence_is_asked_of_the_monitor_or_is_what_a_service_published() {
    let mut state = state();
    state.on_stored(true, vec![report(4, "hub")]);
    state.on_incident(
        "hosts",
        br#"{"kind":"moved","time_ms":1000,"mac":"00:00:00:00:00:01","at":["1/2","2/3"]}"#,
    );
    let asked = |id: &str, role| {
        let request = Request::new(Method::Get, &format!("/api/v1/incidents/{id}/evidence")).unwrap();
        answer(&state, &request, role)
    };
    assert!(matches!(asked("4", Role::Operator), Ok(Answer::Evidence(4))));
    let status = |id: &str, role| asked(id, role).unwrap_err().status;
    assert_eq!((status("4", Role::Viewer), status("hosts-1", Role::Viewer)), (403, 403));
    assert_eq!((status("5", Role::Operator), status("hosts-2", Role::Operator)), (404, 404));
    let Ok(Answer::Ready(response)) = asked("hosts-1", Role::Operator) else { panic!("it is at hand") };
    let shown: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(
        shown,
        json!({"id": "hosts-1", "details": {"mac": "00:00:00:00:00:01", "at": ["1/2", "2/3"]}})
    );
}

#[test]
fn evidence_has_what_the_monitor_read() {
    let read = json!({"exit_code": 3, "core_dumped": false, "called": [], "last_lines": ["no room"],
                      "log": [{"unix_ms": 5, "line": "app hub: started"}], "samples": [{"unix_ms": 4, "memory_bytes": 7}]});
    let response = evidence_shown(7, Some(serde_json::from_value(read.clone()).unwrap())).unwrap();
    let mut shown: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(shown.as_object_mut().unwrap().remove("id"), Some(json!("7")));
    assert_eq!(shown, read);
    assert_eq!(evidence_shown(7, None).unwrap_err().status, 404);
}

#[test]
fn a_tag_of_incidents_changes_with_them() {
    let mut state = state();
    let before = ready(&state, "/api/v1/incidents").etag;
    assert_eq!(before, ready(&state, "/api/v1/incidents").etag);
    state.on_stored(false, vec![report(1, "hub")]);
    assert_ne!(before, ready(&state, "/api/v1/incidents").etag);
}

#[test]
fn the_samples_of_an_app_add_up() {
    let mut state = state();
    let again = json!({"apps": [{"id": "hub", "role": "app", "state": "running", "zone": 1, "zone_kind": "process", "restarts": 0,
                                 "since_ms": 5, "limits": [], "sample": {"unix_ms": 10}}]});
    state.apps.take(serde_json::from_value(again).unwrap());
    assert_eq!(body(&state, "/api/v1/apps/hub")["samples"], json!([{"unix_ms": 9}, {"unix_ms": 10}]));
}

fn audit(target: &str, role: Role) -> Result<super::Call, Problem> {
    match answer(&State::default(), &Request::new(Method::Get, target)?, role)? {
        Answer::Call(call) => Ok(call),
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn the_audit_log_is_read_by_operators_page_by_page() {
    let refused = |target: &str, role| {
        let problem = audit(target, role).unwrap_err();
        (problem.status, problem.field)
    };
    assert_eq!(refused("/api/v1/audit", Role::Viewer), (403, None));
    assert_eq!(refused("/api/v1/audit?after=x", Role::Operator), (400, Some("after".to_owned())));
    assert_eq!(refused("/api/v1/audit?limit=0", Role::Operator), (400, Some("limit".to_owned())));
    let call = audit("/api/v1/audit?app=hub&limit=2&after=9", Role::Operator).unwrap();
    let question: Value = serde_json::from_slice(&call.payload).unwrap();
    assert_eq!(call.service, "audit");
    assert_eq!(question, json!({"op": "list", "filter": {"app": "hub"}, "before": 9, "limit": 2}));
    let record = json!({"line": 8, "unix_ms": 5, "what": "asked", "who": "operator", "app": "hub", "count": 1, "text": "stop"});
    let page = json!({"records": [record], "next": 8, "damaged": 0}).to_string();
    let response = (call.read)(0, page.as_bytes()).unwrap();
    let shown: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(shown, json!({"items": [record], "next": "/api/v1/audit?app=hub&limit=2&after=8"}));
}

#[test]
fn a_log_with_holes_says_so() {
    let call = audit("/api/v1/audit", Role::Operator).unwrap();
    let response = (call.read)(0, br#"{"records":[],"damaged":3}"#).unwrap();
    let shown: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(shown, json!({"items": [], "damaged": 3}));
    let call = audit("/api/v1/audit", Role::Operator).unwrap();
    let problem = (call.read)(burnet_sdk::query_status::NO_SUCH_SERVICE, b"").unwrap_err();
    assert_eq!((problem.status, problem.name), (503, "no-service"));
}
