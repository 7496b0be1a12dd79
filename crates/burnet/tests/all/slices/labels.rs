//! A whole node with two slices on one link: what the flows of one, and the intents of the operator, leave is told to the controller of the other.

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use flow::PortNo;
use openflow::labels::{EXPERIMENTER, LabelMessage, NO_LABEL, PortLabel, split_labels};
use openflow::message::{FeaturesReply, FlowModFields, Hello, PORT_MODIFIED};
use openflow::{Body, Message, Version, frame_len};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use test_bed::{Bed, Node, PATIENCE, kill};

/// The hosts of the blue slice. Those of the red one are at the ports 2.
const BLUE: [&str; 2] = ["h1s1", "h1s2"];
/// What the link between the switches carries, and what blue's VNICs are promised.
const CAPACITY_KBPS: u32 = 10_000;
const BLUE_KBPS: u32 = 8_000;

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// A line of two switches. At each, port 1 leads to a host of the blue slice, port 2 to one of the red, and port 3 to the other switch.
fn topology() -> Topology {
    let mut topology: Topology = "linear,2,2".parse().unwrap();
    for link in &mut topology.links {
        link.quality.rate_bits_per_s = Some(u64::from(CAPACITY_KBPS) * 1_000);
    }
    topology
}

/// A tenant's controller that a test plays: connections of switches, and what they say.
struct Tenant {
    listener: TcpListener,
    version: Version,
    is_paper: bool,
    switches: BTreeMap<u64, TcpStream>,
    /// Switch, message, and the labels behind its ports.
    heard: Vec<(u64, Message, Vec<u32>)>,
}

impl Tenant {
    fn new(version: Version, is_paper: bool) -> Tenant {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Tenant { listener, version, is_paper, switches: BTreeMap::new(), heard: Vec::new() }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Takes the connections of both switches.
    fn accept(&mut self) {
        while self.switches.len() < 2 {
            let (mut stream, _) = self.listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            tell(&mut stream, self.version, Body::Hello(Hello::default()));
            tell(&mut stream, self.version, Body::FeaturesRequest);
            let datapath = loop {
                let (message, labels) = next(&mut stream, self.is_paper).unwrap();
                if let Body::FeaturesReply(FeaturesReply { datapath_id, .. }) = &message.body {
                    let datapath = datapath_id.0;
                    self.heard.push((datapath, message, labels));
                    break datapath;
                }
            };
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            self.switches.insert(datapath, stream);
        }
    }

    fn say(&mut self, datapath: u64, body: Body) {
        tell(self.switches.get_mut(&datapath).unwrap(), self.version, body);
    }

    /// Sends packets that enter one port of a switch out of another.
    fn rule(&mut self, datapath: u64, matching: &str, actions: &str) {
        let matching = flow::text::parse_match(matching).unwrap();
        let instructions = flow::text::parse_instructions(actions).unwrap();
        self.say(datapath, Body::FlowMod(FlowModFields::default().with(matching, instructions)));
    }

    /// Reads until this holds for a message, and gives it.
    fn wait<T>(&mut self, what: &str, mut holds: impl FnMut(u64, &Message, &[u32]) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            while !self.heard.is_empty() {
                let (from, message, labels) = self.heard.remove(0);
                if let Some(found) = holds(from, &message, &labels) {
                    return found;
                }
            }
            assert!(Instant::now() < until, "not in time: {what}");
            for (datapath, stream) in &mut self.switches {
                if let Some((message, labels)) = next(stream, self.is_paper) {
                    if let Body::EchoRequest(payload) = &message.body {
                        tell(stream, self.version, Body::EchoReply(payload.clone()));
                    }
                    self.heard.push((*datapath, message, labels));
                }
            }
        }
    }

    /// Waits until the labels of port 3 of both switches are these, in the form of the paper.
    fn wait_labels(&mut self, expected: u32) {
        let mut labels_of: BTreeMap<u64, u32> = BTreeMap::new();
        self.wait(&format!("the labels {expected}"), |from, message, labels| {
            match (&message.body, labels) {
                (Body::PortStatus(it), [label]) if it.port.port_no.0 == 3 => {
                    assert_eq!(it.reason, PORT_MODIFIED);
                    labels_of.insert(from, *label);
                }
                (Body::FeaturesReply(it), [none, label]) => {
                    let ports: Vec<u32> = it.ports.iter().map(|port| port.port_no.0).collect();
                    assert_eq!(
                        (&ports[..], *none),
                        (&[2, 3][..], NO_LABEL),
                        "own port, and that of the link"
                    );
                    labels_of.insert(from, *label);
                }
                _ => {}
            }
            (labels_of.len() == 2 && labels_of.values().all(|label| *label == expected)).then_some(())
        });
    }
}

fn tell(stream: &mut TcpStream, version: Version, body: Body) {
    let mut bytes = Vec::new();
    Message { version, xid: 7, body }.encode(&mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
}

/// The next message, with the labels behind its ports. `None`: nothing came for a while.
fn next(stream: &mut TcpStream, is_paper: bool) -> Option<(Message, Vec<u32>)> {
    let mut header = [0; 8];
    match stream.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
        Err(error) => panic!("the slice ended the connection: {error}"),
    }
    let mut bytes = header.to_vec();
    bytes.resize(frame_len(&header).unwrap().unwrap(), 0);
    stream.read_exact(&mut bytes[8..]).unwrap();
    let (plain, labels) = if is_paper { split_labels(&bytes).unwrap() } else { (bytes, Vec::new()) };
    Some((Message::decode(&plain).unwrap(), labels))
}

/// A node with the slices blue and red on the link, and with the services of the network.
struct World {
    node: Node,
    network: Handle,
}

impl World {
    fn new(blue: SocketAddr, red: &str, more: &str) -> World {
        World::with("services = ['discovery', 'labels']", blue, red, more)
    }

    fn with(services: &str, blue: SocketAddr, red: &str, more: &str) -> World {
        let config = format!(
            "[network]\n{services}\n{more}\
             [slice.blue]\ncontrollers = ['{blue}']\nisolation = 'vlan'\ntag = 10\nlinks = ['s1:3-s2:3']\n\
             vnics = {{ E = {{ port = 's1:1', rate = '8M' }}, F = {{ port = 's2:1', rate = '8M' }} }}\n\
             [slice.red]\n{red}\nisolation = 'vlan'\ntag = 20\nlinks = ['s1:3-s2:3']\n\
             vnics = {{ A = {{ port = 's1:2', rate = '8M' }}, B = {{ port = 's2:2', rate = '8M' }} }}\n",
        );
        let node = bed().node().config(&config).log("info").start_ready();
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let network = Emulation::start(&topology(), node.address(), &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        World { node, network }
    }

    fn ping(&self) {
        let is_answered = || {
            let report = self.network.begin_ping(BLUE[0], BLUE[1], Duration::from_secs(5)).unwrap();
            report.recv().unwrap().is_complete()
        };
        self.node.wait("the hosts of the blue slice reach each other", |_| is_answered());
    }
}

fn learning_tenant() -> Node {
    bed().node().app("learning-switch").start_ready()
}

#[test]
fn the_flow_of_one_tenant_lowers_the_label_that_the_other_receives_as_in_the_paper() {
    let blue = learning_tenant();
    let mut red = Tenant::new(Version::V1_0, true);
    let told = format!("controllers = ['{}']\nlabels = 'paper'", red.address());
    let world = World::new(blue.address(), &told, "");
    red.accept();
    red.wait_labels(CAPACITY_KBPS);
    world.ping();
    red.wait_labels(CAPACITY_KBPS - BLUE_KBPS);
}

/// What a message says about labels.
fn labels(message: &Message) -> Option<(bool, Vec<PortLabel>)> {
    match &message.body {
        Body::Experimenter(it) if it.experimenter == EXPERIMENTER => match LabelMessage::read(it).unwrap() {
            Some(LabelMessage::Labels { is_stale, labels, .. }) => Some((is_stale, labels)),
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

impl Tenant {
    /// Asks for the labels of a switch until they are these.
    fn wait_answer(&mut self, datapath: u64, expected: &(bool, Vec<PortLabel>)) {
        let until = Instant::now() + PATIENCE;
        loop {
            let request = LabelMessage::Request.to_experimenter(self.version);
            self.say(datapath, Body::Experimenter(request));
            let answer = self.wait("an answer", |from, message, _| {
                labels(message).filter(|_| from == datapath && message.xid == 7)
            });
            if answer == *expected {
                return;
            }
            assert!(Instant::now() < until, "{answer:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn labels_are_right_again_after_the_service_or_a_slice_was_killed() {
    let (mut blue, mut red) = (Tenant::new(Version::V1_3, false), Tenant::new(Version::V1_3, false));
    let told = format!("controllers = ['{}']\nlabels = 'experimenter'", red.address());
    let world = World::new(blue.address(), &told, "");
    blue.accept();
    red.accept();
    let label = |label_kbps| PortLabel { port: PortNo(3), label_kbps, capacity_kbps: CAPACITY_KBPS };
    red.wait_answer(1, &(false, vec![label(CAPACITY_KBPS)]));
    // A rule at one switch makes no flow, and rules at both make one, in one direction.
    blue.rule(1, "in_port=1", "output:3");
    blue.rule(2, "in_port=3", "output:1");
    let left = CAPACITY_KBPS - BLUE_KBPS;
    let told = red.wait("a change", |from, message, _| labels(message).filter(|_| from == 1));
    assert_eq!(told, (false, vec![label(left)]));
    red.wait_answer(2, &(false, vec![label(CAPACITY_KBPS)]));

    kill(world.node.pid_of("labels").unwrap());
    red.wait("the labels are stale", |_, message, _| labels(message).filter(|(is_stale, _)| *is_stale));
    red.wait_answer(1, &(false, vec![label(left)]));

    // Another process of the slice has the rules of the old one, and so its flow. The flow of the new rules is the other direction.
    kill(world.node.pid_of("slice.blue").unwrap());
    blue.switches.clear();
    blue.accept();
    blue.rule(2, "in_port=1", "output:3");
    blue.rule(1, "in_port=3", "output:1");
    red.wait_answer(2, &(false, vec![label(left)]));
    // After five seconds, a new process has reported all flows that it knows, and others are forgotten.
    std::thread::sleep(Duration::from_secs(6));
    red.wait_answer(1, &(false, vec![label(left)]));
    red.wait_answer(2, &(false, vec![label(left)]));
}

#[test]
fn a_node_without_labels_says_that_controllers_receive_none() {
    let slice = "[slice.red]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\nlabels = 'paper'\nown_ports = ['s1:1']\n";
    let node = bed().node().config(slice).log("info").start_ready();
    node.wait_for_line("its controllers receive no labels");
}

#[test]
fn an_app_of_a_tenants_node_receives_labels() {
    let bed = bed();
    let config = format!(
        "[southbound]\nversions = ['1.3']\n[app.watcher]\npath = '{}'\n\
         [app.watcher.capabilities]\nvendor = ['0x00627572:message']\n",
        bed.example("label_watcher").display()
    );
    let red = bed.node().config(&config).log("info").start_ready();
    let mut blue = Tenant::new(Version::V1_3, false);
    let told = format!("controllers = ['{}']\nlabels = 'experimenter'", red.address());
    let world = World::new(blue.address(), &told, "");
    blue.accept();
    // What was there before the app's node knew the switch comes too.
    red.wait_for_line(&format!("label of:0000000000000002/3: {CAPACITY_KBPS} of {CAPACITY_KBPS}"));
    blue.rule(1, "in_port=1", "output:3");
    blue.rule(2, "in_port=3", "output:1");
    let left = CAPACITY_KBPS - BLUE_KBPS;
    red.wait_for_line(&format!("label of:0000000000000001/3: {left} of {CAPACITY_KBPS}"));
    drop(world);
}

impl World {
    /// What the operator is shown of the labels of red: by the first switch of the link, and whether they are stale. `None`: not now.
    fn labels_of_red(&self) -> Option<(BTreeMap<String, u64>, bool)> {
        let output = self.node.bed().run(&["slice", "labels", "red", "--json"]);
        let all: Value = serde_json::from_slice(&output.stdout).ok()?;
        let label = |item: &Value| {
            let from = item["link"].as_str().unwrap().split('/').next().unwrap().to_owned();
            (from, item["label_kbps"].as_u64().unwrap())
        };
        Some((all["items"].as_array()?.iter().map(label).collect(), all["stale"].as_bool()?))
    }

    /// Waits until labels of red are known. The intent must be in each that is not stale.
    fn wait_reserved(&self, what: &str, mut is_over: impl FnMut(&Node) -> bool) {
        let expected = (link_labels(CAPACITY_KBPS - BLUE_KBPS), false);
        self.node.wait(what, |node| {
            let is_over = is_over(node);
            let Some(found) = self.labels_of_red() else { return false };
            // A service that has just begun knows no links of the slice.
            assert!(found == expected || found.1 || found.0.is_empty(), "{found:?}");
            is_over && found == expected
        });
    }
}

/// The labels of both directions of the link, if intents leave so much of the first.
fn link_labels(first_kbps: u32) -> BTreeMap<String, u64> {
    let label = |switch: u64, kbps: u32| (format!("of:{switch:016x}"), u64::from(kbps));
    [label(1, first_kbps), label(2, CAPACITY_KBPS)].into()
}

/// A node with all services of the network, and an intent that reserves 8 Mbit/s in one direction of the link. Red has been told.
struct Reserved {
    world: World,
    red: Tenant,
    _blue: Tenant,
    intent: String,
}

impl Reserved {
    fn new() -> Reserved {
        let (blue, mut red) = (Tenant::new(Version::V1_3, false), Tenant::new(Version::V1_3, false));
        let told = format!("controllers = ['{}']\nlabels = 'experimenter'", red.address());
        let rest = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let northbound = format!("[network.northbound]\nlisten = ['{rest}']\n");
        let world = World::with("", blue.address(), &told, &northbound);
        red.accept();
        world
            .node
            .wait("the link is free", |_| world.labels_of_red() == Some((link_labels(CAPACITY_KBPS), false)));
        let add = ["intents", "add", "1/2", "2/2", "--bandwidth-kbps", "8000", "--wait", "--json"];
        let output = world.node.bed().run(&add);
        assert!(output.status.success(), "{output:?}\n{}", world.node.log());
        let intent: Value = serde_json::from_slice(&output.stdout).unwrap();
        red.wait("the intent is told", is_told(CAPACITY_KBPS - BLUE_KBPS));
        world.wait_reserved("the label of one direction is lower", |_| true);
        Reserved { world, red, _blue: blue, intent: intent["id"].as_u64().unwrap().to_string() }
    }

    /// Kills a service, and waits until another process of it runs and the labels are right again.
    fn kill(&self, service: &str, mut is_over: impl FnMut(&Node) -> bool) {
        let pid = self.world.node.pid_of(service).unwrap();
        kill(pid);
        self.world.wait_reserved("another process knows the intent", |node| {
            node.pid_of(service).is_some_and(|now| now != pid) && is_over(node)
        });
    }

    fn withdraw(&mut self) {
        // The list of intents can be that of the killed process: the next one has to read them, and says so until then.
        self.world.node.wait("the intent is withdrawn", |node| {
            let output = node.bed().run(&["intents", "withdraw", &self.intent]);
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_away = why.contains("the service paths did not answer");
            assert!(output.status.success() || is_away, "{why}\n{}", node.log());
            output.status.success()
        });
        self.red.wait("the intent is gone", is_told(CAPACITY_KBPS));
        self.world.node.wait("the link is free again", |_| {
            self.world.labels_of_red() == Some((link_labels(CAPACITY_KBPS), false))
        });
    }
}

/// Whether a message says that this is left of the link for packets from the first switch.
fn is_told(label_kbps: u32) -> impl FnMut(u64, &Message, &[u32]) -> Option<()> {
    let label = PortLabel { port: PortNo(3), label_kbps, capacity_kbps: CAPACITY_KBPS };
    move |from, message, _| {
        labels(message).filter(|(_, labels)| from == 1 && labels.contains(&label)).map(drop)
    }
}

#[test]
fn what_an_intent_reserves_is_in_no_label_also_after_its_service_was_killed() {
    let mut reserved = Reserved::new();
    reserved.kill("paths", |node| {
        let output = node.bed().run(&["intents", "--json"]);
        let intents: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        intents[0]["state"] == "installed"
    });
    reserved.withdraw();
}

#[test]
fn what_an_intent_reserves_is_in_no_label_after_the_service_of_labels_was_killed() {
    let mut reserved = Reserved::new();
    reserved.kill("labels", |_| true);
    reserved.withdraw();
}
