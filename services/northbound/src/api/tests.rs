//! What requests are answered, from a small network.

use super::routes::{ROUTES, answer, ready};
use super::{AT_HAND, Answer, document};
use crate::http::{Method, Request};
use crate::state::State;
use burnet_sdk::view::{Change, Key, Object, Stamp, Tables};
use northbound_contract::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Two switches with two ports each, a link, and a host in a VLAN.
fn objects() -> Vec<Object> {
    let switch = |id: u64| {
        json!({"kind": "switch", "id": format!("{id}"), "state": "up", "openflow": "1.3", "n_tables": 2, "n_buffers": 0,
               "description": {"manufacturer": "M", "datapath": format!("s{id}")}, "since_ms": 5})
    };
    let port = |at: &str| {
        json!({"kind": "port", "id": at, "name": format!("eth{at}"), "mac": "02:00:00:00:00:01", "live": true,
               "enabled": true, "speed_kbps": 10_000_000})
    };
    let link = |id: &str, state: &str| {
        json!({"kind": "link", "id": id, "found": "direct", "state": state, "capacity_kbps": 1, "latency_us": 7,
               "since_ms": 5})
    };
    let host = json!({"kind": "host", "id": "00:00:00:00:00:0a.100", "addresses": ["10.0.0.1", "fe80::1"],
                      "at": "1/1", "since_ms": 5, "configured": true, "annotations": {"name": "web"}});
    let intent = json!({"kind": "intent", "id": 7, "owner": "northbound", "name": "a", "state": "installed",
                        "type": "explicit", "from": "1/1", "to": "2/2", "links": ["1/2-2/1"], "priority": 9,
                        "protection": "restored", "since_ms": 5});
    let path =
        json!({"kind": "path", "id": "7.0", "intent": 7, "from": "1/1", "to": "2/2", "links": ["1/2-2/1"]});
    let all = [
        switch(1),
        switch(2),
        port("1/1"),
        port("1/2"),
        port("2/1"),
        port("2/2"),
        link("1/2-2/1", "up"),
        link("2/1-1/2", "down"),
        intent,
        path,
        host,
    ];
    all.into_iter().map(|it| serde_json::from_value(it).unwrap()).collect()
}

fn change(sequence: u64, key: Key, object: Option<Object>) -> Change {
    Change { stamp: Stamp { term: 1, sequence, origin: 0 }, key, object }
}

fn network() -> (State, Tables) {
    let (mut state, mut tables) = (State::new("r".to_owned(), 0), Tables::new());
    let batch = tables.apply(objects().into_iter().map(|object| change(1, object.key(), Some(object))));
    state.change(&batch, tables.view());
    let app = json!({"id": "hub", "role": "app", "state": "running", "zone": 1, "zone_kind": "process", "pid": 7, "restarts": 0,
                     "since_ms": 5, "limits": [{"resource": "memory_bytes", "soft": 1, "hard": 2}], "refusals": 4,
                     "sample": {"unix_ms": 9, "cpu_percent": 150}});
    let slice = json!({"id": "slice.blue", "role": "app", "state": "running", "zone": 2, "zone_kind": "process", "restarts": 1,
                       "since_ms": 5, "last_end": "exit code 1", "limits": []});
    state.apps.take(serde_json::from_value(json!({ "apps": [app, slice] })).unwrap());
    let summary =
        slice_contract::Summary { slice: "blue".to_owned(), rules: 4, ..slice_contract::Summary::default() };
    state.slices.hear(2, &summary.to_bytes());
    let network = r#"{"slice": "blue", "switches": [{"id": "of:1", "shown_as": "of:1", "up": true, "ports": [{"port": 1, "shown_as": 2}]}],
                      "links": [{"id": "of:1/1-of:2/1", "up": false}], "vnics": {"E": "of:1/1"}, "cut": true}"#;
    state.slices.hear_network(2, network.as_bytes());
    let standing = json!([{"slice": "blue", "complete": true, "flows": 2, "links": 4, "stale": false}]);
    state.slices.take(serde_json::from_value(standing).unwrap());
    let ended = json!({"number": 1, "unix_ms": 5, "what": "app_ended", "app": "hub", "reason": "exit code 3", "then": "it restarts",
                       "culprit": "hub", "finding": "it ended by itself",
                       "delays": [{"percent": 5, "earliest_us": 1, "latest_us": 2, "observed_us": 3}]});
    state.on_stored(true, serde_json::from_value(json!([ended])).unwrap());
    state.on_incident("hosts", br#"{"kind":"moved","time_ms":7,"mac":"00:00:00:00:00:01"}"#);
    let summary = json!([{"switch": "1", "tables": "known", "wanted": 3, "installed": 2, "pending": 1, "foreign": 0, "orphans": 0,
                          "audits": 4, "repaired": 0}]);
    state.rules = serde_json::from_value(summary).unwrap();
    state.counters.take(burnet_sdk::DatapathId(1), &[&1_u32.to_be_bytes()[..], &[0; 108]].concat(), 9);
    (state, tables)
}

fn body(state: &State, target: &str) -> Value {
    let response = ready(state, target);
    assert_eq!(response.status, 200, "{target}: {}", String::from_utf8_lossy(&response.body));
    serde_json::from_slice(&response.body).unwrap()
}

/// The ids on a page.
fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
}

#[test]
fn a_wrong_request_is_refused_with_the_field() {
    let (state, _) = network();
    let check = |target: &str, status: u16, field: Option<&str>| {
        let response = ready(&state, target);
        let problem: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!((response.status, problem["field"].as_str()), (status, field), "{target}: {problem}");
        assert_eq!(response.content_type, "application/problem+json");
        assert_eq!(problem["status"], status);
    };
    check("/api/v1/nothing", 404, None);
    check("/api/v2", 404, None);
    check("/", 404, None);
    check("/api/v1/switches/3", 404, None);
    check("/api/v1/switches/x", 404, None);
    check("/api/v1/switches/3/ports", 404, None);
    check("/api/v1/switches/1/weather", 404, None);
    check("/api/v1/ports/1", 404, None);
    check("/api/v1/hosts/00:00:00:00:00:0a", 404, None);
    check("/api/v1/%ff", 400, None);
    check("/api/v1/../../etc/passwd", 400, None);
    check("/api/v1/%2e%2e/%2e%2e/etc/passwd", 400, None);
    check("/api/v1/switches?limit=0", 400, Some("limit"));
    check("/api/v1/switches?limit=1001", 400, Some("limit"));
    check("/api/v1/switches?limit=-1", 400, Some("limit"));
    check("/api/v1/switches?after=x", 400, Some("after"));
    check("/api/v1/switches?colour=red", 400, Some("colour"));
    check("/api/v1/switches?state=upside", 400, Some("state"));
    check("/api/v1/ports?live=perhaps", 400, Some("live"));
    check("/api/v1/links?found=lost", 400, Some("found"));
    check("/api/v1/hosts?vlan=4095", 400, Some("vlan"));
    check("/api/v1/hosts?address=10.0.0", 400, Some("address"));
    check("/api/v1/hosts?mac=1", 400, Some("mac"));
    check("/api/v1/hosts?at=1", 400, Some("at"));
    check("/api/v1/topology?limit=1", 400, Some("limit"));
    check("/api/v1/stream?kinds=weather", 400, Some("kinds"));
    check("/api/v1/stream?changes_only=1", 400, Some("changes_only"));
    check("/api/v1/apps/nobody", 404, None);
    check("/v1.0/topology/switches/1", 404, None);
    check("/onos/v1/links?direction=UP", 400, Some("direction"));
}

#[test]
fn a_resource_names_its_methods() {
    let (state, _) = network();
    let request = Request::new(Method::Delete, "/api/v1/topology").unwrap();
    let problem = answer(&state, &request, Role::Admin).unwrap_err();
    assert_eq!((problem.status, problem.headers), (405, vec![("allow", "GET".to_owned())]));
    assert_eq!(super::methods("/api/v1/hosts").unwrap(), ["GET", "POST"]);
    assert_eq!(super::methods("/api/v1/nothing").unwrap_err().status, 404);
}

#[test]
fn an_object_is_the_views_json_with_links() {
    let (state, _) = network();
    let check = |target: &str, expected: &str| {
        assert_eq!(body(&state, target)["_links"]["self"], expected, "{target}");
    };
    check("/api/v1/switches/0x1", "/api/v1/switches/of:0000000000000001");
    check("/api/v1/ports/1/2", "/api/v1/ports/of:0000000000000001/2");
    check("/api/v1/ports/of:1%2F2", "/api/v1/ports/of:0000000000000001/2");
    let link = "/api/v1/links/of:0000000000000001/2-of:0000000000000002/1";
    check(link, link);
    check("/api/v1/hosts/00:00:00:00:00:0A.100", "/api/v1/hosts/00:00:00:00:00:0a.100");
    let mut host = body(&state, "/api/v1/hosts/00:00:00:00:00:0a.100");
    host.as_object_mut().unwrap().remove("_links");
    let object: Object = serde_json::from_value(host).unwrap();
    assert!(objects().contains(&object));
}

#[test]
fn filters_choose_the_objects() {
    let (state, _) = network();
    let check =
        |target: &str, expected: &[&str]| assert_eq!(ids(&body(&state, target)), expected, "{target}");
    let (one, two) = ("of:0000000000000001", "of:0000000000000002");
    check("/api/v1/switches?state=up", &[one, two]);
    check("/api/v1/switches?state=down", &[]);
    check("/api/v1/ports?switch=2", &[&format!("{two}/1"), &format!("{two}/2")]);
    check("/api/v1/switches/2/ports?live=false", &[]);
    check("/api/v1/links?state=up", &[&format!("{one}/2-{two}/1")]);
    check("/api/v1/links?switch=1&state=down&found=direct", &[&format!("{two}/1-{one}/2")]);
    check("/api/v1/paths?intent=7", &["7.0"]);
    check("/api/v1/paths?intent=8", &[]);
    check("/api/v1/paths?switch=2", &["7.0"]);
    check("/api/v1/intents?state=failed", &[]);
    check("/api/v1/intents?owner=x", &[]);
    let host = ["00:00:00:00:00:0a.100"];
    for filter in
        ["at=1/1", "vlan=100", "address=fe80::1", "address=10.0.0.1", "switch=1", "mac=00:00:00:00:00:0a"]
    {
        check(&format!("/api/v1/hosts?{filter}"), &host);
    }
    for filter in ["at=1/2", "vlan=1", "address=10.0.0.2", "switch=2", "mac=00:00:00:00:00:0b"] {
        check(&format!("/api/v1/hosts?{filter}"), &[]);
    }
}

#[test]
fn pages_in_a_row_are_all_objects_whatever_their_size() {
    let (state, _) = network();
    let whole = body(&state, "/api/v1/ports");
    assert_eq!((whole["total"].as_u64(), whole.get("next")), (Some(4), None));
    for limit in 1..=5 {
        let (mut found, mut target) = (Vec::new(), format!("/api/v1/ports?limit={limit}&live=true"));
        loop {
            let page = body(&state, &target);
            assert_eq!(page["total"], 4);
            found.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            target = next.to_owned();
        }
        assert_eq!(found, ids(&whole), "{limit}");
    }
}

#[test]
fn a_page_begins_behind_the_last_object_although_that_is_gone() {
    let (mut state, mut tables) = network();
    let next = body(&state, "/api/v1/ports?limit=2")["next"].as_str().unwrap().to_owned();
    let key: Key = "port/of:0000000000000001/2".parse().unwrap();
    let batch = tables.apply([change(2, key, None)]);
    state.change(&batch, tables.view());
    assert_eq!(ids(&body(&state, &next)), ["of:0000000000000002/1", "of:0000000000000002/2"]);
}

#[test]
fn a_tag_changes_with_what_it_shows_and_with_nothing_else() {
    let (mut state, mut tables) = network();
    let tags = |state: &State| {
        let of = |target: &&str| ready(state, target).etag.unwrap();
        [
            "/api/v1/switches",
            "/api/v1/hosts",
            "/api/v1/topology",
            "/api/v1/switches/1",
            "/api/v1/hosts/00:00:00:00:00:0a.100",
        ]
        .iter()
        .map(of)
        .collect::<Vec<_>>()
    };
    let before = tags(&state);
    assert_eq!(before, tags(&state));
    let key: Key = "host/00:00:00:00:00:0a.100".parse().unwrap();
    let Some(Object::Host(host)) = objects().pop() else { panic!("the last one is the host") };
    let moved = Object::Host(burnet_sdk::view::Host { since_ms: 6, ..host });
    let batch = tables.apply([change(2, key, Some(moved))]);
    state.change(&batch, tables.view());
    let after = tags(&state);
    let changed: Vec<_> = before.iter().zip(&after).map(|(one, two)| one != two).collect();
    assert_eq!(changed, [false, true, true, false, true]);
    let mut request = Request::new(Method::Get, "/api/v1/hosts").unwrap();
    for (known, status) in [(&before[1], 200), (&after[1], 304)] {
        request.if_none_match = Some(known.clone());
        let Ok(Answer::Ready(response)) = answer(&state, &request, Role::Viewer) else {
            panic!("no response")
        };
        assert_eq!(response.status, status);
    }
}

#[test]
fn the_topology_is_everything_in_one_piece() {
    let (state, _) = network();
    let topology = body(&state, "/api/v1/topology");
    let counts = ["switches", "ports", "links", "hosts"].map(|it| topology[it].as_array().unwrap().len());
    assert_eq!((counts, topology["run"].as_str()), ([2, 4, 2, 1], Some("r")));
    assert_eq!(topology["version"], state.view.version());
}

#[test]
fn ryus_programs_find_what_they_know() {
    let (state, _) = network();
    let check = |target: &str, expected: Value| assert_eq!(body(&state, target), expected, "{target}");
    let port = |dpid: u64, port: u32| {
        json!({"dpid": format!("{dpid:016x}"), "port_no": format!("{port:08x}"), "hw_addr": "02:00:00:00:00:01",
               "name": format!("eth{dpid}/{port}")})
    };
    check("/stats/switches", json!([1, 2]));
    check(
        "/stats/desc/1",
        json!({"1": {"mfr_desc": "M", "hw_desc": "", "sw_desc": "", "serial_num": "", "dp_desc": "s1"}}),
    );
    check("/v1.0/topology/links/0000000000000001", json!([{"src": port(1, 2), "dst": port(2, 1)}]));
    check(
        "/v1.0/topology/switches/0000000000000002",
        json!([{"dpid": "0000000000000002", "ports": [port(2, 1), port(2, 2)]}]),
    );
    check(
        "/v1.0/topology/hosts",
        json!([{"mac": "00:00:00:00:00:0a", "ipv4": ["10.0.0.1"], "ipv6": ["fe80::1"], "port": port(1, 1)}]),
    );
}

#[test]
fn onoss_programs_find_what_they_know() {
    let (state, _) = network();
    let one = "of:0000000000000001";
    assert_eq!(body(&state, "/onos/v1/devices")["devices"][0]["available"], true);
    assert_eq!(body(&state, &format!("/onos/v1/devices/{one}/ports"))["ports"][1]["port"], "2");
    let links = body(&state, &format!("/onos/v1/links?device={one}&direction=EGRESS"));
    let end = |device: u64, port: &str| json!({"device": format!("of:{device:016x}"), "port": port});
    let expected = json!([{"src": end(1, "2"), "dst": end(2, "1"), "type": "DIRECT", "state": "ACTIVE"}]);
    assert_eq!(links["links"], expected);
    let host = body(&state, "/onos/v1/hosts/00:00:00:00:00:0A/100");
    assert_eq!(
        (host["id"].as_str(), host["locations"][0]["port"].as_str()),
        (Some("00:00:00:00:00:0A/100"), Some("1"))
    );
    let topology = body(&state, "/onos/v1/topology");
    assert_eq!([&topology["devices"], &topology["links"], &topology["clusters"]], [2, 1, 1]);
    let count = |target: &str, member: &str| body(&state, target)[member].as_array().unwrap().len();
    assert_eq!(count("/onos/v1/devices/ports", "ports"), 4);
    assert_eq!(count("/onos/v1/links?device=of:1&port=2", "links"), 2);
    assert_eq!(count("/onos/v1/links?device=of:1&port=2&direction=egress", "links"), 1);
    assert_eq!(count("/onos/v1/links?device=of:1&port=1", "links"), 0);
    assert_eq!(count("/onos/v1/intents?detail=true", "intents"), body(&state, "/api/v1/intents")["total"]);
    assert_eq!(count("/onos/v1/intents/application/nobody", "intents"), 0);
}

#[test]
fn the_clusters_of_onos_are_the_parts_of_the_network() {
    let (state, _) = network();
    let check = |target: &str, expected: Value| assert_eq!(body(&state, target), expected, "{target}");
    let one = json!({"id": 0, "deviceCount": 2, "linkCount": 1, "root": "of:0000000000000001"});
    check("/onos/v1/topology/clusters", json!({ "clusters": [one] }));
    check("/onos/v1/topology/clusters/0", one);
    let devices = json!({"devices": ["of:0000000000000001", "of:0000000000000002"]});
    check("/onos/v1/topology/clusters/0/devices", devices);
    assert_eq!(body(&state, "/onos/v1/topology/clusters/0/links")["links"].as_array().unwrap().len(), 1);
    for (port, is_link) in
        [("of:0000000000000001:2", true), ("of:0000000000000001:1", false), ("of:1/1", false)]
    {
        check(&format!("/onos/v1/topology/infrastructure/{port}"), json!({ "infrastructure": is_link }));
        check(&format!("/onos/v1/topology/broadcast/{port}"), json!({ "broadcast": true }));
    }
    for missing in ["clusters/1", "clusters/x", "clusters/0/hosts", "infrastructure/of:1:9", "broadcast/x"] {
        assert_eq!(ready(&state, &format!("/onos/v1/topology/{missing}")).status, 404, "{missing}");
    }
}

#[test]
fn a_broadcast_crosses_each_ring_once() {
    let (mut state, mut tables) = network();
    let ring = (1..=3).flat_map(|from| [(from, from % 3 + 1), (from % 3 + 1, from)]);
    let link = |(from, to): (u64, u64)| {
        // The port towards a switch has its number.
        let id = format!("{from}/{to}-{to}/{from}");
        serde_json::from_value::<Object>(json!({"kind": "link", "id": id, "found": "direct", "state": "up", "capacity_kbps": 0, "since_ms": 5})).unwrap()
    };
    let switches = (1..=4).map(|id| {
        let switch = json!({"kind": "switch", "id": id.to_string(), "state": "up", "openflow": "1.3", "n_tables": 1, "n_buffers": 0, "since_ms": 5});
        serde_json::from_value::<Object>(switch).unwrap()
    });
    let ports = (1..=3).flat_map(|at: u64| (1..=3).map(move |port: u64| (at, port))).map(|(at, port)| {
        let port = json!({"kind": "port", "id": format!("{at}/{port}"), "name": "p", "mac": "02:00:00:00:00:01", "live": true, "enabled": true, "speed_kbps": 1});
        serde_json::from_value::<Object>(port).unwrap()
    });
    let gone = tables
        .view()
        .links()
        .map(|it| (burnet_sdk::view::Key::Link(it.id), None))
        .collect::<Vec<(burnet_sdk::view::Key, _)>>();
    let new = switches.chain(ports).chain(ring.map(link)).map(|it| (it.key(), Some(it)));
    let batch = tables.apply(
        gone.into_iter()
            .chain(new)
            .map(|(key, object)| change(if object.is_some() { 9 } else { 8 }, key, object))
            .collect::<Vec<_>>(),
    );
    state.change(&batch, tables.view());
    let clusters = body(&state, "/onos/v1/topology/clusters");
    let sizes: Vec<_> = clusters["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["deviceCount"], &it["linkCount"]))
        .collect();
    assert_eq!(sizes, [(&json!(3), &json!(6)), (&json!(1), &json!(0))]);
    // Of the three cables of the ring, the tree has two, and each has two ends.
    let ends = [(1, 2), (2, 1), (2, 3), (3, 2), (3, 1), (1, 3)];
    let is_free = |(at, port): &&(u64, u64)| {
        body(&state, &format!("/onos/v1/topology/broadcast/of:{at:016x}:{port}"))["broadcast"] == true
    };
    assert_eq!(ends.iter().filter(is_free).count(), 4);
}

#[test]
fn metrics_are_in_the_form_of_prometheus() {
    let (state, _) = network();
    let text = String::from_utf8(ready(&state, "/metrics").body.to_vec()).unwrap();
    for line in [
        "burnet_switches{state=\"up\"} 2",
        "burnet_links{state=\"down\"} 1",
        "burnet_hosts 1",
        "burnet_port_receive_bytes_total{switch=\"of:0000000000000001\",port=\"1\"} 0",
        "burnet_port_speed_bytes{switch=\"of:0000000000000002\",port=\"1\"} 1250000000",
        "burnet_switch_up{switch=\"of:0000000000000002\"} 1",
        "burnet_switch_rules_installed{switch=\"of:0000000000000001\"} 2",
        "burnet_link_up{from=\"of:0000000000000002/1\",to=\"of:0000000000000001/2\"} 0",
        "burnet_app_up{app=\"hub\",role=\"app\"} 1",
        "burnet_app_cpu_cores{app=\"hub\"} 1.5",
        "burnet_app_memory_limit_bytes{app=\"hub\",limit=\"hard\"} 2",
        "burnet_app_commands_refused_total{app=\"hub\"} 4",
        "burnet_incidents{source=\"hosts\",what=\"moved\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing in {text}");
    }
    let names: BTreeSet<&str> =
        text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        assert!(names.contains(line.split(['{', ' ']).next().unwrap()), "{line} has no type");
    }
}

/// The metrics that the dashboard for Grafana shows.
const DASHBOARD: &str = include_str!("../../../../deploy/grafana/burnet.json");

/// The names of metrics in the queries of a dashboard.
fn queried(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|it| queried(it, found)),
        Value::Object(members) => members.values().for_each(|it| queried(it, found)),
        Value::String(text) => {
            let words = text.split(|it: char| !it.is_ascii_lowercase() && it != '_');
            found.extend(words.filter(|word| word.starts_with("burnet_")).map(str::to_owned));
        }
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_only_metrics_that_are_served() {
    let (state, _) = network();
    let text = String::from_utf8(ready(&state, "/metrics").body.to_vec()).unwrap();
    let served: BTreeSet<&str> =
        text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let mut found = BTreeSet::new();
    queried(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    for name in &found {
        assert!(served.contains(name.as_str()), "{name} is not served");
    }
}

/// The file that `document` is checked in as.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");

#[test]
fn the_description_in_the_repository_is_current() {
    let text = serde_json::to_string_pretty(&document(ROUTES)).unwrap() + "\n";
    if std::env::var_os("BURNET_BLESS").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let file = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        file == text,
        "docs/reference/openapi.json is out of date: BURNET_BLESS=1 cargo test -p northbound the_description"
    );
}

/// Whether another service answers it.
fn is_asked(path: &str) -> bool {
    [
        "flows",
        "groups",
        "meters",
        "routes",
        "audit",
        "explain",
        "network-files",
        "evidence",
        "labels",
        "vnics",
    ]
    .iter()
    .any(|it| path.contains(it))
}

/// A small judge of JSON by the parts of JSON Schema that the description uses.
fn fits(schema: &Value, value: &Value, schemas: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        return fits(&schemas[name.rsplit('/').next().unwrap()], value, schemas)
            .map_err(|why| format!("{name}: {why}"));
    }
    if let Some(only) = schema.get("const") {
        return if only == value { Ok(()) } else { Err(format!("{value} is not {only}")) };
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    match schema["type"].as_str() {
        Some("object") => members_fit(schema, value, schemas),
        Some("array") => {
            let items = value.as_array().ok_or("no list")?;
            items.iter().try_for_each(|it| fits(&schema["items"], it, schemas))
        }
        Some("string") => value.as_str().map(drop).ok_or(format!("{value} is no string")),
        Some("integer") => value.as_u64().map(drop).ok_or(format!("{value} is no number")),
        Some("boolean") => value.as_bool().map(drop).ok_or(format!("{value} is no boolean")),
        None => Ok(()),
        other => Err(format!("the judge does not know {other:?}")),
    }
}

fn members_fit(schema: &Value, value: &Value, schemas: &Value) -> Result<(), String> {
    let members = value.as_object().ok_or(format!("{value} is no object"))?;
    let required = schema["required"].as_array().into_iter().flatten();
    if let Some(missing) = required.filter_map(Value::as_str).find(|it| !members.contains_key(*it)) {
        return Err(format!("{missing} is missing"));
    }
    for (name, value) in members {
        let of = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        match of {
            Some(Value::Bool(false)) => return Err(format!("{name} is not described")),
            None => {}
            Some(of) => fits(of, value, schemas).map_err(|why| format!("{name}: {why}"))?,
        }
    }
    Ok(())
}

#[test]
fn every_answer_fits_its_schema() {
    let (state, _) = network();
    let document = document(ROUTES);
    let schemas = &document["components"]["schemas"];
    let id = |path: &str| if path.contains("port") && !path.contains("switches") { "1/1" } else { "1" };
    for route in ROUTES
        .iter()
        .filter(|route| !route.schema.is_empty() && route.method == Method::Get && !is_asked(route.path))
    {
        let target = match route.path {
            "/api/v1/links/{id}" => "/api/v1/links/1/2-2/1".to_owned(),
            "/api/v1/apps/{id}" => "/api/v1/apps/hub".to_owned(),
            "/api/v1/slices/{id}" => "/api/v1/slices/blue".to_owned(),
            "/api/v1/slices/{id}/network" => "/api/v1/slices/blue/network".to_owned(),
            "/api/v1/intents/{id}" => "/api/v1/intents/7".to_owned(),
            "/api/v1/paths/{id}" => "/api/v1/paths/7.0".to_owned(),
            "/api/v1/hosts/{id}" => "/api/v1/hosts/00:00:00:00:00:0a.100".to_owned(),
            path => path.replace("{id}", id(path)),
        };
        let schema = json!({ "$ref": route.schema });
        assert_eq!(fits(&schema, &body(&state, &target), schemas), Ok(()), "{target}");
        assert_eq!(ready(&state, &target).etag.is_some(), route.has_tag, "{target}");
        let refused: Value =
            serde_json::from_slice(&ready(&state, &format!("{target}?nothing=1")).body).unwrap();
        assert_eq!(fits(&json!({ "$ref": "Problem" }), &refused, schemas), Ok(()), "{target}");
    }
    let read = json!({"exit_code": 3, "core_dumped": false, "called": ["hub"], "last_lines": ["no room"],
                      "log": [{"unix_ms": 5, "line": "x"}], "samples": [{"unix_ms": 4, "memory_bytes": 7}]});
    let evidence = super::evidence_shown(7, serde_json::from_value(read).unwrap()).unwrap();
    let evidence: Value = serde_json::from_slice(&evidence.body).unwrap();
    assert_eq!(fits(&json!({ "$ref": "IncidentEvidence" }), &evidence, schemas), Ok(()));
    // The judge itself finds what is missing, unknown or of another type.
    let port = json!({"$ref": "Port"});
    for wrong in [json!({}), json!({"kind": "port", "id": 1}), json!(7)] {
        assert!(fits(&port, &wrong, schemas).is_err(), "{wrong}");
    }
}

#[test]
fn every_kind_of_object_has_a_collection() {
    let (state, _) = network();
    for kind in &AT_HAND {
        let target = format!("/api/v1/{}", super::objects::collection(*kind));
        assert_eq!(body(&state, &target)["total"], state.view.count(*kind), "{kind}");
    }
}
