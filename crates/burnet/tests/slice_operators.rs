//! What operators and tenants see of the slices of a whole node: commands, REST with tokens, metrics, and a reload.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use emulator::SwitchOptions;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use test_bed::{Bed, Node, PATIENCE};

/// The SHA-256 of `blue-secret`.
const BLUE_HASH: &str = "353765e7cd696e444218c2c4d1aff536e6048287229e23d9e2918b611cae9df3";

fn slice(name: &str, controller: &str, tag: u16, port: u16) -> String {
    format!(
        "[slice.{name}]\ncontrollers = ['{controller}']\nisolation = 'vlan'\ntag = {tag}\nown_ports = ['s1:{port}']\n"
    )
}

/// A node with the slices blue and red. The tenants' controllers do not answer, but accept connections.
struct World {
    bed: Bed,
    node: Node,
    rest: SocketAddr,
    _controllers: [TcpListener; 2],
    _network: emulator::Handle,
}

impl World {
    fn new() -> World {
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (blue, red, rest) = (listener(), listener(), listener().local_addr().unwrap());
        let address = |it: &TcpListener| it.local_addr().unwrap().to_string();
        let token = format!(
            "[network.northbound.tokens]\nblue = {{ role = 'tenant', slice = 'blue', sha256 = '{BLUE_HASH}' }}\n"
        );
        let text = format!("[network.northbound]\nlisten = ['{rest}']\n{token}")
            + &slice("blue", &address(&blue), 10, 1)
            + &slice("red", &address(&red), 20, 2);
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let node = bed.node().config(&text).log("info").start_ready();
        let network = node.network("single,2", &SwitchOptions::default());
        node.wait("the services are there", |node| {
            ["northbound", "labels", "slice.blue", "slice.red"].iter().all(|it| node.pid_of(it).is_some())
        });
        World { bed, node, rest, _controllers: [blue, red], _network: network }
    }

    /// What a request with the token of the blue tenant is answered.
    fn as_blue(&self, path: &str) -> (u16, Value) {
        let mut connection = TcpStream::connect(self.rest).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer blue-secret\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

fn text(done: &Output) -> String {
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[test]
fn a_tenant_reads_its_own_slice_over_rest_and_nothing_else() {
    let world = World::new();
    world
        .node
        .wait("the monitor has reported the slices", |_| world.as_blue("/api/v1/slices").1["total"] == 1);
    let (_, page) = world.as_blue("/api/v1/slices");
    assert_eq!(page["items"][0]["id"], "blue", "{page}");
    world.node.wait("the slice has published its numbers", |_| {
        let (status, slice) = world.as_blue("/api/v1/slices/blue");
        assert_eq!(status, 200, "{slice}");
        slice["switches_up"] == 1 && slice["connections"] == 1
    });
    world.node.wait("the service labels answers", |_| world.as_blue("/api/v1/slices/blue/labels").0 == 200);
    let (_, labels) = world.as_blue("/api/v1/slices/blue/labels");
    assert!(labels["items"].is_array() && labels["stale"].is_boolean(), "{labels}");
    assert_eq!(world.as_blue("/api/v1/slices/blue/flows").0, 200);
    for path in [
        "/api/v1/slices/red",
        "/api/v1/slices/red/labels",
        "/api/v1/slices/red/flows",
        "/api/v1/slices/nobody",
    ] {
        assert_eq!(world.as_blue(path).0, 404, "{path}");
    }
    for path in
        ["/api/v1/switches", "/api/v1/apps", "/metrics", "/api/v1/stream", "/api/v1/topology", "/api/v1/node"]
    {
        assert_eq!(world.as_blue(path).0, 403, "{path}");
    }
}

#[test]
fn the_operator_sees_labels_flows_and_metrics_of_each_slice() {
    let world = World::new();
    let run = |words: &[&str]| world.bed.run(words);
    world.node.wait("the service labels answers", |_| run(&["slice", "labels", "blue"]).status.success());
    let labels: Value = serde_json::from_str(&text(&run(&["slice", "labels", "blue", "--json"]))).unwrap();
    assert!(labels["items"].is_array(), "{labels}");
    let flows = text(&run(&["slice", "flows", "red"]));
    assert!(flows.starts_with("slice red has no flow"), "{flows}");
    let unknown = run(&["slice", "labels", "green"]);
    let why = String::from_utf8(unknown.stderr).unwrap();
    assert!(why.contains("there is no slice \"green\"") && unknown.status.code() == Some(1), "{why}");
    world.node.wait("the metrics have the slices", |_| {
        let metrics = text(&run(&["metrics"]));
        [
            "burnet_slice_up{slice=\"blue\"} 1",
            "burnet_slice_connections{slice=\"red\"} 1",
            "burnet_slice_flows{slice=\"red\"} 0",
        ]
        .iter()
        .all(|line| metrics.contains(line))
    });
    let list: Value = serde_json::from_str(&text(&run(&["slice", "list", "--json"]))).unwrap();
    assert_eq!((list[0]["slice"].as_str(), list[1]["slice"].as_str()), (Some("blue"), Some("red")), "{list}");
    assert!(list[1]["detail"]["Ok"]["switches"][0]["is_up"].as_bool().unwrap(), "{list}");
}

#[test]
fn a_reload_with_an_unknown_name_of_a_controller_keeps_the_running_slice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let good = slice("blue", &listener.local_addr().unwrap().to_string(), 10, 1);
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let node = bed.node().config(&good).log("info").start_ready();
    node.wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
    let pid = node.pid_of("slice.blue");
    bed.file("burnet.toml", &slice("blue", "nowhere.invalid:6653", 10, 1));
    let why = node.reload().unwrap_err();
    assert!(
        why.contains("slice blue: the name of its controller nowhere.invalid:6653 has no address"),
        "{why}"
    );
    assert_eq!(node.pid_of("slice.blue"), pid);
}
