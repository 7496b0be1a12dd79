//! Whole nodes that judge their slices by their network view: slices with links run at once and are judged later, and slices without links wait.

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE};

/// A node that finds its network, and its REST interface.
struct World {
    node: Node,
    rest: SocketAddr,
    network: Option<Handle>,
}

/// The ports of the emulated switches have 10 Gbit/s.
fn slice(name: &str, port: u16, rate: &str, more: &str) -> String {
    slice_of("127.0.0.1:9", name, port, rate, more)
}

fn slice_of(controller: &str, name: &str, port: u16, rate: &str, more: &str) -> String {
    format!(
        "[slice.{name}]\ncontrollers = ['{controller}']\nisolation = 'vlan'\ntag = {port}0\n\
         vnics = {{ A = {{ port = 's1:{port}', rate = '{rate}', meter = false }}, B = {{ port = 's2:{port}', rate = '{rate}', meter = false }} }}\n{more}\n"
    )
}

impl World {
    fn new(slices: &str) -> World {
        let rest = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let node = World::start(&Bed::new(env!("CARGO_BIN_EXE_burnet")), rest, slices);
        World { node, rest, network: None }
    }

    fn start(bed: &Bed, rest: SocketAddr, slices: &str) -> Node {
        bed.node().config(&World::config(rest, slices)).log("info").start_ready()
    }

    fn config(rest: SocketAddr, slices: &str) -> String {
        format!("[network.northbound]\nlisten = ['{rest}']\n{slices}")
    }

    fn connect(&mut self) {
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let topology: Topology = "ring,3,2".parse().unwrap();
        let network = Emulation::start(&topology, self.node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        self.network = Some(network);
    }

    fn run(&self, words: &[&str]) -> (bool, String) {
        let done = self.node.bed().run(words);
        (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
    }

    fn note(&self, slice: &str) -> String {
        let name = format!("slice.{slice}");
        let app = self.node.apps().into_iter().find(|app| app.status.app == name);
        app.and_then(|app| app.status.note).unwrap_or_default()
    }

    fn wait_note(&self, slice: &str, note: &str) {
        self.node.wait(&format!("{slice}: {note:?}"), |_| self.note(slice) == note);
    }

    /// The note of a slice in the REST interface.
    fn told(&self, slice: &str) -> Value {
        let mut connection = TcpStream::connect(self.rest).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET /api/v1/slices/{slice} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["note"].clone()
    }

    fn links(&self) -> String {
        std::fs::read_to_string(self.node.bed().state().join("slice-links.json")).unwrap_or_default()
    }
}

const LACKS: &str = "does not fit: its VNICs can put 4.0G on link s1:3-s2:3, which has 2.0G of 10.0G left";

#[test]
fn slices_with_links_run_at_once_and_are_judged_when_the_network_is_known() {
    let (blue, red) =
        (slice("blue", 1, "8G", "links = ['s1:3-s2:3']"), slice("red", 2, "4G", "links = ['s1:3-s2:3']"));
    let mut world = World::new(&(blue + &red));
    let pid = world.node.pid_of("slice.red");
    assert!(pid.is_some() && world.node.pid_of("slice.blue").is_some(), "{}", world.node.log());
    world.connect();
    world.wait_note("red", LACKS);
    let note = LACKS;
    // The sentence is that of a plan.
    let both =
        slice("blue", 1, "8G", "links = ['s1:3-s2:3']") + &slice("red", 2, "4G", "links = ['s1:3-s2:3']");
    let file = world.node.bed().file("both.toml", &both);
    let (fits, plan) = world.run(&["slice", "plan", file.to_str().unwrap()]);
    let sentence = note.strip_prefix("does not fit: ").unwrap();
    assert!(!fits && plan.contains(&format!("slice red: {sentence}")), "{note}; {plan}");
    let line = format!("slice red: {note}\n");
    let shown = world.run(&["slice", "show", "red"]).1;
    assert!(shown.starts_with(&line), "{shown}");
    let listed = world.run(&["slice", "list"]).1;
    assert!(listed.contains(&line), "{listed}");
    world.node.wait("REST has the note", |_| world.told("red") == note);
    world.node.wait_for_line(&format!("app slice.red: {note}"));
    assert_eq!(world.note("blue"), "", "the first of the file fits");
    // It keeps running, and the note goes with its cause.
    let less =
        slice("blue", 1, "1G", "links = ['s1:3-s2:3']") + &slice("red", 2, "4G", "links = ['s1:3-s2:3']");
    let file = world.node.bed().file("less.toml", &less);
    let (done, text) = world.run(&["slice", "apply", file.to_str().unwrap()]);
    assert!(done, "{text}");
    world.wait_note("red", "");
    world.node.wait_for_line("app slice.red: no longer: does not fit");
    assert_eq!(world.node.pid_of("slice.red"), pid, "{}", world.node.log());
}

#[test]
fn a_slice_without_links_waits_for_the_network_and_keeps_what_is_chosen() {
    let tenant = Bed::new(env!("CARGO_BIN_EXE_burnet"))
        .node()
        .config("[southbound]\nversions = ['1.3']\n")
        .app("learning-switch")
        .start_ready();
    let blue = slice_of(&tenant.address().to_string(), "blue", 1, "8G", "");
    let mut world = World::new(&blue);
    let waits = "waits for the network: s1, s2 are not connected";
    world.wait_note("blue", waits);
    assert_eq!(world.node.pid_of("slice.blue"), None);
    let (list, show) = (world.run(&["slice", "list"]).1, world.run(&["slice", "show", "blue"]).1);
    assert!(list.contains(" waits ") && list.ends_with(&format!("slice blue: {waits}\n")), "{list}");
    assert_eq!(show, format!("slice blue does not run: {waits}\n"));
    world.connect();
    world.wait_note("blue", "");
    world.node.wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
    let ping = |world: &World| {
        let report =
            world.network.as_ref().unwrap().begin_ping("h1s1", "h1s2", Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    };
    world.node.wait("its hosts reach each other", |_| ping(&world));
    let chosen = world.links();
    assert!(chosen.contains("of:0000000000000001/3"), "{chosen}");
    // After a restart, it runs without a network, with the links that were chosen.
    world.network = None;
    let bed = world.node.bed().clone();
    world.node.signal(Signal::TERM);
    world.node.wait_for_end();
    // Another choice that would not be made: the long way round.
    let long = r#"{"blue": ["of:0000000000000001/4-of:0000000000000003/4", "of:0000000000000002/4-of:0000000000000003/3"]}"#;
    std::fs::write(bed.state().join("slice-links.json"), long).unwrap();
    world.node = World::start(&bed, world.rest, &blue);
    assert!(world.node.pid_of("slice.blue").is_some(), "{}", world.node.log());
    world.wait_note("blue", "not judged yet: s1, s2, s3 are not connected");
    world.connect();
    world.wait_note("blue", "");
    world.node.wait("its hosts reach each other", |_| ping(&world));
    let kept = world.links();
    assert!(kept.contains("of:0000000000000001/4") && !kept.contains("of:0000000000000001/3"), "{kept}");
}

#[test]
fn a_slice_that_does_not_fit_waits_and_is_not_applied_to_a_node_that_knows_its_network() {
    let mut world = World::new(&slice("blue", 1, "11G", ""));
    world.connect();
    let lacks = "does not fit: A asks for 11.0G; the NIC of s1:1 has 10.0G of 10.0G left";
    world.wait_note("blue", lacks);
    assert_eq!((world.node.pid_of("slice.blue"), world.links().as_str()), (None, ""));
    let bed = world.node.bed().clone();
    // A slice that is new does not fit either: nothing changes, neither by a file of slices nor by a reload.
    let both = slice("blue", 1, "5G", "") + &slice("red", 2, "12G", "");
    bed.file("burnet.toml", &World::config(world.rest, &both));
    let why = world.node.reload().unwrap_err();
    assert_eq!(why, "slice red: A asks for 12.0G; the NIC of s1:2 has 10.0G of 10.0G left");
    let file = bed.file("both.toml", &both);
    let (done, text) = world.run(&["slice", "apply", file.to_str().unwrap()]);
    assert!(!done && text.contains(&why), "{text}");
    assert_eq!(world.note("blue"), lacks);
    // The one that had waited starts when it fits.
    bed.file("burnet.toml", &World::config(world.rest, &slice("blue", 1, "5G", "")));
    world.node.reload().unwrap();
    world.node.wait("the slice runs", |node| node.pid_of("slice.blue").is_some());
    world.wait_note("blue", "");
    assert!(world.links().contains("of:0000000000000001/3"), "{}", world.links());
    // With --force, the node runs what does not fit, and says so.
    let (done, text) = world.run(&["slice", "apply", file.to_str().unwrap(), "--force"]);
    assert!(done, "{text}");
    world.wait_note("red", "does not fit: A asks for 12.0G; the NIC of s1:2 has 10.0G of 10.0G left");
}

#[test]
fn what_the_operator_writes_of_ports_counts_for_admission_plans_and_labels() {
    let speeds = "[network.discovery]\nport_speeds = { s1 = '10M', 's2:2' = '5M', 's2:3' = '10M' }\n";
    let links = "links = ['s1:3-s2:3']";
    let both = slice("blue", 1, "8M", links) + &slice("red", 2, "4M", links);
    let mut world = World::new(&(speeds.to_owned() + &both));
    world.connect();
    let sentence = "its VNICs can put 4.0M on link s1:3-s2:3, which has 2.0M of 10.0M left";
    world.wait_note("red", &format!("does not fit: {sentence}"));
    let file = world.node.bed().file("both.toml", &both);
    let plan = world.run(&["slice", "plan", file.to_str().unwrap()]).1;
    assert!(plan.contains(sentence) && plan.contains("A     s1:1  s1:1  8.0M  2.0M"), "{plan}");
    // The port of the switch that the operator did not name has what the switch says.
    assert!(plan.contains("B     s2:1  s2:1  8.0M  9.9G"), "{plan}");
    let labels = |world: &World| world.run(&["slice", "labels", "blue"]).1;
    world.node.wait("blue has labels", |_| labels(&world).contains("s1:3-s2:3  10.0M     10.0M"));
    assert!(!labels(&world).contains("not known"));
}
