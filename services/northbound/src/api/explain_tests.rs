//! Explanations of small networks, from what their switches report.

use super::Answer;
use super::routes::answer;
use crate::http::{Method, Problem, Request};
use crate::state::State;
use crate::steps::Steps;
use crate::way::READS_MAX;
use burnet_sdk::view::{Change, Object, Snapshot, Stamp, Tables};
use flow::Field;
use flow::text::{parse_instructions, parse_match};
use flows_contract::{Look, Question};
use northbound_contract::{AppReport, Role};
use serde_json::{Value, json};

/// A chain of switches: port 2 of each leads to port 3 of the next. A host at port 1 of the first and of the second.
fn view(switches: u64) -> Snapshot {
    let port = |at: String, live: bool| {
        json!({"kind": "port", "id": at, "name": "p", "mac": "02:00:00:00:00:01", "live": live, "enabled": true,
               "speed_kbps": 0})
    };
    let link = |id: String| json!({"kind": "link", "id": id, "found": "direct", "state": "up", "capacity_kbps": 0, "since_ms": 1});
    let host = |number: u8| {
        json!({"kind": "host", "id": format!("00:00:00:00:00:0{number}"), "addresses": [format!("10.0.0.{number}")],
               "at": format!("{number}/1"), "since_ms": 1})
    };
    let mut all = vec![host(1), host(2)];
    for id in 1..=switches {
        let switch = json!({"kind": "switch", "id": id.to_string(), "state": "up", "openflow": "1.3", "n_tables": 2, "n_buffers": 0,
                            "since_ms": 1});
        all.push(switch);
        all.extend((1..=4).map(|number| port(format!("{id}/{number}"), number != 4)));
    }
    for id in 1..switches {
        all.push(link(format!("{id}/2-{}/3", id + 1)));
        all.push(link(format!("{}/3-{id}/2", id + 1)));
    }
    let objects = all.into_iter().map(|it| serde_json::from_value::<Object>(it).unwrap());
    let stamp = Stamp { term: 1, sequence: 1, origin: 0 };
    let mut tables = Tables::new();
    tables.apply(objects.map(|it| Change { stamp, key: it.key(), object: Some(it) }));
    tables.view().clone()
}

fn explaining(view: &Snapshot, target: &str) -> Result<Box<dyn Steps>, Problem> {
    let app = json!({"id": "firewall", "role": "app", "state": "running", "zone": 5, "zone_kind": "process", "restarts": 0,
                     "since_ms": 5, "limits": []});
    let apps = vec![serde_json::from_value::<AppReport>(app).unwrap()];
    let mut state = State::default();
    state.view = view.clone();
    state.apps.take(northbound_contract::NodeReport { apps });
    match answer(&state, &Request::new(Method::Get, target)?, Role::Viewer)? {
        Answer::Steps(steps) => Ok(steps),
        other => panic!("{target}: {other:?}"),
    }
}

/// A rule in a switch: cookie, match, instructions, and the set that wants it.
fn seen(switch: u64, cookie: u64, matching: &str, instructions: &str, set: Option<(&str, &str)>) -> Value {
    let wanted =
        set.map(|(owner, set)| json!({"owner": owner, "set": set, "state": "installed", "is_same": true}));
    let mut rule = json!({
        "id": format!("of:{switch:016x}/00000000000000a2"), "table_id": 0, "priority": 9,
        "match": parse_match(matching).unwrap(), "instructions": parse_instructions(instructions).unwrap(),
        "cookie": cookie, "packets": 12, "bytes": 34, "duration_s": 5, "is_own": set.is_some(),
    });
    if let (Some(wanted), Some(members)) = (wanted, rule.as_object_mut()) {
        members.insert("wanted".to_owned(), wanted);
    }
    rule
}

fn look(switch: u64, rules: Vec<Value>, missing: Vec<Value>) -> Look {
    let look = json!({"switch": switch.to_string(), "is_v10": false, "rules": rules, "groups": [], "meters": [], "missing": missing});
    serde_json::from_value(look).unwrap()
}

/// Asks, and answers each question with the look of its switch, or that the switch does not answer.
fn explained_with(target: &str, looks: &[Look]) -> Value {
    let mut explaining = explaining(&view(2), target).unwrap();
    while let Some(question) = explaining.question() {
        let Ok(Question::Look { switch, packet }) = Question::from_bytes(&question.payload) else { panic!() };
        assert!(packet.get(Field::InPort).is_some());
        let found = looks.iter().find(|it| it.switch == switch).cloned();
        match found {
            Some(look) => explaining.take(0, &serde_json::to_vec(&look).unwrap()),
            None => explaining.take(flows_contract::status::NO_ANSWER_OF_SWITCH, b"it did not answer"),
        }
    }
    serde_json::from_slice(&explaining.response().unwrap().body).unwrap()
}

const BETWEEN: &str = "/api/v1/explain?from=10.0.0.1&to=00:00:00:00:00:02";

#[test]
fn a_question_that_names_no_way_is_refused_with_the_parameter() {
    // What the network does not have is missing, and no wrong form.
    let check = |target: &str, status: u16, field: &str, part: &str| {
        let problem = explaining(&view(2), &format!("/api/v1/explain?{target}")).unwrap_err();
        assert_eq!(
            (problem.status, problem.field.as_deref()),
            (status, Some(field)),
            "{target}: {}",
            problem.detail
        );
        assert!(problem.detail.contains(part), "{}", problem.detail);
    };
    check("", 400, "from", "missing");
    check("from=10.0.0.9&to=10.0.0.2", 404, "from", "no host 10.0.0.9");
    check("from=10.0.0.1&to=here", 400, "to", "write a host");
    check("from=10.0.0.1&at=1/1", 400, "at", "not both");
    check("at=1/1", 400, "packet", "missing");
    check("at=1/9&packet=ip", 404, "at", "no port");
    check("at=1/x&packet=ip", 400, "at", "x");
    check("at=1/1&packet=ip_dts=10.0.0.1", 400, "packet", "ip_dts");
    check("at=1/1&to=10.0.0.2", 400, "packet", "missing");
    check(&format!("at=1/1&packet={}", "x".repeat(5_000)), 400, "packet", "5000 bytes");
}

#[test]
fn a_switch_that_does_not_answer_is_no_drop() {
    let answer = explained_with(BETWEEN, &[]);
    assert_eq!(
        (answer["verdict"].as_str(), answer["unread"][0]["reason"].as_str()),
        (Some("unknown"), Some("it did not answer"))
    );
}

#[test]
fn each_rule_has_its_owner_and_its_counter() {
    let intent = Some(("paths", "intent/7"));
    let looks = [
        look(1, vec![seen(1, 3 << 48, "ip,nw_dst=10.0.0.2", "output:2", intent)], vec![]),
        look(2, vec![seen(2, 5 << 48 | 1, "ip,nw_dst=10.0.0.2", "output:1", None)], vec![]),
    ];
    let answer = explained_with(BETWEEN, &looks);
    assert_eq!(answer["verdict"], "delivered", "{answer}");
    assert_eq!(answer["links"], json!(["of:0000000000000001/2-of:0000000000000002/3"]));
    assert_eq!(answer["exits"][0]["hosts"], json!(["00:00:00:00:00:02"]));
    let (first, second) = (&answer["steps"][0], &answer["steps"][1]);
    assert_eq!(
        (&first["owner"], &first["intent"], &first["state"]),
        (&json!("paths"), &json!(7), &json!("installed"))
    );
    assert_eq!(
        (&first["in_port"], &first["out_port"], &first["packets"]),
        (&json!("1"), &json!("2"), &json!(12))
    );
    assert_eq!((&second["owner"], &second["state"]), (&json!("firewall"), &json!("unmanaged")));
    assert!(answer["packet"].as_str().unwrap().contains("nw_src=10.0.0.1,nw_dst=10.0.0.2"), "{answer}");
}

#[test]
fn a_drop_says_who_dropped_it_and_what_is_missing() {
    let check = |looks: &[Look], verdict: &str, part: &str, note: &str| {
        let answer = explained_with(BETWEEN, looks);
        assert_eq!(answer["verdict"], verdict, "{answer}");
        let reason = answer["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{reason}");
        assert!(answer["steps"].to_string().contains(note), "{answer}");
    };
    check(&[look(1, vec![], vec![])], "dropped", "No rule in table 0", "no rule matches");
    check(
        &[look(1, vec![seen(1, 1, "ip", "drop", None)], vec![])],
        "dropped",
        "A rule of",
        "no app of this node added this rule",
    );
    check(
        &[look(1, vec![seen(1, 1, "ip", "output:4", None)], vec![])],
        "dropped",
        "Port 4 of",
        "port 4 is down",
    );
    check(
        &[look(1, vec![seen(1, 1, "ip", "group:4", None)], vec![])],
        "dropped",
        "no group 4",
        "group 4 is not in the switch",
    );
    let wanted = json!({"id": "1/00000000000000a3", "owner": "paths", "set": "intent/7", "table_id": 0, "priority": 20,
                        "match": {"eth_type": "0x0800"}, "instructions": [], "cookie": 1, "state": "failed"});
    check(
        &[look(1, vec![seen(1, 1, "ip", "drop", None)], vec![wanted])],
        "dropped",
        "misses a rule that intent 7 wants",
        "intent 7 wants the rule priority=20,ip here, and the switch does not have it (failed)",
    );
}

#[test]
fn no_more_switches_are_read_than_the_bound() {
    let switches = READS_MAX as u64 + 2;
    let mut explaining = explaining(&view(switches), "/api/v1/explain?at=1/1&packet=ip").unwrap();
    let mut asked = 0;
    while let Some(question) = explaining.question() {
        let Ok(Question::Look { switch, .. }) = Question::from_bytes(&question.payload) else { panic!() };
        let look = look(switch.0, vec![seen(switch.0, 1, "", "output:2", None)], vec![]);
        explaining.take(0, &serde_json::to_vec(&look).unwrap());
        asked += 1;
    }
    assert_eq!(asked, READS_MAX);
    let answer: Value = serde_json::from_slice(&explaining.response().unwrap().body).unwrap();
    assert_eq!(answer["verdict"], "unknown");
    assert!(answer["unread"][0]["reason"].as_str().unwrap().contains("64 switches"), "{answer}");
}
