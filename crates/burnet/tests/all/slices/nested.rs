//! Slices of slices: a node whose switches are those of a slice of another node, and which cuts them for tenants of its own.
//!
//! ```text
//!   hosts ── s1 ═══ s2 ── hosts        the network, 10 Mbit/s between the switches
//!            outer node                slices blue (tag 10) and red (tag 20)
//!   blue's controller: inner node      slices x and y, by addresses
//! ```

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE};

/// The hosts of the slices: those of the inner node, and that of the other tenant of the outer one. All have the same addresses.
const X: [&str; 2] = ["h1s1", "h1s2"];
const Y: [&str; 2] = ["h2s1", "h2s2"];
const RED: [&str; 2] = ["h3s1", "h3s2"];
/// What the link carries, and what red and x are promised.
const CAPACITY_KBPS: u64 = 10_000;
const RED_KBPS: u64 = 8_000;
const X_KBPS: u64 = 1_000;

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn tenant() -> Node {
    bed().node().app("learning-switch").start_ready()
}

/// A line of two switches. At each, the ports 1 to 3 lead to hosts, and port 4 to the other switch.
fn topology() -> Topology {
    let mut topology: Topology = "linear,2,3".parse().unwrap();
    for names in [X, Y, RED] {
        for (place, name) in (1_u8..).zip(names) {
            let index = topology.host_named(name).unwrap();
            topology.hosts[index].mac = flow::MacAddr([2, 0, 0, 0, 0, place]);
            topology.hosts[index].address = [10, 0, 0, place].into();
        }
    }
    for link in &mut topology.links {
        link.quality.rate_bits_per_s = Some(CAPACITY_KBPS * 1_000);
    }
    topology
}

/// The services of a node that labels links, and the slices.
fn config(slices: &str) -> String {
    format!(
        "[network]\nservices = ['discovery', 'labels', 'northbound']\n[network.northbound]\nlisten = ['{}']\n{slices}",
        free()
    )
}

/// Two VNICs at this port of both switches.
fn vnics(port: u16, kbps: u64) -> String {
    format!(
        "v{port}a = {{ port = 's1:{port}', rate = '{kbps}k' }}, v{port}b = {{ port = 's2:{port}', rate = '{kbps}k' }}"
    )
}

struct World {
    outer: Node,
    inner: Node,
    network: Handle,
    _tenants: [Node; 3],
}

impl World {
    /// `labels`: how the outer node tells the inner one its labels.
    fn new(labels: &str) -> World {
        let tenants = [tenant(), tenant(), tenant()];
        let inner_slice = |name: &str, port: u16, controller: &Node| {
            format!(
                "[slice.{name}]\ncontrollers = ['{}']\nisolation = 'address'\nprefix = '172.16.{port}.0/24'\naddresses = '10.0.0.0/24'\n\
                 hosts = {{ '10.0.0.1' = 's1:{port}', '10.0.0.2' = 's2:{port}' }}\nlinks = ['s1:4-s2:4']\nvnics = {{ {} }}\n",
                controller.address(),
                vnics(port, X_KBPS)
            )
        };
        let slices = inner_slice("x", 1, &tenants[0]) + &inner_slice("y", 2, &tenants[1]);
        let inner = bed().node().config(&config(&slices)).log("info").start_ready();
        let outer_slice = |name: &str, tag: u16, controller: &Node, vnics: &str| {
            format!(
                "[slice.{name}]\ncontrollers = ['{}']\nisolation = 'vlan'\ntag = {tag}\nlinks = ['s1:4-s2:4']\nvnics = {{ {vnics} }}\n",
                controller.address()
            )
        };
        let blue = format!("{}, {}", vnics(1, X_KBPS), vnics(2, X_KBPS));
        let slices = outer_slice("blue", 10, &inner, &blue)
            + &format!("labels = '{labels}'\n")
            + &outer_slice("red", 20, &tenants[2], &vnics(3, RED_KBPS));
        let outer = bed().node().config(&config(&slices)).log("info").start_ready();
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Emulation::start(&topology(), outer.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        for node in [&inner, &tenants[0], &tenants[1], &tenants[2]] {
            node.wait("it has both switches", |node| node.switches().len() == 2);
        }
        World { outer, inner, network, _tenants: tenants }
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let report = self.network.begin_ping(from, to, Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    }

    /// Pings both ways until it works: the first packets may come before the rules.
    fn wait_pings(&self, [one, two]: [&str; 2]) {
        self.outer
            .wait("the hosts of a slice reach each other", |_| self.ping(one, two) && self.ping(two, one));
    }

    /// Frames for these hosts, without the probes by which nodes find links.
    fn received(&self, hosts: [&str; 2]) -> u64 {
        let counters = self.network.host_counters().into_iter();
        let of_hosts = counters.filter(|(name, _)| hosts.contains(&name.as_str()));
        of_hosts.map(|(_, it)| it.frames_in - it.frames_ignored).sum()
    }

    /// Waits until a slice of a node has this label for the link from s1 to s2, while the hosts of these slices ping each other. Rules of slices
    /// without packets would end.
    fn wait_label(&self, talking: &[[&str; 2]], node: &Node, slice: &str, expected: u64) {
        node.wait(&format!("the label of {slice} is {expected}"), |_| {
            talking.iter().for_each(|[one, two]| _ = self.ping(one, two));
            label(node, slice) == Some(expected)
        });
    }

    /// What `burnet slice explain` says of a rule.
    fn explain(node: &Node, slice: &str, rule: &str) -> (bool, String) {
        let done = node.bed().run(&["slice", "explain", slice, rule]);
        let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        (done.status.success(), text)
    }
}

/// The label of a slice for the link from s1 to s2, as it is now.
fn label(node: &Node, slice: &str) -> Option<u64> {
    let done = node.bed().run(&["slice", "labels", slice, "--json"]);
    let labels: Value = serde_json::from_slice(&done.stdout).ok()?;
    let is_there =
        |item: &&Value| item["link"].as_str().is_some_and(|link| link.starts_with("of:0000000000000001/4"));
    labels["items"].as_array()?.iter().find(is_there)?["label_kbps"].as_u64()
}

#[test]
fn packets_stay_in_their_slice_on_both_levels() {
    let world = World::new("experimenter");
    let all = [X, Y, RED];
    for own in all {
        let others = || all.into_iter().filter(|hosts| *hosts != own);
        let before: Vec<u64> = others().map(|hosts| world.received(hosts)).collect();
        world.wait_pings(own);
        let after: Vec<u64> = others().map(|hosts| world.received(hosts)).collect();
        assert_eq!(before, after, "a frame of {own:?} reached a host of another slice");
    }
    // The inner node refuses what leads from x to y, and the outer one what leads from the inner node to red.
    let check = |node: &Node, slice: &str, port: u16, is_fine: bool| {
        let (done, text) = World::explain(
            node,
            slice,
            &format!("in_port=1,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2,actions=output:{port}"),
        );
        assert_eq!(done, is_fine, "{slice} to port {port}: {text}");
    };
    check(&world.inner, "x", 4, true);
    check(&world.inner, "x", 2, false);
    check(&world.outer, "blue", 2, true);
    check(&world.outer, "blue", 3, false);
}

/// The labels of the inner node follow that of the outer one, and are never higher.
fn labels_are_passed_on_as(form: &str) {
    let world = World::new(form);
    let (outer, inner) = (&world.outer, &world.inner);
    world.wait_label(&[], outer, "blue", CAPACITY_KBPS);
    world.wait_label(&[], inner, "y", CAPACITY_KBPS);
    world.wait_label(&[X], inner, "y", CAPACITY_KBPS - X_KBPS);
    // The flow of x is one of blue for the outer node: it is in no label of blue, and in that of red.
    world.wait_label(&[X], outer, "red", CAPACITY_KBPS - X_KBPS);
    assert_eq!(label(outer, "blue"), Some(CAPACITY_KBPS));
    let left = CAPACITY_KBPS - RED_KBPS;
    world.wait_label(&[X, RED], outer, "blue", left);
    world.wait_label(&[X, RED], inner, "x", left);
    world.wait_label(&[X, RED], inner, "y", left - X_KBPS);
}

/// Whether labels of a slice may be too high, as its node says.
fn is_stale(node: &Node, slice: &str) -> Option<bool> {
    let done = node.bed().run(&["slice", "labels", slice, "--json"]);
    let labels: Value = serde_json::from_slice(&done.stdout).ok()?;
    labels["stale"].as_bool()
}

#[test]
fn labels_of_an_inner_slice_are_stale_while_those_of_the_outer_one_are() {
    let world = World::new("experimenter");
    let (outer, inner) = (&world.outer, &world.inner);
    world.wait_label(&[], inner, "x", CAPACITY_KBPS);
    let wait = |expected: bool| {
        outer.wait("blue", |node| is_stale(node, "blue") == Some(expected));
        inner.wait("x", |node| is_stale(node, "x") == Some(expected));
        inner.wait("y", |node| is_stale(node, "y") == Some(expected));
    };
    wait(false);
    // The service forgets what slices have reported, and red cannot say it again.
    let run = |arguments: &[&str]| {
        let done = outer.bed().run(arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run(&["slice", "pause", "red"]);
    run(&["app", "restart", "labels"]);
    wait(true);
    run(&["slice", "resume", "red"]);
    wait(false);
}

#[test]
fn labels_of_an_inner_slice_promise_no_more_than_the_messages_of_the_outer_node() {
    labels_are_passed_on_as("experimenter");
}

#[test]
fn labels_of_an_inner_slice_promise_no_more_than_the_speed_that_the_outer_node_shows() {
    labels_are_passed_on_as("speed");
}
