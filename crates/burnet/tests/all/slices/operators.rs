//! What operators and tenants see of the slices of a whole node: commands, REST with tokens, metrics, and a reload.

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use operator::contract::FlowsView;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::time::Duration;
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
    let report = text(&run(&["slice", "report", "red"]));
    assert!(report.starts_with("slice red has no VNICs"), "{report}");
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

#[test]
fn the_operator_pauses_and_resumes_a_slice_and_watches_it() {
    let world = World::new();
    let run = |words: &[&str]| text(&world.bed.run(words));
    world
        .node
        .wait("the monitor has reported the slices", |_| world.as_blue("/api/v1/slices").1["total"] == 1);
    let mut watch =
        world.bed.burnet().args(["slice", "watch", "blue"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut wait_line = |part: &str| lines.find(|line| line.contains(part)).unwrap();
    wait_line("slice/blue  state=running");
    wait_line("current=true");
    let red = world.node.pid_of("slice.red");
    assert!(run(&["slice", "pause", "blue"]).contains("slice blue is being paused"));
    wait_line("slice/blue  state=stopped");
    assert!(run(&["slice", "list"]).contains("paused"));
    run(&["slice", "resume", "blue"]);
    wait_line("slice/blue  state=running");
    assert_eq!(world.node.pid_of("slice.red"), red, "the other slice does not notice");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_paused_slice_stays_paused_when_the_node_starts_again_until_it_is_resumed() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let config = slice("blue", "127.0.0.1:9", 10, 1) + &slice("red", "127.0.0.1:9", 20, 2);
    let start = || bed.node().config(&config).log("info").start();
    let run = |words: &[&str]| text(&bed.run(words));
    let is_paused = |node: &Node| {
        let list = run(&["slice", "list"]);
        let line = list.lines().find(|line| line.starts_with("blue")).unwrap_or_default();
        line.contains("paused") && node.pid_of("slice.blue").is_none()
    };
    let node = start();
    node.wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
    run(&["slice", "pause", "blue"]);
    node.wait("it is paused", |node| is_paused(node));
    assert!(run(&["slice", "show", "blue"]).contains("`burnet slice resume blue` starts it again"));
    drop(node);
    let node = start();
    node.wait("the other slice runs", |node| node.pid_of("slice.red").is_some());
    node.wait("it is paused still", |node| is_paused(node));
    run(&["app", "start", "slice.blue"]);
    node.wait_for_line("is paused, and does not start until it is resumed");
    node.reload().unwrap();
    assert!(is_paused(&node), "a reload changes nothing");
    run(&["slice", "resume", "blue"]);
    node.wait("the slice runs again", |node| node.pid_of("slice.blue").is_some());
    drop(node);
    let node = start();
    node.wait("it is not paused any more", |node| node.pid_of("slice.blue").is_some());
}

#[test]
fn a_flow_mod_of_a_tenant_is_explained_by_its_slice_or_from_a_file() {
    let world = World::new();
    let rule = "priority=5,in_port=2,actions=output:2";
    let explain = |words: &[&str]| world.bed.run(&[&["slice", "explain"], words].concat());
    let file = world.bed.path("burnet.toml");
    let file = ["--file", file.to_str().unwrap()];
    world.node.wait("the slice has its switches", |_| explain(&["red", rule]).status.success());
    let of_node = text(&explain(&["red", "priority=5,in_port=2,actions=IN_PORT"]));
    assert!(of_node.starts_with("switch s1\n  priority=") && of_node.contains("in_port=2"), "{of_node}");
    assert_eq!(text(&explain(&["red", "priority=5,in_port=2,actions=IN_PORT", file[0], file[1]])), of_node);
    let refused = explain(&["red", "priority=5,in_port=1,actions=output:2"]);
    let why = String::from_utf8(refused.stdout).unwrap();
    assert!(why.starts_with("switch s1: refused: ") && refused.status.code() == Some(1), "{why}");
    assert_eq!(explain(&["red", "delete in_port=1"]).status.code(), Some(2));
    assert_eq!(explain(&["green", rule]).status.code(), Some(1));
    assert_eq!(explain(&["red", rule, "--switch", "s9"]).status.code(), Some(1));
}

/// Two slices at both switches of a line, with tenants that learn. Each has a host at each switch.
struct Tenants {
    bed: Bed,
    node: Node,
    _controllers: [Node; 2],
    network: emulator::Handle,
    sections: [String; 2],
}

impl Tenants {
    /// `versions`: what the switches speak.
    fn new(versions: Versions) -> Tenants {
        let tenant = || {
            let config = "[southbound]\nversions = ['1.3']\n";
            Bed::new(env!("CARGO_BIN_EXE_burnet")).node().config(config).app("learning-switch").start_ready()
        };
        let controllers = [tenant(), tenant()];
        let section = |name: &str, tag: u16, port: u16, controller: &Node| {
            format!(
                "[slice.{name}]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = {tag}\nown_ports = ['s1:{port}', 's2:{port}']\nlinks = ['s1:3-s2:3']\n",
                controller.address()
            )
        };
        let sections = [section("blue", 10, 1, &controllers[0]), section("red", 20, 2, &controllers[1])];
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let node = bed.node().config(&sections.concat()).log("info").start_ready();
        let topology: Topology = "linear,2,2".parse().unwrap();
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let network = Emulation::start(&topology, node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        Tenants { bed, node, _controllers: controllers, network, sections }
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    fn wait_ping(&self, from: &str, to: &str) {
        self.node.wait("the hosts reach each other", |_| self.ping(from, to));
    }

    /// How many rules of this app the switches have.
    fn rules(&self, app: &str) -> usize {
        self.node.flows().iter().flat_map(|switch| &switch.flows).filter(|flow| flow.owner == app).count()
    }

    fn apply(&self, text: &str) -> Output {
        let file = self.bed.file("wanted.toml", text);
        self.bed.run(&["slice", "apply", file.to_str().unwrap()])
    }

    fn names(&self) -> Vec<String> {
        let list: Value = serde_json::from_str(&text(&self.bed.run(&["slice", "list", "--json"]))).unwrap();
        list.as_array().unwrap().iter().map(|it| it["slice"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn slices_are_removed_and_added_while_another_loses_no_ping_and_keeps_its_rules() {
    for versions in [Versions::Only10, Versions::Only13] {
        remove_and_add(&Tenants::new(versions));
    }
}

fn remove_and_add(world: &Tenants) {
    world.wait_ping("h1s1", "h1s2");
    world.wait_ping("h2s1", "h2s2");
    let (red_pid, red_rules) = (world.node.pid_of("slice.red"), world.rules("slice.red"));
    assert!(world.rules("slice.blue") > 2 && red_rules > 2);
    let done = text(&world.apply(&world.sections[1]));
    assert!(done.contains("app slice.blue ends") && !done.contains("slice.red restarts"), "{done}");
    assert!(!done.contains("its rules stay") && !done.contains("other capabilities"), "{done}");
    assert!(!world.node.log().contains("was reloaded: 0 changes"), "a check before is no reload");
    world.node.wait("the slice is gone", |_| world.names() == ["red"]);
    assert_eq!(world.rules("slice.blue"), 0, "its rules left the switches");
    assert!(world.ping("h2s1", "h2s2") && world.ping("h2s2", "h2s1"), "the other slice goes on");
    assert_eq!((world.node.pid_of("slice.red"), world.rules("slice.red") >= red_rules), (red_pid, true));
    assert!(!world.ping("h1s1", "h1s2"), "nobody forwards its packets");
    text(&world.apply(&world.sections.concat()));
    world.wait_ping("h1s1", "h1s2");
    assert_eq!(world.node.pid_of("slice.red"), red_pid);
    text(&world.bed.run(&["slice", "remove", "red"]));
    world.node.wait("the slice is gone", |_| world.names() == ["blue"]);
    assert_eq!(world.rules("slice.red"), 0);
    assert!(world.ping("h1s1", "h1s2"));
}

#[test]
fn a_file_with_one_bad_slice_leaves_all_slices_and_their_rules_as_they_are() {
    let world = Tenants::new(Versions::Only13);
    world.wait_ping("h1s1", "h1s2");
    world.wait_ping("h2s1", "h2s2");
    let slices = || {
        ["slice.blue", "slice.red"].map(|app| {
            let flows = world.node.flows().into_iter().flat_map(|switch| switch.flows);
            let own = flows.filter(|flow| flow.owner == app);
            let mut rules: Vec<_> = own.map(|it| (it.cookie, it.matching, it.actions)).collect();
            rules.sort();
            (world.node.pid_of(app), rules)
        })
    };
    let before = slices();
    // Blue is not in it, red has another tag, and green is bad.
    let red = world.sections[1].replace("tag = 20", "tag = 21");
    for bad in [slice("green", "nowhere.invalid:6653", 30, 9), slice("green", "127.0.0.1:9", 21, 2)] {
        let wanted = red.clone() + &bad;
        assert!(!world.apply(&wanted).status.success());
        world.bed.file("burnet.toml", &wanted);
        world.node.reload().unwrap_err();
        assert_eq!(slices(), before, "{bad}");
    }
    assert!(world.ping("h1s1", "h1s2") && world.ping("h2s1", "h2s2"));
    assert!(!world.bed.state().join("slices.toml").exists(), "nothing is there for the next start");
}

#[test]
fn a_reload_that_removes_or_changes_a_slice_withdraws_its_rules() {
    for versions in [Versions::Only10, Versions::Only13] {
        let world = Tenants::new(versions);
        world.wait_ping("h1s1", "h1s2");
        world.wait_ping("h2s1", "h2s2");
        let red = world.node.pid_of("slice.red");
        let with_tag = |tag: u16| {
            let rules = world.node.flows().into_iter().flat_map(|switch| switch.flows);
            let tags =
                [format!("dl_vlan={tag}"), format!("mod_vlan_vid:{tag}"), format!("set_vlan_vid:{tag}")];
            let of_blue = rules.filter(|flow| flow.owner == "slice.blue");
            of_blue
                .filter(|it| tags.iter().any(|tag| format!("{},{}", it.matching, it.actions).contains(tag)))
                .count()
        };
        assert!(with_tag(10) > 0);
        let other = world.sections[0].replace("tag = 10", "tag = 11");
        world.bed.file("burnet.toml", &(other + &world.sections[1]));
        let done = world.node.reload().unwrap().done;
        let line = "slice blue: all its rules leave s1, s2: its packets are others";
        assert!(done.iter().any(|it| it == line) && !done.iter().any(|it| it.contains("stay")), "{done:?}");
        world.wait_ping("h1s1", "h1s2");
        assert!(with_tag(10) == 0 && with_tag(11) > 0, "{:?}", world.node.flows());
        world.bed.file("burnet.toml", &world.sections[1]);
        let done = world.node.reload().unwrap().done;
        assert!(!done.iter().any(|it| it.contains("stay")), "{done:?}");
        world.node.wait("the slice is gone", |_| world.names() == ["red"]);
        assert_eq!(world.rules("slice.blue"), 0, "its rules left the switches");
        assert!(world.ping("h2s1", "h2s2"));
        assert_eq!(world.node.pid_of("slice.red"), red, "the other slice does not notice");
    }
}

/// A node of its own with the services of the network, and with these slices.
fn with_network(slices: &str) -> (Bed, Node) {
    let rest = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let text = format!("[network.northbound]\nlisten = ['{rest}']\n{slices}");
    let node = bed.node().config(&text).log("info").start_ready();
    (bed, node)
}

#[test]
fn with_the_first_slice_that_is_applied_the_service_of_labels_begins() {
    let (bed, node) = with_network("");
    assert!(node.pid_of("labels").is_none());
    let file = bed.file("wanted.toml", &slice("red", "127.0.0.1:9", 20, 2));
    let done = text(&bed.run(&["slice", "apply", file.to_str().unwrap()]));
    assert!(done.contains("app labels is added") && !done.contains("after a restart"), "{done}");
    node.wait("the service runs", |node| node.pid_of("labels").is_some());
    node.wait("the slice has labels", |_| bed.run(&["slice", "labels", "red"]).status.success());
}

/// Two switches with one link, and a NIC at each.
const NETWORK: &str = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:3-s2:3'\n\
                       [[nic]]\nports = ['s1:1', 's1:2']\n[[nic]]\nports = ['s2:1']\n";

#[test]
fn a_node_with_a_description_of_its_network_admits_slices_and_chooses_their_links() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let network = bed.file("network.toml", NETWORK);
    let slice = |name: &str, tag: u16, vnics: &str| {
        format!(
            "[slice.{name}]\ncontrollers = ['127.0.0.1:9']\nisolation = 'vlan'\ntag = {tag}\nvnics = {{ {vnics} }}\n"
        )
    };
    let blue = slice("blue", 7, "A = { port = 's1:1', rate = '8M' }, B = { port = 's2:1', rate = '8M' }");
    let red = slice("red", 8, "C = { port = 's1:2', rate = '4M' }");
    let config = format!("[node]\nnetwork_description = '{}'\n{blue}", network.display());
    let node = bed.node().config(&config).log("info").start_ready();
    let show = || bed.run(&["slice", "show", "blue", "--json"]);
    node.wait("the slice answers", |_| show().status.success());
    let shown: Value = serde_json::from_str(&text(&show())).unwrap();
    assert_eq!(shown["switches"].as_array().map(Vec::len), Some(2), "{shown}");
    let file = bed.file("wanted.toml", &(blue + &red));
    let done = bed.run(&["slice", "apply", file.to_str().unwrap()]);
    let why = String::from_utf8(done.stderr).unwrap();
    let expected = "slice red: C asks for 4.0M; the NIC of s1:1 has 2.0M of 10.0M left";
    assert!(!done.status.success() && why.contains(expected), "{why}");
    assert!(node.pid_of("slice.red").is_none());
}

/// A ring of three switches. Each link carries one of the slices below.
const RING: &str = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:3-s2:3'\n[[link]]\nbetween = 's2:4-s3:3'\n\
                    [[link]]\nbetween = 's1:4-s3:4'\n[[nic]]\nports = ['s1:1']\n[[nic]]\nports = ['s1:2']\n\
                    [[nic]]\nports = ['s2:1']\n[[nic]]\nports = ['s2:2']\n";

#[test]
fn a_slice_with_chosen_links_loses_no_ping_while_another_is_applied_and_removed() {
    let tenant = || {
        let config = "[southbound]\nversions = ['1.3']\n";
        Bed::new(env!("CARGO_BIN_EXE_burnet")).node().config(config).app("learning-switch").start_ready()
    };
    let controllers = [tenant(), tenant()];
    // The pings are more than the rate.
    let slice = |name: &str, tag: u16, port: u16, controller: &Node| {
        format!(
            "[slice.{name}]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = {tag}\n\
             vnics = {{ A = {{ port = 's1:{port}', rate = '8M', meter = false }}, B = {{ port = 's2:{port}', rate = '8M', meter = false }} }}\n",
            controller.address()
        )
    };
    let (blue, red) = (slice("blue", 10, 1, &controllers[0]), slice("red", 20, 2, &controllers[1]));
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let network = bed.file("network.toml", RING);
    let config = format!("[node]\nnetwork_description = '{}'\n{blue}", network.display());
    let node = bed.node().config(&config).log("info").start_ready();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let topology: Topology = "ring,3,2".parse().unwrap();
    let network = Emulation::start(&topology, node.address(), &options).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let ping = |from: &str, to: &str| {
        let report = network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    };
    node.wait("the hosts of blue reach each other", |_| ping("h1s1", "h1s2") && ping("h1s2", "h1s1"));
    let rules = || -> Vec<(String, String, String)> {
        let flows = node.flows().into_iter().flat_map(|switch| switch.flows);
        let own = flows.filter(|flow| flow.owner == "slice.blue");
        own.map(|flow| (flow.cookie, flow.matching, flow.actions)).collect()
    };
    let (before, pid) = (rules(), node.pid_of("slice.blue"));
    let while_pinging = |words: &[&str]| -> Output {
        let command = bed.burnet().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut command = command.unwrap();
        while command.try_wait().unwrap().is_none() {
            assert!(ping("h1s1", "h1s2"), "a ping was lost: {}", node.log());
        }
        command.wait_with_output().unwrap()
    };
    // Red comes first in the file, so it would get the link between s1 and s2 if blue did not have it.
    let file = bed.file("wanted.toml", &(red + &blue));
    let done = text(&while_pinging(&["slice", "apply", file.to_str().unwrap(), "--force"]));
    assert!(done.contains("app slice.red is added") && !done.contains("slice.blue"), "{done}");
    node.wait("the hosts of red reach each other", |_| ping("h2s1", "h2s2"));
    text(&while_pinging(&["slice", "remove", "red"]));
    assert_eq!(node.pid_of("slice.blue"), pid, "its process is the same");
    let after = rules();
    assert!(before.iter().all(|rule| after.contains(rule)), "before: {before:?}, after: {after:?}");
}

#[test]
fn a_tenant_that_finds_links_itself_is_refused_no_rule_on_a_node_that_does_so_too() {
    let (_bed_of_tenant, tenant) = with_network("");
    let slices = format!(
        "[slice.blue]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = 10\nown_ports = ['s1:1', 's2:1']\nlinks = ['s1:3-s2:3']\n",
        tenant.address()
    );
    let (_bed, node) = with_network(&slices);
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let _network = node.network("linear,2,2", &options);
    tenant.wait("the tenant has its switches", |tenant| tenant.switches().len() == 2);
    // The tenant's own rule for probes has priority 65,001, and that of the node too.
    let has_rule = |node: &Node, owner: &str, priority: u16| {
        let flows = node.flows();
        let at = |switch: &FlowsView| {
            switch.flows.iter().any(|flow| flow.owner == owner && flow.priority == priority)
        };
        flows.len() == 2 && flows.iter().all(at)
    };
    node.wait("both have their rules for probes", |node| {
        has_rule(node, "discovery", 65_001) && has_rule(node, "slice.blue", 64_733)
    });
    assert!(!node.log().contains("would shadow"), "{}", node.log());
}

#[test]
fn a_file_that_is_wrong_or_overlaps_changes_nothing_and_what_was_applied_stays_after_a_restart() {
    let slice_of = |name: &str, tag: u16, port: u16| slice(name, "127.0.0.1:9", tag, port);
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let config = slice_of("blue", 10, 1);
    let start = || bed.node().config(&config).log("info").start_ready();
    let node = start();
    let names = |node: &Node| -> Vec<String> {
        node.apps()
            .into_iter()
            .filter_map(|app| Some(app.status.app.strip_prefix("slice.")?.to_owned()))
            .collect()
    };
    let pid = node.pid_of("slice.blue");
    let check = |text: &str, part: &str| {
        let file = bed.file("wanted.toml", text);
        let done = bed.run(&["slice", "apply", file.to_str().unwrap()]);
        let why = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && why.contains(part), "{why}");
        assert_eq!((names(&node), node.pid_of("slice.blue")), (vec!["blue".to_owned()], pid), "{part}");
    };
    check("[slice.red]\n", "line 1");
    check(&(slice_of("red", 10, 2) + &slice_of("green", 10, 3)), "tag");
    check(&(slice_of("red", 10, 2) + "[node]\nlog = 'info'\n"), "also has [node]");
    check(&slice_of("red", 10, 2).replace("127.0.0.1", "nowhere.invalid"), "has no address");
    let file = bed.file("wanted.toml", &slice_of("red", 20, 2));
    text(&bed.run(&["slice", "apply", file.to_str().unwrap(), "--dry-run"]));
    assert_eq!((names(&node), node.pid_of("slice.blue")), (vec!["blue".to_owned()], pid));
    assert!(!bed.state().join("slices.toml").exists(), "nothing is there for the next start");
    text(&bed.run(&["slice", "apply", file.to_str().unwrap()]));
    node.wait("the other slice runs", |node| names(node) == ["red"] && node.pid_of("slice.red").is_some());
    drop(node);
    let node = start();
    assert_eq!(names(&node), ["red"], "also after a restart");
    assert!(node.log().contains("which the operator has applied"));
    text(&bed.run(&["slice", "remove", "red"]));
    node.wait("it has no slice", |node| names(node).is_empty());
    drop(node);
    let node = bed.node().config(&config).log("info").start();
    node.wait("it answers", |_| bed.run(&["slice", "list"]).status.success());
    assert!(names(&node).is_empty(), "also after a restart, though the configuration has a slice");
    text(&bed.run(&["slice", "apply"]));
    node.wait("the configuration's slice runs again", |node| names(node) == ["blue"]);
}

#[test]
fn a_tenant_sees_the_network_of_its_slice() {
    let world = World::new();
    world.node.wait("the switch is up in it", |_| {
        let (status, network) = world.as_blue("/api/v1/slices/blue/network");
        status == 200 && network["switches"][0]["up"] == true
    });
    let (_, network) = world.as_blue("/api/v1/slices/blue/network");
    let ports = serde_json::json!([{ "port": 1, "shown_as": 1 }]);
    assert_eq!(network["switches"][0]["ports"], ports, "the port of red is not in it");
    assert_eq!(world.as_blue("/api/v1/slices/red/network").0, 404);
}
