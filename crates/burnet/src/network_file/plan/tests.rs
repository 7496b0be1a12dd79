//! Plans of a small network: what a file would change, as text.

use super::*;
use crate::network_file::{shown, source};
use burnet_sdk::view::{Path, Port, Rule};
use serde::de::DeserializeOwned;

fn all<T: DeserializeOwned>(values: Vec<Value>) -> Vec<T> {
    values.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect()
}

/// Two switches with a link between their ports 2, a host at port 1 of each, and the intent 7 of an app between them.
fn network() -> Current {
    let port = |at: &str| json!({"id": at, "name": "p", "mac": "02:00:00:00:00:01", "live": true, "enabled": true, "speed_kbps": 0});
    let host = |number: u8| json!({"id": format!("00:00:00:00:00:0{number}"), "addresses": [], "at": format!("{number}/1"), "since_ms": 1});
    let intent = json!({"id": 7, "owner": "web", "state": "installed", "type": "host_to_host", "one": "00:00:00:00:00:01",
                        "two": "00:00:00:00:00:02", "priority": 20000, "protection": "restored", "since_ms": 1});
    let path = json!({"id": "7.0", "intent": 7, "from": "1/1", "to": "2/1", "links": ["1/2-2/2"]});
    let (one, two) = (flow::DatapathId(1), flow::DatapathId(2));
    Current {
        hosts: all(vec![host(1), host(2)]),
        ports: all::<Port>(["1/1", "1/2", "1/3", "2/1", "2/2"].map(port).to_vec()),
        intents: all(vec![intent]),
        paths: all::<Path>(vec![path]),
        ways: [
            ((one, two), vec!["1/2-2/2".parse().unwrap()]),
            ((two, one), vec!["2/2-1/2".parse().unwrap()]),
        ]
        .into(),
        ..Current::default()
    }
}

const INTENT: &str = "
[[intent]]
name = 'mail'
type = 'host_to_host'
one = '00:00:00:00:00:01'
two = '00:00:00:00:00:02'
";

const RULES: &str = "
[[rules]]
name = 'no-telnet'
rules = [{ switch = '1', priority = 40000, match = { eth_type = '0x0800', ip_proto = 6, tcp_dst = 23 }, instructions = [] }]
";

const HOST: &str = "
[[host]]
id = '00:00:00:00:00:09'
at = '1/3'
";

fn document(text: &str) -> Document {
    source::read("n", &format!("name = 'campus'\n{text}")).unwrap()
}

/// The network after this file was applied.
fn applied(text: &str) -> Current {
    let mut current = network();
    let document = document(text);
    for (number, wanted) in document.intents.iter().enumerate() {
        let mut intent = serde_json::to_value(&wanted.wanted).unwrap();
        intent["id"] = (10 + number).into();
        intent["owner"] = OWNER.into();
        intent["name"] = wanted.name.clone().into();
        intent["state"] = "installed".into();
        intent["since_ms"] = 1.into();
        current.intents.extend(all(vec![intent]));
        let path = json!({"id": format!("{}.0", 10 + number), "intent": 10 + number, "from": "1/1", "to": "2/1", "links": ["1/2-2/2"]});
        current.paths.extend(all::<Path>(vec![path]));
    }
    for set in &document.rules {
        for (number, rule) in set.rules.iter().enumerate() {
            let value = json!({"id": format!("{}/{number:016x}", rule.switch), "owner": OWNER, "set": set.name, "table_id": rule.table_id,
                               "priority": rule.priority, "match": rule.matching, "instructions": rule.instructions, "cookie": 1, "state": "installed"});
            current.rules.extend(all::<Rule>(vec![value]));
        }
    }
    for wanted in &document.hosts {
        let value = json!({"id": wanted.id, "addresses": wanted.addresses, "at": wanted.at, "since_ms": 1, "configured": true});
        current.hosts.extend(all::<Host>(vec![value]));
    }
    current.applied = vec![document];
    current
}

fn planned(current: &Current, file: &str) -> String {
    shown::text(&plan(&document(file), current), current)
}

#[track_caller]
fn check(current: &Current, file: &str, expected: &str) {
    let text = planned(current, file);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("time:")).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, expected, "{text}");
}

#[test]
fn what_would_cut_the_control_network_is_refused() {
    let refused = |current: &Current, file: &str, part: &str| {
        let plan = plan(&document(file), current);
        assert!(plan.refused.iter().any(|why| why.contains(part)), "{file}: {:?}", plan.refused);
    };
    let protect = |port: &str, file: &str| format!("protected = ['{port}']\n{file}");
    refused(&network(), &protect("1/2", INTENT), "intent campus/mail: a path uses of:0000000000000001/2");
    refused(&network(), &protect("1/3", RULES), "may take packets that arrive at of:0000000000000001/3");
    refused(&network(), &protect("1/3", HOST), "host 00:00:00:00:00:09");
    let out = RULES.replace("match = {", "match = { in_port = 1,").replace(
        "instructions = []",
        "instructions = [{ type = 'apply_actions', actions = [{ type = 'output', port = 3 }] }]",
    );
    refused(&network(), &protect("1/3", &out), "may send packets to of:0000000000000001/3");
    // The rules and paths that are there may carry them.
    refused(&applied(INTENT), &protect("1/2", ""), "intent campus/mail");
    refused(&applied(&protect("1/2", "")), INTENT, "intent campus/mail");
    let aside = RULES.replace("match = {", "match = { in_port = 1,");
    assert_eq!(plan(&document(&protect("1/3", &aside)), &network()).refused, [""; 0]);
}

#[test]
fn a_host_of_others_is_not_taken() {
    let mut current = network();
    let other =
        json!({"id": "00:00:00:00:00:09", "addresses": [], "at": "1/1", "since_ms": 1, "configured": true});
    current.hosts.extend(all::<Host>(vec![other]));
    let plan = plan(&document(HOST), &current);
    assert!(
        plan.steps.is_empty() && plan.refused[0].contains("an operator or another file has configured it"),
        "{plan:?}"
    );
}

#[test]
fn what_is_there_already_changes_nothing() {
    for file in ["", INTENT, RULES, HOST, &format!("{INTENT}{RULES}{HOST}")] {
        let plan = plan(&document(file), &applied(file));
        assert_eq!((plan.steps, plan.unchanged), (vec![], document(file).objects()), "{file}");
    }
}

#[test]
fn a_new_file_adds_everything() {
    check(
        &network(),
        &format!("{INTENT}{RULES}{HOST}"),
        "campus: 3 to add, 0 to change, 0 to withdraw, 0 unchanged
  + host 00:00:00:00:00:09  at of:0000000000000001/3
  + rules campus/no-telnet  1 rules
  + intent campus/mail  00:00:00:00:00:01 <-> 00:00:00:00:00:02
rules: about of:0000000000000001 +3 -0, of:0000000000000002 +2 -0
hosts: 00:00:00:00:00:01, 00:00:00:00:00:02, 00:00:00:00:00:09
other intents whose packets a rule may take: 7 of web
",
    );
}

#[test]
fn what_the_file_no_longer_has_goes_and_what_others_have_stays() {
    let mut current = applied(&format!("{INTENT}{RULES}{HOST}"));
    let other = json!({"id": 20, "owner": OWNER, "name": "campus2/mail", "state": "installed", "type": "point_to_point", "from": "1/1",
                       "to": "2/1", "since_ms": 1});
    current.intents.extend(all::<Intent>(vec![other]));
    check(
        &current,
        "",
        "campus: 0 to add, 0 to change, 3 to withdraw, 0 unchanged
  - intent campus/mail  00:00:00:00:00:01 <-> 00:00:00:00:00:02
  - rules campus/no-telnet  1 rules
  - host 00:00:00:00:00:09  at of:0000000000000001/3
rules: about of:0000000000000001 +0 -2, of:0000000000000002 +0 -1
hosts: 00:00:00:00:00:01, 00:00:00:00:00:02, 00:00:00:00:00:09
other intents whose packets a rule may take: 7 of web
",
    );
}

#[test]
fn a_change_counts_only_what_differs() {
    let more = RULES.replace("rules = [", "rules = [{ switch = '2', priority = 1, instructions = [] }, ");
    check(
        &applied(RULES),
        &more,
        "campus: 0 to add, 1 to change, 0 to withdraw, 0 unchanged
  ~ rules campus/no-telnet  2 rules
rules: about of:0000000000000002 +1 -0
hosts: none
other intents whose packets a rule may take: none
",
    );
    let faster = INTENT.replace("name = 'mail'", "name = 'mail'\npriority = 30000");
    check(
        &applied(INTENT),
        &faster,
        "campus: 0 to add, 1 to change, 0 to withdraw, 0 unchanged
  ~ intent campus/mail  00:00:00:00:00:01 <-> 00:00:00:00:00:02
rules: about of:0000000000000001 +2 -1, of:0000000000000002 +2 -1
hosts: 00:00:00:00:00:01, 00:00:00:00:00:02
other intents whose packets a rule may take: none
",
    );
}

#[test]
fn an_intent_whose_end_is_unknown_is_planned_with_a_note() {
    let file = INTENT.replace("00:00:00:00:00:02", "00:00:00:00:00:05");
    let text = planned(&network(), &file);
    assert!(
        text.contains("not known")
            && text.contains("note: intent campus/mail: the network has no host 00:00:00:00:00:05 yet"),
        "{text}"
    );
}

#[test]
fn the_time_is_that_of_earlier_versions_or_not_known() {
    let mut current = network();
    assert!(planned(&current, INTENT).contains("time: not known"));
    let version = json!({"version": 1, "at_ms": 1, "took": {"rules": 8, "took_ms": 20}});
    current.versions = all(vec![version]);
    assert!(
        planned(&current, INTENT)
            .contains("time: about 10 ms for 4 rules, if it goes as before (8 rules in 20 ms)")
    );
}

#[test]
fn a_rollback_goes_back_step_by_step() {
    let version =
        |version: u64, restores: Option<u64>| json!({"version": version, "at_ms": 1, "restores": restores});
    let check = |versions: Vec<Value>, expected: Option<u64>| {
        let current = Current { versions: all(versions), ..Current::default() };
        assert_eq!(current.before(), expected);
    };
    check(vec![], None);
    check(vec![version(1, None)], Some(0));
    check(vec![version(1, None), version(2, None)], Some(1));
    check(vec![version(1, None), version(2, None), version(3, Some(1))], Some(0));
    check(vec![version(1, None), version(2, Some(0))], None);
}
