//! The walk through `examples/slices`: the files of the folder, and the commands of its page, on ports of the test.

use emulator::topology::CustomTopology;
use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE, kill};

/// The hosts of the network, with the slice of each.
const HOSTS: [(&str, &str); 6] =
    [("a", "red"), ("b", "red"), ("c", "blue"), ("d", "blue"), ("e", "blue"), ("f", "blue")];

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/slices").join(name)
}

/// A file of the folder.
fn file(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The file, with the controllers at these addresses, and REST at a free port.
fn on_free_ports(name: &str, controllers: &[(&str, &Node)]) -> String {
    let mut text = file(name);
    for (written, node) in controllers {
        assert!(text.contains(written), "{name} has no controller {written}");
        text = text.replace(written, &node.address().to_string());
    }
    let rest = format!("[network.northbound]\nlisten = ['{}']\n", free());
    match text.contains("[network.northbound]") {
        true => text.replace("127.0.0.1:8182", &free().to_string()),
        false => rest + &text,
    }
}

/// The node of a tenant that spreads its flows by labels, with the rates of these hosts by number.
fn spreading_tenant(vnics: &[(u8, u64)]) -> Node {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_burnet")).with_file_name("multipath");
    assert!(program.is_file(), "{} is missing: cargo build --package multipath", program.display());
    let vnic = |(host, mbps): &(u8, u64)| {
        format!("{{ mac = '00:00:00:00:00:{host:02x}', rate_kbps = {} }}", mbps * 1_000)
    };
    let vnics: Vec<String> = vnics.iter().map(vnic).collect();
    let config = format!(
        "[southbound]\nversions = ['1.3']\n[network]\nservices = ['discovery', 'hosts']\n[app.multipath]\npath = '{}'\n\
         [app.multipath.capabilities]\n'packet.in' = true\n'packet.out' = true\n'view.read' = true\n'host.read' = true\n\
         'rule.write' = {{ priority = [10000, 19999] }}\n[app.multipath.settings]\nvnics = [{}]\n",
        program.display(),
        vnics.join(", ")
    );
    bed().node().config(&config).start_ready()
}

/// The node of a tenant, with `tenant.toml`.
fn tenant() -> Node {
    bed().node().config(&file("tenant.toml")).start_ready()
}

fn topology() -> Topology {
    let custom = CustomTopology { file: path("fig1a.py"), name: "fig1a".to_owned() };
    custom.read().unwrap()
}

struct Walk {
    node: Node,
    network: Handle,
    _tenants: [Node; 2],
}

impl Walk {
    /// A node of `live.toml`, with two tenants and the network of `fig1a.py`. With an app beside the slices, it is no `burnet slice run`.
    fn new(has_app: bool) -> Walk {
        Walk::with([tenant(), tenant()], has_app, |live| live)
    }

    /// With these nodes of red and blue, and a change of `live.toml`.
    fn with([red, blue]: [Node; 2], has_app: bool, change: impl Fn(String) -> String) -> Walk {
        let live = on_free_ports("live.toml", &[("127.0.0.1:6701", &red), ("127.0.0.1:6702", &blue)]);
        let live = change(live);
        let bed = bed();
        let launch = if has_app {
            let path = bed.example("label_watcher");
            let capabilities = "[app.watcher.capabilities]\nvendor = ['0x00627572:message']\n";
            let app = format!("[app.watcher]\npath = '{}'\n{capabilities}", path.display());
            bed.node().config(&(live + &app))
        } else {
            bed.slices(&live)
        };
        let node = launch.log("info").start_ready();
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Emulation::start(&topology(), node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        red.wait("red has its switches", |red| red.switches().len() == 6);
        blue.wait("blue has its switches", |blue| blue.switches().len() == 8);
        Walk { node, network, _tenants: [red, blue] }
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    /// Waits until each host reaches all hosts of its slice.
    fn wait_pings(&self) {
        for (from, slice) in HOSTS {
            for (to, _) in HOSTS.into_iter().filter(|(to, of)| *of == slice && *to != from) {
                self.node.wait("the hosts of a slice reach each other", |_| self.ping(from, to));
            }
        }
    }

    /// What a command prints.
    fn says(&self, words: &[&str]) -> String {
        let done = self.node.bed().run(words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// What a command answers in JSON. `None`: not now.
    fn asked(&self, words: &[&str]) -> Option<Value> {
        let done = self.node.bed().run(&[words, &["--json"]].concat());
        serde_json::from_slice(&done.stdout).ok()
    }

    /// The label of blue on the way from s3 to s1, or from s3 to s2.
    fn label(&self, link: &str) -> Option<u64> {
        let labels = self.asked(&["slice", "labels", "blue"])?;
        labels["items"].as_array()?.iter().find(|it| it["link"] == link)?["label_kbps"].as_u64()
    }
}

impl Walk {
    /// The spine that a flow crosses, 1 or 2, if it has a path.
    fn spine(&self, slice: &str, from: &str, to: &str) -> Option<u8> {
        let flows = self.asked(&["slice", "flows", slice])?;
        let flow = flows["items"].as_array()?.iter().find(|it| it["from"] == from && it["to"] == to)?.clone();
        let links = flow["links"].to_string();
        [1, 2].into_iter().find(|spine: &u8| links.contains(&format!("of:{spine:016x}/")))
    }
}

#[test]
fn a_tenant_that_reads_labels_takes_the_spine_that_the_other_leaves() {
    let (red, blue) = (spreading_tenant(&[(1, 8), (4, 8)]), spreading_tenant(&[(3, 10), (6, 10)]));
    let speed = |live: String| live.replace("labels = \"experimenter\"", "labels = \"speed\"");
    let walk = Walk::with([red, blue], false, speed);
    walk.node.wait("red has a flow over a spine", |_| {
        walk.ping("a", "b") && walk.spine("red", "A", "B").is_some()
    });
    walk.node.wait("blue's flow is on the other spine", |_| {
        let is_there = walk.ping("a", "b") && walk.ping("e", "f");
        let spines = [walk.spine("red", "A", "B"), walk.spine("blue", "E", "F")];
        is_there && spines.iter().all(Option::is_some) && spines[0] != spines[1]
    });
}

const BY_S1: &str = "of:0000000000000003/1-of:0000000000000001/1";
const BY_S2: &str = "of:0000000000000003/2-of:0000000000000002/1";

#[test]
fn the_walk_through_two_tenants_shows_what_its_page_says() {
    let walk = Walk::new(false);
    walk.wait_pings();
    for (from, of) in HOSTS {
        let (to, _) = HOSTS.into_iter().find(|(_, other)| *other != of).unwrap();
        let report = walk.network.begin_ping(from, to, Duration::from_millis(500)).unwrap();
        assert!(!report.recv().unwrap().is_complete(), "{from} reaches {to} of another slice");
    }
    // The flow of red crosses one of both spines, and leaves 2 of 10 Mbit/s there.
    walk.node.wait("blue learns what red leaves", |_| {
        let mut labels = [walk.label(BY_S1), walk.label(BY_S2)];
        walk.ping("a", "b");
        labels.sort_unstable();
        labels == [Some(2_000), Some(10_000)]
    });
    assert!(walk.says(&["slice", "list"]).contains("blue"));
    walk.node.wait("red has its flows", |_| walk.spine("red", "A", "B").is_some());
    assert!(walk.says(&["slice", "flows", "red"]).contains("8.0M"));
    assert!(walk.says(&["slice", "report", "blue"]).contains("SENDS LESS BECAUSE"));
    let (too_much, network) = (path("too-much.toml"), path("fig1a.toml"));
    let apply = ["slice", "apply", too_much.to_str().unwrap()];
    // A switch does not say which of its ports lead to one server. The description does.
    for (more, expected) in [
        (&[][..], "not all slices fit"),
        (
            &["--network", network.to_str().unwrap()],
            "D asks for 4.0M; the NIC of server 3 has 2.0M of 10.0M left",
        ),
    ] {
        let refused = walk.node.bed().run(&[&apply[..], more].concat());
        let why =
            String::from_utf8_lossy(&refused.stderr).into_owned() + &String::from_utf8_lossy(&refused.stdout);
        assert!(!refused.status.success() && why.contains(expected), "{why}");
    }
    walk.says(&["slice", "remove", "red"]);
    walk.node.wait("red is gone, with its rules", |node| {
        let flows = node.flows();
        node.pid_of("slice.red").is_none()
            && flows.iter().flat_map(|it| &it.flows).all(|flow| flow.owner != "slice.red")
    });
    walk.wait_blue_pings();
}

impl Walk {
    fn wait_blue_pings(&self) {
        self.node.wait("blue goes on", |_| self.ping("e", "f") && self.ping("c", "d"));
    }
}

#[test]
fn a_killed_slice_leaves_the_app_beside_it_and_the_other_tenant_alone() {
    let walk = Walk::new(true);
    walk.wait_pings();
    let (app, slice) = (walk.node.pid_of("watcher"), walk.node.pid_of("slice.blue").unwrap());
    kill(slice);
    for _ in 0..20 {
        assert!(walk.ping("a", "b"), "red has lost a ping");
    }
    walk.node.wait_app("slice.blue", "runs again", |app| app.status.pid.is_some_and(|now| now != slice));
    assert!(app.is_some() && walk.node.pid_of("watcher") == app, "the app beside goes on");
    walk.wait_blue_pings();
}

#[test]
fn burnet_slice_run_runs_no_apps_and_says_what_does() {
    let bed = bed();
    let file = path("live.toml");
    for words in [["--app", "hub"], ["--config", "x.toml"]] {
        let done = bed.run(&[&["slice", "run", file.to_str().unwrap()][..], &words].concat());
        let why = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && why.contains("use burnet run"), "{words:?}: {why}");
    }
}

#[test]
fn the_walk_through_slices_of_slices_shows_what_its_page_says() {
    let learning = || bed().node().app("learning-switch").start_ready();
    let (x, y, red) = (learning(), learning(), learning());
    let inner = on_free_ports("inner.toml", &[("127.0.0.1:6711", &x), ("127.0.0.1:6712", &y)]);
    let inner = bed().slices(&inner).start_ready();
    let outer = on_free_ports("outer.toml", &[("127.0.0.1:6702", &inner), ("127.0.0.1:6701", &red)]);
    let outer = bed().slices(&outer).start_ready();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&"linear,2,3".parse().unwrap(), outer.address(), &options).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let ping = |from: &str, to: &str| {
        network.begin_ping(from, to, Duration::from_secs(5)).unwrap().recv().unwrap().is_complete()
    };
    for (from, to) in [("h1s1", "h1s2"), ("h2s1", "h2s2"), ("h3s1", "h3s2")] {
        outer.wait("the hosts of a slice reach each other", |_| ping(from, to) && ping(to, from));
    }
    let label = |node: &Node, slice: &str| -> Option<u64> {
        let done = node.bed().run(&["slice", "labels", slice, "--json"]);
        let labels: Value = serde_json::from_slice(&done.stdout).ok()?;
        labels["items"].as_array()?.first()?["label_kbps"].as_u64()
    };
    outer.wait("red leaves 2 of 10 Mbit/s for blue", |outer| {
        ping("h3s1", "h3s2") && label(outer, "blue") == Some(2_000)
    });
    inner.wait("the flow of x leaves 1 of 2 Mbit/s for y", |inner| {
        ping("h3s1", "h3s2") && ping("h1s1", "h1s2") && label(inner, "y") == Some(1_000)
    });
}
